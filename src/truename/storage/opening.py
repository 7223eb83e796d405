"""Open a state database with the engine that its place needs."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from truename.errors import StoreError
from truename.storage.location import StateLocation
from truename.storage.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from truename.storage.database import Database, Transaction
    from truename.storage.postgresql_whole import PostgresqlState
    from truename.storage.schema import Schema

__all__ = ["open_database", "server_state"]


def open_database(
    where: StateLocation | Path | str | None,
    schema: Schema,
    *,
    patience: float = PATIENCE,
    readonly: bool = False,
    checks_revision: bool = True,
    import_former: Callable[[Transaction, Path], object] | None = None,
) -> Database:
    """Open an owner's tables, and make or upgrade them, unless ``readonly``. Raises `StoreError`.

    ``patience`` is how many seconds a change waits for another process. A database that cannot be written (full disk,
    read-only file) is opened for reading: `Database.readonly_because` gives the reason.

    ``import_former`` fills new tables from the file that an earlier version kept, in the transaction that makes them.
    With ``checks_revision=False`` a database that lost recorded changes is opened too.
    """
    location = StateLocation.of(where)
    return _engine(location)(
        location,
        schema,
        patience=patience,
        readonly=readonly,
        checks_revision=checks_revision,
        import_former=import_former,
    )


def _engine(location: StateLocation) -> Callable[..., Database]:
    """Return the class of databases at a place. Raises `StoreError` if its packages are missing."""
    if location.url is None:
        from truename.storage.sqlite import SqliteDatabase  # noqa: PLC0415 - an engine is loaded when it is used

        return SqliteDatabase
    with _with_engine(location):
        from truename.storage.postgresql import PostgresqlDatabase  # noqa: PLC0415 - psycopg takes 100 ms to load

        return PostgresqlDatabase


def server_state(location: StateLocation) -> PostgresqlState:
    """Return all tables of a scope of a PostgreSQL database. Raises `StoreError` without the packages for it."""
    with _with_engine(location):
        from truename.storage.postgresql_whole import PostgresqlState  # noqa: PLC0415 - psycopg takes 100 ms to load

        return PostgresqlState(location)


@contextmanager
def _with_engine(location: StateLocation) -> Iterator[None]:
    """Raise `StoreError` if the block imports a package of PostgreSQL that is not installed."""
    try:
        yield
    except ImportError as error:
        problem = f"PostgreSQL needs a package that is not installed ({error.name or error})"
        remedy = "Run pip install 'truename[postgres]'."
        raise StoreError(file=location.name, key="", problem=problem, remedy=remedy, code="unusable") from error
