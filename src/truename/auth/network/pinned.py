"""HTTP requests to checked addresses only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import httpx2

from truename.auth.network.addresses import AddressRefused, address_of, network_zone_of, resolve_host
from truename.cache import LRUCache

if TYPE_CHECKING:
    from truename.auth.network.addresses import IPAddress, NetworkPolicy, NetworkZone, Resolve

__all__ = ["LastingTransport", "PinnedAddressTransport"]

_PORTS: Final = {"http": 80, "https": 443}
_MAX_PINNED: Final = 64


class PinnedAddressTransport(httpx2.AsyncBaseTransport):
    """A transport that connects to checked addresses only; certificates are verified against the host name as usual.

    Raises `AddressRefused` before it sends anything. It does not follow redirects: each one is a new request.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport, reach: NetworkPolicy, resolve: Resolve = resolve_host) -> None:
        self._inner = inner
        self._reach = reach
        self._resolve = resolve
        self._pins: LRUCache[tuple[str, int], IPAddress] = LRUCache(_MAX_PINNED)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request."""
        # The host as it is sent: resolvers map some names to others (IDNA 2003), which may belong to somebody else.
        host, port = request.url.raw_host.decode("ascii"), request.url.port or _PORTS.get(request.url.scheme, 80)
        pin = self._pins.get((host, port)) or await self._pinned(host, port)
        try:
            return await self._inner.handle_async_request(_to(request, pin, host))
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            # The address may have changed. The next request resolves and checks it again.
            self._pins.pop((host, port))
            raise

    async def network_zone(self, host: str, port: int) -> NetworkZone | None:
        """Return the zone of a host, after resolving and checking it."""
        return network_zone_of(self._pins.get((host, port)) or await self._pinned(host, port))

    async def _pinned(self, host: str, port: int) -> IPAddress:
        addresses = await self._addresses(host, port)
        self._reach.check(host, addresses)
        self._pins[host, port] = addresses[0]
        return addresses[0]

    async def _addresses(self, host: str, port: int) -> tuple[IPAddress, ...]:
        if (literal := address_of(host)) is not None:
            return (literal,)
        try:
            addresses = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            message = f"{host} has no address ({error})"
            raise httpx2.ConnectError(message) from error
        if not addresses:
            raise AddressRefused(host=host, problem="has no address", remedy="Check its name.")
        return addresses

    async def aclose(self) -> None:
        """Close the wrapped transport."""
        await self._inner.aclose()


def _to(request: httpx2.Request, address: IPAddress, host: str) -> httpx2.Request:
    """Return the request with this address as its URL's host. Its Host header still has the name."""
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=str(address)),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": host},
    )


class LastingTransport(httpx2.AsyncBaseTransport):
    """A transport that outlives its client, which is closed after one response."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request."""
        return await self._inner.handle_async_request(request)
