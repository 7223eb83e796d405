"""The address of a server over HTTP, and where its redirects lead."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.gateway.http_connections import HttpFailure, HttpOrigin

if TYPE_CHECKING:
    import httpx2

__all__ = ["REDIRECTS", "ServerUrl", "moved"]

# What stands in an address as it is sent: no user, no other form of a host than a name or an IPv4 address, no escapes
# to be made, no "." or ".." in the path.
_PATH: Final = r"(?:/(?!\.)(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*)*"
_QUERY: Final = r"(?:\?(?:[A-Za-z0-9._~!$&()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?"
_PLAIN: Final = re.compile(rf"(https?)://([A-Za-z0-9.-]+)(?::(\d{{1,5}}))?({_PATH}{_QUERY})")
_TARGET: Final = re.compile(rf"(?!//){_PATH}{_QUERY}")
_PORTS: Final = {"http": 80, "https": 443}
# Redirects that keep method and body (RFC 9110, sections 15.4.8 and 15.4.9), and all that are.
_KEEPING: Final = frozenset({307, 308})
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class ServerUrl(NamedTuple):
    """An address in the parts that a request needs; ``user`` is what it says of who asks, ``user:password``."""

    origin: HttpOrigin
    target: bytes
    host: bytes
    user: str = ""

    @classmethod
    def of(cls, text: str) -> ServerUrl:
        """Return the parts of an address. Raises `HttpFailure` for one that is none.

        >>> ServerUrl.of("https://Tools.example/mcp?a=b")
        ServerUrl(origin=..., target=b'/mcp?a=b', host=b'tools.example', user='')
        """
        if (plain := _PLAIN.fullmatch(text)) is not None:
            scheme, host, port, target = plain.groups()
            number = int(port or _PORTS[scheme])
            if 0 < number < 65_536:
                host = host.lower()
                shown = host if number == _PORTS[scheme] else f"{host}:{number}"
                target = target if target.startswith("/") else f"/{target}"
                return cls(HttpOrigin(scheme, host, number), target.encode(), shown.encode())
        return _of_library(text)

    def basic(self) -> bytes:
        """Return the ``authorization`` of who stands in the address; b"" for nobody."""
        return b"Basic " + b64encode(self.user.encode()) if self.user else b""

    def joined(self, reference: str) -> ServerUrl | None:
        """Return what a reference on a page at this address leads to; None for what is no address."""
        try:
            if reference.startswith("/") and _TARGET.fullmatch(reference):
                return self._replace(target=reference.encode())
            return ServerUrl.of(reference) if _PLAIN.fullmatch(reference) else _joined(self, reference)
        except HttpFailure:
            return None

    def text(self) -> str:
        """Return it as people write it, without who stands in it."""
        return f"{self.origin.scheme}://{self.host.decode()}{self.target.decode()}"


def _of_library(text: str) -> ServerUrl:
    import httpx2  # noqa: PLC0415 - only for addresses that have to be escaped

    try:
        url = httpx2.URL(text)
        host = url.raw_host.decode("ascii")
        if url.scheme not in _PORTS or not host:
            raise HttpFailure("UnsupportedProtocol", f"{url.scheme!r} is not a supported URL scheme.", was_sent=False)
        return _parts(url, host)
    except (httpx2.InvalidURL, ValueError, UnicodeError) as error:
        raise HttpFailure("UnsupportedProtocol", str(error), was_sent=False) from error


def _parts(url: httpx2.URL, host: str) -> ServerUrl:
    user = f"{url.username}:{url.password}" if url.userinfo else ""
    return ServerUrl(HttpOrigin(url.scheme, host, url.port or _PORTS[url.scheme]), url.raw_path, url.netloc, user)


def moved(url: ServerUrl, verb: str, status: int, location: str) -> ServerUrl | None:
    """Return where a request is to be sent instead; None if nowhere, or not within the server's own origin.

    >>> asked = ServerUrl.of("https://a.example/mcp")
    >>> for place in ("/mcp/", "https://b.example/mcp", "https://me:word@a.example/mcp"):
    ...     print(moved(asked, "POST", 307, place))
    ServerUrl(origin=..., target=b'/mcp/', host=b'a.example', user='')
    None
    None
    """
    # Other redirects make a GET of a POST, which loses the message.
    if not location or not (status in _KEEPING or (verb == "GET" and status in REDIRECTS)):
        return None
    if (there := url.joined(location)) is None:
        return None
    is_own = there.origin == url.origin
    is_upgrade = url.origin == ("http", there.origin.host, 80) and there.origin == ("https", url.origin.host, 443)
    return there._replace(user=url.user) if (is_own or is_upgrade) and there.user in {"", url.user} else None


def _joined(url: ServerUrl, location: str) -> ServerUrl:
    import httpx2  # noqa: PLC0415 - only for redirects that are written in another way

    try:
        return _of_library(str(httpx2.URL(url.text()).join(location)))
    except (httpx2.InvalidURL, ValueError) as error:
        raise HttpFailure("UnsupportedProtocol", str(error), was_sent=False) from error
