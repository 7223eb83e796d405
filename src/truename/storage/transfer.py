"""Copy a whole state to another place, whatever the engines, and compare two states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from truename.errors import StoreError
from truename.storage.check import known_revision
from truename.storage.opening import server_state
from truename.storage.statements import delete_all, insert
from truename.storage.whole import IMPORTED_TABLE, Engine, NewState, StateSnapshot, TableDigest, digest_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from truename.storage.location import StateLocation
    from truename.storage.revision_file import Revision
    from truename.storage.schema import Schema

__all__ = ["CopiedState", "compare_states", "copy_state", "whole_state"]


@dataclass(frozen=True, kw_only=True)
class CopiedState:
    """The result of a copy: the revision, and for each table the number of its rows and their digest."""

    revision: Revision
    tables: dict[str, TableDigest]

    @property
    def rows(self) -> int:
        """The number of rows of all tables."""
        return sum(table.rows for table in self.tables.values())


def whole_state(location: StateLocation) -> Engine:
    """Return a state as a whole. Raises `StoreError` for memory, or without the packages of the engine."""
    if location.path is not None:
        from truename.storage.sqlite_whole import SqliteState  # noqa: PLC0415 - an engine is loaded when it is used

        return SqliteState(location, location.path)
    return server_state(location)


def copy_state(
    source: StateLocation,
    target: StateLocation,
    schemas: Iterable[Schema],
    progress: Callable[[str, int], object] | None = None,
) -> CopiedState:
    """Copy a state to a place that has none, with its id and its revision; the source stays as it is.

    The target has all of it or nothing: each table is read back, counted and compared by a digest before the target
    exists. ``progress`` is told of each table that was copied. Raises `StoreError`, also if the source is changed
    meanwhile.
    """
    schemas = tuple(schemas)
    tables: dict[str, TableDigest] = {}
    with whole_state(source).snapshot() as old:
        copied = _known(old, schemas, source)
        revision = old.revision
        with whole_state(target).new(schema for schema in schemas if schema.part in old.parts) as new:
            _require_latest(revision, source, target)
            for table in copied:
                tables[table] = _copied(old, new, table, target)
                if progress is not None:
                    progress(table, tables[table].rows)
            new.finish(revision, old.parts)
            with whole_state(source).snapshot() as now:
                if now.revision != revision:
                    _refuse(source, "it was changed while it was copied", "Stop the gateways that use it.")
    return CopiedState(revision=revision, tables=tables)


def _require_latest(revision: Revision, source: StateLocation, target: StateLocation) -> None:
    """Raise `StoreError` if the target had another state, or a later one, according to its records."""
    known = known_revision(target)
    if known is None or (known.database == revision.database and known.number <= revision.number):
        return
    what = "another state" if known.database != revision.database else "a later one"
    problem = f"it has {revision.changes}, and {target.name} had {what}, with {known.number:,}"
    _refuse(source, problem, "To go on without those, run `truename state accept` on the target first.")


def _known(state: StateSnapshot, schemas: Sequence[Schema], location: StateLocation) -> list[str]:
    """Return the tables of a state. Raises `StoreError` for tables of another version, or of an unknown owner."""
    by_part = {schema.part: schema for schema in schemas}
    for name, part in state.parts.items():
        # An owner without tables, as the audit log, only counts.
        schema = by_part.get(name)
        if schema is None or part.version > schema.version:
            _refuse(
                location, f"it was written by a newer Truename ({name} {part.version})", "Upgrade Truename.", "newer"
            )
        if part.version < schema.version:
            problem = f"it was written by an older Truename ({name} {part.version})"
            _refuse(location, problem, "Run `truename state upgrade`.")
    found = [table for schema in schemas if schema.part in state.parts for table in schema.tables]
    return [*found, IMPORTED_TABLE]


def _copied(old: StateSnapshot, new: NewState, table: str, target: StateLocation) -> TableDigest:
    columns = old.columns(table)
    if set(columns) != {*new.columns(table)}:
        _refuse(target, f"the table {table} has other columns", "Check the state with `truename state check`.")
    # A migration may have made a first row.
    new.data.execute(delete_all(table))
    statement = insert(table, columns)
    for rows in old.rows(table, columns):
        new.data.executemany(statement, rows)
    digest = digest_of(old, table, columns)
    if digest != digest_of(new, table, columns):
        _refuse(target, f"the table {table} is not what was copied", "Check the state with `truename state check`.")
    return digest


def compare_states(one: StateLocation, other: StateLocation) -> tuple[str, ...]:
    """Return a sentence for each difference between two states. Raises `StoreError`."""
    with whole_state(one).snapshot() as first, whole_state(other).snapshot() as second:
        found = []
        if first.revision != second.revision:
            found.append(
                f"{one.name} has {first.revision.changes} of {first.revision.database}, "
                f"{other.name} has {second.revision.number:,} of {second.revision.database}"
            )
        parts = sorted({*first.parts, *second.parts})
        differing = (part for part in parts if first.parts.get(part) != second.parts.get(part))
        found += [f"{part}: the versions or the numbers of changes differ" for part in differing]
        return (*found, *_other_tables(first, second))


def _other_tables(first: StateSnapshot, second: StateSnapshot) -> list[str]:
    found = []
    for table in sorted({*first.tables, *second.tables}):
        columns = first.columns(table)
        if set(columns) != {*second.columns(table)}:
            found.append(f"{table}: the columns differ")
            continue
        here, there = digest_of(first, table, columns), digest_of(second, table, columns)
        if here != there:
            found.append(f"{table}: {here.rows:,} rows are not the {there.rows:,} rows of the other")
    return found


def _refuse(location: StateLocation, problem: str, remedy: str, code: str = "unusable") -> NoReturn:
    raise StoreError(file=location.name, key="", problem=f"{problem}; nothing was changed", remedy=remedy, code=code)
