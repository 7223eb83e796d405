"""What of a call's arguments is written down: nothing, a digest, or the values with the secret ones taken out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from truename.config.audit import Arguments

__all__ = ["HIDDEN", "Redaction", "masked"]

HIDDEN: Final = "[redacted]"
_DEPTH: Final = 16
_MOST: Final = 200
_ROOM: Final = 32 * 1024
_LOOKED_AT: Final = 20_000
_EXACT: Final = 2**53
# Of a key in lower case and without what stands between its words.
_KEYS: Final = (
    *("*password*", "*passwd*", "*secret*", "*token*", "*credential*", "*apikey*", "*privatekey*", "*accesskey*"),
    *("*authorization*", "*cookie*", "*passphrase*", "*pwd", "pin", "otp", "*sessionid*", "*signature*"),
)
# Where a table says how what stands beside it is called, and what that may be.
_NAMING: Final = frozenset(
    {"name", "key", "field", "id", "label", "header", "parameter", "param", "variable", "selector"}
)
_VALUED: Final = frozenset({"value", "values", "content", "text", "data", "default", "secret"})
_LONGEST_NAME: Final = 100
_MOST_WORDS: Final = 3
_BETWEEN: Final = re.compile(r"[\s_.-]+")
# Secrets that tell themselves by their form, whatever they are called.
_VALUES: Final = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\."
    r"|\b(?:sk|pk|rk|ghp|gho|ghu|ghs|ghr|github_pat|glpat|xox[abposr]|npm|pypi|hf|AIza|ya29)[-_.][A-Za-z0-9_-]{16,}"
    r"|\bA(?:KIA|SIA)[A-Z0-9]{16}\b"
    r"|(?i:\b(?:bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,})"
    r"|(?i:://[^\s/:@]{1,100}:[^\s/@]{1,200}@)"
)
# Secrets that are said with their keys: in an address, on a command line, in JSON within a text.
_SAID: Final = re.compile(
    r"(?i:(?:password|passwd|pwd|passphrase|secret|token|api[_-]?key|access[_-]?key|signature)"
    r"(?:=[^\s&;]{3}|[\"']\s{0,9}:\s{0,9}[\"'][^\"']))"
)
# As far as a secret may reach, wherever its form ends.
_WHOLE: Final = re.compile(rf"(?:{_VALUES.pattern})[^\s\"'<>,;]*")


def masked(text: str) -> str:
    """Return a text without the secrets in it that tell themselves by their form.

    >>> masked("refused: Bearer abcdefgh12345678, see https://ann:hunter2@host/x")
    'refused: [redacted], see https[redacted]'
    """
    return _WHOLE.sub(HIDDEN, text) if _VALUES.search(text) else text


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
        kept = self._kept(arguments, 0, _Room())
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
                HIDDEN if self._names(key) else self._kept(one, depth + 1, room) for key, one in pairs if room.left > 0
            ]
        kept = self._said(value) if isinstance(value, str) else _plain(value)
        return kept if room.takes(len(str(kept))) else "[too much]"

    def _said(self, value: str) -> str:
        near = value[:_LOOKED_AT]
        return HIDDEN if _VALUES.search(near) or _SAID.search(near) else _text(value, self.longest)

    def _table(self, table: Mapping[Any, Any], depth: int, room: _Room) -> dict[str, Any]:
        some = list(islice(table.items(), _MOST))
        # What a table calls by a secret's name is in its other entries.
        is_field = any(str(key).lower() in _NAMING and self._names(value) for key, value in some)
        hides = _VALUED if is_field else frozenset[str]()
        return {
            _text(str(key), 200): HIDDEN if str(key).lower() in hides else self._entry(str(key), value, depth, room)
            for key, value in some
            if room.left > 0
        }

    def _entry(self, key: str, value: object, depth: int, room: _Room) -> Any:
        room.takes(min(len(key), 200))
        return HIDDEN if self._is_secret(key) else self._kept(value, depth + 1, room)

    def _names(self, value: object) -> bool:
        """Tell whether a value is a secret's name (a sentence is none): what belongs to it is the secret."""
        if type(value) is not str or len(value) > _LONGEST_NAME or len(value.split()) > _MOST_WORDS:
            return False
        return self._is_secret(value.lstrip("-"))

    def _is_secret(self, key: str) -> bool:
        folded = key.lower()
        joined = _BETWEEN.sub("", folded)
        return any(fnmatchcase(joined, glob) for glob in _KEYS) or any(fnmatchcase(folded, glob) for glob in self.keys)


class _Room:
    """How many characters are still kept: a record that is too long for the journal would not be written at all."""

    def __init__(self) -> None:
        self.left = _ROOM

    def takes(self, count: int) -> bool:
        self.left -= count
        return self.left >= 0


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
