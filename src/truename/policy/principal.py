"""Represent a principal (the caller as authentication established it), and match globs on its key."""

from __future__ import annotations

import json
import string
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["LOCAL", "WRITTEN", "Principal", "principal_error"]


@dataclass(frozen=True, kw_only=True)
class Principal:
    """An authenticated caller.

    ``name`` is the subject of a token or the name of a static token; ``issuer`` is the token's issuer, "" for the
    gateway's own configuration; ``client`` is the OAuth client that acts. ``groups`` and ``scopes`` come from the
    issuer.

    The same name from two issuers means two people:

    >>> ann, other = Principal(name="ann", issuer="https://a.example"), Principal(name="ann", issuer="https://b.example")
    >>> ann.key == other.key
    False
    """

    name: str
    issuer: str = ""
    client: str = ""
    groups: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()

    @cached_property
    def key(self) -> str:
        """The identity of the person as one text, without client and groups; the key of approvals and credentials."""
        return self.name if not self.issuer and not self.name.startswith("[") else json.dumps([self.issuer, self.name])


LOCAL: Final = Principal(name="local")
"""The caller of a gateway without authentication, over a loopback address or standard input."""


WRITTEN: Final = "Write principals as the audit log names them."
_FRONT: Final = "["
_LONGEST: Final = 300
# The text around the two JSON strings in the key of a name with an issuer (`Principal.key`).
_PIECES: Final = ('["', '", "', '"]')
_ESCAPED: Final = frozenset('"\\bfnrtu')
_HEX: Final = frozenset(string.digits + "abcdef")
_CHARACTERS: Final = tuple(map(chr, range(0x20, 0x7F)))

# The state of the reader of a key: the number of the piece or string, and the position in it. In a string, the position
# is the number of hexadecimal digits of an escape that must follow.
_State = tuple[int, int]
_ESCAPE: Final = -1
_END: Final[_State] = (2 * len(_PIECES) - 1, 0)


def principal_error(glob: str) -> str:
    """Return why a glob cannot match any principal's key, with a suggestion; "" if it can.

    >>> principal_error('["https://idp.example", "ann"]'), principal_error("an*"), principal_error('["*ann"]')
    ('', '', '')
    >>> principal_error('["iss","ann"]')
    'it matches no principal: a key with an issuer is written ["ISSUER", "NAME"]; write ["iss", "ann"]'
    """
    # A key that does not begin with "[" can be any name.
    if not glob.startswith(_FRONT) or _may_fit(glob):
        return ""
    return f'it matches no principal: a key with an issuer is written ["ISSUER", "NAME"]{_suggested(glob)}'


def _may_fit(glob: str) -> bool:
    """Return whether a glob can match a key, by following all possible reader states at once."""
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
    """Return the state after one more character; None if no key continues with it."""
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
    # The quotation mark that ends the string is the first character of the next piece; nothing follows the last piece.
    is_over = (part, at) == _END or char not in _CHARACTERS
    return None if is_over else (part + 1, 1) if char == '"' else (part, _ESCAPE if char == "\\" else 0)


def _suggested(glob: str) -> str:
    try:
        read = json.loads(glob)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(read, list) or len(read) != 2 or not all(isinstance(one, str) for one in read):
        return ""
    return f"; write {json.dumps(read)[:_LONGEST]}"
