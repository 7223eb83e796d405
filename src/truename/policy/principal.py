"""Represent a principal (the caller as authentication established it), and match globs on its key."""

from __future__ import annotations

import json
import string
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["LOCAL", "WRITTEN", "Principal", "principal_fault"]


@dataclass(frozen=True, kw_only=True)
class Principal:
    """Somebody who was let in.

    ``name`` is the subject of a token or the name of a static one; ``issuer`` says who vouches for it, "" for the
    gateway's own configuration; ``client`` is the OAuth client that acts. ``groups`` and ``scopes`` are the issuer's
    words.

    Two issuers may know the same name, and mean two people:

    >>> ann, other = Principal(name="ann", issuer="https://a.example"), Principal(name="ann", issuer="https://b.example")
    >>> ann.key == other.key
    False
    """

    name: str
    issuer: str = ""
    client: str = ""
    groups: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()

    @property
    def key(self) -> str:
        """One text for one person, whatever client and groups: what approvals, credentials and audit are kept under."""
        return self.name if not self.issuer and not self.name.startswith("[") else json.dumps([self.issuer, self.name])


LOCAL: Final = Principal(name="local")
"""Whoever can reach a gateway that asks for no credentials, over a loopback address or its own standard input."""


WRITTEN: Final = "Write principals as the audit log names them."
_FRONT: Final = "["
_LONGEST: Final = 300
# How the key of a name with an issuer is written (`Principal.key`): these texts between two JSON strings.
_PIECES: Final = ('["', '", "', '"]')
_ESCAPED: Final = frozenset('"\\bfnrtu')
_HEX: Final = frozenset(string.digits + "abcdef")
_CHARACTERS: Final = tuple(map(chr, range(0x20, 0x7F)))

# How far a key is read: in which piece or string, and where in it (in a string: how many digits of an escape come).
_State = tuple[int, int]
_ESCAPE: Final = -1
_END: Final[_State] = (2 * len(_PIECES) - 1, 0)


def principal_fault(glob: str) -> str:
    """Return why a glob can fit no principal's key, and how it may be meant; "" if it can.

    >>> principal_fault('["https://idp.example", "ann"]'), principal_fault("an*"), principal_fault('["*ann"]')
    ('', '', '')
    >>> principal_fault('["iss","ann"]')
    'it fits no principal: a key with an issuer is written ["ISSUER", "NAME"]; write ["iss", "ann"]'
    """
    # A key that does not begin so may be any name.
    if not glob.startswith(_FRONT) or _may_fit(glob):
        return ""
    return f'it fits no principal: a key with an issuer is written ["ISSUER", "NAME"]{_meant(glob)}'


def _may_fit(glob: str) -> bool:
    """Follow all ways in which a glob may be a key at once."""
    states: set[_State] = {(0, 0)}
    for char in glob:
        if char == "*":
            found = states
            while found:
                found = _after(found, _CHARACTERS) - states
                states = states | found
        else:
            states = _after(states, _CHARACTERS if char == "?" else char)
    return _END in states


def _after(states: set[_State], characters: Iterable[str]) -> set[_State]:
    found = (_next(one, char) for one in states for char in characters)
    return {one for one in found if one is not None}


def _next(state: _State, char: str) -> _State | None:
    """Return how far a key is read with one more character; None where it is none."""
    part, at = state
    if part % 2:
        return _next_in_string(part, at, char)
    text = _PIECES[part // 2]
    if text[at] != char:
        return None
    return (part, at + 1) if at + 1 < len(text) else (part + 1, 0)


def _next_in_string(part: int, at: int, char: str) -> _State | None:
    if at == _ESCAPE:
        return (part, 4 if char == "u" else 0) if char in _ESCAPED else None
    if at:
        return (part, at - 1) if char in _HEX else None
    # The quotation mark that ends the string begins the next piece; behind the last piece a key is over.
    is_over = (part, at) == _END or char not in _CHARACTERS
    return None if is_over else (part + 1, 1) if char == '"' else (part, _ESCAPE if char == "\\" else 0)


def _meant(glob: str) -> str:
    try:
        read = json.loads(glob)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(read, list) or len(read) != 2 or not all(isinstance(one, str) for one in read):
        return ""
    return f"; write {json.dumps(read)[:_LONGEST]}"
