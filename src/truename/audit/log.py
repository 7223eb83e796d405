"""Append to the audit log on disk: segments of records, one writer at a time."""

from __future__ import annotations

import os
import secrets
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NoReturn

from truename.audit.chain import GENESIS, BrokenChain, Chain
from truename.audit.head import (
    HEAD,
    AnchorFile,
    HeadFile,
    LogHead,
    LogTail,
    broken_at_end,
    end_near,
    followed,
    last_of,
    noted,
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

__all__ = ["AuditLog", "look", "turn"]

_TURN: Final = "turn"
# A process that was stopped in its turn costs the others no more than this; they say so, and try again.
_PATIENCE: Final = 5.0


@contextmanager
def turn(path: Path) -> Iterator[None]:
    """Keep the others that write to this journal waiting. Raises `TimeoutError`, `OSError`."""
    with locked(path / _TURN, shared=False, patience=_PATIENCE):
        yield


@contextmanager
def look(path: Path) -> Iterator[None]:
    """Look at how far a journal goes while nobody writes; after some seconds all the same."""
    with ExitStack() as stack:
        with suppress(TimeoutError):
            stack.enter_context(locked(path / _TURN, shared=True, patience=_PATIENCE))
        yield


_SEGMENT: Final = 64 * 1024 * 1024
_OPEN: Final = os.O_WRONLY | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
_NEW: Final = _OPEN | os.O_CREAT | os.O_EXCL
_BUSY: Final = "Give each gateway a journal of its own."
_STUCK: Final = "See which process holds turn.lock in the journal's directory, and end it."


def _utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class AuditLog:
    """A journal, open for appending. Not for two threads at once.

    One gateway has it: a lock keeps every other one out. Who only adds some records beside it (`beside`) needs no such
    lock. ``key`` makes the hashes ones that only its owner can make; it has to be the same for the whole journal.
    ``anchor`` is the file outside of the directory that says how far the journal went (`AnchorFile`).
    ``max_bytes`` is the size at which a segment ends and the next begins.

    Raises `StoreError`: ``busy`` (another gateway has it, or somebody's turn does not end), ``corrupt`` (the end is not
    the one that was written: `truename audit verify` says what is wrong; nothing is added to such a journal),
    ``unusable``.
    """

    def __init__(
        self,
        path: Path,
        key: bytes | None = None,
        *,
        max_bytes: int = _SEGMENT,
        now: Callable[[], str] = _utc_now,
        alone: bool = True,
        anchor: Path | None = None,
    ) -> None:
        self.path = path
        self._key = key
        self._max = max_bytes
        self._now = now
        self._alone = alone
        self._has_begun = False
        self._anchor = None if anchor is None else AnchorFile(anchor, key)
        self._file = -1
        self._head: HeadFile | None = None
        self._id, self._chain, self._tail, self._next = "", Chain(key=key), LogTail(), 1
        self._closing = ExitStack()
        try:
            with self._told():
                make_private(path)
                if alone:
                    self._keep_others_out()
                # Seconds for a long file, in which nobody is to wait.
                proved = last_of(segments(path), key) if alone else None
                with turn(path):
                    self._resume(proved)
        except BaseException:
            self.close()
            raise

    @classmethod
    def beside(
        cls, path: Path, key: bytes | None = None, *, max_bytes: int = _SEGMENT, anchor: Path | None = None
    ) -> Self:
        """Open a journal to which a gateway may write at the same time; of what is there only the end is read."""
        return cls(path, key, max_bytes=max_bytes, alone=False, anchor=anchor)

    def _keep_others_out(self) -> None:
        try:
            self._closing.enter_context(locked(self.path / "journal", shared=False, patience=0))
        except TimeoutError as error:
            raise self._fault("another process writes here", _BUSY, "busy") from error

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Raise as `StoreError` what goes wrong in the block."""
        try:
            yield
        except TimeoutError as error:
            raise self._fault("another process writes here and does not end", _STUCK, "busy") from error
        except BrokenChain as error:
            raise self._corrupt(str(error)) from error
        except OSError as error:
            self._unusable(error)

    def _resume(self, proved: LogTail | None) -> None:
        found = segments(self.path)
        head = read_heads(self.path, self._key).newest
        if not found:
            if head is not None and head.number:
                raise self._corrupt("all segments are gone")
            if self._anchor is not None:
                self._anchor.check((), LogTail())
            self._id = secrets.token_hex(16) if head is None else head.journal
            return
        if head is None:
            raise self._corrupt(f"{HEAD} is gone or damaged")
        tail = end_near(found, head, self._key) if proved is None else followed(found, proved, self._key)
        self._take(tail, head, found[-1].number)
        if self._anchor is not None:
            self._anchor.check(found, tail)

    def _take(self, tail: LogTail, head: LogHead, last: int) -> None:
        """Go on behind this end."""
        if problem := broken_at_end(tail, head):
            raise self._corrupt(problem)
        self._id, self._tail, self._next = head.journal, tail._replace(seen=frozenset()), last + 1
        self._chain = Chain(tail.number, tail.hash, self._key)

    def append(self, records: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Write records down, to the disk, all in one go. Raises `StoreError`.

        After that what was asked for may be there in part, as after a kill; the next append goes on behind it.
        """
        try:
            with self._told(), turn(self.path):
                self._catch_up()
                heading = self._heading()
                self._open_segment(heading)
                # A record that no journal can hold must not leave a gap behind those before it.
                chain, at = replace(self._chain), self._now()
                lines = b"".join(chain.add(kind, body, at) for kind, body in records)
                self._write(lines, chain, self._tail)
                head = LogHead(self._id, self._chain.number, self._chain.last)
                heading.write(head)
                if self._anchor is not None:
                    self._anchor.keep(head)
        except StoreError:
            # How much of it got to the disk is seen when it is the turn again.
            self._close_segment()
            raise

    def _catch_up(self) -> None:
        """Read what came since: what others wrote, or what is left of a write that failed."""
        if self._stands():
            return
        self._close_head()
        found = segments(self.path)
        head = read_heads(self.path, self._key).newest
        if not found and not self._tail.segment:
            self._id = self._id if head is None else head.journal
            return
        if head is None:
            raise self._corrupt(f"{HEAD} is gone or damaged")
        tail = followed(found, self._tail, self._key)
        if tail.segment != self._tail.segment:
            self._close_segment()
        self._take(tail, head, found[-1].number)

    def _stands(self) -> bool:
        """Tell whether the journal ends where this process wrote last, and is still where it was."""
        if self._file < 0 or self._head is None or not self._head.is_there():
            return False
        try:
            # An open file can be written long after it was moved away or removed.
            there, here = self._segment(self._tail.segment).stat(), os.fstat(self._file)
        except OSError:
            return False
        is_same = os.path.samestat(there, here) and here.st_size == self._tail.offset
        return is_same and not self._segment(self._next).exists()

    def _segment(self, number: int) -> Path:
        return self.path / f"{number:06}.jsonl"

    def _open_segment(self, heading: HeadFile) -> None:
        """Have a segment open to which a record can be added: the last one, or another."""
        tail = self._tail
        is_full = tail.torn or not tail.segment or tail.offset >= self._max or self._next != tail.segment + 1
        if self._file >= 0 and not is_full:
            return
        self._close_segment()
        if is_full or (self._alone and not self._has_begun):
            self._begin_segment(heading)
        else:
            self._file = os.open(self._segment(tail.segment), _OPEN)

    def _begin_segment(self, heading: HeadFile) -> None:
        if not self._tail.segment:
            # A kill before the first record leaves a journal that was begun, and not one whose head is gone.
            heading.begin(LogHead(self._id, 0, GENESIS))
            sync_directory(self.path)
        file = self._segment(self._next)
        self._file = os.open(file, _NEW, 0o600)
        sync_directory(self.path)
        body: dict[str, Any] = {"journal": self._id, "schema": 1, "keyed": self._key is not None}
        if self._tail.torn:
            body["torn"] = noted(self._tail.torn)
        chain = replace(self._chain)
        try:
            self._write(chain.add("segment", body, self._now()), chain, LogTail(segment=self._next))
        except OSError:
            # On a full disk each of many tries would leave another empty file.
            with suppress(OSError):
                if not os.fstat(self._file).st_size:
                    file.unlink()
            raise
        self._next += 1
        self._has_begun = True

    def _write(self, lines: bytes, chain: Chain, behind: LogTail) -> None:
        write_whole(self._file, lines)
        self._chain = chain
        self._tail = LogTail(chain.number, chain.last, behind.segment, behind.offset + len(lines))

    def _heading(self) -> HeadFile:
        if self._head is None:
            self._head = HeadFile(self.path, self._key)
        return self._head

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
        """Close the file and let others in; all that was appended is on the disk."""
        self._close_segment()
        self._close_head()
        self._closing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _corrupt(self, problem: str) -> StoreError:
        return self._fault(
            problem,
            "Run `truename audit verify`, keep this directory as it is, and begin a journal in another.",
            "corrupt",
        )

    def _unusable(self, error: OSError) -> NoReturn:
        raise self._fault(
            f"it can't be written ({error.strerror or error})", "Check the path and the disk.", "unusable"
        ) from error

    def _fault(self, problem: str, remedy: str, code: str) -> StoreError:
        return StoreError(file=str(self.path), key="", problem=problem, remedy=remedy, code=code)
