"""Which requests are let to the door over HTTP: by host and origin, against DNS rebinding."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, Self

from starlette.responses import JSONResponse, Response

if TYPE_CHECKING:
    from starlette.types import Scope

    from truename.config import Settings

__all__ = ["OriginGuard", "is_loopback"]

_LOCAL_NAMES: Final = frozenset({"localhost", "localhost."})
_HOST: Final = re.compile(r"(?P<name>[A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::(?P<port>[0-9]{1,5}))?")
# An Origin has no path, query, fragment or user; "null" and other schemes are not ours.
_ORIGIN: Final = re.compile(r"(?P<scheme>https?)://(?P<host>[^/?#@\s]+)")
_PORTS: Final = {"http": "80", "https": "443"}


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Tell whether an address or name can only mean this machine.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "localhost.example.com")]
    [True, True, True, False, False]
    """
    if host.lower() in _LOCAL_NAMES:
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, kw_only=True)
class OriginGuard:
    """Refuses what must not come in.

    On a loopback address only loopback names are accepted as Host and Origin, so that no web page reaches the gateway
    through a name of its own; and the name of ``public``, the URL under which the operator says it is reached.
    Elsewhere callers prove who they are, and an Origin has to be the Host that was asked.
    """

    loopback: bool
    public: str | None = None

    @classmethod
    def of(cls, settings: Settings, host: str) -> Self:
        """Build the rules for listening on this host."""
        return cls(loopback=is_loopback(host), public=settings.access.public_url)

    def refusal(self, scope: Scope) -> Response | None:
        """Return the answer that refuses this request, or None."""
        hosts, origins = list[bytes](), list[bytes]()
        for name, value in scope["headers"]:
            if name == b"host":
                hosts.append(value)
            elif name == b"origin":
                origins.append(value)
        return self._refusal(tuple(hosts), tuple(origins))

    @lru_cache(maxsize=1_024)  # noqa: B019 - a guard lives as long as its process, and there are two at most
    def _refusal(self, said_hosts: tuple[bytes, ...], said_origins: tuple[bytes, ...]) -> Response | None:
        hosts = [host.decode("latin-1") for host in said_hosts]
        origins = [origin.decode("latin-1") for origin in said_origins]
        if len(hosts) != 1 or len(origins) > 1:
            return _refused(HTTPStatus.BAD_REQUEST, "Send exactly one Host header and at most one Origin header.")
        if not _name(hosts[0]) or not self._asked_here(hosts[0]):
            return _refused(HTTPStatus.MISDIRECTED_REQUEST, "Invalid Host header")
        if origins and not self._welcome(origins[0], hosts[0]):
            return _refused(HTTPStatus.FORBIDDEN, "Invalid Origin header")
        return None

    def _asked_here(self, host: str) -> bool:
        return not self.loopback or is_loopback(_name(host)) or self._is_public(f"https://{host}")

    def _is_public(self, origin: str) -> bool:
        """Tell whether this is the operator's own name for the gateway; what is in front of it speaks TLS."""
        here, there = _ORIGIN.fullmatch(self.public or ""), _ORIGIN.fullmatch(origin)
        if here is None or there is None:
            return False
        scheme = here["scheme"]
        return _named(here["host"], scheme) == _named(there["host"], scheme)

    def _welcome(self, origin: str, host: str) -> bool:
        found = _ORIGIN.fullmatch(origin)
        if found is None:
            return False
        if self.public is not None and origin == self.public:
            return True
        if self.loopback:
            return is_loopback(_name(found["host"]))
        return _named(found["host"], found["scheme"]) == _named(host, found["scheme"])


def _name(host: str) -> str:
    """Return the name in ``name[:port]``; nothing if it is of another form."""
    found = _HOST.fullmatch(host)
    return found["name"] if found else ""


def _named(host: str, scheme: str) -> tuple[str, str] | None:
    """Return name and port, which a browser leaves out where it is the scheme's own."""
    found = _HOST.fullmatch(host)
    return (found["name"].lower(), found["port"] or _PORTS[scheme]) if found else None


def _refused(status: HTTPStatus, text: str) -> Response:
    return JSONResponse({"error": text}, status)
