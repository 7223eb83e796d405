"""Append to the audit log on disk: segments of records, one writer at a time."""

from __future__ import annotations

import os
import secrets
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from truename.audit.chain import GENESIS, BrokenChain, Chain
from truename.audit.head import (
    HEAD,
    AnchorFile,
    HeadFile,
    LogHead,
    LogTail,
    describe_torn,
    find_end,
    find_end_defect,
    find_end_from,
    follow,
    read_heads,
    segments,
)
from truename.errors import StoreError
from truename.files.lock import locked
from truename.files.private import make_private, sync_directory, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path
    from typing import Self

__all__ = ["AuditLog", "read_lock", "write_lock"]

_TURN: Final = "turn"
# How long to wait for the lock. If its holder was suspended, the others report an error and try again later.
LOCK_TIMEOUT: Final = 5.0


@contextmanager
def write_lock(path: Path) -> Iterator[None]:
    """Lock the log for writing, between processes. Raises `TimeoutError` and `OSError`."""
    with locked(path / _TURN, shared=False, patience=LOCK_TIMEOUT):
        yield


@contextmanager
def read_lock(path: Path) -> Iterator[None]:
    """Lock the log for reading its end; after some seconds go on without the lock."""
    with ExitStack() as stack:
        with suppress(TimeoutError):
            stack.enter_context(locked(path / _TURN, shared=True, patience=LOCK_TIMEOUT))
        yield


_SEGMENT: Final = 64 * 1024 * 1024
_DAY: Final = len("2026-11-22")
_OPEN: Final = os.O_WRONLY | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
_NEW: Final = _OPEN | os.O_CREAT | os.O_EXCL
_BUSY: Final = "Give each gateway its own audit log."
_STUCK: Final = "Find the process that holds turn.lock in the directory of the audit log, and end it."


