"""Where the hosts that an operator wrote down were found first: none of them comes nearer afterwards."""

from __future__ import annotations

from ipaddress import ip_network
from typing import TYPE_CHECKING, Final

from truename.access.addresses import Nearness, Reach, address_of, nearness_of
from truename.access.pinned import resolved

if TYPE_CHECKING:
    from collections.abc import Iterable

    from truename.access.pinned import Address, Resolve

__all__ = ["Whereabouts"]

_MOST: Final = 16


class Whereabouts:
    """The addresses of servers' hosts, looked up and judged whenever something is to be connected to.

    Who wrote a host down decides how near it is: what it is found at first. A name of the internet that has an address
    of this network an hour later (DNS rebinding) is refused, however it came to that. ``allowed`` are networks that
    may be gone to in any case.
    """

    def __init__(self, allowed: Iterable[str] = (), resolve: Resolve = resolved) -> None:
        self._allowed = tuple(map(ip_network, allowed))
        self._resolve = resolve
        self._nearest: dict[str, Nearness] = {}

    async def addresses(self, host: str, port: int) -> tuple[Address, ...]:
        """Return where to connect to. Raises `AddressRefused`, and `OSError` for a name that has no address."""
        written = address_of(host)
        found = (written,) if written is not None else (await self._resolve(host, port))[:_MOST]
        if not found:
            message = "it has no address"
            raise OSError(message)
        self._judge(host, found)
        return found

    def check_written(self, host: str) -> None:
        """Raise `AddressRefused` for an address that is not gone to; of a name nothing is known here."""
        written = address_of(host)
        if written is not None:
            self._judge(host, (written,))

    def _judge(self, host: str, found: tuple[Address, ...]) -> None:
        name = host.lower().rstrip(".")
        Reach(self._nearest.get(name, Nearness.LOOPBACK), self._allowed).check(host, found)
        near = [near for address in found if (near := nearness_of(address)) is not None]
        if near:
            self._nearest.setdefault(name, max(near))
