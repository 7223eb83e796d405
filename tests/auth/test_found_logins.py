"""Logins with nothing set up by hand: the issuer is the server's word, kept to; the client is the gateway's own."""

from __future__ import annotations

import importlib
import json
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest

from tests.auth.authority import Authority, authority
from tests.auth.found import Telling
from tests.support.auth_client_tokens import Clock
from tests.support.auth_found_logins import _follow, entered
from truename.auth.network.fetch import FetchError
from truename.auth.network.web import web
from truename.auth.outbound.authorization import LoggedIn, log_in
from truename.auth.outbound.discovery import DiscoveredIssuerTokens, LoginRegistrations, find_login_site
from truename.auth.outbound.tokens import LoginNeeded
from truename.auth.vault import Vault, open_vault
from truename.cli import main
from truename.config import parse
from truename.config.credentials import Login
from truename.errors import ConfigError
from truename.gateway import Gateway

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from tests.gateway.conftest import Upstreams

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]


@pytest.fixture
def idp() -> Iterator[Authority]:
    with authority() as one:
        yield one


@pytest.fixture
def vault() -> Iterator[Vault]:
    with Vault(None, [bytes(32)]) as one:
        yield one


@asynccontextmanager
async def _far(idp: Authority, upstreams: Upstreams) -> AsyncIterator[tuple[Telling, str]]:
    app = Telling(idp)
    async with upstreams.app(app) as url:
        yield app, f"{url}/mcp"


@pytest.mark.parametrize("shy", [False, True])
async def test_an_entry_that_says_login_alone_is_enough(
    shy: bool, idp: Authority, upstreams: Upstreams, vault: Vault
) -> None:
    async with _far(idp, upstreams) as (app, address), web() as fetch:
        app.shy = shy
        app.more = {"scopes_supported": ["read"]}
        kept = LoginRegistrations(Login(), address, vault)
        said, _ = await entered(kept, fetch)
        assert (said.issuer, said.resource, said.scopes) == (idp.issuer, address, ("read",))
        assert await DiscoveredIssuerTokens(kept, "ann", fetch=fetch).token() == idp.tokens[-1].access_token
        with pytest.raises(LoginNeeded, match="bob is not logged in"):
            await DiscoveredIssuerTokens(kept, "bob", fetch=fetch).token()
    (client,) = idp.registered
    (redirect,) = client["redirect_uris"]
    assert client["application_type"] == "native"
    assert urlsplit(redirect).hostname == "127.0.0.1"
    (asked,) = idp.asked("/authorize")
    assert (asked["resource"], asked["redirect_uri"], asked["client_id"]) == (address, redirect, said.client_id)


async def test_a_registration_is_used_again_until_it_is_not_known_there_any_more(
    idp: Authority, upstreams: Upstreams, vault: Vault
) -> None:
    idp.metadata = {"token_endpoint_auth_methods_supported": ["client_secret_basic"]}
    async with _far(idp, upstreams) as (_, address), web() as fetch:
        kept = LoginRegistrations(Login(), address, vault)
        first, _ = await entered(kept, fetch)
        assert first.client_secret
        assert first.client_secret not in repr(first)
        again, _ = await entered(kept, fetch, "bob")
        assert again == first
        assert len(idp.registered) == 1
        idp.clients.clear()
        third, _ = await entered(kept, fetch, "bob")
        assert third.client_id != first.client_id
        assert [one["redirect_uris"] for one in idp.registered] == [idp.registered[0]["redirect_uris"]] * 2


async def test_a_client_that_is_forgotten_ends_the_logins_that_it_made(
    idp: Authority, upstreams: Upstreams, vault: Vault
) -> None:
    clock = Clock()
    async with _far(idp, upstreams) as (_, address), web() as fetch:
        kept = LoginRegistrations(Login(), address, vault)
        said, _ = await entered(kept, fetch, clock=clock)
        tokens = DiscoveredIssuerTokens(kept, "ann", fetch=fetch, clock=clock)
        await tokens.token()
        idp.clients.clear()
        clock.now += 700
        for _ in range(2):
            with pytest.raises(LoginNeeded):
                await tokens.token()
        assert kept.redirects(said.issuer) == []
        assert kept.principals() == []


