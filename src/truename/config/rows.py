"""Tables of a configuration by rows: one row a key, how it is read, what a schema says of it, and what it is for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.errors import excerpt, spelling_remedy

if TYPE_CHECKING:
    from truename.config.fields import Fields

__all__ = ["NUMBER", "SECONDS", "TEXT", "TRUTH", "WHOLE", "Row", "chosen", "read_row_table", "row_schema"]

Schema = Mapping[str, Any]
TEXT: Final[Schema] = {"type": "string"}
TRUTH: Final[Schema] = {"type": "boolean"}
SECONDS: Final[Schema] = {"type": "number", "exclusiveMinimum": 0}
NUMBER: Final = SECONDS
WHOLE: Final[Schema] = {"type": "integer", "minimum": 1}
_REFERENCE: Final[Schema] = {"type": "string", "pattern": r"\$\{"}


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


def read_row_table(table: Fields, rows: Mapping[str, Row], more: Iterable[str] = ()) -> dict[str, Any]:
    """Return what a table says, by key; ``more`` are keys that are read elsewhere. Notes what is wrong."""
    known = (*rows, *more)
    for word in table:
        if word not in known:
            table.faults.add(table.where(excerpt(word)[1:-1]), "it is not a setting", spelling_remedy(word, known))
        elif word not in table:
            table.faults.add(table.where(word), "it is null", "Leave it out, or say something.")
    read = {name: row.read(table, name) for name, row in rows.items() if name in table}
    return {name: value for name, value in read.items() if value is not None}


def row_schema(rows: Mapping[str, Row], more: Mapping[str, Schema] | None = None) -> dict[str, Any]:
    """Return the schema of such a table."""
    properties = {name: {**row.schema, "description": row.what} for name, row in rows.items()}
    return {"type": "object", "properties": {**properties, **(more or {})}, "additionalProperties": False}
