"""Tokens of the gateway's own for its servers: from a real authorization server, kept, renewed, and told to nobody."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.auth.authority import authority
from tests.conformance.fixture import Everything
from tests.gateway.conftest import connected, text_of
from tests.gateway.old_transport import old_app
from tests.support.auth_client_tokens import SECRET, Clock, Guarded, Said
from truename.auth.network.web import Web
from truename.auth.outbound.tokens import ClientTokens, NoCredential
from truename.cli._reload import files_of
from truename.config import ServerConfig, load, parse
from truename.config.credentials import ClientCredentials
from truename.errors import ConfigError
from truename.gateway import Gateway, listening

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.auth.authority import Authority
    from tests.gateway.conftest import Lab, Upstreams


@pytest.fixture
def idp() -> Iterator[Authority]:
    with authority() as one:
        one.client("truename", secret=SECRET)
        yield one


pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]


def _auth(idp: Authority, **more: Any) -> ClientCredentials:
    return ClientCredentials(**{"client_id": "truename", "client_secret": SECRET, "issuer": idp.issuer, **more})


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_server_is_shown_a_token_of_the_gateways_own(
    kind: Any, idp: Authority, lab: Lab, upstreams: Upstreams, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server = Everything().server
    app = Guarded(server.streamable_http_app() if kind == "http" else old_app(server), idp)
    async with upstreams.app(app) as url:
        address = f"{url}/{'mcp' if kind == 'http' else 'sse'}"
        far = ServerConfig(key="far", url=address, type=kind, auth=_auth(idp, scopes=("read",)))
        async with lab.serving(far) as here, connected(here + "/mcp", "legacy") as client:
            for _ in range(3):
                assert text_of(await client.call_tool("test_simple_text", {})).startswith("This is")
    (asked,) = idp.asked("/token")
    assert asked == {"grant_type": "client_credentials", "scope": "read", "resource": address}
    (token,) = idp.tokens
    assert set(app.shown) == {f"Bearer {token.access_token}"}
    # The authorization server is in this process too, and logs for itself.
    logged = "\n".join(one.getMessage() for one in caplog.records if not one.name.startswith("authlib"))
    assert len(logged) > 1_000
    assert SECRET not in logged + repr(far) + repr(lab.events)
    assert token.access_token not in logged


async def test_a_token_that_was_revoked_is_replaced_and_the_call_runs_once(
    idp: Authority, lab: Lab, upstreams: Upstreams
) -> None:
    app = Guarded(Everything().server.streamable_http_app(), idp)
    async with upstreams.app(app) as url:
        far = lab.at("far", f"{url}/mcp", auth=_auth(idp))
        async with lab.serving(far) as here, connected(here + "/mcp", "2026-07-28") as client:
            await client.call_tool("test_simple_text", {})
            idp.revoke()
            assert text_of(await client.call_tool("test_simple_text", {})).startswith("This is")
    assert len(idp.tokens) == 2


async def test_where_there_is_no_token_calls_say_why_and_it_comes_back(
    idp: Authority, lab: Lab, upstreams: Upstreams
) -> None:
    app = Guarded(Everything().server.streamable_http_app(), idp)
    async with upstreams.app(app) as url:
        far = lab.at("far", f"{url}/mcp", auth=_auth(idp, client_secret="wrong-" + SECRET))
        async with lab.gateway(far) as gateway:
            told = gateway.status().servers[0].error or ""
    assert "could not be sent an access token" in told
    assert "invalid_client" in told
    assert SECRET not in told
    assert app.shown == []


async def test_a_file_that_changed_is_what_servers_are_shown_from_then_on(
    idp: Authority, lab: Lab, upstreams: Upstreams, tmp_path: Path
) -> None:
    secret = tmp_path / "token"
    secret.write_text("first")
    app = Guarded(Everything().server.streamable_http_app(), idp)
    app.also = {"Bearer first", "Bearer second"}
    async with upstreams.app(app) as url:
        path = tmp_path / "truename.toml"
        header = f"Bearer ${{file:{secret}}}"
        path.write_text(
            f'state = "memory"\n[mcpServers.far]\nurl = "{url}/mcp"\nheaders = {{ Authorization = "{header}" }}\n'
        )
        async with Gateway(load(path, {})) as gateway, listening(gateway) as here:
            assert secret in files_of(gateway.config)
            async with connected(here + "/mcp", "2026-07-28") as client:
                await client.call_tool("test_simple_text", {})
                secret.write_text("second")
                assert (await gateway.reload(load(path, {}))).changed == ("far",)
                await gateway.settle()
                await client.call_tool("test_simple_text", {})
    assert app.shown[0] == "Bearer first"
    assert app.shown[-1] == "Bearer second"


async def test_a_token_is_asked_for_once_and_again_before_it_expires(idp: Authority) -> None:
    clock, web = Clock(), Web()
    tokens = ClientTokens(_auth(idp), "http://127.0.0.1:1/mcp", web, clock)
    found: list[str] = []

    async def take() -> None:
        found.append(await tokens.token())

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(take)
    assert len(set(found)) == len(idp.tokens) == 1
    clock.now += 539
    assert await tokens.token() == found[0]
    clock.now += 2
    assert await tokens.token() != found[0]
    tokens.refused(found[0])
    assert len(idp.tokens) == 2
    await tokens.token()
    assert len(idp.tokens) == 2
    assert found[0] not in repr(vars(tokens))
    await web.close()


async def test_an_authorization_server_that_is_down_is_not_asked_by_every_call(idp: Authority) -> None:
    clock, web = Clock(), Web()
    tokens = ClientTokens(_auth(idp), "http://127.0.0.1:1/mcp", web, clock)
    idp.refuses = "/token"
    for _ in range(5):
        with pytest.raises(NoCredential, match="HTTP 503, server_error"):
            await tokens.token()
    assert len(idp.asked("/token")) == 1
    idp.refuses = ""
    clock.now += 6
    assert await tokens.token()
    await web.close()


GOOD: dict[str, Any] = {"access_token": "t", "token_type": "Bearer", "expires_in": 60}


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ({}, 200),
        (b"<html>", 200),
        ([], 200),
        ({**GOOD, "access_token": ""}, 200),
        ({**GOOD, "access_token": 7}, 200),
        ({**GOOD, "access_token": "a b"}, 200),
        ({**GOOD, "access_token": "a\r\nx-evil: 1"}, 200),
        ({**GOOD, "access_token": "ü"}, 200),
        ({**GOOD, "access_token": "x" * 20_000}, 200),
        ({**GOOD, "token_type": "DPoP"}, 200),
        ({**GOOD, "token_type": None}, 200),
        (GOOD, 400),
        ({"error": f"it was {SECRET}", "error_description": SECRET}, 400),
        ({"error": {"a": SECRET}}, 401),
    ],
)
async def test_what_is_no_token_is_none_and_no_error_repeats_what_was_sent(answer: Any, status: int) -> None:
    said = ClientCredentials(client_id="c", client_secret=SECRET, token_url="https://idp.example/token")
    with pytest.raises(NoCredential) as caught:
        await ClientTokens(said, "https://far.example/mcp", Said(answer, status)).token()
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("lasting", [None, True, -1, 0, "3600", float("nan"), 1e400, pytest.param(10**400, id="ages")])
async def test_a_life_that_can_not_be_read_is_a_short_one(lasting: Any) -> None:
    clock = Clock()
    said = ClientCredentials(client_id="c", client_secret=SECRET, token_url="https://idp.example/token", resource="")
    fetch = Said({**GOOD, "expires_in": lasting})
    tokens = ClientTokens(said, "https://far.example/mcp", fetch, clock)
    await tokens.token()
    clock.now += 200
    await tokens.token()
    assert len(fetch.forms) == 1
    assert "resource" not in fetch.forms[0]["form"]
    clock.now += 100
    await tokens.token()
    assert len(fetch.forms) == 2


_ENTRY = (
    '[mcpServers.far]\nurl = "{url}"\n{more}\n[mcpServers.far.auth]\ntype = "client_credentials"\nclient_id = "c"\n'
)
_WHOLE = 'client_secret = "s"\nissuer = "https://idp.example"\n'


@pytest.mark.parametrize(
    ("url", "more", "auth", "problem"),
    [
        ("http://far.example/mcp", "", _WHOLE, "tokens would travel unencrypted"),
        ("https://me:word@far.example/mcp", "", _WHOLE, "credentials in the address"),
        ("https://far.example/mcp", 'headers = {authorization = "x"}', _WHOLE, "an Authorization header too"),
        ("https://far.example/mcp", "", 'client_secret = "s"', "either issuer or token_url"),
        ("https://far.example/mcp", "", _WHOLE + 'token_url = "https://idp.example/t"', "either issuer or token_url"),
        ("https://far.example/mcp", "", 'issuer = "https://idp.example"', "missing"),
        ("https://far.example/mcp", "", _WHOLE + 'scope = "x"', "not a setting"),
        ("https://far.example/mcp", "", _WHOLE.replace("https", "http"), "http"),
    ],
)
def test_what_could_give_a_secret_away_is_no_configuration(
    url: str, more: str, auth: str, problem: str, tmp_path: Path
) -> None:
    with pytest.raises((ConfigError, ExceptionGroup)) as caught:
        parse(_ENTRY.format(url=url, more=more) + auth, tmp_path / "truename.toml", {})
    told = caught.value.exceptions if isinstance(caught.value, ExceptionGroup) else (caught.value,)
    assert any(problem in str(one) for one in told)


def test_an_entry_is_read_and_its_secret_shown_nowhere(tmp_path: Path) -> None:
    text = _ENTRY.format(url="https://far.example/mcp", more="") + _WHOLE.replace('"s"', '"${S}"')
    (server,) = parse(text, tmp_path / "truename.toml", {"S": SECRET}).servers
    assert server.auth == ClientCredentials(client_id="c", client_secret=SECRET, issuer="https://idp.example")
    assert SECRET not in repr(server)
    foreign = '{"mcpServers": {"far": {"url": "https://far.example/mcp", "auth": {"CLIENT_ID": "x"}}}}'
    assert parse(foreign, tmp_path / "mcp.json", {}).servers[0].auth is None
