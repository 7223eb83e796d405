"""Who may come in over HTTP: hosts and origins (against DNS rebinding), and the bearer token."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit

from starlette.responses import JSONResponse, Response

if TYPE_CHECKING:
    from starlette.types import Scope

    from truename.config import Settings

__all__ = ["Doorkeeper", "is_loopback"]

_LOCAL_NAMES: Final = frozenset({"localhost", "localhost."})


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
        if self.loopback and not is_loopback(_name(f"//{hosts[0]}")):
            return _refused(HTTPStatus.MISDIRECTED_REQUEST, "Invalid Host header")
        if origins and not self._welcome(origins[0], hosts[0]):
            return _refused(HTTPStatus.FORBIDDEN, "Invalid Origin header")
        if self.token is not None and not public and not self._known(_values(headers, b"authorization")):
            refused = _refused(HTTPStatus.UNAUTHORIZED, "Send the gateway's token as a bearer token.")
            refused.headers["www-authenticate"] = "Bearer"
            return refused
        return None

    def _welcome(self, origin: str, host: str) -> bool:
        if self.loopback:
            return origin.startswith(("http://", "https://")) and is_loopback(_name(origin))
        return origin.partition("://")[2].lower() == host.lower()

    def _known(self, values: list[str]) -> bool:
        scheme, _, token = values[0].partition(" ") if len(values) == 1 else ("", "", "")
        given, wanted = token.strip().encode(), (self.token or "").encode()
        return hmac.compare_digest(given, wanted) and scheme.lower() == "bearer"


def _values(headers: list[tuple[bytes, bytes]], name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in headers if key == name]


def _name(address: str) -> str:
    """Return the host of an address, without its port; nothing if it can't be read."""
    try:
        parts = urlsplit(address)
        name = parts.hostname or ""
    except ValueError:
        return ""
    return "" if parts.username or parts.path not in {"", "/"} or parts.query else name


def _refused(status: HTTPStatus, text: str) -> Response:
    return JSONResponse({"error": text}, status)
