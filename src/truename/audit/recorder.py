"""Record audit events from any thread, and write them in batches on one thread."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
# So much may be lost in a kill of what is not required to be written first.
_LINGER: Final = 0.1


class _Waiting(NamedTuple):
    kind: str
    body: Mapping[str, Any]
    written: Future[None] | None

    def tell(self, error: StoreError | None = None) -> None:
        """Tell who waits for it what became of it; whoever was cancelled waits no more."""
        if self.written is None:
            return
        with suppress(InvalidStateError):
            if error is None:
                self.written.set_result(None)
            else:
                self.written.set_exception(error)


class AuditRecorder:
    """Writes records to a journal without keeping anybody waiting.

    At most ``most_waiting`` wait to be written; those beyond are counted, and a ``gap`` record says how many are
    missing. While the disk can't be written, those that wait are kept, and tried again every second.
    """

    def __init__(self, journal: AuditLog, *, most_waiting: int = 10_000) -> None:
        self._journal = journal
        self._most = most_waiting
        self._waiting: deque[_Waiting] = deque()
        self._lost = 0
        self._dropped = 0
        self._problem: StoreError | None = None
        self._since = 0.0
        self._is_closed = False
        self._is_awaited = False
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="truename-audit", daemon=True)
        self._thread.start()

    @property
    def path(self) -> Path:
        """Where the journal is."""
        return self._journal.path

    @property
    def waiting(self) -> int:
        """How many records are not on the disk yet."""
        return len(self._waiting)

    @property
    def lag(self) -> float:
        """For how many seconds, at most, the oldest that is not on the disk has waited."""
        return time.monotonic() - self._since if self._waiting else 0.0

    @property
    def dropped(self) -> int:
        """How many records were lost so far."""
        return self._dropped

    @property
    def is_well(self) -> bool:
        """Whether the last write reached the disk."""
        return self._problem is None

    def write(self, kind: str, body: Mapping[str, Any]) -> None:
        """Have a record written soon; one for which there is no room is counted as lost."""
        self._put(_Waiting(kind, body, None))

    def written(self, kind: str, body: Mapping[str, Any]) -> Future[None]:
        """Have a record written; the future is done when it is on the disk, and raises `StoreError` if it isn't."""
        future: Future[None] = Future()
        if not self._put(_Waiting(kind, body, future)):
            future.set_exception(self._fault("more records wait to be written than may wait"))
        return future

    def require(self) -> None:
        """Raise `StoreError` if what is recorded now would not be written: no room, no disk, or closed."""
        if self._is_closed:
            raise self._fault("the journal was closed")
        if self._problem is not None:
            raise self._problem
        if len(self._waiting) >= self._most:
            raise self._fault("more records wait to be written than may wait")

    def close(self) -> None:
        """Write what waits, for some seconds at most, and close the journal."""
        with self._news:
            self._is_closed = True
            self._news.notify()
        self._thread.join(_END)
        if not self._thread.is_alive():
            self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _put(self, record: _Waiting) -> bool:
        with self._news:
            if self._is_closed or len(self._waiting) >= self._most:
                self._lose(1)
                return False
            if not self._waiting:
                self._since = time.monotonic()
            self._waiting.append(record)
            # Who lingers is woken for what can't wait, and not for each record.
            self._is_awaited |= record.written is not None
            if self._is_awaited or len(self._waiting) in {1, _BATCH}:
                self._news.notify()
            return True

    def _lose(self, count: int) -> None:
        self._lost += count
        self._dropped += count

    def _run(self) -> None:
        while (batch := self._batch()) is not None:
            try:
                self._write(batch)
            except Exception as error:  # noqa: BLE001 - whatever it is, who has to know that nothing is written is told
                _log.exception("the audit journal")
                self._failed(self._fault(f"it can't be written ({type(error).__name__})"))

    def _batch(self) -> list[_Waiting] | None:
        """Wait for records; None at the end, when all are written or can't be."""
        with self._news:
            while not self._waiting and not self._lost and not self._is_closed:
                self._news.wait()
            if not self._waiting and (not self._lost or self._is_closed):
                return None
            self._linger()
            self._is_awaited = False
            return [self._waiting[number] for number in range(min(len(self._waiting), _BATCH))]

    def _linger(self) -> None:
        """Wait a moment for others, unless somebody waits for one to be written: a batch costs as much as a record."""
        until = time.monotonic() + _LINGER
        while not (self._is_closed or self._is_awaited or len(self._waiting) >= _BATCH):
            if (left := until - time.monotonic()) <= 0:
                return
            self._news.wait(left)

    def _write(self, batch: list[_Waiting]) -> None:
        lost, began = self._lost, time.monotonic()
        gap = [("gap", {"lost": lost})] if lost else []
        try:
            self._journal.append([*gap, *((record.kind, record.body) for record in batch)])
        except StoreError as error:
            self._failed(error)
            return
        except (ValueError, RecursionError) as error:
            self._drop_unwritable(batch, error)
            return
        self._problem = None
        with self._news:
            self._lost -= lost
            # Those that are left came while this was written.
            self._since = began
            for _ in batch:
                self._waiting.popleft()
        for record in batch:
            record.tell()

    def _failed(self, error: StoreError) -> None:
        if self._problem is None:
            _log.error("%s Records wait for it.", error)
        self._problem = error
        with self._news:
            # Whoever waits for theirs does not wait for a disk to be mended; it may be written all the same, later.
            for number, record in enumerate(self._waiting):
                if record.written is not None:
                    record.tell(error)
                    self._waiting[number] = record._replace(written=None)
            if self._is_closed:
                self._lose(len(self._waiting))
                self._waiting.clear()
                return
        self._pause()

    def _pause(self) -> None:
        until = time.monotonic() + _AGAIN
        with self._news:
            while not self._is_closed and (left := until - time.monotonic()) > 0:
                self._news.wait(left)

    def _drop_unwritable(self, batch: list[_Waiting], error: Exception) -> None:
        """Write the records one by one, and count those that no journal can hold."""
        with self._news:
            for _ in batch:
                self._waiting.popleft()
        for record in batch:
            try:
                self._journal.append([(record.kind, record.body)])
            except (StoreError, ValueError, RecursionError) as reason:
                _log.error("a record can't be written: %s", reason)
                with self._news:
                    self._lose(1)
                record.tell(self._fault(f"the record can't be written ({error})"))
            else:
                record.tell()

    def _fault(self, problem: str) -> StoreError:
        return StoreError(
            file=str(self.path), key="", problem=problem, remedy="Check the disk of the audit journal.", code="unusable"
        )
