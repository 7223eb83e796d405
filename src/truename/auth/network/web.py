"""Fetch documents from the network: bounded, no redirects, from checked addresses."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import cached_property
from ipaddress import ip_network
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import anyio
import httpx2

from truename.auth.network.addresses import AddressRefused, NetworkPolicy, NetworkZone, host_of
from truename.auth.network.fetch import FetchedDocument, FetchError
from truename.auth.network.pinned import LastingTransport, PinnedAddressTransport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

__all__ = ["Web", "web"]

_LIMIT: Final = 1024 * 1024
_SECONDS: Final = 10.0
_JSON: Final = {"accept": "application/json", "accept-encoding": "identity"}


class Web:
    """The network. The URLs of an operator may lead anywhere except to a metadata service; see `NetworkPolicy`.

    ``allowed`` are networks to which connections are always permitted.
    """

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self._networks = tuple(map(ip_network, allowed))

    @cached_property
    def _transports(self) -> dict[NetworkZone, PinnedAddressTransport]:
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
