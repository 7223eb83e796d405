"""Which addresses a server may send its user to: what is shown of one is to be where a browser goes."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Final

from truename.gateway.upstream_errors import printable

__all__ = ["wrong_address"]

# All characters of RFC 3986. Browsers read a backslash as a slash, and leave ends of lines and tabulators out.
_LEGAL: Final = re.compile(r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]{1,8192}")
_AUTHORITY: Final = re.compile(r"(?i:https?)://([^/?#]*)(?:[/?#].*)?")
_HOST: Final = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?")
_NUMBER: Final = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")
_ALLOWED: Final = "it must be https, or http on this machine"


def wrong_address(url: object) -> str | None:
    """Say why no user is sent to this address, None if one may be.

    >>> wrong_address("https://bank.example/confirm?id=1"), wrong_address("http://localhost:8080/login")
    (None, None)
    >>> wrong_address("javascript:alert(1)")
    "its scheme is 'javascript': it must be https, or http on this machine"
    >>> wrong_address("https://bank.example@evil.example/")
    'it has a user name, which can disguise the host'
    >>> wrong_address("http://localhost.evil.example/")
    'it is plain HTTP to another machine: it must be https, or http on this machine'
    """
    if not isinstance(url, str) or _LEGAL.fullmatch(url) is None:
        return "it is not a URL: it is empty, too long or has illegal characters"
    scheme, colon, _ = url.partition(":")
    if not colon or scheme.lower() not in {"https", "http"}:
        return f"its scheme is {printable(scheme if colon else '', 40)!r}: {_ALLOWED}"
    authority = _AUTHORITY.fullmatch(url)
    if authority is None:
        return "it has no host"
    if "@" in authority[1]:
        return "it has a user name, which can disguise the host"
    return _wrong_host(authority[1], is_plain=scheme.lower() == "http")


def _wrong_host(authority: str, *, is_plain: bool) -> str | None:
    found = _HOST.fullmatch(authority)
    if found is None or ".." in authority or int(found[2] or 0) > 65_535:
        return "it has no host"
    try:
        address = ip_address(found[1].strip("[]"))
    except ValueError:
        # Browsers read 127.1, 2130706433 and 0x7f.0.0.1 as addresses too.
        if found[1].startswith("[") or _NUMBER.fullmatch(found[1].rpartition(".")[2]):
            return "it has no host"
        is_here = found[1].lower() == "localhost"
    else:
        if (address.version == 6) != found[1].startswith("["):
            return "it has no host"
        is_here = address.is_loopback
    return f"it is plain HTTP to another machine: {_ALLOWED}" if is_plain and not is_here else None
