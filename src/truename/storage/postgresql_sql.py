"""Translate SQL of the owners, which is in the subset that SQLite shares, for PostgreSQL.

Placeholders become those of psycopg, and SQLite's words for types those that keep the same values: integers of 64 bits,
floating-point numbers of 64 bits, and text that is compared by its bytes. PostgreSQL takes no NUL in a text; it is
written as two characters that no text needs.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from psycopg.adapt import Loader
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import StrDumper

__all__ = ["INTEGERS", "MARK", "adapt", "translated"]

_WORD: Final = re.compile(r"'(?:[^']|'')*'|\?|%|\b(?:INTEGER|REAL|BLOB|TEXT)\b")
_EVERYWHERE: Final = {"?": "%s", "%": "%%", "INTEGER": "BIGINT", "REAL": "DOUBLE PRECISION", "BLOB": "BYTEA"}
_IN_TABLES: Final = {**_EVERYWHERE, "TEXT": 'TEXT COLLATE "C"'}
_TABLES: Final = ("CREATE TABLE", "ALTER TABLE")
MARK: Final = "\ufdd0"
"""Begins the two characters that stand for NUL: a noncharacter (The Unicode Standard 16.0, section 23.7)."""
_MARK_BYTES: Final = MARK.encode()
INTEGERS: Final = range(-(2**63), 2**63)
"""The integers that a column can have."""


@lru_cache(maxsize=1024)
def translated(query: str) -> str:
    """Return a statement for psycopg.

    >>> translated("SELECT at FROM t WHERE name = ? AND kind = '?' LIMIT ?")
    "SELECT at FROM t WHERE name = %s AND kind = '?' LIMIT %s"
    >>> translated("CREATE TABLE t (at REAL NOT NULL, name TEXT)")
    'CREATE TABLE t (at DOUBLE PRECISION NOT NULL, name TEXT COLLATE "C")'
    """
    words = _IN_TABLES if query.lstrip().startswith(_TABLES) else _EVERYWHERE
    return _WORD.sub(lambda found: words.get(found[0], found[0].replace("%", "%%")), query)


class _IntegerDumper(Int8Dumper):
    """Integers of 64 bits. Raises `OverflowError` for a larger one, as SQLite does."""

    def dump(self, obj: Any) -> Any:
        number = int(obj)
        if number not in INTEGERS:
            message = "the integer has more than 64 bits"
            raise OverflowError(message)
        return super().dump(number)


class _TextDumper(StrDumper):
    """Texts, in which NUL and the mark that stands for it are written as two characters."""

    def dump(self, obj: str) -> Any:
        if "\0" in obj or MARK in obj:
            obj = obj.replace(MARK, f"{MARK}1").replace("\0", f"{MARK}0")
        return super().dump(obj)


class _TextLoader(Loader):
    def load(self, data: Any) -> str:
        raw = bytes(data)
        if _MARK_BYTES not in raw:
            return raw.decode()
        return raw.decode().replace(f"{MARK}0", "\0").replace(f"{MARK}1", MARK)


def adapt(connection: Any) -> None:
    """Have a connection write and read the values of Python as SQLite does."""
    adapters = connection.adapters
    adapters.register_dumper(int, _IntegerDumper)
    adapters.register_dumper(bool, _IntegerDumper)
    adapters.register_dumper(str, _TextDumper)
    adapters.register_loader("text", _TextLoader)
