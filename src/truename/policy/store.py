"""Where decisions are kept: a small protocol, and two that follow it, in memory and in a file.

The file is JSON with the number of its schema. It is read without a lock, for it is only ever put in place whole; it
is written under a lock between processes (``PATH.lock``), after it was read again.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, NoReturn, Protocol

from truename.errors import LedgerError
from truename.files.private import make_private
from truename.ledger.lock import locked
from truename.policy.book import PlainBook
from truename.policy.faults import StoreError
from truename.policy.written import HEAD, MAX_BYTES, read_book, written_book

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from truename.policy.book import Book

__all__ = ["FileStore", "MemoryStore", "Store"]

# No clock of a file system is coarser.
_TICK: Final = 2_000_000_000


class Store(Protocol):
    """Where decisions are kept."""

    def read(self) -> Book:
        """Return what is kept now, for looking only."""
        ...

    def change(self) -> AbstractContextManager[Book]:
        """Keep everybody else out; what is done to the book is kept when the block ends well, all of it or nothing."""
        ...


class MemoryStore:
    """A store that is forgotten with its process."""

    def __init__(self) -> None:
        self._book = PlainBook()
        self._lock = threading.RLock()

    def read(self) -> PlainBook:
        """Return what is kept now, for looking only."""
        return self._book

    @contextmanager
    def change(self) -> Iterator[Book]:
        """Keep other threads out; all or nothing."""
        with self._lock:
            draft = self._book.copy()
            yield draft
            self._book = draft


class _Seen(NamedTuple):
    """What a look at a file says. Of two that were put in place one after the other, size and time may be equal."""

    size: int
    modified: int
    head: bytes

    @classmethod
    def of(cls, file: BinaryIO) -> _Seen:
        found = os.fstat(file.fileno())
        file.seek(0)
        return cls(found.st_size, found.st_mtime_ns, file.read(HEAD))


class _Look(NamedTuple):
    """What a look at a path says, which costs less than to open it."""

    device: int
    number: int
    size: int
    modified: int
    changed: int

    @classmethod
    def of(cls, found: os.stat_result) -> _Look:
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)

    def is_settled(self, now: int) -> bool:
        """Tell whether whatever is put in place from ``now`` on (nanoseconds since 1970) looks otherwise.

        Until then one of the same size may have the same times, and even the number of one before it.
        """
        return max(self.modified, self.changed) < now - _TICK


class FileStore:
    """A store in a JSON file that threads and processes share.

    All methods raise `StoreError`: ``corrupt`` with the field that is wrong (the file stays as it is), ``newer``,
    ``busy``, ``unusable``, ``full``. A file that was there and is gone is ``unusable`` too: rejections, and which
    calls ran, would be forgotten with it. ``patience`` is how many seconds to wait for another process.
    """

    def __init__(self, path: str | Path, *, patience: float = 15.0) -> None:
        # A link and another working directory lead to the same file, the same lock and the same calls.
        self.path = Path(os.path.realpath(path))
        self._patience = patience
        self._lock = threading.RLock()
        self._book = PlainBook()
        self._seen: _Seen | None = None
        self._look: _Look | None = None
        self.read()

    def read(self) -> PlainBook:
        """Return what is kept now, for looking only."""
        with self._lock:
            return self._fresh()

    @contextmanager
    def change(self) -> Iterator[Book]:
        """Keep other threads and processes out; all or nothing."""
        with self._lock, self._alone():
            draft = self._fresh().copy()
            yield draft
            seen = self._write(draft)
            self._book, self._seen = draft, seen

    def _fresh(self) -> PlainBook:
        try:
            found = os.stat(self.path)  # noqa: PTH116 - it is asked before each call
            if self._look is not None and _Look.of(found) == self._look:
                return self._book
            if not stat.S_ISREG(found.st_mode):
                self._unusable("it is no file")
            now = time.time_ns()
            with self.path.open("rb") as file:
                seen, look = _Seen.of(file), _Look.of(os.fstat(file.fileno()))
                raw = b"" if seen == self._seen else seen.head + file.read(MAX_BYTES)
        except FileNotFoundError:
            if self._seen is None:
                return self._book
            self._unusable("it was there, and is gone")
        except OSError as error:
            self._unusable(error.strerror or str(error), error)
        if seen != self._seen:
            self._book, self._seen = read_book(raw, str(self.path)), seen
        self._look = look if look.is_settled(now) else None
        return self._book

    @contextmanager
    def _alone(self) -> Iterator[None]:
        try:
            make_private(self.path.parent)
            lock = locked(self.path, shared=False, patience=self._patience)
            lock.__enter__()
        except LedgerError as error:
            problem, remedy = "another process has its lock", "Wait for it, or end it, and try again."
            raise StoreError(file=str(self.path), key="", problem=problem, remedy=remedy, code="busy") from error
        except OSError as error:
            self._unusable(error.strerror or str(error), error)
        try:
            yield
        finally:
            lock.__exit__(None, None, None)

    def _write(self, book: PlainBook) -> _Seen:
        raw = written_book(book, str(self.path))
        draft = self.path.with_name(f".{self.path.name}.{os.getpid()}.draft")
        try:
            # One that a killed process left, or that somebody laid out, is neither written through nor its mode kept.
            draft.unlink(missing_ok=True)
            with os.fdopen(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b") as file:
                file.write(raw)
                file.flush()
                os.fsync(file.fileno())
                seen = _Seen.of(file)
            draft.replace(self.path)
            _settle(self.path.parent)
        except OSError as error:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            self._unusable(error.strerror or str(error), error)
        return seen

    def _unusable(self, problem: str, cause: OSError | None = None) -> NoReturn:
        remedy = "Check the path and the disk; nothing was recorded."
        raise StoreError(file=str(self.path), key="", problem=problem, remedy=remedy, code="unusable") from cause


def _settle(directory: Path) -> None:
    # Without it a loss of power could bring the old file back, and with it a call that was run would be run again.
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
