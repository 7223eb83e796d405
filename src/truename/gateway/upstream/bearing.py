"""Showing a server the gateway's own access token, and never what a client of the gateway showed."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

import httpx2

if TYPE_CHECKING:
    from truename.auth.outbound.tokens import ServerCredential

__all__ = ["Bearing"]


class Bearing(httpx2.AsyncBaseTransport):
    """Adds a token to each request; where the server does not take it, another one is asked for, once.

    A request that is answered with 401 was not run, so it can be sent again. Raises `NoCredential`.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport, credential: ServerCredential) -> None:
        self._inner = inner
        self._credential = credential

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request."""
        token = await self._credential.token()
        response = await self._sent(request, token)
        if response.status_code != HTTPStatus.UNAUTHORIZED:
            return response
        self._credential.refused(token)
        await response.aclose()
        return await self._sent(request, await self._credential.token())

    async def _sent(self, request: httpx2.Request, token: str) -> httpx2.Response:
        request.headers["authorization"] = f"Bearer {token}"
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        """Close what is below."""
        await self._inner.aclose()
