"""Declare each field of a table once, and derive its reader, its JSON Schema, its text and its reload rule from that.

A table is a frozen dataclass whose fields are declared with `setting`, or a mapping of `Setting` by key where another
package owns the class. `Fields` gives the values of one table of a file, and notes every error with its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from truename.config.interpolate import interpolate
from truename.errors import excerpt, spelling_remedy

if TYPE_CHECKING:
    from pathlib import Path

    from truename.errors import ConfigErrors

__all__ = [
    "EMPTY",
    "REQUIRED",
    "FieldType",
    "Fields",
    "Setting",
    "fixed_changes",
    "plain_table",
    "read_table",
    "required",
    "rows_of",
    "setting",
    "table_schema",
]

Schema = Mapping[str, Any]
Value = TypeVar("Value")
EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})
REQUIRED: Final = object()
"""The default of a field that has none."""
_METADATA: Final = "setting"
_SCALARS: Final = (str, int, float)
_REPLACED: Final[Mapping[str, str]] = MappingProxyType(
    {"ledger": "state", "access.state": "state", "approvals.path": "state"}
)
_REPLACED_REMEDY: Final = "Set state to the path of one database for all state, or to memory."


class Fields:
    """The values of one table of a file, its path in the file, the directory for relative paths, and the errors.

    References are replaced when a value is read. With ``is_secret`` no error shows anything of a value.
    """

    def __init__(
        self,
        values: Mapping[str, object],
        where: str,
        environ: Mapping[str, str],
        errors: ConfigErrors,
        base: Path,
        *,
        is_secret: bool = False,
    ) -> None:
        self._values = values
        self._where = where
        self._environ = environ
        self.errors = errors
        self.base = base
        self._is_secret = is_secret

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    @property
    def place(self) -> str:
        """The path of the table itself, for messages."""
        return self._where

    def secret(self) -> Fields:
        """Return the same fields, whose errors show nothing of a value."""
        return Fields(self._values, self._where, self._environ, self.errors, self.base, is_secret=True)

    def nested(self, name: str, wanted: str = "an object") -> Fields | None:
        """Return the fields of an inner table, or None if there is none; report a value that is not a table."""
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.wrong(name, wanted)
            return None
        return Fields(value, self.where(name), self._environ, self.errors, self.base, is_secret=self._is_secret)

    def table(self, name: str, wanted: str = "an object") -> Fields | None:
        """Return the fields of a table inside, which must not be null: what it restricts would be lifted unnoticed."""
        if name not in self:
            self.add(name, "it is null, not an object", "Leave it out, or fill it.")
        return self.nested(name, wanted)

    def raw(self, name: str) -> object:
        """Return a value unchecked and unconverted, for a reader that checks it itself."""
        return self._values.get(name)

    def is_list(self, name: str) -> bool:
        """Return whether a field holds a list."""
        return isinstance(self._values.get(name), list)

    def where(self, name: str) -> str:
        """Return the path of a field, for messages."""
        return f"{self._where}.{name}" if self._where else name

    def add(self, name: str, problem: str, remedy: str) -> None:
        """Report an error of a field."""
        self.errors.add(self.where(name), problem, remedy)

    def wrong(self, name: str, wanted: str) -> None:
        """Report that a field has a value of the wrong type."""
        kind = _kind(self._values.get(name), is_secret=self._is_secret)
        self.add(name, f"it is {kind}, not {wanted}", f"Write {wanted}.")

    def quoted(self, text: str) -> str:
        """Return a value for a message: quoted and shortened, or only "the value" in a secret field."""
        return "the value" if self._is_secret else excerpt(text)

    def text(self, name: str) -> str | None:
        """Return a text, or None if there is none or it cannot be used."""
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            self.wrong(name, "a text")
            return None
        before = len(self.errors)
        filled = self._fill(value, self.where(name))
        return filled if len(self.errors) == before else None

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts; numbers are accepted as their text."""
        value = self._values.get(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, _SCALARS) for item in value):
            self.wrong(name, "a list of texts")
            return ()
        return tuple(self._fill(_as_text(item), f"{self.where(name)}[{i}]") for i, item in enumerate(value))

    def pairs(self, name: str) -> dict[str, str]:
        """Return an object of texts; numbers and booleans are accepted as their text, null leaves one out."""
        value = self._values.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(
            item is None or isinstance(item, _SCALARS) for item in value.values()
        ):
            self.wrong(name, "an object of texts")
            return {}
        return {
            key: self._fill(_as_text(item), f"{self.where(name)}.{key}")
            for key, item in value.items()
            if item is not None
        }

    def number(self, name: str, *, least: float = 0.0, inclusive: bool = False) -> float | None:
        """Return a finite number above the least (or equal to it), or None if there is none."""
        value = self._values.get(name)
        if value is None:
            return None
        if (
            not isinstance(value, int | float)
            or isinstance(value, bool)
            or not math.isfinite(value)
            or value < least
            or (value == least and not inclusive)
        ):
            self.wrong(name, f"a number of at least {least:g}" if inclusive else f"a number above {least:g}")
            return None
        return float(value)

    def whole(self, name: str, *, least: int = 1, most: int | None = None) -> int | None:
        """Return a whole number within the limits, or None if there is none."""
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
        """Return a boolean; an absent one is false."""
        value = self._values.get(name)
        if value is not None and not isinstance(value, bool):
            self.wrong(name, "true or false")
        return value is True

    def _fill(self, value: str, where: str) -> str:
        filled = interpolate(value, self._environ, self.errors, where)
        if "\0" in filled:
            self.errors.add(where, "it holds a NUL character", "Remove it.")
        return filled


