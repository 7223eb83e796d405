"""People's own logins at servers: a real authorization server, a real browser's way, and nobody's token for another."""

from __future__ import annotations

import importlib
import json
import socket
import struct
import sys
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import pytest

from tests.auth.authority import authority
from tests.conformance.fixture import Everything
from tests.support.auth_client_tokens import Clock, Guarded
from tests.support.auth_logins import ADDRESS, SECRET, _entered, _follow, _login
from truename.auth.inbound.static_tokens import create_token, digest_of, token_id
from truename.auth.network.fetch import FetchError
from truename.auth.network.web import Web, web
from truename.auth.outbound.authorization import log_in, log_out
from truename.auth.outbound.discovery import LoginRegistrations
from truename.auth.outbound.logins import Logins, UserTokens
from truename.auth.outbound.tokens import LoginNeeded, NoCredential
from truename.auth.vault import Vault, open_vault
from truename.cli import main
from truename.config import parse
from truename.config.credentials import Login
from truename.errors import ConfigError
from truename.gateway import Gateway, listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from tests.auth.authority import Authority


@pytest.fixture
def idp() -> Iterator[Authority]:
    with authority() as one:
        yield one


pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]


def _arranged(said: Login) -> LoginRegistrations:
    return LoginRegistrations(said, ADDRESS, Vault(None, [bytes(32)]))


@pytest.mark.parametrize("secret", ["", SECRET])
async def test_somebody_logs_in_with_all_that_the_protocol_asks_for(secret: str, idp: Authority) -> None:
    async with web() as fetch:
        had = await _entered(_login(idp, client_secret=secret), fetch, _follow)
    (asked,) = idp.asked("/authorize")
    (exchanged,) = idp.asked("/token")
    assert asked["code_challenge_method"] == "S256"
    assert asked["resource"] == exchanged["resource"] == ADDRESS
    assert len(asked["state"]) >= 32
    assert exchanged["code_verifier"] not in str(asked)
    assert exchanged["redirect_uri"] == asked["redirect_uri"]
    assert had.token == idp.tokens[0].access_token
    assert had.token not in repr(had)
    assert had.refresh not in repr(had)


def _tampered(**changes: str | None) -> Callable[[str], Any]:
    async def browse(url: str) -> None:
        async with httpx2.AsyncClient() as browser:
            back = (await browser.get(url)).headers["location"]
            parts = urlsplit(back)
            said = {name: values[0] for name, values in parse_qs(parts.query).items()}
            said = {name: value for name, value in {**said, **changes}.items() if value is not None}
            answer = await browser.get(f"http://{parts.netloc}{parts.path}", params=said)
            if changes.keys() & {"state"}:
                assert answer.status_code == 400

    return browse


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"state": "guessed"}, "no login within"),
        ({"state": None}, "no login within"),
        ({"iss": "https://other.example"}, "another issuer"),
        ({"iss": None}, "another issuer"),
        ({"code": None, "error": "access_denied"}, "refused the login"),
        ({"code": "stolen"}, "refuses a token"),
    ],
)
async def test_an_answer_that_is_not_the_one_that_was_asked_for_logs_nobody_in(
    changes: dict[str, str | None], problem: str, idp: Authority
) -> None:
    async with web() as fetch:
        with pytest.raises(ExceptionGroup) as caught:
            await _entered(_login(idp), fetch, _tampered(**changes), seconds=1.0)
    (error,) = caught.value.exceptions
    assert isinstance(error, FetchError)
    assert problem in str(error)


