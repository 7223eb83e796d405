"""The cookies of one server, kept as a browser would, within bounds (RFC 6265, section 6.1)."""

from __future__ import annotations

import urllib.request
from email.message import Message
from http.cookiejar import CookieJar
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Iterable
    from http.client import HTTPResponse

__all__ = ["ServerCookies"]

MOST: Final = 50
LONGEST: Final = 4_096


class ServerCookies:
    """What a server had us keep. A cookie that cannot be sent back, or is too long, is dropped alone."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._jar = CookieJar()
        self._is_empty = True

    def keep(self, values: Iterable[bytes]) -> None:
        """Keep the cookies of a response, given its ``set-cookie`` headers."""
        head = Message()
        for value in values:
            if value.isascii() and len(value) <= LONGEST and value.decode().isprintable():
                head["Set-Cookie"] = value.decode()
        self._jar.extract_cookies(cast("HTTPResponse", _Head(head)), urllib.request.Request(self._url))  # noqa: S310 - nothing is opened
        for cookie in list(self._jar)[MOST:]:
            self._jar.clear(cookie.domain, cookie.path, cookie.name)
        self._is_empty = not len(self._jar)

    def header(self) -> bytes:
        """Return the ``cookie`` header for a request, b"" without cookies. It never raises."""
        if self._is_empty:
            return b""
        request = urllib.request.Request(self._url)  # noqa: S310 - nothing is opened
        self._jar.add_cookie_header(request)
        return (request.get_header("Cookie") or "").encode()


class _Head:
    """A response as the standard library's jar reads one."""

    def __init__(self, head: Message) -> None:
        self._head = head

    def info(self) -> Message:
        return self._head
