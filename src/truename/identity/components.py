"""Convert foreign names (server keys, upstream tool names) to components of the canonical identity.

ASCII capitals are folded. Any other character outside the grammar becomes ``-`` (runs once, ends trimmed); the
component is then *lossy* and carries ``-`` and 8 hexadecimal digits of the SHA-256 of the verbatim text, so that two
different texts never become one by accident.
"""

from __future__ import annotations

import hashlib
import re
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.identity.tool_id import is_name, lower_ascii

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "MAX_COMPONENT",
    "MAX_FOREIGN",
    "IdComponent",
    "candidate_keys",
    "component",
    "digest_of",
    "dotted_component",
    "is_candidate_key",
    "names_without_digest",
    "with_digest",
]

MAX_FOREIGN: Final = 1024
# Two components, two versions and the separators stay below the 512 characters of an id.
MAX_COMPONENT: Final = 200
_OUTSIDE: Final = re.compile(r"[^a-z0-9_-]+")
_DIGITS: Final = 8
# Two texts with the same key after even two digests cannot be found in practice.
_MOST_DIGESTS: Final = 4


class IdComponent(NamedTuple):
    """A foreign text as a part of an id: the suite (tools only), the name, and whether the conversion is lossy."""

    suite: str | None
    name: str
    lossy: bool


def digest_of(text: str, digits: int = _DIGITS) -> str:
    """Return the first hexadecimal digits of the SHA-256 of the text as UTF-8 (lone surrogates included)."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


def with_digest(name: str, verbatim: str) -> str:
    """Append the digest of the verbatim text to a name, cut to `MAX_COMPONENT` characters in all."""
    return f"{name[: MAX_COMPONENT - _DIGITS - 1].rstrip('-')}-{digest_of(verbatim)}"


def candidate_keys(key: str, verbatim: str) -> Iterator[str]:
    """Yield the keys that a text may get, best first: the plain key, then each with one more digest than the last.

    >>> from itertools import islice
    >>> list(islice(candidate_keys("danger", "Danger"), 2))
    ['danger', 'danger-8412c070']
    """
    yield key
    candidate, seed = key, verbatim
    while True:
        candidate = with_digest(candidate, seed)
        yield candidate
        seed = f"{candidate}\0{verbatim}"


def is_candidate_key(key: str, base: str, verbatim: str) -> bool:
    """Return whether `candidate_keys` of ``base`` and the verbatim text yields this key."""
    return key in islice(candidate_keys(base, verbatim), _MOST_DIGESTS)


def names_without_digest(text: str) -> frozenset[str]:
    """Return the components that a foreign text would become if no digest were appended.

    These are the text in lower case and, if it is lossy, the text with ``-`` for the characters outside the grammar.

    >>> [sorted(names_without_digest(text)) for text in ("My Server", "Weather", "???")]
    [['my server', 'my-server'], ['weather'], ['???']]
    """
    folded = lower_ascii(text)
    # A text that is already a name has no second form: "a-" is not "a".
    part = component(text)
    plain = _OUTSIDE.sub("-", folded).strip("-")
    return frozenset({folded, plain} if part.lossy and is_name(plain) else {folded})


def component(text: str) -> IdComponent:
    """Convert a server key, or a tool name as a whole, to one component.

    >>> component("data-grout").name, component("Weather").name
    ('data-grout', 'weather')
    >>> component("My Server.io/x").name
    'my-server-io-x-ae023c6b'
    """
    folded = lower_ascii(text)
    if is_name(folded) and len(folded) <= MAX_COMPONENT:
        return IdComponent(None, folded, lossy=False)
    plain = _OUTSIDE.sub("-", folded).strip("-")
    return IdComponent(None, with_digest(plain if is_name(plain) else "x", text), lossy=True)


def dotted_component(text: str) -> IdComponent:
    """Convert an upstream tool name to suite and tool, split at the last dot if every part is a name.

    >>> dotted_component("prism.refract")[:2], dotted_component("a..b").lossy
    (('prism', 'refract'), True)
    """
    folded = lower_ascii(text)
    parts = folded.split(".")
    if len(parts) > 1 and len(folded) <= MAX_COMPONENT and all(map(is_name, parts)):
        return IdComponent(".".join(parts[:-1]), parts[-1], lossy=False)
    return component(text)