class AuditLog:
    """An audit log, open for appending. Not thread-safe.

    One gateway owns it: a lock excludes other gateways. A command that adds a few records (`beside`) does not need that
    lock. With a ``key`` the hashes are HMACs; the key must stay the same for the whole log. ``anchor`` is a file
    outside of the directory that records the end of the log (`AnchorFile`). ``max_bytes`` is the size at which the next
    segment begins; its owner also begins one each day, so that old ones can be removed.

    Raises `StoreError`: ``busy`` (another gateway owns it, or a writer does not release its lock), ``corrupt`` (its end
    is not the one that was written: `truename audit verify` names the defect; nothing is appended to such a log),
    ``unusable``.
    """

    def __init__(
        self,
        path: Path,
        key: bytes | None = None,
        *,
        max_bytes: int = _SEGMENT,
        now: Callable[[], str] = lambda: datetime.now(UTC).isoformat(timespec="milliseconds"),
        alone: bool = True,
        anchor: Path | None = None,
    ) -> None:
        self.path = path
        self._key = key
        self._max = max_bytes
        self._now = now
        self._alone = alone
        # The day (UTC) at which this process began a segment.
        self._begun = ""
        # A field of the next segment's first record: up to which record a stored head proved the chain.
        self._proven: int | None = None
        self._anchor = None if anchor is None else AnchorFile(anchor, key)
        self._file = -1
        self._head: HeadFile | None = None
        self._id, self._chain, self._tail, self._next = "", Chain(key=key), LogTail(), 1
        self._closing = ExitStack()
        try:
            with self._store_errors():
                make_private(path)
                if alone:
                    try:
                        self._closing.enter_context(locked(path / "journal", shared=False, patience=0))
                    except TimeoutError as error:
                        raise self._error("another process writes to this log", _BUSY, "busy") from error
                # Reading a long file takes seconds: do it before taking the lock.
                proved = find_end(segments(path), key) if alone else None
                with write_lock(path):
                    self._resume(proved)
        except BaseException:
            self.close()
            raise

    @classmethod
    def beside(
        cls, path: Path, key: bytes | None = None, *, max_bytes: int = _SEGMENT, anchor: Path | None = None
    ) -> Self:
        """Open a log to which a gateway may append at the same time; read only its end."""
        return cls(path, key, max_bytes=max_bytes, alone=False, anchor=anchor)

    @contextmanager
    def _store_errors(self) -> Iterator[None]:
        """Turn the errors of the block into `StoreError`."""
        try:
            yield
        except TimeoutError as error:
            raise self._error("another process holds the write lock and does not release it", _STUCK, "busy") from error
        except BrokenChain as error:
            raise self._corrupt(str(error)) from error
        except OSError as error:
            problem = f"it cannot be written ({error.strerror or error})"
            raise self._error(problem, "Check the path and the disk.", "unusable") from error

    def _resume(self, proved: LogTail | None) -> None:
        found = segments(self.path)
        head = read_heads(self.path, self._key).newest
        if not found:
            if head is not None and head.number:
                raise self._corrupt("all segments are missing")
            if self._anchor is not None:
                self._anchor.check((), LogTail())
            self._id = secrets.token_hex(16) if head is None else head.journal
            return
        if head is None:
            raise self._corrupt(f"{HEAD} is missing or damaged")
        tail = find_end_from(found, head, self._key) if proved is None else follow(found, proved, self._key)
        self._take(tail, head, found[-1].number)
        if self._anchor is not None:
            self._anchor.check(found, tail)

    def _take(self, tail: LogTail, head: LogHead, last: int) -> None:
        """Continue the chain after this end."""
        if problem := find_end_defect(tail, head):
            raise self._corrupt(problem)
        self._id, self._tail, self._next = head.journal, tail._replace(seen=frozenset()), last + 1
        self._chain = Chain(tail.number, tail.hash, self._key)

    @property
    def head(self) -> LogHead:
        """The id of the chain, and the number and hash of its last record that is on the disk. Any thread may ask."""
        chain = self._chain
        return LogHead(self._id, chain.number, chain.last)

    def require_record(self, stored: LogHead) -> None:
        """Raise `StoreError` (``corrupt``) if the chain lacks the record of a head that is stored elsewhere.

        The next segment notes the number, if records follow that no stored head proves.
        """
        with self._store_errors():
            if stored.journal != self._id:
                message = f"chain {stored.journal} was here, and another one is in its place"
                raise BrokenChain(message)
            if stored.number and stored != self.head:
                find_end_from(segments(self.path), stored, self._key)
        if stored.number < self._chain.number:
            self._proven = stored.number

    def append(self, records: Iterable[tuple[str, Mapping[str, object]]]) -> None:
        """Append records and sync them, in one write. Raises `StoreError`.

        After an error a part of them may be on the disk, as after a kill; the next append continues after that part.
        """
        try:
            with self._store_errors(), write_lock(self.path):
                self._catch_up()
                if self._head is None:
                    self._head = HeadFile(self.path, self._key)
                heading = self._head
                self._open_segment(heading)
                # One record that cannot be encoded must not leave a gap after those before it.
                chain, at = replace(self._chain), self._now()
                lines = b"".join(chain.add(kind, body, at) for kind, body in records)
                self._write(lines, chain, self._tail)
                head = LogHead(self._id, self._chain.number, self._chain.last)
                heading.write(head)
                if self._anchor is not None:
                    self._anchor.keep(head)
        except StoreError:
            # The next append reads how much of it reached the disk.
            self._close_segment()
            raise

    def _catch_up(self) -> None:
        """Read the records that other processes added, or that a failed write left."""
        if self._stands():
            return
        self._close_head()
        found = segments(self.path)
        head = read_heads(self.path, self._key).newest
        if not found and not self._tail.segment:
            self._id = self._id if head is None else head.journal
            return
        if head is None:
            raise self._corrupt(f"{HEAD} is missing or damaged")
        tail = follow(found, self._tail, self._key)
        if tail.segment != self._tail.segment:
            self._close_segment()
        self._take(tail, head, found[-1].number)

    def _stands(self) -> bool:
        """Return whether the log ends where this process wrote last, and its files are still in place."""
        if self._file < 0 or self._head is None or not self._head.is_there():
            return False
        try:
            # Writes to an open file succeed even after it was moved or removed.
            there, here = self._segment(self._tail.segment).stat(), os.fstat(self._file)
        except OSError:
            return False
        is_same = os.path.samestat(there, here) and here.st_size == self._tail.offset
        return is_same and not self._segment(self._next).exists()

    def _segment(self, number: int) -> Path:
        return self.path / f"{number:06}.jsonl"

    def _open_segment(self, heading: HeadFile) -> None:
        """Open a segment to which records can be added: the last one, or a new one."""
        tail = self._tail
        is_full = tail.torn or not tail.segment or tail.offset >= self._max or self._next != tail.segment + 1
        is_old = self._alone and self._begun != self._now()[:_DAY]
        if self._file >= 0 and not is_full and not is_old:
            return
        self._close_segment()
        if is_full or is_old:
            self._begin_segment(heading)
        else:
            self._file = os.open(self._segment(tail.segment), _OPEN)

    def _begin_segment(self, heading: HeadFile) -> None:
        if not self._tail.segment:
            # Write the head first: a kill before the first record then leaves an empty log, not one without its head.
            heading.begin(LogHead(self._id, 0, GENESIS))
            sync_directory(self.path)
        file = self._segment(self._next)
        self._file = os.open(file, _NEW, 0o600)
        sync_directory(self.path)
        at = self._now()
        body: dict[str, object] = {"journal": self._id, "schema": 1, "keyed": self._key is not None}
        if self._proven is not None:
            body["proven"] = self._proven
        if self._tail.torn:
            body["torn"] = describe_torn(self._tail.torn)
        chain = replace(self._chain)
        try:
            self._write(chain.add("segment", body, at), chain, LogTail(segment=self._next))
        except OSError:
            # On a full disk, each retry would leave another empty file.
            with suppress(OSError):
                if not os.fstat(self._file).st_size:
                    file.unlink()
            raise
        self._next += 1
        self._begun, self._proven = at[:_DAY], None

    def _write(self, lines: bytes, chain: Chain, behind: LogTail) -> None:
        write_whole(self._file, lines)
        self._chain = chain
        self._tail = LogTail(chain.number, chain.last, behind.segment, behind.offset + len(lines))

    def _close_head(self) -> None:
        if self._head is not None:
            self._head.close()
        self._head = None
        if self._anchor is not None:
            self._anchor.close()

    def _close_segment(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def close(self) -> None:
        """Close the files and release the lock; all appended records are on the disk."""
        self._close_segment()
        self._close_head()
        self._closing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _corrupt(self, problem: str) -> StoreError:
        return self._error(
            problem,
            "Run `truename audit verify`, keep this directory unchanged, and start a log in another.",
            "corrupt",
        )

    def _error(self, problem: str, remedy: str, code: str) -> StoreError:
        return StoreError(file=str(self.path), key="", problem=problem, remedy=remedy, code=code)
