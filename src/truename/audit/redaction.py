"""What of a call's arguments is written down: nothing, a digest, or the values with the secret ones taken out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from truename.audit.secrets import is_secret_name, tells_secret

if TYPE_CHECKING:
    from truename.config.audit import Arguments

__all__ = ["HIDDEN", "Redaction"]

HIDDEN: Final = "[redacted]"
_DEPTH: Final = 16
_MOST: Final = 200
_ROOM: Final = 32 * 1024
_LOOKED_AT: Final = 100_000
_BEYOND: Final = 2_000
_PARSED: Final = 200_000
_EXACT: Final = 2**53
_JSON: Final = frozenset('{["')
# Where a table says how what stands beside it is called, in how many words at most, and what that may be.
_NAMING: Final = {
    **dict.fromkeys(("name", "key", "field", "id", "label", "header", "parameter", "param", "variable", "selector"), 3),
    **dict.fromkeys(("type", "uid", "xpath", "locator", "placeholder", "target"), 3),
    # What a model says of a place on a page.
    "element": 12,
}
_VALUED: Final = frozenset({"value", "values", "content", "text", "data", "default", "secret"})
_LONGEST_NAME: Final = 100
_LONGEST_PAIR: Final = 2_000
_MOST_WORDS: Final = 3


@dataclass(frozen=True)
class Redaction:
    """How much of arguments is kept, which keys are hidden (globs, in lower case), and how long a text may be.

    >>> Redaction("redacted").of({"user": "ann", "apiKey": "x", "note": "use Bearer abcdefgh12345678"})
    {'user': 'ann', 'apiKey': '[redacted]', 'note': '[redacted]'}

    A key may also stand beside its value, as in the fields of a form, or before it, as on a command line:

    >>> Redaction("redacted").of({"fields": [{"name": "password", "value": "x"}], "args": ["--token", "y"]})
    {'fields': [{'name': 'password', 'value': '[redacted]'}], 'args': ['--token', '[redacted]']}
    """

    arguments: Arguments = "none"
    keys: tuple[str, ...] = ()
    longest: int = 1_000

    def of(self, arguments: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Return what is written down of these arguments; None for nothing."""
        if self.arguments != "redacted" or arguments is None:
            return None
        kept = self._kept(arguments, 0, _Room([0]))
        return kept if isinstance(kept, dict) else None

    def _kept(self, value: object, depth: int, room: _Room) -> Any:
        if depth >= _DEPTH:
            return "[too deep]"
        if not room.takes(8):
            return "[too much]"
        if isinstance(value, Mapping):
            return self._table(value, depth, room)
        if isinstance(value, (list, tuple)):
            before = (None, *value[: _MOST - 1])
            pairs = zip(before, value, strict=False)
            return [
                HIDDEN if self._names(key) or _is_told(key, one, room) else self._kept(one, depth + 1, room)
                for key, one in pairs
                if room.left > 0
            ]
        kept = self._said(value, depth, room) if isinstance(value, str) else _plain(value)
        return kept if room.takes(len(str(kept))) else "[too much]"

    def _said(self, value: str, depth: int, room: _Room) -> str:
        # Of a secret that begins in what is kept the rest may be needed to know it.
        near = value[: self.longest + _BEYOND]
        if not room.looks(len(near)):
            return "[too much]"
        return HIDDEN if tells_secret(near) or self._has_secret(value, depth, room) else _text(value, self.longest)

    def _has_secret(self, value: str, depth: int, room: _Room) -> bool:
        """Tell whether a text is JSON in which something would be hidden."""
        if value[:1] not in _JSON or len(value) > _PARSED:
            return False
        try:
            inner = json.loads(value)
        except (ValueError, RecursionError):
            return False
        return HIDDEN in _texts(self._kept(inner, depth + 1, room.another()))

    def _table(self, table: Mapping[Any, Any], depth: int, room: _Room) -> dict[str, Any]:
        some = list(islice(table.items(), _MOST))
        # What a table calls by a secret's name is in its other entries.
        is_field = any(self._names(value, _NAMING.get(str(key).lower(), 0)) for key, value in some)
        hides = _VALUED if is_field else frozenset[str]()
        return {
            _text(str(key), 200): HIDDEN if str(key).lower() in hides else self._entry(str(key), value, depth, room)
            for key, value in some
            if room.left > 0
        }

    def _entry(self, key: str, value: object, depth: int, room: _Room) -> Any:
        room.takes(min(len(key), 200))
        is_secret = is_secret_name(key, self.keys) and not _is_count(key, value)
        return HIDDEN if is_secret else self._kept(value, depth + 1, room)

    def _names(self, value: object, most_words: int = _MOST_WORDS) -> bool:
        """Tell whether a value is a secret's name (a sentence is none): what belongs to it is the secret."""
        if not most_words or type(value) is not str or len(value) > _LONGEST_NAME or len(value.split()) > most_words:
            return False
        return is_secret_name(value.lstrip("-"), self.keys)


def _is_told(option: object, value: object, room: _Room) -> bool:
    """Tell whether what follows an option of a command line is a secret with it: ``-u ann:hunter2``."""
    if not (isinstance(option, str) and isinstance(value, str) and option[:1] == "-"):
        return False
    length = len(option) + len(value)
    return length < _LONGEST_PAIR and room.looks(length) and tells_secret(f"{option} {value}")


def _is_count(key: str, value: object) -> bool:
    """Tell whether a number counts tokens (of a model), or is a place among them."""
    return isinstance(value, (int, float)) and "token" in key.lower()


def _texts(kept: object) -> Iterator[object]:
    """Yield what stands in a value, at any depth."""
    if isinstance(kept, dict):
        kept = list(kept.values())
    if isinstance(kept, list):
        for one in kept:
            yield from _texts(one)
    else:
        yield kept


class _Room:
    """How many characters are still kept, and looked at.

    A record that is too long for the journal would not be written at all; and whoever looks keeps all calls waiting.
    """

    def __init__(self, looked: list[int]) -> None:
        self.left = _ROOM
        self._looked = looked

    def takes(self, count: int) -> bool:
        self.left -= count
        return self.left >= 0

    def looks(self, count: int) -> bool:
        self._looked[0] += count
        return self._looked[0] <= _LOOKED_AT

    def another(self) -> _Room:
        """Return room for what is in a text; it is looked at together with all else."""
        return _Room(self._looked)


def _text(text: str, longest: int) -> str:
    shown = text if len(text) <= longest else f"{text[:longest]}[{len(text) - longest:,} more]"
    return shown.encode("utf-8", "backslashreplace").decode()


def _plain(value: object) -> Any:
    """Return a scalar as canonical JSON can hold it."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)) and -_EXACT < value < _EXACT:
        return value
    # Larger than the exact range, infinite, or no number: as text, which says what it was.
    return str(value)[:100]
