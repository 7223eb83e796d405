"""Insert many rows by one statement: one for each row takes PostgreSQL three times as long, and psycopg ten times."""

from __future__ import annotations

import re
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.storage.postgresql_sql import INTEGERS, MARK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    # The type and the text of the array of each column.
    _Arrays = list[tuple[str, str] | None]

__all__ = ["bulk_insert"]

_INSERT: Final = re.compile(r"INSERT INTO (?P<table>[a-z_]+) \((?P<columns>[a-z_, ]+)\) VALUES \([?, ]+\)(?P<then>.*)")
_UPSERT: Final = re.compile(r" ON CONFLICT \((?P<keys>[a-z_, ]+)\) DO UPDATE .*")
# Below this, a statement for each row is as fast.
_FEWEST: Final = 20
_MOST: Final = 1_000


class _Insert(NamedTuple):
    """An insert of one row, in the parts of one that inserts many."""

    head: str
    then: str
    # The part of a row that must not be repeated within one statement; None if it may be.
    key: Callable[[Sequence[Any]], object] | None


def bulk_insert(query: str, rows: Sequence[Sequence[Any]]) -> Iterator[tuple[str, list[str]]] | None:
    """Return statements that insert all rows, each with its values; None if only a statement for each row can.

    Each value is the text of one array, with a column of up to 1,000 rows. It can have texts without NUL, and numbers.

    >>> rows = [(f"get_{n}", None, n) for n in range(20)]
    >>> ((statement, values),) = bulk_insert("INSERT INTO t (name, until, at) VALUES (?, ?, ?)", rows)
    >>> statement
    'INSERT INTO t (name, until, at) SELECT c0, NULL, c2 FROM unnest(%s::text[], %s::bigint[]) AS rows (c0, c2)'
    >>> values[0][:17]
    '{"get_0","get_1",'
    """
    insert = _parsed(query) if len(rows) >= _FEWEST else None
    if insert is None or (insert.key is not None and len(set(map(insert.key, rows))) < len(rows)):
        return None
    parts = [_arrays(rows[start : start + _MOST]) for start in range(0, len(rows), _MOST)]
    if not all(parts):
        return None
    return (_statement(insert, part) for part in parts)


def _statement(insert: _Insert, arrays: _Arrays) -> tuple[str, list[str]]:
    known = [(f"c{number}", *array) for number, array in enumerate(arrays) if array is not None]
    columns = ", ".join("NULL" if array is None else f"c{number}" for number, array in enumerate(arrays))
    places, names = ", ".join(f"%s::{kind}[]" for _, kind, _ in known), ", ".join(name for name, _, _ in known)
    source = " ".join(("SELECT", columns, "FROM", f"unnest({places})", f"AS rows ({names})"))
    return f"{insert.head} {source}{insert.then}", [text for _, _, text in known]


def _arrays(rows: Sequence[Sequence[Any]]) -> _Arrays:
    """Return the type and the text of an array for each column, None for one without values.

    Returns an empty list if a column has other values, or if none has values.
    """
    found: _Arrays = []
    for column in zip(*rows, strict=True):
        kinds = frozenset(map(type, column))
        if kinds == _NOTHING:
            found.append(None)
            continue
        kind, written = _WRITTEN.get(kinds - _NOTHING, ("", _unwritten))
        text = written(column, has_nulls=not kinds.isdisjoint(_NOTHING))
        if text is None:
            return []
        found.append((kind, text))
    return found if any(found) else []


def _unwritten(_: Sequence[Any], *, has_nulls: bool) -> None:
    """Return None: these values are written row by row."""


def _texts(column: Sequence[str | None], *, has_nulls: bool) -> str | None:
    # In a few steps over all of them: one for each text takes three times as long.
    joined = "\0".join(["" if text is None else text for text in column] if has_nulls else column)  # type: ignore[arg-type]
    if MARK in joined or joined.count("\0") != len(column) - 1:
        return None
    texts = joined.replace("\\", "\\\\").replace('"', '\\"').split("\0")
    if has_nulls:
        shown = ("NULL" if known is None else f'"{text}"' for known, text in zip(column, texts, strict=True))
        return f"{{{','.join(shown)}}}"
    return '{"' + '","'.join(texts) + '"}'


def _integers(column: Sequence[int | None], *, has_nulls: bool) -> str | None:
    known = [number for number in column if number is not None]
    return _floats(column, has_nulls=has_nulls) if min(known) in INTEGERS and max(known) in INTEGERS else None


def _floats(column: Sequence[float | None], *, has_nulls: bool) -> str:
    del has_nulls
    return f"{{{','.join('NULL' if number is None else repr(number) for number in column)}}}"


_NOTHING: Final = frozenset({type(None)})
# The type of an array of such values, and how it is written.
_WRITTEN: Final[Mapping[frozenset[type], tuple[str, Callable[..., str | None]]]] = {
    frozenset({str}): ("text", _texts),
    frozenset({int}): ("bigint", _integers),
    frozenset({float}): ("double precision", _floats),
}


@lru_cache(maxsize=256)
def _parsed(query: str) -> _Insert | None:
    found = _INSERT.fullmatch(query)
    if found is None:
        return None
    columns, then = tuple(found["columns"].split(", ")), found["then"]
    upsert = _UPSERT.fullmatch(then)
    key = None if upsert is None else itemgetter(*map(columns.index, upsert["keys"].split(", ")))
    return _Insert(" ".join(("INSERT INTO", found["table"], f"({found['columns']})")), then, key)