async def test_junk_at_the_port_changes_nothing(idp: Authority) -> None:
    async def junk(url: str) -> None:
        back = urlsplit(parse_qs(urlsplit(url).query)["redirect_uri"][0])
        for head in (b"\0\xff\r\n\r\n", b"POST /callback?state=x HTTP/1.1\r\n\r\n", b"GET /x?code=1 HTTP/1.1\r\n\r\n"):
            async with await anyio.connect_tcp("127.0.0.1", back.port or 0) as stream:
                await stream.send(head)
                assert b"400 Bad Request" in await stream.receive()
        for head in (b"", b"GET /callback?state=", b"GET /callback?state=x HTTP/1.1\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", back.port or 0)) as gone:
                # Closed so, it is reset: what is answered is lost.
                gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                gone.sendall(head)
        await _follow(url)

    async with web() as fetch:
        assert (await _entered(_login(idp), fetch, junk)).token


@pytest.mark.parametrize(
    "endpoint",
    ["http://idp.example/\x1b[2J", "http://idp.example/\u202e", "http://idp.example@evil.example/", "file:///x"],
)
async def test_an_address_that_people_can_not_read_is_shown_to_nobody(endpoint: str, idp: Authority) -> None:
    idp.metadata = {"authorization_endpoint": endpoint}
    shown: list[str] = []
    async with web() as fetch:
        with pytest.raises(FetchError):
            await log_in(_arranged(_login(idp)), fetch, shown.append)
    assert shown == []


async def test_no_login_without_pkce(idp: Authority) -> None:
    idp.metadata = {"code_challenge_methods_supported": ["plain"]}
    async with web() as fetch:
        with pytest.raises(FetchError, match="PKCE"):
            await log_in(_arranged(_login(idp)), fetch, print)


@asynccontextmanager
async def _kept(idp: Authority, clock: Clock) -> AsyncIterator[tuple[UserTokens, Logins, Login]]:
    said, vault = _login(idp), Vault(None, [bytes(32)])
    async with web() as fetch:
        logins = Logins(said, ADDRESS, vault)
        logins.keep("ann", await _entered(said, fetch, _follow, clock=clock))
        yield UserTokens(said, ADDRESS, "ann", logins=logins, fetch=fetch, clock=clock), logins, said
    vault.close()


async def test_a_token_is_renewed_once_and_its_successor_kept(idp: Authority) -> None:
    clock = Clock()
    async with _kept(idp, clock) as (tokens, logins, _):
        first = await tokens.token()
        clock.now += 700
        found: list[str] = []

        async def take() -> None:
            found.append(await tokens.token())

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(take)
        assert len(set(found)) == 1
        assert found[0] != first
        renewals = [one for one in idp.asked("/token") if one["grant_type"] == "refresh_token"]
        assert len(renewals) == 1
        had = logins.of("ann")
        assert had is not None
        assert (had.token, had.refresh) == (idp.tokens[-1].access_token, idp.tokens[-1].refresh_token)


async def test_a_login_that_was_revoked_is_over(idp: Authority) -> None:
    clock = Clock()
    async with _kept(idp, clock) as (tokens, logins, _):
        idp.revoke()
        tokens.refused(await tokens.token())
        with pytest.raises(LoginNeeded, match="ann"):
            await tokens.token()
        assert logins.of("ann") is None


async def test_an_authorization_server_that_is_down_ends_no_login(idp: Authority) -> None:
    clock = Clock()
    async with _kept(idp, clock) as (tokens, logins, _):
        clock.now += 700
        idp.refuses = "/token"
        for _ in range(3):
            with pytest.raises(NoCredential) as caught:
                await tokens.token()
            assert not isinstance(caught.value, LoginNeeded)
        assert len([one for one in idp.asked("/token") if one["grant_type"] == "refresh_token"]) == 1
        idp.refuses = ""
        clock.now += 6
        assert await tokens.token()
        assert logins.of("ann") is not None


async def test_another_process_may_have_renewed_it_meanwhile(idp: Authority) -> None:
    clock = Clock()
    async with _kept(idp, clock) as (tokens, logins, said):
        other = UserTokens(said, ADDRESS, "ann", logins=logins, fetch=Web(), clock=clock)
        clock.now += 700
        assert await other.token() == await tokens.token()
        await other._issuer_client._fetch.close()  # type: ignore[attr-defined]


