"""Keep the events of a ledger: the `LedgerStore` protocol, and a store that ends with its process."""

from __future__ import annotations

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
    """Where a ledger is kept. Its methods raise `LedgerError`: ``corrupt``, ``newer``, ``busy``, ``unusable``."""

    def snapshot(self) -> LedgerState:
        """Return the state with all that is committed; the same object while nobody else wrote."""
        ...

    def append(self, events: Sequence[Event], expected_revision: int) -> bool:
        """Commit events whole; False, and nothing is kept, if the store has another revision than expected."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Keep other writers out; what is appended in the block is committed whole at its end, or not at all."""
        ...

    def history(self, scope: str, name: str) -> tuple[Event, ...]:
        """Return what happened to a name, in any spelling, oldest first; repeated claims are kept once."""
        ...

    def has_news(self) -> bool:
        """Tell, without waiting, whether others may have written since the last snapshot."""
        ...

    def is_busy(self) -> bool:
        """Tell, without waiting, whether another process is writing."""
        ...

    def close(self) -> None:
        """Let go of the store."""
        ...


class MemoryLedger:
    """A store that ends with its process; ``events`` are those that it begins with."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._state = LedgerState()
        self._history: defaultdict[tuple[str, str], dict[object, Event]] = defaultdict(dict)
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
            if isinstance(event, Claim | Retire | Redirect | Break):
                known = self._history[event.scope, fold(event.name)]
                once = (event.table, event.name, event.id) if isinstance(event, Claim) else len(known)
                known.setdefault(once, event)
        for rows in self._state.tables.values():
            rows.changed.clear()
        self._state.revision += 1
        return True

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Do nothing: the ledger itself locks other threads out. There is no rollback if the block raises."""
        yield

    def history(self, scope: str, name: str) -> tuple[Event, ...]:
        """Return what happened to a name."""
        return tuple(self._history.get((scope, fold(name)), {}).values())

    def has_news(self) -> bool:
        """Tell that nobody else writes."""
        return False

    def is_busy(self) -> bool:
        """Tell that nobody else writes."""
        return False

    def close(self) -> None:
        """Do nothing: there is nothing to let go of."""
