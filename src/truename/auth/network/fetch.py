"""Fetch small documents of authorization servers and clients: bounded, no redirects, from checked addresses."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

import anyio

from truename.auth.network.addresses import AddressRefused, NetworkPolicy, NetworkZone, host_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    import httpx2

    from truename.auth.network.pinned import PinnedAddressTransport

__all__ = ["Fetch", "FetchError", "FetchedDocument", "Web", "Within", "web"]

_LIMIT: Final = 1024 * 1024
_SECONDS: Final = 10.0
_JSON: Final = {"accept": "application/json", "accept-encoding": "identity"}


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


class Web:
    """The network. The URLs of an operator may lead anywhere except to a metadata service; see `NetworkPolicy`.

    ``allowed`` are networks to which connections are always permitted.
    """

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self._networks = tuple(map(ip_network, allowed))

    @cached_property
    def _transports(self) -> dict[NetworkZone, PinnedAddressTransport]:
        import httpx2  # noqa: PLC0415 - only for who fetches something

        from truename.auth.network.pinned import PinnedAddressTransport  # noqa: PLC0415

        # Connections are pooled by address: a kept one, whose certificate was verified for one name, would serve
        # another.
        return {
            near: PinnedAddressTransport(
                httpx2.AsyncHTTPTransport(limits=httpx2.Limits(max_keepalive_connections=0)),
                NetworkPolicy(near, self._networks),
            )
            for near in NetworkZone
        }

    async def __call__(
        self,
        url: str,
        *,
        named_by: NetworkZone = NetworkZone.LOOPBACK,
        form: Mapping[str, str] | None = None,
        document: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> FetchedDocument:
        """Get a URL, or post to it. A redirect is returned like any response. Raises `FetchError`."""
        import httpx2  # noqa: PLC0415 - only for who fetches something

        from truename.auth.network.pinned import LastingTransport  # noqa: PLC0415

        transport = LastingTransport(self._transports[named_by])
        client = httpx2.AsyncClient(transport=transport, timeout=_SECONDS, trust_env=False)
        method = "GET" if form is None and document is None else "POST"
        said = {**_JSON, **(headers or {})}
        try:
            host_of(url)
            with anyio.fail_after(_SECONDS):
                async with (
                    client,
                    client.stream(method, url, data=form, json=document, headers=said) as answer,
                ):
                    challenges = tuple(answer.headers.get_list("www-authenticate"))
                    return FetchedDocument(answer.status_code, await _bounded(answer), challenges)
        except AddressRefused as error:
            raise FetchError(str(error)) from error
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, OSError, UnicodeError) as error:
            message = f"{urlsplit(url).hostname} cannot be reached ({type(error).__name__})"
            raise FetchError(message) from error

    async def network_zone(self, url: str) -> NetworkZone:
        """Return the zone of a URL's host. Raises `FetchError`."""
        import httpx2  # noqa: PLC0415 - only for who fetches something

        try:
            _, host, port = host_of(url)
            found = await self._transports[NetworkZone.LOOPBACK].network_zone(host, port)
        except (AddressRefused, httpx2.HTTPError) as error:
            raise FetchError(str(error)) from error
        return NetworkZone.PUBLIC if found is None else found

    async def close(self) -> None:
        """Close the connections."""
        for transport in self.__dict__.get("_transports", {}).values():
            await transport.aclose()


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


async def _bounded(answer: httpx2.Response) -> bytes:
    # Decompression can multiply the size by a thousand in one step.
    if answer.headers.get("content-encoding", "identity") != "identity":
        message = "it is compressed, which was not requested"
        raise FetchError(message)
    found = bytearray()
    async for chunk in answer.aiter_raw():
        found += chunk
        if len(found) > _LIMIT:
            message = "it is longer than 1 MiB"
            raise FetchError(message)
    return bytes(found)


@asynccontextmanager
async def web(allowed: Iterable[str] = ()) -> AsyncIterator[Web]:
    """Open the network for the duration of the block."""
    one = Web(allowed)
    try:
        yield one
    finally:
        await one.close()