async def test_logging_out_revokes_both_tokens(idp: Authority) -> None:
    clock = Clock()
    async with _kept(idp, clock) as (_, logins, said), web() as fetch:
        had = logins.of("ann")
        assert had is not None
        assert await log_out(said, had, fetch)
    assert all(token.revoked for token in idp.tokens)


async def test_nobodys_login_is_anothers(idp: Authority) -> None:
    said, vault = _login(idp), Vault(None, [bytes(32)])
    logins = Logins(said, ADDRESS, vault)
    async with web() as fetch:
        logins.keep("ann", await _entered(said, fetch, _follow))
        for other, address, client in (
            ("bob", ADDRESS, said),
            ("ann", ADDRESS + "2", said),
            ("ann", ADDRESS, replace(said, client_id="other")),
            ("ann", ADDRESS, replace(said, issuer="https://other.example")),
        ):
            tokens = UserTokens(client, address, other, logins=Logins(client, address, vault), fetch=fetch)
            with pytest.raises(LoginNeeded):
                await tokens.token()
    vault.close()


def _written(folder: Path, url: str, idp: Authority, hashes: dict[str, str]) -> Path:
    path = folder / "truename.toml"
    tokens = "".join(f'[access.tokens.{name}]\nhash = "{one}"\n' for name, one in hashes.items())
    path.write_text(
        f'state = "state.db"\n{tokens}[mcpServers.far]\nurl = "{url}/mcp"\n[mcpServers.far.auth]\ntype = "login"\n'
        f'client_id = "truename"\nclient_secret = "{SECRET}"\nissuer = "{idp.issuer}"\n'
    )
    return path