def _as_text(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _kind(value: object, *, is_secret: bool) -> str:
    if isinstance(value, str):
        return "a text"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return "a number" if is_secret else repr(value)
    return "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else type(value).__name__


@dataclass(frozen=True, kw_only=True)
class FieldType:
    """The type of a field: its name for people, its reader, its JSON Schema, and how a value is written back.

    A reader is called only if the file has the key; it notes every error, and returns None if the value cannot be used.
    ``rows`` are the fields of a table inside, and ``key`` is what stands for the names if there are many such tables.
    """

    name: str
    read: Callable[[Fields, str], Any]
    schema: Schema
    plain: Callable[[Any], Any] = lambda value: value
    rows: Mapping[str, Setting] = field(default_factory=lambda: EMPTY)
    key: str = ""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One field of a table: everything that its reader, schema, documentation and reload need to know.

    ``meaning`` is one sentence of documentation. A running gateway takes a change over if ``live``. No message, log or
    ``repr`` shows a ``secret``. ``attribute`` is the name in Python, if it is not the key in the file.
    """

    type: FieldType
    meaning: str
    default: Any = REQUIRED
    unit: str = ""
    live: bool = False
    secret: bool = False
    attribute: str = ""


def setting(
    default: Value, kind: FieldType, meaning: str, *, unit: str = "", live: bool = False, secret: bool = False
) -> Value:
    """Declare a field of a dataclass, with its default."""
    row = Setting(type=kind, meaning=meaning, default=default, unit=unit, live=live, secret=secret)
    metadata = {_METADATA: row}
    is_hashable = default.__class__.__hash__ is not None
    return (
        field(default=default, repr=not secret, metadata=metadata)
        if is_hashable
        else field(default_factory=lambda: default, repr=not secret, metadata=metadata)
    )


def required(kind: FieldType, meaning: str, *, secret: bool = False) -> Mapping[str, Setting]:
    """Return the ``metadata`` of a dataclass field without a default: ``field(metadata=required(...))``."""
    return {_METADATA: Setting(type=kind, meaning=meaning, secret=secret)}


def rows_of(table: type[Any]) -> Mapping[str, Setting]:
    """Return the declared fields of a dataclass, by their keys in a file."""
    return MappingProxyType({one.name: one.metadata[_METADATA] for one in fields(table) if _METADATA in one.metadata})


def read_table(
    table: Fields,
    rows: Mapping[str, Setting],
    *,
    accept_null: bool = False,
    others: Iterable[str] = (),
    wanted: str = "a setting",
) -> dict[str, Any]:
    """Return the values of a table, by attribute; note unknown keys, missing ones, and null unless it is accepted.

    ``others`` are keys that another reader knows, ``wanted`` is what an unknown key is not.
    """
    known = (*rows, *others)
    for key in table:
        if key not in known:
            place = table.where(excerpt(key)[1:-1])
            if place in _REPLACED:
                table.add(key, f"it was replaced by {_REPLACED[place]}", _REPLACED_REMEDY)
            else:
                table.add(excerpt(key)[1:-1], f"it is not {wanted}", spelling_remedy(key, known))
        elif key not in table and not accept_null:
            table.add(key, "it is null", "Leave it out, or give it a value.")
    found: dict[str, object] = {}
    keys = tuple(table)
    for key, row in rows.items():
        if key not in keys:
            if row.default is REQUIRED:
                table.add(key, "it is missing", "Add it.")
        elif key in table or accept_null:
            value = row.type.read(table.secret() if row.secret else table, key)
            if value is not None:
                found[row.attribute or key] = value
    return found


def table_schema(rows: Mapping[str, Setting]) -> dict[str, object]:
    """Return the JSON Schema of a table with these fields."""
    missing = [key for key, row in rows.items() if row.default is REQUIRED]
    return {
        "type": "object",
        "properties": {key: field_schema(row) for key, row in rows.items()},
        **({"required": missing} if missing else {}),
        "additionalProperties": False,
    }


def field_schema(row: Setting) -> dict[str, object]:
    """Return the JSON Schema of one field, with its meaning, unit and default."""
    unit = f" Unit: {row.unit}." if row.unit else ""
    default = {"default": row.default} if isinstance(row.default, _SCALARS) else {}
    return {**row.type.schema, "description": f"{row.meaning}{unit}", **default}


def plain_table(value: object, rows: Mapping[str, Setting]) -> dict[str, object]:
    """Return a table as a file writes it: by key, without fields that have their default."""
    found = ((key, row, getattr(value, row.attribute or key)) for key, row in rows.items())
    return {key: row.type.plain(one) for key, row, one in found if one != row.default}


def fixed_changes(before: object, after: object, rows: Mapping[str, Setting] | None = None) -> tuple[str, ...]:
    """Return the keys of fields that differ, and that a running gateway cannot take over; ``audit.path`` in a table."""
    return tuple(_fixed_changes(before, after, rows_of(type(before)) if rows is None else rows))


def _fixed_changes(before: object, after: object, rows: Mapping[str, Setting]) -> Iterator[str]:
    for key, row in rows.items():
        old, new = (getattr(one, row.attribute or key) for one in (before, after))
        if old == new or row.live:
            continue
        if row.type.rows and not row.type.key and is_dataclass(old) and is_dataclass(new):
            yield from (f"{key}.{inner}" for inner in _fixed_changes(old, new, row.type.rows))
        else:
            yield key
