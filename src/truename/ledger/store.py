"""Store the events of a ledger: the `LedgerStore` protocol, and a store in memory."""

from __future__ import annotations

import threading
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from truename.identity import fold
from truename.ledger.events import Break, Claim, Redirect, Retire
from truename.ledger.state import LedgerState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from truename.ledger.events import Event

__all__ = ["LedgerStore", "MemoryLedger"]


class LedgerStore(Protocol):
    """The storage of a ledger. Its methods raise `LedgerError`: ``corrupt``, ``newer``, ``busy``, ``unusable``."""

    def snapshot(self) -> LedgerState:
        """Return the state with all that is committed; the same object while nobody else wrote."""
        ...

    def append(self, events: Sequence[Event], expected_revision: int) -> bool:
        """Commit all events and return True; commit none and return False if the revision is not the expected one."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Lock out other writers; all events of the block are committed at its end, or none."""
        ...

    def history(self, scope: str, name: str) -> tuple[Event, ...]:
        """Return the events of a name, in any spelling, oldest first; repeated claims are stored once."""
        ...

    def has_news(self) -> bool:
        """Tell, without waiting, whether others may have written since the last snapshot."""
        ...

    def is_busy(self) -> bool:
        """Tell, without waiting, whether another process is writing."""
        ...

    @property
    def silence(self) -> float:
        """How many seconds ago the database answered last; 0 for a file and for memory."""
        ...

    def close(self) -> None:
        """Close the store."""
        ...


class MemoryLedger:
    """A store in memory; ``events`` are its first ones."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._state = LedgerState(is_stored=False)
        self._history: defaultdict[tuple[str, str], dict[object, Event]] = defaultdict(dict)
        # Events that are not in the history yet: a projection appends thousands, and few names are asked for.
        self._recent: list[Event] = []
        self._lock = threading.Lock()
        self.append(list(events), 0)

    def snapshot(self) -> LedgerState:
        """Return the state."""
        return self._state

    def append(self, events: Sequence[Event], expected_revision: int) -> bool:
        """Apply the events, if the state has this revision."""
        if self._state.revision != expected_revision:
            return False
        for event in events:
            self._state.apply(event)
        with self._lock:
            self._recent.extend(events)
        self._state.revision += 1
        return True

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Do nothing: the ledger itself locks other threads out. There is no rollback if the block raises."""
        yield

    def history(self, scope: str, name: str) -> tuple[Event, ...]:
        """Return the events of a name."""
        with self._lock:
            for event in self._recent:
                if isinstance(event, Claim | Retire | Redirect | Break):
                    known = self._history[event.scope, fold(event.name)]
                    once = (event.table, event.name, event.id) if isinstance(event, Claim) else len(known)
                    known.setdefault(once, event)
            self._recent.clear()
        return tuple(self._history.get((scope, fold(name)), {}).values())

    def has_news(self) -> bool:
        """Return False: nobody else writes."""
        return False

    def is_busy(self) -> bool:
        """Return False: nobody else writes."""
        return False

    @property
    def silence(self) -> float:
        """Return 0: nobody has to be asked."""
        return 0.0

    def close(self) -> None:
        """Do nothing: there is nothing to close."""
