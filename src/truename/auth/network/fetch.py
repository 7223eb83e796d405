"""Small documents of authorization servers and clients, and how they are fetched (`web.Web` does)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from truename.auth.network.addresses import NetworkZone

if TYPE_CHECKING:
    from collections.abc import Mapping


__all__ = ["Fetch", "FetchError", "FetchedDocument", "Within"]


class FetchError(Exception):
    """A document cannot be fetched; the text says why, and contains no secrets."""


@dataclass(frozen=True)
class FetchedDocument:
    """A response: status, body, and the values of its ``WWW-Authenticate`` headers."""

    status: int
    body: bytes
    challenges: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Parse the body as a JSON object. Raises `FetchError`."""
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError) as error:
            message = "it is not JSON"
            raise FetchError(message) from error
        if not isinstance(found, dict):
            message = "it is not a JSON object"
            raise FetchError(message)
        return found


class Fetch(Protocol):
    """An interface to fetch documents. Raises `FetchError`."""

    async def __call__(
        self,
        url: str,
        *,
        named_by: NetworkZone = NetworkZone.LOOPBACK,
        form: Mapping[str, str] | None = None,
        document: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> FetchedDocument:
        """Get a URL, or post a form or a JSON document to it.

        ``named_by`` is the zone of the host that named the URL: hosts in nearer zones are refused.
        """
        ...

    async def network_zone(self, url: str) -> NetworkZone:
        """Return the zone of a URL's host; URLs that this host sends may not lead to a nearer one."""
        ...


class Within:
    """The network for URLs that a server sent: none may be in a nearer zone than the server itself ever was."""

    def __init__(self, fetch: Fetch, address: str) -> None:
        self._fetch = fetch
        self._address = address
        self._near = NetworkZone.LOOPBACK

    async def __call__(
        self,
        url: str,
        *,
        named_by: NetworkZone = NetworkZone.LOOPBACK,
        form: Mapping[str, str] | None = None,
        document: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> FetchedDocument:
        """Get a URL, or post to it. Raises `FetchError`."""
        near = min(named_by, await self._own())
        return await self._fetch(url, named_by=near, form=form, document=document, headers=headers)

    async def network_zone(self, url: str) -> NetworkZone:
        """Return the zone of a URL's host, or the server's zone if that is farther. Raises `FetchError`."""
        return min(await self._fetch.network_zone(url), await self._own())

    async def _own(self) -> NetworkZone:
        # The owner of a DNS name can later point it to this machine.
        self._near = min(self._near, await self._fetch.network_zone(self._address))
        return self._near
