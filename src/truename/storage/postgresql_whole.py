"""Read, check and make all tables of a scope of a PostgreSQL database at once."""

from __future__ import annotations

import secrets
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from truename.storage.postgresql import PostgresqlDatabase, migrate
from truename.storage.revision_file import Revision
from truename.storage.schema import Schema
from truename.storage.statements import select
from truename.storage.whole import BATCH, OwnerTables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from truename.storage.location import StateLocation
    from truename.storage.postgresql import PostgresqlTransaction

__all__ = ["PostgresqlState"]

_OWNER: Final = Schema("whole", ())
_COLUMNS: Final = """
SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped
ORDER BY attnum
"""
# Constraints and indexes of all tables of a schema, in words that do not name it.
_STRUCTURE: Final = """
SELECT kind, name, replace(text, ?, '') FROM (
    SELECT 'constraint' AS kind, rel.relname || ' ' || con.conname AS name, pg_get_constraintdef(con.oid) AS text
    FROM pg_constraint con JOIN pg_class rel ON rel.oid = con.conrelid
    WHERE con.connamespace = to_regnamespace(?)
    UNION ALL
    SELECT 'index', indexname::text, indexdef FROM pg_indexes WHERE schemaname = ?
    UNION ALL
    SELECT 'column', rel.relname || ' ' || att.attname,
        format_type(att.atttypid, att.atttypmod) || CASE WHEN att.attnotnull THEN ' NOT NULL' ELSE '' END
    FROM pg_attribute att JOIN pg_class rel ON rel.oid = att.attrelid
    WHERE rel.relnamespace = to_regnamespace(?) AND rel.relkind = 'r' AND att.attnum > 0 AND NOT att.attisdropped
) AS found
"""


class PostgresqlTables:
    """The tables of a scope, in one transaction."""

    def __init__(self, data: PostgresqlTransaction) -> None:
        self.data = data

    @cached_property
    def revision(self) -> Revision:
        """The id of the database and the number of its changes."""
        query = "SELECT id, base + coalesce((SELECT sum(revision)::bigint FROM part), 0) FROM state"
        return Revision(*self.data.execute(query).fetchall()[0])

    @cached_property
    def parts(self) -> dict[str, OwnerTables]:
        """The owners that have tables, by name."""
        return {name: OwnerTables(*row) for name, *row in self.data.execute("SELECT name, version, revision FROM part")}

    @cached_property
    def tables(self) -> tuple[str, ...]:
        """The names of the owners' tables, and of that of imported files."""
        query = """
SELECT tablename::text FROM pg_tables
WHERE schemaname = current_schema() AND tablename NOT IN ('state', 'part', 'written') ORDER BY 1
"""
        return tuple(name for (name,) in self.data.execute(query))

    def columns(self, table: str) -> tuple[str, ...]:
        """Return the names of a table's columns; none if there is no such table."""
        return tuple(name for (name,) in self.data.execute(_COLUMNS, (table,)))

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows of a table, some at a time."""
        with self.data.connection.cursor(name="whole") as cursor:
            cursor.execute(select(table, columns).encode())
            while rows := cursor.fetchmany(BATCH):
                yield rows

    def finish(self, revision: Revision, parts: dict[str, OwnerTables]) -> None:
        """Write the revisions that the state has from now on."""
        rows = [(part.revision, name) for name, part in parts.items()]
        self.data.executemany("UPDATE part SET revision = ? WHERE name = ?", rows)
        base = "UPDATE state SET id = ?, base = ? - (SELECT coalesce(sum(revision), 0)::bigint FROM part)"
        self.data.execute(base, revision)


class PostgresqlState:
    """A scope of a database, as a whole."""

    def __init__(self, location: StateLocation) -> None:
        self._location = location

    @contextmanager
    def snapshot(self) -> Iterator[PostgresqlTables]:
        """Read the state. Raises `StoreError`."""
        with closing(PostgresqlDatabase(self._location, _OWNER, readonly=True)) as owner:
            if owner.survey() is None:
                owner.refuse("it has no state", "unusable", "Check the URL and its scope.")
            with owner.transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") as data:
                yield PostgresqlTables(data)

    @contextmanager
    def new(self, schemas: Iterable[Schema]) -> Iterator[PostgresqlTables]:
        """Make a state; it exists when the block ends, and nothing of it if the block raises. Raises `StoreError`."""
        with closing(PostgresqlDatabase(self._location, _OWNER, readonly=True, checks_revision=False)) as owner:
            if owner.survey() is not None:
                owner.refuse("it has a state already", "unusable", "Name another scope, or drop its schema.")
            with owner.transaction("BEGIN") as data:
                for schema in schemas:
                    if migrate(data, owner.schema_name, schema):
                        owner.refuse("another program made a state meanwhile", "unusable", "Name another scope.")
                yield PostgresqlTables(data)
                data.execute("COMMIT")
            owner.survey()

    def revision(self) -> Revision | None:
        """Return the present revision, even if changes are missing; None without a state. Raises `StoreError`."""
        with closing(PostgresqlDatabase(self._location, _OWNER, readonly=True, checks_revision=False)) as owner:
            survey = owner.survey()
            return None if survey is None else survey.revision

    def accept(self, known: Revision | None) -> Revision | None:
        """Go on from the revision on record, whatever was lost; return the revision before. Raises `StoreError`."""
        with closing(PostgresqlDatabase(self._location, _OWNER, readonly=True, checks_revision=False)) as owner:
            survey = owner.survey()
            if survey is None:
                owner.forget()
                return None
            before = survey.revision
            if known is not None and (known.database != before.database or known.number > before.number):
                with owner.transaction("BEGIN") as data:
                    tables = PostgresqlTables(data)
                    tables.finish(Revision(known.database, max(known.number, tables.revision.number) + 1), {})
                    data.execute("COMMIT")
                owner.survey()
            return before

    def problems(self, schemas: Iterable[Schema]) -> list[str]:
        """Compare columns, constraints and indexes with those that the migrations make, in a schema that is dropped.

        Raises `StoreError`.
        """
        with (
            closing(PostgresqlDatabase(self._location, _OWNER, readonly=True)) as owner,
            owner.transaction("BEGIN") as data,
        ):
            found, parts = _structure(data, owner.schema_name), PostgresqlTables(data).parts
            draft = f"truename_check_{secrets.token_hex(8)}"
            data.execute(f"SET LOCAL search_path = {draft}")
            for schema in schemas:
                # Tables that a later version made have more columns.
                if schema.part in parts and parts[schema.part].version <= schema.version:
                    migrate(data, draft, replace(schema, migrations=schema.migrations[: parts[schema.part].version]))
            wanted = _structure(data, draft)
        return [
            f"{kind} {name} is not as it was made"
            for kind, name in wanted
            if found.get((kind, name)) != wanted[kind, name]
        ]


def _structure(data: PostgresqlTransaction, schema: str) -> dict[tuple[str, str], str]:
    values = (f"{schema}.", schema, schema, schema)
    return {(kind, name): text for kind, name, text in data.execute(_STRUCTURE, values)}
