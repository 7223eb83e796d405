"""The interface of a state database: one owner's tables, which processes and threads share.

Each owner (the ledger, pins, approvals, ...) has its own tables, made by numbered migrations, and opens them for
itself. Two engines have this interface: `truename.storage.sqlite` and `truename.storage.postgresql`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from truename.storage.location import StateLocation
    from truename.storage.revision_file import Revision

__all__ = ["Database", "Rows", "Transaction"]


class Rows(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int:
        """The number of rows that were changed."""
        ...

    def fetchone(self) -> Any:
        """Return the next row, None if there is no more."""
        ...

    def fetchall(self) -> list[Any]:
        """Return the remaining rows."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class Transaction(Protocol):
    """A transaction. Statements are in the SQL that SQLite and PostgreSQL share, with ``?`` in place of each value."""

    def execute(self, query: str, values: Sequence[Any] = (), /) -> Rows:
        """Execute a statement."""
        ...

    def executemany(self, query: str, rows: Iterable[Sequence[Any]], /) -> object:
        """Execute a statement once for each row of values."""
        ...


class Database(Protocol):
    """One owner's tables in a state database.

    All methods raise `StoreError`: ``corrupt`` (damaged, older than a recorded revision, or another program's),
    ``newer`` (written by a version that is more than one step later), ``busy`` (another process writes for longer than
    the patience, or 40 ms in a thread that runs an event loop), ``unusable`` (path, file system, disk, network).
    Nothing is changed then.
    """

    @property
    def location(self) -> StateLocation:
        """The place of the database."""
        ...

    @property
    def path(self) -> Path | None:
        """The file, None for memory and for a database that a server keeps."""
        ...

    @property
    def readonly_because(self) -> str:
        """The reason why the database cannot be written now, "" if it can; `change` tries again."""
        ...

    @property
    def is_begun(self) -> bool:
        """Whether this owner's tables exist: they may not, in a database that is only read."""
        ...

    @property
    def silence(self) -> float:
        """How many seconds ago the database answered last; 0 for a file. `has_news` asks it where it can."""
        ...

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows that a query finds."""
        ...

    def revision(self) -> Revision:
        """Return the id of the database and the number of its changes."""
        ...

    def change(self) -> AbstractContextManager[Transaction]:
        """Lock out other writers of these tables during the block; commit all its changes, or none if it raises.

        May be entered again inside itself: the outermost block commits.
        """
        ...

    def write_uncounted(self, query: str, *values: object) -> int:
        """Execute one statement outside of `change`, and return the number of changed rows.

        It is no change of the state: nobody is notified, and `revision` and `has_news` do not count it. It is for rows
        that are written all the time and that readers read anew, such as a heartbeat. If the connection was lost it may
        be executed twice, so it has to have the same effect then.
        """
        ...

    def has_news(self) -> bool:
        """Return whether another process, or another `Database`, changed these tables since the last call.

        The first call always returns True.
        """
        ...

    def is_behind(self) -> bool:
        """Return whether `has_news` may return True, without waiting."""
        ...

    def is_busy(self) -> bool:
        """Tell, without waiting, whether another process or connection is writing now."""
        ...

    def empty_log(self) -> None:
        """Remove content that was deleted from where the engine still keeps it, if it can."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...

    def refuse(self, problem: str, code: str = ..., remedy: str = ...) -> NoReturn:
        """Raise `StoreError` about this database."""
        ...
