"""Addresses that a gateway may be led to: no metadata service, no link-local one, none nearer than who named it.

A server, an issuer, or somebody's DNS can name a host in order to have the gateway reach what they can't reach
themselves (server-side request forgery). So each address is judged by what it is, in whatever form it was written, and
a name is judged by the addresses that it has at the moment of connecting (MCP security best practices, "SSRF";
RFC 6890 for the ranges).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from truename.errors import TruenameError, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable
    from ipaddress import IPv4Network
    from typing import Self

    Address = IPv4Address | IPv6Address
    Network = IPv4Network | IPv6Network

__all__ = ["AddressRefused", "Nearness", "Reach", "address_of", "host_of", "nearness_of"]

_PORTS: Final = {"http": 80, "https": 443}
_LONGEST_URL: Final = 8_192
# Services that give credentials to whoever can reach them. Most of them are link-local, and refused with those.
# Azure's has an address of the internet, which leads to it within Azure only.
_METADATA: Final = frozenset(
    ip_address(address)
    for address in (
        *("169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200", "192.0.0.192", "168.63.129.16"),
        *("fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42"),
    )
)
_SHARED: Final = ip_network("100.64.0.0/10")
# In these an IPv4 address is carried, which is then the one that is reached.
_CARRIERS: Final = (
    (IPv6Network("::ffff:0:0/96"), 0),
    (IPv6Network("::ffff:0:0:0/96"), 0),
    (IPv6Network("64:ff9b::/96"), 0),
    (IPv6Network("64:ff9b:1::/48"), 0),
    (IPv6Network("2002::/16"), 80),
    (IPv6Network("::/96"), 0),
)
_SITE_LOCAL: Final = IPv6Network("fec0::/10")


class Nearness(IntEnum):
    """How near an address is; what is nearer is reached by fewer people."""

    PUBLIC = 0
    PRIVATE = 1
    LOOPBACK = 2


@dataclass(kw_only=True, unsafe_hash=True)
class AddressRefused(TruenameError):
    """An address is not gone to: which host, why, and what to do if it is meant."""

    host: str
    problem: str
    remedy: str
    code: str = "address_refused"

    def __str__(self) -> str:
        return f"{excerpt(self.host)} {self.problem}. {self.remedy}"


def nearness_of(address: Address) -> Nearness | None:
    """Return how near an address is, None for one that is never gone to unless it is allowed by name.

    >>> [nearness_of(ip_address(text)) for text in ("127.0.0.1", "::ffff:10.0.0.1", "169.254.169.254", "0.0.0.0")]
    [<Nearness.LOOPBACK: 2>, <Nearness.PRIVATE: 1>, None, None]
    """
    if isinstance(address, IPv6Address):
        address = address if address.is_loopback else _carried(address)
    if address in _METADATA or address.is_link_local or address.is_multicast or address.is_unspecified:
        return None
    if address.is_loopback:
        return Nearness.LOOPBACK
    if address in _SHARED or (address.is_private and not address.is_reserved) or address in _SITE_LOCAL:
        return Nearness.PRIVATE
    return Nearness.PUBLIC if address.is_global else None


def _carried(address: IPv6Address) -> Address:
    """Return the IPv4 address within, if this is a form of one."""
    for network, shift in _CARRIERS:
        if address in network:
            return IPv4Address(int(address) >> shift & 0xFFFFFFFF)
    # A zone says by which interface, and nothing of where it leads.
    return IPv6Address(int(address))


def address_of(host: str) -> Address | None:
    """Return the address that a host is in any form that resolvers accept; None for a name.

    >>> [str(address_of(host)) for host in ("2130706433", "0x7f.1", "0177.0.0.1", "[::1]", "127.0.0.1.")]
    ['127.0.0.1', '127.0.0.1', '127.0.0.1', '::1', '127.0.0.1']
    """
    bare = host.strip("[]").partition("%")[0].rstrip(".")
    try:
        return ip_address(bare)
    except ValueError:
        return _old_form(bare)


def _old_form(host: str) -> IPv4Address | None:
    """Read what inet_aton reads: one to four numbers, decimal, octal or hexadecimal, the last one filling the rest."""
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
    """Return scheme, host (in lower case, without a last dot) and port of an address that can be gone to.

    Raises `AddressRefused` for one without http(s) and a host, and for one with a user in it: what stands before an
    ``@`` is taken for the host by people and by some libraries.
    """
    try:
        parts = urlsplit(url) if len(url) <= _LONGEST_URL else urlsplit("")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise AddressRefused(
            host=url, problem="is no address", remedy="Write it as https://HOST[:PORT]/PATH."
        ) from None
    if parts.scheme not in _PORTS or not host or not url.isprintable() or "\\" in url:
        raise AddressRefused(host=url, problem="is no http address", remedy="Write it as https://HOST[:PORT]/PATH.")
    if parts.username is not None or parts.password is not None:
        raise AddressRefused(host=host, problem="has a user in its address", remedy="Put credentials under headers.")
    return parts.scheme, host.rstrip("."), port or _PORTS[parts.scheme]


@dataclass(frozen=True)
class Reach:
    """What may be gone to: at most so near, and these networks besides.

    Who is public names public addresses only; a server on this machine may name this machine:

    >>> Reach.of_named_by(Nearness.PUBLIC).check("idp.example", [ip_address("10.0.0.7")])
    Traceback (most recent call last):
        ...
    truename.access.addresses.AddressRefused: 'idp.example' leads to 10.0.0.7, which is private. ...
    """

    nearest: Nearness = Nearness.PUBLIC
    allowed: tuple[Network, ...] = ()

    @classmethod
    def of_named_by(cls, nearness: Nearness, allowed: Iterable[Network] = ()) -> Self:
        """Return what somebody at an address of this nearness may name."""
        return cls(nearness, tuple(allowed))

    def check(self, host: str, addresses: Iterable[Address]) -> None:
        """Raise `AddressRefused` if one of the addresses that a host has is not to be gone to.

        One is enough: which of them is connected to is not for who wrote the answer to choose.
        """
        for address in addresses:
            if not self.permits(address):
                raise AddressRefused(
                    host=host,
                    problem=f"leads to {address}, which is {_kind(address)}",
                    remedy="If it is meant, add its network to allow_addresses.",
                )

    def permits(self, address: Address) -> bool:
        """Tell whether an address may be gone to."""
        if any(address in network for network in self.allowed):
            return True
        near = nearness_of(address)
        return near is not None and near <= self.nearest


def _kind(address: Address) -> str:
    near = nearness_of(address)
    if near is not None:
        return near.name.lower()
    return "a metadata service" if address in _METADATA else "link-local" if address.is_link_local else "reserved"
