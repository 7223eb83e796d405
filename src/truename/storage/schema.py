"""Describe the tables of one owner: their migrations, in the SQL that SQLite and PostgreSQL share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

__all__ = ["Schema"]

_TABLE: Final = re.compile(r"\s*CREATE TABLE ([a-z_]+)\b")


@dataclass(frozen=True)
class Schema:
    """The tables of one owner: the owner's name, and the statements of each migration, oldest first.

    The names of all tables and indexes begin with the owner's name. SQL is in the subset that SQLite and PostgreSQL
    share, with SQLite's words for types. A migration that was released is never edited. A program also works on tables
    with one migration more than it knows: a migration adds, and the one after it removes what nobody uses any more.

    Changes of a ``is_quiet`` owner notify nobody: no other process acts on them at once.
    """

    part: str
    migrations: tuple[tuple[str, ...], ...]
    is_quiet: bool = False

    @property
    def version(self) -> int:
        """The number of the latest migration."""
        return len(self.migrations)

    @cached_property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that the migrations make, oldest first.

        >>> Schema("word", (("CREATE TABLE word (text TEXT PRIMARY KEY)",),)).tables
        ('word',)
        """
        found = (_TABLE.match(statement) for statements in self.migrations for statement in statements)
        return tuple(match[1] for match in found if match)