async def test_the_first_issuer_that_works_is_taken_and_stays_it(
    idp: Authority, upstreams: Upstreams, vault: Vault
) -> None:
    with authority() as other:
        async with _far(idp, upstreams) as (app, address), web() as fetch:
            app.issuers = ["http://127.0.0.1:9", other.issuer, idp.issuer]
            kept = LoginRegistrations(Login(), address, vault)
            assert (await entered(kept, fetch))[0].issuer == other.issuer
            app.issuers = [idp.issuer, other.issuer]
            assert (await entered(kept, fetch, "bob"))[0].issuer == other.issuer


async def test_a_server_that_names_another_issuer_sends_nobody_there_unless_the_operator_says_so(
    idp: Authority, upstreams: Upstreams, vault: Vault
) -> None:
    with authority() as other:
        async with _far(idp, upstreams) as (app, address), web() as fetch:
            kept = LoginRegistrations(Login(), address, vault)
            await entered(kept, fetch)
            app.issuers = [other.issuer]
            with pytest.raises(FetchError) as caught:
                await find_login_site(kept, fetch)
            assert idp.issuer in str(caught.value)
            assert other.issuer in str(caught.value)
            # Whoever is logged in stays it, at the issuer that it was.
            assert await DiscoveredIssuerTokens(kept, "ann", fetch=fetch).token() == idp.tokens[-1].access_token
            await entered(kept, fetch, "bob", may_move=True)
            assert await DiscoveredIssuerTokens(kept, "bob", fetch=fetch).token() == other.tokens[-1].access_token
            with pytest.raises(LoginNeeded):
                await DiscoveredIssuerTokens(kept, "ann", fetch=fetch).token()
            assert [(who, issuer) for who, issuer, _ in kept.principals()] == [("bob", other.issuer)]


async def test_a_server_that_is_silent_names_no_other_issuer(
    idp: Authority, upstreams: Upstreams, vault: Vault
) -> None:
    async with web() as fetch:
        async with _far(idp, upstreams) as (_, address):
            kept = LoginRegistrations(Login(), address, vault)
            with pytest.raises(FetchError):
                await find_login_site(LoginRegistrations(Login(), "http://127.0.0.1:9/mcp", vault), fetch)
            await entered(kept, fetch)
        assert (await find_login_site(kept, fetch)).said.issuer == idp.issuer


@pytest.mark.parametrize(
    ("metadata", "registers"),
    [
        ({"client_id_metadata_document_supported": True}, False),
        ({}, True),
        ({"client_id_metadata_document_supported": "yes"}, True),
    ],
)
async def test_a_document_is_the_client_where_the_issuer_reads_one(
    metadata: dict[str, Any], registers: bool, idp: Authority, vault: Vault
) -> None:
    url = "https://tools.example/login/client.json"
    idp.metadata = metadata

    def read(id: str) -> dict[str, Any]:
        return {"client_id": id, "redirect_uris": [idp.asked("/authorize")[-1]["redirect_uri"]]}

    idp.read = read
    async with web() as fetch:
        kept = LoginRegistrations(Login(issuer=idp.issuer, client_id=url), "https://far.example/mcp", vault)
        said, _ = await entered(kept, fetch)
    assert (said.client_id != url) is registers
    assert len(idp.registered) == registers


async def test_an_issuer_that_registers_nobody_is_told(idp: Authority, vault: Vault) -> None:
    idp.metadata = {"registration_endpoint": None}
    async with web() as fetch:
        kept = LoginRegistrations(Login(issuer=idp.issuer), "https://far.example/mcp", vault)
        with pytest.raises(FetchError):
            await log_in(kept, fetch, print)
        idp.metadata = {"registration_endpoint": f"{idp.issuer}/nowhere"}
        with pytest.raises(FetchError):
            await log_in(kept, fetch, print)


def test_a_secret_is_told_to_nobody_whom_a_server_names(tmp_path: Path) -> None:
    text = '[mcpServers.far]\nurl = "https://far.example/mcp"\n[mcpServers.far.auth]\ntype = "login"\n'
    (server,) = parse(text, tmp_path / "truename.toml", {}).servers
    assert server.auth == Login()
    for more in ('issuer = "https://idp.example"', 'client_id = "c"'):
        with pytest.raises(ConfigError, match="missing beside client_secret"):
            parse(f'{text}client_secret = "s"\n{more}', tmp_path / "truename.toml", {})


