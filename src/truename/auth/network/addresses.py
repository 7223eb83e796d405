"""Decide where the gateway may connect: no metadata service, no link-local address, no nearer network zone."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import IntEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlsplit

import anyio

from truename.errors import TruenameError, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

Address = IPv4Address | IPv6Address

Network = IPv4Network | IPv6Network

IPAddress = IPv4Address | IPv6Address

Resolve = Callable[[str, int], Awaitable[tuple[IPAddress, ...]]]

__all__ = [
    "AddressRefused",
    "HostResolver",
    "NetworkPolicy",
    "NetworkZone",
    "ResolvedHost",
    "address_of",
    "host_of",
    "network_zone_of",
]

_PORTS: Final = {"http": 80, "https": 443}
_LONGEST_URL: Final = 8_192
# Services that give credentials to any client that can reach them. Most have link-local addresses, which are refused
# anyway. Azure's has a public address, which leads to it only within Azure.
_METADATA: Final = frozenset(
    ip_address(address)
    for address in (
        *("169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200", "192.0.0.192", "168.63.129.16"),
        *("fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42"),
    )
)
_SHARED: Final = ip_network("100.64.0.0/10")
# IPv6 networks that embed an IPv4 address, which is the one that a connection reaches.
_CARRIERS: Final = (
    (IPv6Network("::ffff:0:0/96"), 0),
    (IPv6Network("::ffff:0:0:0/96"), 0),
    (IPv6Network("64:ff9b::/96"), 0),
    (IPv6Network("64:ff9b:1::/48"), 0),
    (IPv6Network("2002::/16"), 80),
    (IPv6Network("::/96"), 0),
)
_SITE_LOCAL: Final = IPv6Network("fec0::/10")


class NetworkZone(IntEnum):
    """The part of the network that an address is in. The fewer people can reach a zone, the nearer it is."""

    PUBLIC = 0
    PRIVATE = 1
    LOOPBACK = 2


@dataclass(kw_only=True, unsafe_hash=True)
class AddressRefused(TruenameError):
    """An error: the gateway does not connect to a host; states the reason, and the setting that allows it."""

    host: str
    problem: str
    remedy: str
    code: str = "address_refused"

    def __str__(self) -> str:
        return f"{excerpt(self.host)} {self.problem}. {self.remedy}"


def network_zone_of(address: Address) -> NetworkZone | None:
    """Return the zone of an address; None for an address that needs an explicit permission.

    >>> [network_zone_of(ip_address(text)) for text in ("127.0.0.1", "::ffff:10.0.0.1", "169.254.169.254", "0.0.0.0")]
    [<NetworkZone.LOOPBACK: 2>, <NetworkZone.PRIVATE: 1>, None, None]
    """
    if isinstance(address, IPv6Address):
        address = address if address.is_loopback else _carried(address)
    if address in _METADATA or address.is_link_local or address.is_multicast or address.is_unspecified:
        return None
    if address.is_loopback:
        return NetworkZone.LOOPBACK
    if address in _SHARED or (address.is_private and not address.is_reserved) or address in _SITE_LOCAL:
        return NetworkZone.PRIVATE
    return NetworkZone.PUBLIC if address.is_global else None


def _carried(address: IPv6Address) -> Address:
    """Return the IPv4 address that an IPv6 address embeds, else the address itself."""
    for network, shift in _CARRIERS:
        if address in network:
            return IPv4Address(int(address) >> shift & 0xFFFFFFFF)
    # The zone id names a network interface, not a destination.
    return IPv6Address(int(address))


def address_of(host: str) -> Address | None:
    """Parse a host as an address, in any form that resolvers accept; None for a name.

    >>> [str(address_of(host)) for host in ("2130706433", "0x7f.1", "0177.0.0.1", "[::1]", "127.0.0.1.")]
    ['127.0.0.1', '127.0.0.1', '127.0.0.1', '::1', '127.0.0.1']
    """
    bare = host.strip("[]").partition("%")[0].rstrip(".")
    try:
        return ip_address(bare)
    except ValueError:
        return _old_form(bare)


def _old_form(host: str) -> IPv4Address | None:
    """Parse the forms of inet_aton: one to four numbers, decimal, octal or hexadecimal, the last filling the rest."""
    numbers = [_number(part) for part in host.split(".")]
    if not 1 <= len(numbers) <= 4:
        return None
    *heads, last = numbers
    room = 256 ** (4 - len(heads))
    if last is None or last >= room or any(head is None or head > 255 for head in heads):
        return None
    value = 0
    for head in heads:
        value = value * 256 + (head or 0)
    return IPv4Address(value * room + last)


def _number(text: str) -> int | None:
    if not text.isascii() or not text[:1].isdigit() or len(text) > 16:
        return None
    base = 16 if text[:2].lower() == "0x" else 8 if text.startswith("0") and text != "0" else 10
    try:
        return int(text, base)
    except ValueError:
        return None


def host_of(url: str) -> tuple[str, str, int]:
    """Return scheme, host (in lower case, without a trailing dot) and port of a URL to connect to.

    Raises `AddressRefused` for a URL without http(s) or host, and for one with a user: people and some libraries
    mistake the text before an ``@`` for the host.
    """
    try:
        parts = urlsplit(url) if len(url) <= _LONGEST_URL else urlsplit("")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise AddressRefused(host=url, problem="is not a URL", remedy="Write it as https://HOST[:PORT]/PATH.") from None
    if parts.scheme not in _PORTS or not host or not url.isprintable() or "\\" in url:
        raise AddressRefused(host=url, problem="is not an HTTP URL", remedy="Write it as https://HOST[:PORT]/PATH.")
    if parts.username is not None or parts.password is not None:
        raise AddressRefused(host=host, problem="is in a URL with a user", remedy="Put credentials under headers.")
    return parts.scheme, host.rstrip("."), port or _PORTS[parts.scheme]


@dataclass(frozen=True)
class NetworkPolicy:
    """The addresses to which a connection may go: up to a zone, and in these networks.

    A public host may name public addresses only; a server on this machine may name this machine:

    >>> NetworkPolicy.of_named_by(NetworkZone.PUBLIC).check("idp.example", [ip_address("10.0.0.7")])
    Traceback (most recent call last):
        ...
    truename.auth.network.addresses.AddressRefused: 'idp.example' resolves to 10.0.0.7, which is private. ...
    """

    nearest: NetworkZone = NetworkZone.PUBLIC
    allowed: tuple[Network, ...] = ()

    @classmethod
    def of_named_by(cls, zone: NetworkZone, allowed: Iterable[Network] = ()) -> Self:
        """Return the policy for URLs that a host in this zone names."""
        return cls(zone, tuple(allowed))

    def check(self, host: str, addresses: Iterable[Address]) -> None:
        """Raise `AddressRefused` if a connection to one of a host's addresses is not permitted.

        One is enough: the author of a DNS answer must not be able to choose among them.
        """
        for address in addresses:
            if not self.permits(address):
                raise AddressRefused(
                    host=host,
                    problem=f"resolves to {address}, which is {_kind(address)}",
                    remedy="If this is intended, add its network to allow_addresses.",
                )

    def permits(self, address: Address) -> bool:
        """Return whether a connection to an address is permitted."""
        if any(address in network for network in self.allowed):
            return True
        near = network_zone_of(address)
        return near is not None and near <= self.nearest


def _kind(address: Address) -> str:
    near = network_zone_of(address)
    if near is not None:
        return near.name.lower()
    return "a metadata service" if address in _METADATA else "link-local" if address.is_link_local else "reserved"


async def resolve_host(host: str, port: int) -> tuple[IPAddress, ...]:
    """Return all addresses of a host from the system's resolver. Raises `OSError`."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(ip_address(entry[4][0].partition("%")[0]) for entry in found))


