"""Somebody with a real MCP client (the SDK's) and a browser, who signs in where the client says."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

CALLBACK = "http://127.0.0.1:1/callback"


class Pocket:
    """Where the client keeps what it was given."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


async def follow(url: str) -> httpx2.URL:
    """Go where a browser is sent, until it is sent back to the client."""
    async with httpx2.AsyncClient() as browser:
        while not url.startswith(CALLBACK):
            answer = await browser.get(url)
            assert answer.is_redirect, (answer.status_code, answer.text)
            url = str(answer.url.join(answer.headers["location"]))
    return httpx2.URL(url)


class Person:
    """One person, one client. ``browse`` takes them from the client's address to the client's ``callback``."""

    def __init__(
        self,
        browse: Callable[[str], Awaitable[httpx2.URL]] = follow,
        scope: str | None = None,
        *,
        callback: str = CALLBACK,
        name: str = "A client",
    ) -> None:
        self.pocket = Pocket()
        self.visited: list[str] = []
        self._browse = browse
        self._scope = scope
        self._callback = callback
        self._name = name
        self._back: httpx2.URL | None = None

    async def _go(self, url: str) -> None:
        self.visited.append(url)
        self._back = await self._browse(url)

    async def _came_back(self) -> AuthorizationCodeResult:
        assert self._back is not None
        said = self._back.params
        return AuthorizationCodeResult(code=said["code"], state=said.get("state"), iss=said.get("iss"))

    def auth(self, url: str) -> OAuthClientProvider:
        metadata = OAuthClientMetadata(
            client_name=self._name,
            redirect_uris=[self._callback],  # type: ignore[list-item]
            token_endpoint_auth_method="none",
            scope=self._scope,
        )
        return OAuthClientProvider(url, metadata, self.pocket, self._go, self._came_back)

    @asynccontextmanager
    async def connected(self, url: str, era: str, **more: Any) -> AsyncIterator[Client]:
        async with (
            httpx2.AsyncClient(auth=self.auth(url), timeout=15) as http,
            Client(streamable_http_client(url, http_client=http), mode=era, **more) as client,
        ):
            yield client
