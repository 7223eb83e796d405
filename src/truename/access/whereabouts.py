"""Where the hosts that an operator wrote down were found first: none of them comes nearer afterwards."""

from __future__ import annotations

from ipaddress import ip_network
from typing import TYPE_CHECKING, Final, Protocol

from truename.access.addresses import Nearness, Reach, address_of, nearness_of
from truename.access.pinned import resolved

if TYPE_CHECKING:
    from collections.abc import Iterable

    from truename.access.pinned import Address, Resolve

__all__ = ["Where", "Whereabouts"]

_MOST: Final = 16


class Where(Protocol):
    """Where hosts are. Raises `AddressRefused` for what is not gone to."""

    async def addresses(self, host: str, port: int) -> tuple[Address, ...]:
        """Return where to connect to. Raises `OSError` too, for a name that has no address."""
        ...

    def check_written(self, host: str) -> None:
        """Judge an address; of a name nothing is known here."""
        ...


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

    def named_by(self, host: str) -> Where:
        """Return where hosts are that this one names: none may be nearer than it is itself."""
        return _Named(self, host)

    def nearness(self, host: str) -> Nearness:
        """Return how near a host was found; one that was not looked for is as far as can be."""
        return self._nearest.get(_name(host), Nearness.PUBLIC)

    async def addresses(self, host: str, port: int, nearest: Nearness = Nearness.LOOPBACK) -> tuple[Address, ...]:
        """Return where to connect to, no nearer than that.

        Raises `AddressRefused`, and `OSError` for a name that has no address.
        """
        written = address_of(host)
        found = (written,) if written is not None else (await self._resolve(host, port))[:_MOST]
        if not found:
            message = "it has no address"
            raise OSError(message)
        self._judge(host, found, nearest)
        return found

    def check_written(self, host: str, nearest: Nearness = Nearness.LOOPBACK) -> None:
        """Raise `AddressRefused` for an address that is not gone to; of a name nothing is known here."""
        written = address_of(host)
        if written is not None:
            self._judge(host, (written,), nearest)

    def _judge(self, host: str, found: tuple[Address, ...], nearest: Nearness) -> None:
        name = _name(host)
        Reach(min(self._nearest.get(name, Nearness.LOOPBACK), nearest), self._allowed).check(host, found)
        near = [near for address in found if (near := nearness_of(address)) is not None]
        if near:
            self._nearest.setdefault(name, max(near))


class _Named:
    """Hosts that another one names."""

    def __init__(self, whereabouts: Whereabouts, host: str) -> None:
        self._whereabouts = whereabouts
        self._host = host

    async def addresses(self, host: str, port: int) -> tuple[Address, ...]:
        return await self._whereabouts.addresses(host, port, self._whereabouts.nearness(self._host))

    def check_written(self, host: str) -> None:
        self._whereabouts.check_written(host, self._whereabouts.nearness(self._host))


def _name(host: str) -> str:
    return host.lower().rstrip(".")
