"""The tables of all owners at once: how a state is copied to another place, and compared with another state."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from truename.storage.database import Transaction
    from truename.storage.revision_file import Revision
    from truename.storage.schema import Schema

__all__ = ["BATCH", "IMPORTED_TABLE", "NewState", "OwnerTables", "StateSnapshot", "TableDigest", "digest_of"]

IMPORTED_TABLE: Final = "imported"
"""The table of the engine that says which files of earlier versions were imported."""
BATCH: Final = 5_000
"""How many rows are read and written at a time."""
_MODULUS: Final = 1 << 256


class OwnerTables(NamedTuple):
    """The tables of one owner: the number of their last migration, and how often they were changed."""

    version: int
    revision: int


class TableDigest(NamedTuple):
    """The number of a table's rows, and a digest of them in any order."""

    rows: int
    digest: str


class StateSnapshot(Protocol):
    """All tables of a state as they were at one time."""

    @property
    def revision(self) -> Revision:
        """The id of the database and the number of its changes."""
        ...

    @property
    def parts(self) -> dict[str, OwnerTables]:
        """The owners that have tables, by name."""
        ...

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the owners' tables, and of that of imported files."""
        ...

    def columns(self, table: str) -> tuple[str, ...]:
        """Return the names of a table's columns; none if there is no such table."""
        ...

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows of a table, some at a time."""
        ...


class NewState(StateSnapshot, Protocol):
    """A state that is being made: all tables exist and are empty, and nobody else sees them before the end."""

    @property
    def data(self) -> Transaction:
        """The transaction in which it is made."""
        ...

    def finish(self, revision: Revision, parts: dict[str, OwnerTables]) -> None:
        """Write the revisions that the state has from now on."""
        ...


class Engine(Protocol):
    """What copying needs of an engine."""

    def snapshot(self) -> AbstractContextManager[StateSnapshot]:
        """Read the state. Raises `StoreError`."""
        ...

    def new(self, schemas: Iterable[Schema]) -> AbstractContextManager[NewState]:
        """Make a state; it exists when the block ends, and nothing of it if the block raises. Raises `StoreError`."""
        ...


def digest_of(state: StateSnapshot, table: str, columns: Sequence[str]) -> TableDigest:
    """Return the digest of a table: equal for equal rows in any order, whatever the engine."""
    count, total = 0, 0
    for rows in state.rows(table, columns):
        for row in rows:
            total += int.from_bytes(hashlib.sha256(repr(row).encode("utf-8", "surrogatepass")).digest(), "big")
        count += len(rows)
    return TableDigest(count, f"{total % _MODULUS:064x}")
