"""Write the SQL of plain statements about one table: select, insert, upsert. Values are always parameters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["AT_ONCE", "delete_all", "in_parts", "insert", "select", "select_among", "upsert"]

AT_ONCE: Final = (1, 8, 64, 512)
"""How many values a query asks for. Few sizes are few statements, which the engines prepare once."""
_IDENTIFIER: Final = re.compile(r"[a-z_]+")


def select(table: str, columns: Sequence[str], where: Sequence[str] = (), then: str = "") -> str:
    """Return a query for the rows in which the columns ``where`` have given values; ``then`` is the end of the query.

    >>> select("pin", ("key", "digest"), where=("server",), then="ORDER BY key")
    'SELECT key, digest FROM pin WHERE server = ? ORDER BY key'
    """
    condition = ("WHERE", " AND ".join(f"{name} = ?" for name in _checked(*where))) if where else ()
    return " ".join(("SELECT", ", ".join(_checked(*columns)), "FROM", *_checked(table), *condition, *_rest(then)))


def select_among(table: str, columns: Sequence[str], where: Sequence[str], among: str, count: int) -> str:
    """Return a query for the rows that have given values in the columns ``where``, and one of ``count`` in another.

    >>> select_among("pin", ("key",), ("server",), "digest", 2)
    'SELECT key FROM pin WHERE server = ? AND digest IN (?, ?)'
    """
    condition = f"{'AND' if where else 'WHERE'} {_checked(among)[0]} IN ({', '.join('?' * count)})"
    return select(table, columns, where, condition)


def in_parts(values: Sequence[str], sizes: Sequence[int] = AT_ONCE) -> Iterator[list[str]]:
    """Yield all values in parts of these sizes, the smallest of which comes first; the last value fills a part up.

    >>> list(in_parts(["a", "b", "c", "d"], (1, 3)))
    [['a', 'b', 'c'], ['d']]
    """
    for start in range(0, len(values), sizes[-1]):
        part = list(values[start : start + sizes[-1]])
        size = next(size for size in sizes if size >= len(part))
        yield part + part[-1:] * (size - len(part))


def insert(table: str, columns: Sequence[str], then: str = "") -> str:
    """Return a statement that inserts one row; ``then`` is the end of the statement.

    >>> insert("pin", ("key", "digest"), then="ON CONFLICT (key) DO NOTHING")
    'INSERT INTO pin (key, digest) VALUES (?, ?) ON CONFLICT (key) DO NOTHING'
    """
    places = ", ".join("?" * len(columns))
    head = ("INSERT INTO", *_checked(table), f"({', '.join(_checked(*columns))})", f"VALUES ({places})")
    return " ".join((*head, *_rest(then)))


def upsert(table: str, keys: Sequence[str], columns: Sequence[str]) -> str:
    """Return a statement that inserts a row, or sets ``columns`` of the row that has the same ``keys``.

    >>> upsert("pin", ("key",), ("digest",))
    'INSERT INTO pin (key, digest) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET digest = excluded.digest'
    """
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns)
    return insert(table, (*keys, *columns), f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes}")


def delete_all(table: str) -> str:
    """Return a statement that deletes all rows.

    >>> delete_all("pin")
    'DELETE FROM pin'
    """
    return " ".join(("DELETE FROM", *_checked(table)))


def _checked(*names: str) -> tuple[str, ...]:
    """Return names of tables and columns. Raises `ValueError` for a text that is not a name."""
    for name in names:
        if not _IDENTIFIER.fullmatch(name):
            message = f"{name!r} is not the name of a table or column"
            raise ValueError(message)
    return names


def _rest(then: str) -> tuple[str, ...]:
    return (then,) if then else ()
