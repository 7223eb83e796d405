"""From foreign names (server keys, upstream tool names) to components of the canonical identity.

ASCII capitals are folded. Any other character outside the grammar becomes ``-`` (runs once, ends trimmed); the
component is then *lossy* and carries ``-`` and 8 hexadecimal digits of the SHA-256 of the verbatim text, so that two
different texts never become one by accident.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final, NamedTuple

from truename.identity.grammar import is_name, lower_ascii

__all__ = [
    "MAX_COMPONENT",
    "MAX_FOREIGN",
    "Component",
    "component",
    "digest_of",
    "dotted_component",
    "with_digest",
]

MAX_FOREIGN: Final = 1024
# Two components, two versions and the separators stay below the 512 characters of an id.
MAX_COMPONENT: Final = 200
_OUTSIDE: Final = re.compile(r"[^a-z0-9_-]+")
_DIGITS: Final = 8


class Component(NamedTuple):
    """A foreign text as part of an id: the suite (tools only), the name, and whether something was lost."""

    suite: str | None
    name: str
    lossy: bool


def digest_of(text: str, digits: int = _DIGITS) -> str:
    """Return the first hexadecimal digits of the SHA-256 of the text as UTF-8 (lone surrogates included)."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


def with_digest(name: str, verbatim: str) -> str:
    """Return the name with the digest of the verbatim text behind it, within `MAX_COMPONENT` characters."""
    return f"{name[: MAX_COMPONENT - _DIGITS - 1].rstrip('-')}-{digest_of(verbatim)}"


def component(text: str) -> Component:
    """Turn a server key, or a tool name taken as a whole, into one component.

    >>> component("data-grout").name, component("Weather").name
    ('data-grout', 'weather')
    >>> component("My Server.io/x").name
    'my-server-io-x-ae023c6b'
    """
    folded = lower_ascii(text)
    if is_name(folded) and len(folded) <= MAX_COMPONENT:
        return Component(None, folded, lossy=False)
    plain = _OUTSIDE.sub("-", folded).strip("-")
    return Component(None, with_digest(plain if is_name(plain) else "x", text), lossy=True)


def dotted_component(text: str) -> Component:
    """Turn an upstream tool name into suite and tool, split at the last dot if every part is a name.

    >>> dotted_component("prism.refract")[:2], dotted_component("a..b").lossy
    (('prism', 'refract'), True)
    """
    folded = lower_ascii(text)
    parts = folded.split(".")
    if len(parts) > 1 and len(folded) <= MAX_COMPONENT and all(map(is_name, parts)):
        return Component(".".join(parts[:-1]), parts[-1], lossy=False)
    return component(text)
