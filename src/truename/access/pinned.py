"""Connections to addresses that were looked at: a name is resolved once, judged, and what was judged is connected to.

A name that has another address at the second look (DNS rebinding) leads nowhere new: the address stays the one that
was judged until it can't be connected to, and a new one is judged by the same rule.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, Final

import anyio
import httpx2

from truename.access.addresses import AddressRefused, address_of, nearness_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from truename.access.addresses import Nearness, Reach

    Address = IPv4Address | IPv6Address
    Resolve = Callable[[str, int], Awaitable[tuple[Address, ...]]]

__all__ = ["PinnedTransport", "resolved"]

_MOST: Final = 64
_PORTS: Final = {"http": 80, "https": 443}


async def resolved(host: str, port: int) -> tuple[Address, ...]:
    """Return all addresses of a host, as the system's resolver has them. Raises `OSError`."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(ip_address(entry[4][0].partition("%")[0]) for entry in found))


class PinnedTransport(httpx2.AsyncBaseTransport):
    """Sends requests to judged addresses only; a name in the certificate is checked as ever.

    Raises `AddressRefused` before anything is sent. Redirects are not followed here: each one is a request of its own.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport, reach: Reach, resolve: Resolve = resolved) -> None:
        self._inner = inner
        self._reach = reach
        self._resolve = resolve
        self._pins: dict[tuple[str, int], Address] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request."""
        # As it is sent: of some names resolvers make others (IDNA 2003), which are somebody else's.
        host, port = request.url.raw_host.decode("ascii"), request.url.port or _PORTS.get(request.url.scheme, 80)
        pin = self._pins.get((host, port)) or await self._pinned(host, port)
        try:
            return await self._inner.handle_async_request(_to(request, pin, host))
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            # It may have moved. What it is now is judged at the next request.
            self._pins.pop((host, port), None)
            raise

    async def nearness(self, host: str, port: int) -> Nearness | None:
        """Return how near a host is, judged and pinned."""
        return nearness_of(self._pins.get((host, port)) or await self._pinned(host, port))

    async def _pinned(self, host: str, port: int) -> Address:
        addresses = await self._addresses(host, port)
        self._reach.check(host, addresses)
        while len(self._pins) >= _MOST:
            del self._pins[next(iter(self._pins))]
        self._pins[host, port] = addresses[0]
        return addresses[0]

    async def _addresses(self, host: str, port: int) -> tuple[Address, ...]:
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
        """Close what is below."""
        await self._inner.aclose()


def _to(request: httpx2.Request, address: Address, host: str) -> httpx2.Request:
    """Return the request for this address. Its Host header was made from the name, and stays."""
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=str(address)),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": host},
    )
