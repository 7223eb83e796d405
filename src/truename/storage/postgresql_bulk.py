"""Insert many rows by one statement: one for each row takes PostgreSQL three times as long, and psycopg ten times."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.storage.postgresql_sql import MARK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["bulk_insert"]

_INSERT: Final = re.compile(r"INSERT INTO (?P<table>[a-z_]+) \((?P<columns>[a-z_, ]+)\) VALUES \([?, ]+\)(?P<then>.*)")
_UPSERT: Final = re.compile(r" ON CONFLICT \((?P<keys>[a-z_, ]+)\) DO UPDATE .*")
# Below this, a statement for each row is as fast.
_FEWEST: Final = 20
_MOST: Final = 1_000


class _Insert(NamedTuple):
    """An insert of one row in the form in which it inserts many."""

    query: str
    columns: tuple[str, ...]
    # The part of a row that must not be repeated within one statement; None if it may be.
    key: Callable[[Sequence[Any]], object] | None


def bulk_insert(query: str, rows: Sequence[Sequence[Any]]) -> Iterator[tuple[str, str]] | None:
    """Return statements that insert all rows, each with its one value; None if only a statement for each row can.

    The rows are one JSON text. It cannot have bytes, and PostgreSQL takes no NUL in it.
    """
    insert = _parsed(query) if len(rows) >= _FEWEST else None
    if insert is None or (insert.key is not None and len(set(map(insert.key, rows))) < len(rows)):
        return None
    try:
        texts = [_as_json(insert.columns, rows[start : start + _MOST]) for start in range(0, len(rows), _MOST)]
    except (TypeError, ValueError):
        return None
    if any("\\u0000" in text or MARK in text for text in texts):
        return None
    return ((insert.query, text) for text in texts)


def _as_json(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    # NaN is no JSON.
    found = [dict(zip(columns, row, strict=True)) for row in rows]
    return json.dumps(found, ensure_ascii=False, check_circular=False, allow_nan=False)


@lru_cache(maxsize=256)
def _parsed(query: str) -> _Insert | None:
    found = _INSERT.fullmatch(query)
    if found is None:
        return None
    columns, then = tuple(found["columns"].split(", ")), found["then"]
    table, names = found["table"], ", ".join(columns)
    source = " ".join(("SELECT", names, "FROM", f"json_populate_recordset(NULL::{table}, %s::json)"))
    upsert = _UPSERT.fullmatch(then)
    key = None if upsert is None else itemgetter(*map(columns.index, upsert["keys"].split(", ")))
    return _Insert(" ".join(("INSERT INTO", table, f"({names})", source)) + then, columns, key)
