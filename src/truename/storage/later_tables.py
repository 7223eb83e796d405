"""Refuse a state database in which a later version made tables that this one cannot use, before anything uses it."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final

from truename.storage.location import StateLocation
from truename.storage.opening import open_database
from truename.storage.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["refuse_later_tables"]

_NO_TABLES: Final = Schema("check", ())


def refuse_later_tables(where: StateLocation | Path | str | None, schemas: Iterable[Schema]) -> None:
    """Raise `StoreError` (``newer``) if tables of any of these owners are more than one version later than known here.

    An owner that is opened when it is needed would be refused then, while others go on. It is one query, and nothing is
    written or created. Raises `StoreError` also for a database that is not begun, or cannot be used.
    """
    location = StateLocation.of(where)
    if location.is_memory or not location.exists:
        return
    with closing(open_database(location, _NO_TABLES, readonly=True, checks_revision=False)) as data:
        versions = dict(data.rows("SELECT name, version FROM part"))
        for schema in schemas:
            if (version := versions.get(schema.part, 0)) > schema.version + 1:
                problem = f"it was written by a newer Truename ({schema.part} {version})"
                data.refuse(problem, "newer", "Upgrade Truename.")
