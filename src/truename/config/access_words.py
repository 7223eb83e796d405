"""How single fields of ``[access]`` are read: each reader notes what is wrong, and returns None for it."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, get_args
from urllib.parse import urlsplit

from truename.config.access import ALGORITHMS, Introspection
from truename.errors import excerpt, spelling_remedy

if TYPE_CHECKING:
    from collections.abc import Callable

    from truename.config.fields import Fields

__all__ = ["algorithms", "each", "introspection", "matching", "moment", "number", "origin", "schemes", "text", "url"]

_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]{0,63}")
# Schemes that a browser runs or opens itself: nobody's address.
_NO_ADDRESS: Final = frozenset(
    {"http", "https", "javascript", "data", "file", "about", "blob", "vbscript", "ws", "wss"}
)


def matching(pattern: re.Pattern[str], what: str) -> Callable[[Fields, str], str | None]:
    """Return a reader of texts of this form."""

    def read(fields: Fields, name: str) -> str | None:
        text = fields.text(name)
        if text is not None and pattern.fullmatch(text) is None:
            fields.faults.add(fields.where(name), f"it is not {what}", f"Write {what}.")
            return None
        return text

    return read


def each(pattern: re.Pattern[str], what: str) -> Callable[[Fields, str], tuple[str, ...] | None]:
    """Return a reader of lists whose texts have this form."""

    def read(fields: Fields, name: str) -> tuple[str, ...] | None:
        if name not in fields:
            return None
        texts = fields.texts(name)
        for text in texts:
            if pattern.fullmatch(text) is None:
                fields.faults.add(fields.where(name), f"{excerpt(text)} is not {what}", f"Write {what}.")
        return texts

    return read


def url(fields: Fields, name: str) -> str | None:
    """Read an address that secrets may go to."""
    text = fields.text(name)
    if text is not None and (problem := _wrong_url(text)):
        fields.faults.add(fields.where(name), problem, "Write https://HOST/..., or http:// on a loopback address.")
        return None
    return text


def origin(fields: Fields, name: str) -> str | None:
    """Read scheme, host and port."""
    text = url(fields, name)
    if text is not None and (urlsplit(text).path.rstrip("/") or urlsplit(text).query):
        fields.faults.add(fields.where(name), "it has a path", "Write scheme, host and port alone: https://HOST.")
        return None
    return None if text is None else text.rstrip("/")


def _wrong_url(text: str) -> str | None:
    try:
        found = urlsplit(text)
        host, _ = found.hostname or "", found.port
    except ValueError:
        return "it is not an address"
    if not text.isascii() or not text.isprintable() or " " in text or not host or found.username is not None:
        return "it is not an address"
    if found.fragment or found.scheme not in {"http", "https"}:
        return "it is not an address"
    return "it is plain HTTP to another machine" if found.scheme == "http" and not _is_here(host) else None


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def text(fields: Fields, name: str) -> str | None:
    """Read a text."""
    return fields.text(name)


def number(fields: Fields, name: str) -> float | None:
    """Read a number above nought."""
    return fields.number(name)


def algorithms(fields: Fields, name: str) -> tuple[str, ...] | None:
    """Read signatures with public keys."""
    if name not in fields:
        return None
    texts = fields.texts(name)
    for text in texts:
        if text not in ALGORITHMS:
            fields.faults.add(
                fields.where(name),
                f"{excerpt(text)} is no signature with a public key",
                spelling_remedy(text, ALGORITHMS),
            )
    if not texts:
        fields.faults.add(fields.where(name), "it is empty", "Leave it out, or name one.")
    return texts


def schemes(fields: Fields, name: str) -> tuple[str, ...] | None:
    """Read schemes of programs' own."""
    texts = each(_SCHEME, "a scheme of a program's own, as in cursor")(fields, name)
    for text in texts or ():
        if text in _NO_ADDRESS:
            fields.faults.add(fields.where(name), f"{excerpt(text)} is no program's own", "Leave it out.")
    return texts


def introspection(fields: Fields, name: str) -> str | None:
    """Read which tokens an issuer is asked about."""
    text = fields.text(name)
    if text is not None and text not in get_args(Introspection):
        fields.faults.add(
            fields.where(name), f"{excerpt(text)} is no choice", spelling_remedy(text, get_args(Introspection))
        )
        return None
    return text


def moment(fields: Fields, name: str) -> float | None:
    """Read a time as seconds since 1970."""
    # TOML has days and times of its own.
    said = fields.raw(name)
    text = said.isoformat() if isinstance(said, date) else fields.text(name)
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        fields.faults.add(fields.where(name), f"{excerpt(text)} is no time", "Write it as in 2027-02-01T00:00:00Z.")
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
