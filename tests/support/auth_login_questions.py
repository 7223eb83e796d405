"""Test support: login questions, used by tests of several modules."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html import unescape
from typing import TYPE_CHECKING, Any

import httpx2
import mcp_types as types
from mcp.client.streamable_http import streamable_http_client

from tests.auth.found import Telling
from tests.auth.signing import origin
from tests.gateway.conftest import connected
from tests.support.auth_entrance import bearer, known
from tests.support.auth_found_logins import entered
from truename.auth.network.web import web
from truename.auth.outbound.discovery import LoginRegistrations
from truename.auth.vault import open_vault
from truename.config import Access, Config, ServerConfig, Settings
from truename.config.credentials import Login
from truename.gateway import Gateway, listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from mcp import Client

    from tests.auth.authority import Authority
    from tests.gateway.conftest import Upstreams

TOOL = "test_simple_text"


@dataclass(kw_only=True)
class Scene:
    """A gateway on loopback, before a server at which nobody but the operator is logged in."""

    app: Telling
    here: str
    tokens: dict[str, str]
    config: Config
    address: str
    asked: list[Any] = field(default_factory=list)

    @asynccontextmanager
    async def client(self, who: str, era: str, elicited: Any = None) -> AsyncIterator[Client]:
        async with httpx2.AsyncClient(headers=bearer(self.tokens[who]), timeout=30) as http:
            target = streamable_http_client(f"{self.here}/mcp", http_client=http)
            async with connected(target, era, elicitation_callback=elicited) as client:
                yield client

    def user(self, browse: Callable[[str], Any], action: Any = "accept") -> Any:
        """Return what a client does with an address for its user."""

        async def elicited(_: object, params: Any) -> types.ElicitResult:
            self.asked.append(params)
            await browse(params.url)
            return types.ElicitResult(action=action)

        return elicited


def kept_in(folder: Path) -> Config:
    """Return a configuration whose logins are kept in a folder."""
    return Config(settings=Settings(state=str(folder / "state.db")))


@asynccontextmanager
async def scene(
    idp: Authority, upstreams: Upstreams, folder: Path, *, old: bool = False, **more: Any
) -> AsyncIterator[Scene]:
    app = Telling(idp, old=old)
    tokens, access = known("ann", "bob")
    access = Access(tokens=access.tokens)
    async with upstreams.app(app) as url:
        address = f"{url}/mcp"
        far = ServerConfig(key="far", url=address, type="http", auth=Login(), isolation="user")
        settings = Settings(state=str(folder / "state.db"), access=access, startup_timeout=20.0, **more)
        config = Config(path=folder / "truename.toml", servers=(far,), settings=settings)
        with open_vault(config) as vault:
            async with web() as fetch:
                idp.user = {"sub": "operator"}
                await entered(LoginRegistrations(Login(), address, vault), fetch, "local")
        idp.user = {"sub": "ann"}
        async with Gateway(config) as gateway, listening(gateway) as here:
            yield Scene(app=app, here=here, tokens=tokens, config=config, address=address)


async def logs_in(url: str, http: httpx2.AsyncClient | None = None) -> httpx2.Response:
    """Open a page, press its button, and go where that leads."""
    async with httpx2.AsyncClient(follow_redirects=True, timeout=20) as own:
        browser = http or own
        page = await browser.get(url)
        if page.status_code != 200:
            return page
        return await browser.post(url, data=pressed(page), headers=origin(page))


def pressed(page: httpx2.Response) -> dict[str, str]:
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.text)
    return {name: unescape(value) for name, value in found}
