"""A certified authorization server that nobody here wrote: clients sign in at it, and through the gateway."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

from tests.auth.person import CALLBACK, Person
from tests.gateway.conftest import anyio_backend, era, lab  # noqa: F401 - fixtures
from tests.live.registries import HOME, Npm
from tests.support.auth_entrance import bearer, known
from truename.auth.network.web import web
from truename.auth.outbound.authorization import log_in
from truename.auth.outbound.discovery import LoginRegistrations
from truename.auth.vault import open_vault
from truename.config import Access, Config, Issuer, Settings, SignIn
from truename.config.credentials import Login
from truename.gateway import Gateway, listening

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.gateway.conftest import Lab

pytestmark = [pytest.mark.live, pytest.mark.anyio]

_SCRIPT = "identity_provider.mjs"


@contextmanager
def provider(here: str) -> Iterator[str]:
    """Run the server for a gateway at this address; gives its issuer."""
    node, _ = Npm("oidc-provider@9.13.3", "none").command("oidc-provider")
    script = shutil.copy(Path(__file__).with_name(_SCRIPT), HOME / "oidc-provider" / _SCRIPT)
    port = free_port()
    command = [node, str(script), str(port), f"{here}/mcp", f"{here}/sign-in/callback"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"listens\n"
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            running.terminate()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


async def browse(url: str) -> httpx2.URL:
    """Go where a browser is sent, fill in what is asked, until the client's own address comes."""
    async with httpx2.AsyncClient(timeout=20) as browser:
        answer = await browser.get(url)
        with anyio.fail_after(60):
            while not (target := str(answer.url.join(answer.headers.get("location", "")))).startswith(CALLBACK):
                if answer.is_redirect:
                    answer = await browser.get(target)
                    continue
                assert answer.status_code == 200, answer.text
                where, said = filled(answer)
                answer = await browser.post(where, data=said)
    return httpx2.URL(target)


def filled(page: httpx2.Response) -> tuple[str, dict[str, str]]:
    form = re.search(r'<form[^>]*action="([^"]+)"', page.text)
    hidden = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.text)
    said = {"answer": "allow", **{name: unescape(value) for name, value in hidden}}
    if 'name="login"' in page.text:
        said |= {"login": "ann", "password": "any"}
    return str(page.url.join(unescape(form[1])) if form else page.url), said


@pytest.mark.parametrize("way", ["its own tokens", "sign-in by the gateway"])
async def test_a_real_client_signs_in_at_a_certified_server(lab: Lab, era: str, way: str) -> None:  # noqa: F811
    port = free_port()
    with provider(f"http://127.0.0.1:{port}") as issuer:
        told = SignIn(
            client_id="gate",
            client_secret="its-secret",
            issuer=issuer,
            allow=("email:*@example.com",),
            request=("openid", "email", "offline_access"),
            scopes=("use",),
        )
        both = {
            "its own tokens": Access(oauth={"idp": Issuer(issuer=issuer, scopes=("read",))}),
            "sign-in by the gateway": Access(sign_in=told),
        }
        settings = Settings(state="memory", access=both[way])
        config = Config(servers=(lab.normal("w", "get"),), settings=settings)
        person = Person(browse)
        async with Gateway(config) as gateway, listening(gateway, port=port) as address:
            async with person.connected(f"{address}/mcp", era) as client:
                assert not (await client.call_tool("w_get", {})).is_error
            if way == "its own tokens":
                return
            assert person.pocket.tokens is not None
            assert person.pocket.client is not None
            form = {
                "grant_type": "refresh_token",
                "refresh_token": person.pocket.tokens.refresh_token,
                "client_id": person.pocket.client.client_id,
            }
            async with httpx2.AsyncClient() as http:
                # The provider is asked again, and rotates its own refresh token.
                assert (await http.post(f"{address}/token", data=form)).status_code == 200


async def go(url: str) -> None:
    """Go where a browser is sent, and fill in what is asked, until it is told that it is logged in."""
    async with httpx2.AsyncClient(timeout=20, follow_redirects=True) as browser:
        page = await browser.get(url)
        with anyio.fail_after(60):
            while "You are logged in" not in page.text:
                assert page.status_code == 200, page.text
                where, said = filled(page)
                page = await browser.post(where, data=said)


async def test_a_gateway_logs_people_in_at_another_one_with_nothing_set_up(
    lab: Lab,  # noqa: F811
    era: str,  # noqa: F811
    tmp_path: Path,
) -> None:
    """The server is a gateway that takes tokens of the certified one, and says so (RFC 9728)."""
    port = free_port()
    asked: list[str] = []

    async def elicited(context: object, params: Any) -> ElicitResult:
        asked.append(params.url)
        await go(params.url)
        return ElicitResult(action="accept")

    with provider(f"http://127.0.0.1:{port}") as issuer:
        settings = Settings(state="memory", access=Access(oauth={"idp": Issuer(issuer=issuer, scopes=("read",))}))
        behind = Config(servers=(lab.normal("w", "get"),), settings=settings)
        tokens, access = known("ann")
        async with Gateway(behind) as far, listening(far, port=port) as there:
            entry = lab.at("far", f"{there}/mcp", auth=Login(), isolation="user")
            front = Config(servers=(entry,), settings=Settings(state=str(tmp_path / "state.db"), access=access))
            with open_vault(front) as vault:
                kept = LoginRegistrations(Login(), f"{there}/mcp", vault)
                async with web() as fetch, anyio.create_task_group() as tasks:

                    def show(url: str) -> None:
                        tasks.start_soon(go, url)

                    kept.keep("local", *await log_in(kept, fetch, show))
            async with (
                Gateway(front) as near,
                listening(near) as here,
                httpx2.AsyncClient(headers=bearer(tokens["ann"]), timeout=30) as http,
                Client(
                    streamable_http_client(f"{here}/mcp", http_client=http), mode=era, elicitation_callback=elicited
                ) as client,
            ):
                (tool,) = (await client.list_tools()).tools
                for _ in range(2):
                    assert not (await client.call_tool(tool.name, {})).is_error
    assert len(asked) == 1
