"""Stores: where the events of a ledger are kept, and what all views of one ledger share."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from truename.ledger.events import Event
    from truename.ledger.state import State

__all__ = ["Core", "Memory", "Store"]


class Store(Protocol):
    """Where events are kept. All is called under `locked`; a SQL store needs these six and nothing else."""

    def locked(self) -> AbstractContextManager[None]:
        """Keep every other writer out."""
        ...

    def is_locked(self) -> bool:
        """Tell, without the lock, whether another process has it."""
        ...

    def refresh(self, state: State) -> State:
        """Return the state with all that others wrote since."""
        ...

    def changed(self) -> bool:
        """Tell, at little cost and without the lock, whether others may have written since."""
        ...

    def append(self, events: Sequence[Event]) -> None:
        """Keep the events; when this raises, none counts as kept."""
        ...

    def tidy(self, state: State) -> None:
        """Make the store smaller, if that is worth it; ``state`` has all that it holds."""
        ...


class Memory:
    """A store for a ledger that is forgotten with its process."""

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep nobody out: there is nobody else."""
        yield

    def is_locked(self) -> bool:
        """Tell that nobody else is there."""
        return False

    def refresh(self, state: State) -> State:
        """Return the state: nobody else writes."""
        return state

    def changed(self) -> bool:
        """Tell that nobody else wrote."""
        return False

    def append(self, events: Sequence[Event]) -> None:
        """Keep nothing: the state is the memory."""

    def tidy(self, state: State) -> None:
        """Leave it as it is."""


class Core:
    """What all views of one ledger share. The lock is between threads; the store's own is between processes."""

    __slots__ = ("depth", "lock", "max_claims", "news", "readonly", "state", "store")

    def __init__(self, store: Store, state: State, max_claims: int, *, readonly: bool) -> None:
        self.store = store
        self.state = state
        self.max_claims = max_claims
        self.readonly = readonly
        self.lock = threading.RLock()
        self.depth = 0
        # Whether a transaction read what others wrote, which nobody looked at since.
        self.news = False
