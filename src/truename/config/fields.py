"""Read the fields of one object of a configuration, one by one or by a table of rows; note errors and go on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args

from truename.config.interpolate import interpolate
from truename.errors import excerpt, spelling_remedy
from truename.policy import HINTS, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.errors import ConfigErrors

__all__ = [
    "METADATA",
    "POLICY",
    "SECONDS",
    "TEXT",
    "TEXTS",
    "TRUTH",
    "WHOLE",
    "Fields",
    "Row",
    "chosen",
    "read_row_table",
    "row_schema",
]

Schema = Mapping[str, Any]
TEXT: Final[Schema] = {"type": "string"}
TRUTH: Final[Schema] = {"type": "boolean"}
SECONDS: Final[Schema] = {"type": "number", "exclusiveMinimum": 0}
NUMBER: Final = SECONDS
WHOLE: Final[Schema] = {"type": "integer", "minimum": 1}
_REFERENCE: Final[Schema] = {"type": "string", "pattern": r"\$\{"}
_TEXT: Final[Schema] = {"type": "string"}
TEXTS: Final[Schema] = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_RULE: Final[Mapping[str, Schema]] = {
    "name": _TEXT,
    "outcome": {"enum": list(get_args(Outcome))},
    "reason": _TEXT,
    "annotations": {
        "type": "object",
        "properties": {name: {"type": "boolean"} for name in HINTS},
        "additionalProperties": False,
    },
    **dict.fromkeys(
        ("tools", "except", "servers", "upstream", "principals", "agents", "clients", "platforms", "apps"), TEXTS
    ),
}
POLICY: Final[Schema] = {
    "type": "object",
    "properties": {
        "default": {
            **_RULE["outcome"],
            "description": "What is done with a call that no rule is about: allow, or ask if a rule allows.",
        },
        "rules": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": _RULE,
                "required": ["outcome"],
                "additionalProperties": False,
            },
        },
    },
    "additionalProperties": False,
}
_WORDS: Final[Schema] = {"type": ["array", "null"], "items": {"type": "string"}}
METADATA: Final[Schema] = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "properties": {
            **{name: {"type": ["boolean", "null"]} for name in ("is_for_llm", "is_recordable")},
            **{name: {"type": ["string", "null"]} for name in ("app", "owner", "family")},
            "platforms": _WORDS,
            "parameter_platforms": {"type": ["object", "null"], "additionalProperties": {**_WORDS, "type": "array"}},
        },
        "additionalProperties": False,
    },
}


class Fields:
    """One object of the file: where it stands, and its values, interpolated on the way out."""

    def __init__(self, values: Mapping[str, Any], where: str, environ: Mapping[str, str], faults: ConfigErrors) -> None:
        self._values = values
        self._where = where
        self._environ = environ
        self.faults = faults

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def nested(self, name: str, wanted: str) -> Fields | None:
        """Return the fields of an object inside, or None where there is none."""
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.wrong(name, wanted)
            return None
        return Fields(value, self.where(name), self._environ, self.faults)

    def raw(self, name: str) -> object:
        """Return a value as it stands, for a reader that judges it by itself."""
        return self._values.get(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def is_list(self, name: str) -> bool:
        """Tell whether a field holds a list."""
        return isinstance(self._values.get(name), list)

    def where(self, name: str) -> str:
        """Return the path of a field, for messages."""
        return f"{self._where}.{name}" if self._where else name

    def wrong(self, name: str, wanted: str) -> None:
        """Note that a field is not what it has to be."""
        kind = _kind(self._values.get(name))
        self.faults.add(self.where(name), f"it is {kind}, not {wanted}", f"Write {wanted}.")

    def text(self, name: str) -> str | None:
        """Return a text, or None where there is none or none that can be used."""
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            self.wrong(name, "a text")
            return None
        before = len(self.faults)
        filled = self._fill(value, self.where(name))
        return filled if len(self.faults) == before else None

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts; numbers are accepted as their text."""
        value = self._values.get(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(_plain(item) for item in value):
            self.wrong(name, "a list of texts")
            return ()
        return tuple(self._fill(_said(item), f"{self.where(name)}[{i}]") for i, item in enumerate(value))

    def pairs(self, name: str) -> dict[str, str]:
        """Return an object of texts; numbers and truth values are accepted as their text, null leaves one out."""
        value = self._values.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(item is None or _plain(item) for item in value.values()):
            self.wrong(name, "an object of texts")
            return {}
        return {
            key: self._fill(_said(item), f"{self.where(name)}.{key}") for key, item in value.items() if item is not None
        }

    def number(self, name: str, *, least: float = 0.0, inclusive: bool = False) -> float | None:
        """Return a finite number above the least (or that), or None where there is none."""
        value = self._values.get(name)
        if value is None:
            return None
        good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not good or value < least or (value == least and not inclusive):
            self.wrong(name, f"a number of at least {least:g}" if inclusive else f"a number above {least:g}")
            return None
        return float(value)

    def whole(self, name: str, *, least: int = 1, most: int | None = None) -> int | None:
        """Return a whole number of at least this, or None where there is none."""
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            self.wrong(name, f"a whole number above {least - 1}" if least else "a whole number, 0 or above")
            return None
        if most is not None and value > most:
            self.wrong(name, f"a whole number of at most {most:,}")
            return None
        return value

    def truth(self, name: str) -> bool:
        """Return a truth value; absent is false."""
        value = self._values.get(name)
        if value is not None and not isinstance(value, bool):
            self.wrong(name, "true or false")
        return value is True

    def _fill(self, value: str, where: str) -> str:
        filled = interpolate(value, self._environ, self.faults, where)
        if "\0" in filled:
            self.faults.add(where, "it holds a NUL character", "Remove it.")
        return filled


def _plain(value: object) -> bool:
    return isinstance(value, str | int | float)


def _said(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _kind(value: object) -> str:
    if isinstance(value, str):
        return "a text"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    return "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else type(value).__name__


class Row(NamedTuple):
    """One key of a table. Its reader notes what is wrong, and returns None for it."""

    read: Callable[[Fields, str], Any]
    schema: Schema
    what: str


def chosen(words: Iterable[str], what: str) -> Row:
    """Return a row of one word of these."""
    known = tuple(words)

    def read(fields: Fields, name: str) -> str | None:
        text = fields.text(name)
        if text is not None and text not in known:
            fields.faults.add(fields.where(name), f"{excerpt(text)} is no choice", spelling_remedy(text, known))
            return None
        return text

    return Row(read, {"anyOf": [{"enum": list(known)}, _REFERENCE]}, what)


_REPLACED: Final[Mapping[str, str]] = {"ledger": "state", "access.state": "state", "approvals.path": "state"}


def unknown_setting(place: str, word: str, known: Iterable[str]) -> tuple[str, str]:
    """Return the problem and the remedy for a word that is no setting: the setting that replaced it, or one like it.

    >>> unknown_setting("ledger", "ledger", ["state", "style"])
    ('it was replaced by state', 'Set state to the path of one database for all state, or to memory.')
    """
    if place in _REPLACED:
        problem = f"it was replaced by {_REPLACED[place]}"
        return problem, "Set state to the path of one database for all state, or to memory."
    return "it is not a setting", spelling_remedy(word, known)


def read_row_table(table: Fields, rows: Mapping[str, Row], more: Iterable[str] = ()) -> dict[str, Any]:
    """Return what a table says, by key; ``more`` are keys that are read elsewhere. Notes what is wrong."""
    known = (*rows, *more)
    for word in table:
        if word not in known:
            place = table.where(excerpt(word)[1:-1])
            table.faults.add(place, *unknown_setting(place, word, known))
        elif word not in table:
            table.faults.add(table.where(word), "it is null", "Leave it out, or say something.")
    read = {name: row.read(table, name) for name, row in rows.items() if name in table}
    return {name: value for name, value in read.items() if value is not None}


def row_schema(rows: Mapping[str, Row], more: Mapping[str, Schema] | None = None) -> dict[str, Any]:
    """Return the schema of such a table."""
    properties = {name: {**row.schema, "description": row.what} for name, row in rows.items()}
    return {"type": "object", "properties": {**properties, **(more or {})}, "additionalProperties": False}