_MOST: Final = 16


class ResolvedHost(Protocol):
    """An interface to resolve the hosts that one server names. Raises `AddressRefused` for refused addresses."""

    async def addresses(self, host: str, port: int) -> tuple[IPAddress, ...]:
        """Return the addresses to connect to. Raises `OSError` too, for a name that has no address."""
        ...

    def check_written(self, host: str) -> None:
        """Check a host that is an address; a name is not resolved here."""
        ...


class HostResolver:
    """A resolver that checks the addresses of a server's host at each connection.

    The zone in which a host is first found is fixed: if its name later resolves to a nearer address (DNS rebinding),
    the connection is refused. Connections to the ``allowed`` networks are always permitted.
    """

    def __init__(self, allowed: Iterable[str] = (), resolve: Resolve = resolve_host) -> None:
        self._allowed = tuple(map(ip_network, allowed))
        self._resolve = resolve
        self._nearest: dict[str, NetworkZone] = {}

    def named_by(self, host: str) -> ResolvedHost:
        """Return a resolver for hosts in URLs that this host sent.

        It refuses addresses in a nearer zone than the host's own (PUBLIC, PRIVATE, LOOPBACK).
        """
        return _NamedHosts(self, host)

    def network_zone(self, host: str) -> NetworkZone:
        """Return the zone in which a host was first found; PUBLIC for one that was not resolved yet."""
        return self._nearest.get(_name(host), NetworkZone.PUBLIC)

    async def addresses(
        self, host: str, port: int, nearest: NetworkZone = NetworkZone.LOOPBACK
    ) -> tuple[IPAddress, ...]:
        """Return the addresses to connect to, none nearer than ``nearest``.

        Raises `AddressRefused`, and `OSError` for a name that has no address.
        """
        written = address_of(host)
        found = (written,) if written is not None else (await self._resolve(host, port))[:_MOST]
        if not found:
            message = "it has no address"
            raise OSError(message)
        self._judge(host, found, nearest)
        return found

    def check_written(self, host: str, nearest: NetworkZone = NetworkZone.LOOPBACK) -> None:
        """Raise `AddressRefused` for a host that is a refused address; a name is not resolved here."""
        written = address_of(host)
        if written is not None:
            self._judge(host, (written,), nearest)

    def _judge(self, host: str, found: tuple[IPAddress, ...], nearest: NetworkZone) -> None:
        name = _name(host)
        NetworkPolicy(min(self._nearest.get(name, NetworkZone.LOOPBACK), nearest), self._allowed).check(host, found)
        near = [near for address in found if (near := network_zone_of(address)) is not None]
        if near:
            self._nearest.setdefault(name, max(near))


class _NamedHosts:
    """A resolver for hosts in URLs that another host sent; see `HostResolver.named_by`."""

    def __init__(self, resolver: HostResolver, host: str) -> None:
        self._resolver = resolver
        self._host = host

    async def addresses(self, host: str, port: int) -> tuple[IPAddress, ...]:
        return await self._resolver.addresses(host, port, self._resolver.network_zone(self._host))

    def check_written(self, host: str) -> None:
        self._resolver.check_written(host, self._resolver.network_zone(self._host))


def _name(host: str) -> str:
    return host.lower().rstrip(".")