async def test_each_person_calls_with_their_own_token_and_with_nobody_elses(
    idp: Authority, tmp_path: Path, upstreams: Any, raw: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The confused deputy: what one may do at a server, another gets by the gateway in between. Here they don't."""
    app = Guarded(Everything().server.streamable_http_app(), idp)
    shown: dict[str, str] = {}
    hashes: dict[str, str] = {}
    for name in ("ann", "bob", "eve"):
        shown[name], _ = create_token(name, groups=(), scopes=(), expires=None)
        hashes[name] = f"tn1:{token_id(shown[name])}:{digest_of(shown[name])}"
    async with upstreams.app(app) as url:
        config = parse(
            (path := _written(tmp_path, url, idp, hashes)).read_text(),
            path,
            {"XDG_STATE_HOME": str(tmp_path / "state")},
        )
        said = config.servers[0].auth
        assert isinstance(said, Login)
        _login(idp)
        bearers: dict[str, str] = {}
        gone: set[str] = set()
        with open_vault(config) as vault:
            logins = Logins(said, f"{url}/mcp", vault)
            async with web() as fetch:
                for name in ("local", "ann", "bob"):
                    idp.user = {"sub": name}
                    had = await _entered(said, fetch, _follow, f"{url}/mcp")
                    logins.keep(name, had)
                    bearers[name] = f"Bearer {had.token}"

            async def call(name: str) -> str:
                before = len(app.calls)
                headers = {"authorization": f"Bearer {shown[name]}"}
                params = {"name": "test_simple_text", "arguments": {}}
                result = await http.result("tools/call", params, headers=headers)
                # Who is not logged in reaches no server, and nobody is shown as another.
                assert app.calls[before:] == ([bearers[name]] if name in bearers and name not in gone else [])
                return str(result["content"][0]["text"])

            async with Gateway(config) as gateway, listening(gateway) as here, raw(here) as http:
                for name in ("ann", "bob", "ann"):
                    assert (await call(name)).startswith("This is")
                refused = await call("eve")
                assert "needs a login (eve is not logged in at the server)" in refused
                assert "truename login far --for WHO" in refused
                logins.forget("ann")
                gone.add("ann")
                assert "needs a login" in await call("ann")
                assert (await call("bob")).startswith("This is")
    kept = b"".join(one.read_bytes() for one in (tmp_path / "state").rglob("*") if one.is_file())
    assert not any(token.encode() in kept for token in bearers.values())
    assert not any(token.removeprefix("Bearer ").encode() in kept for token in bearers.values())
    assert not any(token.refresh_token.encode() in kept for token in idp.tokens)


def test_a_login_is_each_persons_and_its_connection_too(tmp_path: Path) -> None:
    text = '[mcpServers.far]\nurl = "https://far.example/mcp"\n{}\n[mcpServers.far.auth]\ntype = "login"\n'
    rest = 'client_id = "c"\nissuer = "https://idp.example"\n'
    (server,) = parse(text.format("") + rest, tmp_path / "truename.toml", {}).servers
    assert server.isolation == "user"
    for isolation in ("shared", "session"):
        with pytest.raises(ConfigError, match="would mix people's logins"):
            parse(text.format(f'isolation = "{isolation}"') + rest, tmp_path / "truename.toml", {})
    with pytest.raises(ConfigError, match="not a setting of login"):
        parse(text.format("") + rest + 'token_url = "https://idp.example/t"', tmp_path / "truename.toml", {})


def test_the_commands_log_in_list_and_log_out(
    idp: Authority, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _login(idp)
    path = str(_written(tmp_path, "http://127.0.0.1:9", idp, {}))

    def told() -> list[dict[str, Any]]:
        decoder, text, found = json.JSONDecoder(), capsys.readouterr().out, []
        while text := text.strip():
            one, end = decoder.raw_decode(text)
            found.append(one)
            text = text[end:]
        return found

    importlib.import_module("truename.cli.login")

    async def browsing(kept: LoginRegistrations, fetch: Any, show: Callable[[str], None], **more: Any) -> Any:
        async with anyio.create_task_group() as tasks:

            def both(url: str) -> None:
                show(url)
                tasks.start_soon(_follow, url)

            return await log_in(kept, fetch, both, **more)

    monkeypatch.setattr(sys.modules["truename.cli.login"], "log_in", browsing)
    assert main(["logins", path, "--json"]) == 0
    assert told() == [{"logins": []}]
    assert main(["login", "far", path, "--for", "ann", "--json"]) == 0
    url, done = told()
    assert url["url"].startswith(idp.issuer + "/authorize?")
    assert done == {"server": "far", "principal": "ann", "logged_in": True}
    assert main(["logins", path, "--json"]) == 0
    ((only,),) = (one["logins"] for one in told())
    assert (only["server"], only["principal"], only["issuer"]) == ("far", "ann", idp.issuer)
    assert main(["logout", "far", path, "--for", "bob", "--json"]) == 1
    capsys.readouterr()
    assert main(["logout", "far", path, "--for", "ann", "--json"]) == 0
    assert told() == [{"server": "far", "principal": "ann", "logged_out": True, "problem": None}]
    assert all(token.revoked for token in idp.tokens)
    assert main(["login", "far", path, "--for", "ann", "--json"]) == 0
    told()
    assert not all(token.revoked for token in idp.tokens)
    assert main(["deprovision", "ann", path, "--json"]) == 0
    (ended,) = told()
    assert (len(ended["logins"]) > 0, ended["problems"]) == (True, [])
    assert all(token.revoked for token in idp.tokens)
    assert main(["logins", path, "--json"]) == 0
    assert told() == [{"logins": []}]
    assert main(["login", "near", path]) == 2
    assert "server 'near' does not use per-user login" in capsys.readouterr().err
    monkeypatch.setattr(sys.modules["truename.cli.login"], "log_in", log_in)
    idp.metadata = {"code_challenge_methods_supported": []}
    assert main(["login", "far", path, "--timeout", "1"]) == 3
    assert "PKCE" in capsys.readouterr().err
