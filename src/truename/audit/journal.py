"""The journal on disk: segments of records, and beside them a head that says how far they went.

``NNNNNN.jsonl`` are the segments, appended to by one process at a time and never changed: a line that a kill left
half-written stays, and the segment that follows says so. ``head.json`` has the number and hash of a late record, so
that records taken off the end are missed.
"""

from __future__ import annotations

import os
import secrets
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NoReturn

from truename.audit.chain import Chain, Spoiled
from truename.audit.head import HEAD, Head, read_head, write_head
from truename.audit.reading import broken_at_end, last_of, noted, segments
from truename.errors import LedgerError
from truename.files.durable import sync_directory
from truename.ledger.lock import locked
from truename.policy import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path
    from typing import Self

__all__ = ["Journal"]

_SEGMENT: Final = 64 * 1024 * 1024
_OPEN: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)


def _utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Journal:
    """A journal, open for appending; a lock keeps every other process out. Not for two threads at once.

    ``key`` makes the hashes ones that only its owner can make; it has to be the same for the whole journal.
    ``max_bytes`` is the size at which a segment ends and the next begins.

    Raises `StoreError`: ``busy`` (another process writes here), ``corrupt`` (the end is not the one that was written:
    `truename audit verify` says what is wrong; nothing is added to such a journal), ``unusable``.
    """

    def __init__(
        self, path: Path, key: bytes | None = None, *, max_bytes: int = _SEGMENT, now: Callable[[], str] = _utc_now
    ) -> None:
        self.path = path
        self._key = key
        self._max = max_bytes
        self._now = now
        self._file = -1
        self._size = 0
        self._closing = ExitStack()
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._closing.enter_context(locked(path / "journal", shared=False, patience=0))
            self._resume()
        except LedgerError as error:
            self.close()
            raise self._fault(
                "another process writes here", "Give each gateway a journal of its own.", "busy"
            ) from error
        except OSError as error:
            self.close()
            self._unusable(error)
        except BaseException:
            self.close()
            raise

    def _resume(self) -> None:
        found = segments(self.path)
        head = read_head(self.path, self._key)
        if not found:
            if head is not None:
                raise self._corrupt("all segments are gone")
            self._id, self._chain = secrets.token_hex(16), Chain(key=self._key)
            self._next, self._tail = 1, None
            return
        if head is None:
            raise self._corrupt(f"{HEAD} is gone or damaged")
        try:
            self._tail = last_of(found, self._key)
        except Spoiled as error:
            raise self._corrupt(str(error)) from error
        if problem := broken_at_end(self._tail, head):
            raise self._corrupt(problem)
        self._id = head.journal
        self._chain = Chain(self._tail.number, self._tail.hash, self._key)
        self._next = found[-1].number + 1

    def append(self, records: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Write records down, to the disk, all in one go. Raises `StoreError` (``unusable``).

        After that what was asked for may be there in part, as after a kill; the next append goes on behind it.
        """
        try:
            if self._file < 0 or self._size >= self._max:
                self._begin_segment()
            # A record that no journal can hold must not leave a gap behind those before it.
            chain = replace(self._chain)
            lines = b"".join(chain.add(kind, body, self._now()) for kind, body in records)
            self._write(lines)
            self._chain = chain
            write_head(self.path, Head(self._id, self._chain.number, self._chain.last), self._key)
        except OSError as error:
            self._forget()
            self._unusable(error)

    def _begin_segment(self) -> None:
        self._close_segment()
        path = self.path / f"{self._next:06}.jsonl"
        self._file, self._size = os.open(path, _OPEN, 0o600), 0
        sync_directory(self.path)
        self._next += 1
        body: dict[str, Any] = {"journal": self._id, "schema": 1, "keyed": self._key is not None}
        if self._tail is not None and self._tail.torn:
            body["torn"] = noted(self._tail.torn)
        self._tail = None
        self._write(self._chain.add("segment", body, self._now()))

    def _write(self, lines: bytes) -> None:
        rest = memoryview(lines)
        while rest:
            rest = rest[os.write(self._file, rest) :]
        os.fsync(self._file)
        self._size += len(lines)

    def _forget(self) -> None:
        """Find out anew what is on the disk: how much of the last write got there is not known."""
        self._close_segment()
        with suppress(OSError, Spoiled):
            found = segments(self.path)
            if found:
                self._tail = last_of(found, self._key)
                self._chain = Chain(self._tail.number, self._tail.hash, self._key)
                self._next = found[-1].number + 1
            else:
                self._chain, self._tail, self._next = Chain(key=self._key), None, 1

    def _close_segment(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def close(self) -> None:
        """Close the file and let others in; all that was appended is on the disk."""
        self._close_segment()
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