async def test_nothing_of_a_registration_or_a_login_is_on_disk_in_the_open(
    idp: Authority, upstreams: Upstreams, tmp_path: Path
) -> None:
    idp.metadata = {"token_endpoint_auth_methods_supported": ["client_secret_basic"]}
    with Vault(tmp_path / "vault.db", [bytes(32)]) as vault:
        async with _far(idp, upstreams) as (_, address), web() as fetch:
            said, had = await entered(LoginRegistrations(Login(), address, vault), fetch)
        written = b"".join(one.read_bytes() for one in tmp_path.iterdir())
    for secret in (said.client_secret, had.token, had.refresh):
        assert secret.encode() not in written


async def test_the_gateway_lists_and_calls_with_what_was_found(
    idp: Authority, upstreams: Upstreams, tmp_path: Path
) -> None:
    async with _far(idp, upstreams) as (app, address):
        path = tmp_path / "truename.toml"
        path.write_text(
            f'state = "{tmp_path / "state.db"}"\n[mcpServers.far]\nurl = "{address}"\nauth = {{ type = "login" }}\n'
        )
        config = parse(path.read_text(), path, {})
        with open_vault(config) as vault:
            async with web() as fetch:
                await entered(LoginRegistrations(Login(), address, vault), fetch, "local")
        async with Gateway(config) as gateway:
            assert any(tool.id.tool == "test_simple_text" for tool in gateway.catalog.values())
    assert set(app.guarded.shown) == {"", f"Bearer {idp.tokens[-1].access_token}"}


async def test_the_commands_find_all_of_it_and_take_another_issuer_only_when_told_to(
    idp: Authority,
    upstreams: Upstreams,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    importlib.import_module("truename.cli.login")

    async def browsing(kept: LoginRegistrations, fetch: Any, show: Callable[[str], None], **more: Any) -> LoggedIn:
        async with anyio.create_task_group() as tasks:

            def both(url: str) -> None:
                show(url)
                tasks.start_soon(_follow, url)

            try:
                return await log_in(kept, fetch, both, **more)
            except FetchError as fault:
                problem = fault
        raise problem

    monkeypatch.setattr(sys.modules["truename.cli.login"], "log_in", browsing)
    path = tmp_path / "truename.toml"

    async def run(*words: str) -> tuple[int, str]:
        code = await anyio.to_thread.run_sync(main, [*words[:2], str(path), *words[2:], "--json"])
        return code, capsys.readouterr().out

    with authority() as other:
        async with _far(idp, upstreams) as (app, address):
            path.write_text(f'state = "state.db"\n[mcpServers.far]\nurl = "{address}"\nauth = {{ type = "login" }}\n')
            assert (await run("login", "far", "--for", "ann"))[0] == 0
            app.issuers = [other.issuer]
            code, said = await run("login", "far", "--for", "ann")
            assert code == 3
            assert idp.issuer in said
            assert other.issuer in said
            assert (await run("login", "far", "--for", "ann", "--new-issuer"))[0] == 0
        code = await anyio.to_thread.run_sync(main, ["logins", str(path), "--json"])
        (only,) = json.loads(capsys.readouterr().out)["logins"]
        assert (code, only["principal"], only["issuer"]) == (0, "ann", other.issuer)
        assert (await run("logout", "far", "--for", "ann"))[0] == 0
        assert all(token.revoked for token in other.tokens)
        assert not any(token.revoked for token in idp.tokens)
        assert (await run("logout", "far", "--for", "ann"))[0] == 1


async def test_a_client_that_is_forgotten_during_a_login_is_registered_anew_for_the_next(
    idp: Authority, upstreams: Upstreams, vault: Vault
) -> None:
    async def forgotten(url: str) -> None:
        async with httpx2.AsyncClient() as browser:
            back = (await browser.get(url)).headers["location"]
            idp.clients.clear()
            await browser.get(back)

    async with _far(idp, upstreams) as (_, address), web() as fetch:
        kept = LoginRegistrations(Login(), address, vault)
        with pytest.raises(ExceptionGroup) as caught:
            await entered(kept, fetch, browse=forgotten)
        assert "invalid_client" in str(caught.value.exceptions[0])
        assert kept.redirects(idp.issuer) == []
        assert kept.pinned() is None
        await entered(kept, fetch)
    assert len(idp.registered) == 2
