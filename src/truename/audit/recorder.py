"""Accept audit records from any thread, and write them in batches on one thread."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Self

    from truename.audit.log import AuditLog

__all__ = ["AuditRecorder"]

_log: Final = logging.getLogger("truename.audit")
_BATCH: Final = 1_000
_AGAIN: Final = 1.0
_END: Final = 10.0
# A kill loses at most this many seconds of the records that no caller waits for.
_LINGER: Final = 0.1


class _QueuedRecord(NamedTuple):
    kind: str
    body: Mapping[str, object]
    written: Future[None] | None

    def complete(self, error: StoreError | None = None) -> None:
        """Complete the caller's future; a future that was cancelled is left alone."""
        if self.written is None:
            return
        with suppress(InvalidStateError):
            if error is None:
                self.written.set_result(None)
            else:
                self.written.set_exception(error)


class AuditRecorder:
    """A queue of records that one thread writes to the audit log, so that callers do not wait for the disk.

    At most ``most_waiting`` records are queued; further ones are counted as lost, and a ``gap`` record states how many.
    While the disk cannot be written, the queue is kept and retried every second.
    """

    def __init__(self, audit_log: AuditLog, *, most_waiting: int = 10_000) -> None:
        self._audit_log = audit_log
        self._most = most_waiting
        self._queue: deque[_QueuedRecord] = deque()
        self._lost = 0
        self._dropped = 0
        self._problem: StoreError | None = None
        self._since = 0.0
        self._is_closed = False
        self._is_awaited = False
        self._condition = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="truename-audit", daemon=True)
        self._thread.start()

    @property
    def path(self) -> Path:
        """The directory of the audit log."""
        return self._audit_log.path

    @property
    def waiting(self) -> int:
        """The number of queued records."""
        return len(self._queue)

    @property
    def lag(self) -> float:
        """An upper bound of the age of the oldest queued record, in seconds."""
        return time.monotonic() - self._since if self._queue else 0.0

    @property
    def dropped(self) -> int:
        """The number of records lost so far."""
        return self._dropped

    @property
    def is_well(self) -> bool:
        """Whether the last write reached the disk."""
        return self._problem is None

    @property
    def has_ended(self) -> bool:
        """Whether nothing more is written: it was closed, and its last write did not hang."""
        return not self._thread.is_alive()

    def write(self, kind: str, body: Mapping[str, object]) -> None:
        """Queue a record; one that does not fit is counted as lost."""
        self._enqueue(_QueuedRecord(kind, body, None))

    def written(self, kind: str, body: Mapping[str, object]) -> Future[None]:
        """Queue a record; the future completes when it is on the disk, or raises `StoreError` if it cannot be."""
        future: Future[None] = Future()
        if not self._enqueue(_QueuedRecord(kind, body, future)):
            future.set_exception(self._error("the queue of records is full"))
        return future

    def require(self) -> None:
        """Raise `StoreError` if no record can be written now: the queue is full, the disk fails, or it is closed."""
        if self._is_closed:
            raise self._error("the audit log is closed")
        if self._problem is not None:
            raise self._problem
        if len(self._queue) >= self._most:
            raise self._error("the queue of records is full")

    def close(self) -> None:
        """Write the queued records, for some seconds at most, and close the log."""
        with self._condition:
            self._is_closed = True
            self._condition.notify()
        self._thread.join(_END)
        if not self._thread.is_alive():
            self._audit_log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _enqueue(self, record: _QueuedRecord) -> bool:
        with self._condition:
            if self._is_closed or len(self._queue) >= self._most:
                self._lose(1)
                return False
            if not self._queue:
                self._since = time.monotonic()
            self._queue.append(record)
            # A lingering writer is woken for a record that a caller waits for, not for each record.
            self._is_awaited |= record.written is not None
            if self._is_awaited or len(self._queue) in {1, _BATCH}:
                self._condition.notify()
            return True

    def _lose(self, count: int) -> None:
        self._lost += count
        self._dropped += count

    def _run(self) -> None:
        while (batch := self._batch()) is not None:
            try:
                self._write(batch)
            except Exception as error:  # noqa: BLE001 - any failure to write must be reported
                _log.exception("Cannot write the audit log.")
                self._failed(self._error(f"it cannot be written ({type(error).__name__})"))

    def _batch(self) -> list[_QueuedRecord] | None:
        """Wait for the next batch; return None at the end, when the queue is empty or was dropped."""
        with self._condition:
            while not self._queue and not self._lost and not self._is_closed:
                self._condition.wait()
            if not self._queue and (not self._lost or self._is_closed):
                return None
            self._linger()
            self._is_awaited = False
            return [self._queue[number] for number in range(min(len(self._queue), _BATCH))]

    def _linger(self) -> None:
        """Wait a moment for more records, unless a caller waits: a batch costs as much as one record."""
        until = time.monotonic() + _LINGER
        while not (self._is_closed or self._is_awaited or len(self._queue) >= _BATCH):
            if (left := until - time.monotonic()) <= 0:
                return
            self._condition.wait(left)

    def _write(self, batch: list[_QueuedRecord]) -> None:
        lost, began = self._lost, time.monotonic()
        gap = [("gap", {"lost": lost})] if lost else []
        try:
            self._audit_log.append([*gap, *((record.kind, record.body) for record in batch)])
        except StoreError as error:
            self._failed(error)
            return
        except (ValueError, RecursionError) as error:
            self._drop_unwritable(batch, error)
            return
        self._problem = None
        with self._condition:
            self._lost -= lost
            # The remaining records were queued during this write.
            self._since = began
            for _ in batch:
                self._queue.popleft()
        for record in batch:
            record.complete()

    def _failed(self, error: StoreError) -> None:
        if self._problem is None:
            _log.error("%s Records stay queued until it can be written.", error)
        self._problem = error
        with self._condition:
            # Fail the waiting callers now instead of when the disk works again; the record may still be written later.
            for number, record in enumerate(self._queue):
                if record.written is not None:
                    record.complete(error)
                    self._queue[number] = record._replace(written=None)
            if self._is_closed:
                self._lose(len(self._queue))
                self._queue.clear()
                return
        until = time.monotonic() + _AGAIN
        with self._condition:
            while not self._is_closed and (left := until - time.monotonic()) > 0:
                self._condition.wait(left)

    def _drop_unwritable(self, batch: list[_QueuedRecord], error: Exception) -> None:
        """Write the records one by one, and count those that cannot be encoded as lost."""
        with self._condition:
            for _ in batch:
                self._queue.popleft()
        for record in batch:
            try:
                self._audit_log.append([(record.kind, record.body)])
            except (StoreError, ValueError, RecursionError) as reason:
                _log.error("Cannot write a record: %s", reason)
                with self._condition:
                    self._lose(1)
                record.complete(self._error(f"the record cannot be written ({error})"))
            else:
                record.complete()

    def _error(self, problem: str) -> StoreError:
        return StoreError(
            file=str(self.path), key="", problem=problem, remedy="Check the disk of the audit log.", code="unusable"
        )
