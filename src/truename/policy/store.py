"""Keep decisions and calls: the `ApprovalStore` protocol, and a store that ends with its process."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from truename.policy.grants import PlainBook

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from truename.policy.grants import Book

__all__ = ["ApprovalStore", "MemoryStore"]


class ApprovalStore(Protocol):
    """A store of decisions."""

    def read(self) -> Book:
        """Return the present decisions and calls; they must not be changed."""
        ...

    def change(self) -> AbstractContextManager[Book]:
        """Keep other writers out; keep all changes of the book when the block ends well, else none."""
        ...


class MemoryStore:
    """A store that is forgotten with its process."""

    def __init__(self) -> None:
        self._book = PlainBook()
        self._lock = threading.RLock()

    def read(self) -> PlainBook:
        """Return the present decisions and calls; they must not be changed."""
        return self._book

    @contextmanager
    def change(self) -> Iterator[Book]:
        """Keep other threads out; keep all changes, or none if the block raises."""
        with self._lock:
            draft = self._book.copy()
            yield draft
            self._book = draft
