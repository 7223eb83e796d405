"""Who may come in over HTTP: hosts and origins (against DNS rebinding), and the bearer token."""

from __future__ import annotations

import hmac
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

__all__ = ["Doorkeeper", "is_loopback"]

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
class Doorkeeper:
    """Refuses what must not come in.

    On a loopback address only loopback names are accepted as Host and Origin, so that no web page reaches the gateway
    through a name of its own. Elsewhere there is a token, and an Origin has to be the Host that was asked.
    """

    loopback: bool
    token: str | None = None

    @classmethod
    def of(cls, settings: Settings, host: str) -> Self:
        """Build the rules for listening on this host."""
        return cls(loopback=is_loopback(host), token=settings.token)

    def refusal(self, scope: Scope, *, public: bool = False) -> Response | None:
        """Return the answer that refuses this request, or None; ``public`` paths need no token."""
        headers = scope["headers"]
        hosts, origins = _values(headers, b"host"), _values(headers, b"origin")
        if len(hosts) != 1 or len(origins) > 1:
            return _refused(HTTPStatus.BAD_REQUEST, "Send exactly one Host header and at most one Origin.")
        if not (name := _name(hosts[0])) or (self.loopback and not is_loopback(name)):
            return _refused(HTTPStatus.MISDIRECTED_REQUEST, "Invalid Host header")
        if origins and not self._welcome(origins[0], hosts[0]):
            return _refused(HTTPStatus.FORBIDDEN, "Invalid Origin header")
        if self.token is not None and not public and not self._known(_values(headers, b"authorization")):
            refused = _refused(HTTPStatus.UNAUTHORIZED, "Send the gateway's token as a bearer token.")
            refused.headers["www-authenticate"] = "Bearer"
            return refused
        return None

    def _welcome(self, origin: str, host: str) -> bool:
        found = _ORIGIN.fullmatch(origin)
        if found is None:
            return False
        if self.loopback:
            return is_loopback(_name(found["host"]))
        return _named(found["host"], found["scheme"]) == _named(host, found["scheme"])

    def _known(self, values: list[str]) -> bool:
        scheme, _, token = values[0].partition(" ") if len(values) == 1 else ("", "", "")
        given, wanted = token.strip().encode(), (self.token or "").encode()
        return hmac.compare_digest(given, wanted) and scheme.lower() == "bearer"


def _values(headers: list[tuple[bytes, bytes]], name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in headers if key == name]


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
