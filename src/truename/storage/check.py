"""Check a whole state database: every page, every constraint, and its revision."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from truename.errors import StoreError
from truename.storage.location import StateLocation
from truename.storage.opening import open_database, server_state
from truename.storage.revision_file import Revision, RevisionFile, latest_revision
from truename.storage.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["StateReport", "accept_state", "check_state", "known_revision", "present_revision"]

_NO_TABLES: Final = Schema("check", ())


@dataclass(frozen=True, kw_only=True)
class StateReport:
    """The result of checking a state database: its revision, the changes of each owner, and what is wrong."""

    revision: Revision | None
    parts: tuple[tuple[str, int], ...] = ()
    problems: tuple[str, ...] = ()


def check_state(
    location: StateLocation,
    schemas: Iterable[Schema],
    checks: Iterable[Callable[[StateLocation], tuple[str, ...]]] = (),
) -> StateReport:
    """Check a database that may be in use. Nothing is written.

    ``checks`` are those of single owners: each returns a sentence for each problem, and may raise `StoreError`.
    """
    problems: list[str] = []
    schemas = tuple(schemas)
    for schema in schemas:
        try:
            open_database(location, schema, readonly=True).close()
        except StoreError as error:
            # A fault of the database is one of every owner's tables.
            if str(error) not in problems:
                problems.append(str(error))
    found = _checked_server(location, schemas, problems) if location.url else _checked_file(location, problems)
    if found.revision is None:
        return found
    problems = [*found.problems]
    try:
        # An owner's check reads what the others found to be whole.
        problems = problems or [problem for check in checks for problem in check(location)]
    except StoreError as error:
        problems.append(str(error))
    return replace(found, problems=tuple(problems))


def _checked_server(location: StateLocation, schemas: tuple[Schema, ...], problems: list[str]) -> StateReport:
    try:
        state = server_state(location)
        with state.snapshot() as tables:
            revision, parts = tables.revision, tables.parts
        problems += [f"{location.name}: {problem}" for problem in state.problems(schemas)]
    except StoreError as error:
        return StateReport(revision=None, problems=tuple(problems or [str(error)]))
    counts = tuple((name, part.revision) for name, part in sorted(parts.items()))
    return StateReport(revision=revision, parts=counts, problems=tuple(problems))


def _checked_file(location: StateLocation, problems: list[str]) -> StateReport:
    try:
        with closing(sqlite3.connect(f"{_uri(location)}?mode=ro", uri=True, isolation_level=None)) as data:
            for (found,) in data.execute("PRAGMA integrity_check(20)"):
                if found != "ok":
                    problems.append(f"{location.path}: {found}")
            problems += [
                f"{location.path}: {row[0]} breaks a reference" for row in data.execute("PRAGMA foreign_key_check")
            ]
            revision = Revision(*data.execute("SELECT id, revision FROM state").fetchone())
            parts = tuple(data.execute("SELECT name, revision FROM part ORDER BY name").fetchall())
    except (sqlite3.Error, TypeError) as error:
        if not problems:
            problems.append(f"{location.path}: it cannot be read ({error})")
        return StateReport(revision=None, problems=tuple(problems))
    return StateReport(revision=revision, parts=parts, problems=tuple(problems))


def known_revision(location: StateLocation) -> Revision | None:
    """Return the latest revision on record of a state, in the audit log or in the file beside it; None without one."""
    place = location.recorded_beside
    beside = None if place is None else RevisionFile(place).read()
    return latest_revision(beside, location.known)


def present_revision(location: StateLocation) -> Revision | None:
    """Return the revision that a state database has, whether or not changes are missing; None if there is no database.

    Raises `StoreError` for what is no state database, is damaged, or has the log of another one beside it.
    """
    if location.url is not None:
        return server_state(location).revision()
    path = location.path
    if path is None or (not path.is_symlink() and (not path.exists() or (path.is_file() and not path.stat().st_size))):
        return None
    with closing(open_database(StateLocation(path), _NO_TABLES, readonly=True, checks_revision=False)) as data:
        return data.revision()


def accept_state(location: StateLocation) -> Revision | None:
    """Accept a database as the right one; return the revision that it had, None if there is none.

    The revision of a file is recorded beside it. A database of a server goes on with the id that is on record, and with
    a later number, so that all gateways that share it accept it.

    Raises `StoreError` for what is no state database, is damaged, or has the log of another one beside it.
    """
    if location.url is not None:
        return server_state(location).accept(known_revision(location))
    path = location.path
    if path is None:
        return None
    beside = RevisionFile(path)
    found = present_revision(location)
    if found is None:
        beside.path.unlink(missing_ok=True)
        return None
    beside.write(found)
    beside.close()
    return found


def _uri(location: StateLocation) -> str:
    return "" if location.path is None else location.path.absolute().as_uri()
