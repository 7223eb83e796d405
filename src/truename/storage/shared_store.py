"""The base of stores that keep what they read of one owner's tables: look for changes by others, close the database."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from truename.storage.database import Database

__all__ = ["SharedStore"]


class SharedStore(ABC):
    """A store over tables that other processes change too; what it read of them is read again when they did.

    A subclass sets its own attributes before it calls this constructor, which reads. All methods raise `StoreError`.
    """

    def __init__(self, file: Database) -> None:
        self._file = file
        self._is_current = False
        try:
            self.refresh()
        except BaseException:
            self.close()
            raise

    @abstractmethod
    def _read_again(self) -> None:
        """Read what is on record, and set ``_is_current`` once it is read."""

    @property
    def path(self) -> Path | None:
        """The file of the database; None for memory and for a database that a server keeps."""
        return self._file.path

    def refresh(self) -> bool:
        """Read what other processes wrote, and return whether there was anything. Cheap if there was nothing."""
        if not self._file.is_begun or (not self._file.has_news() and self._is_current):
            return False
        self._read_again()
        return True

    def has_news(self) -> bool:
        """Return, without reading and without waiting, whether another process wrote something."""
        return self._file.is_behind()

    def close(self) -> None:
        """Close the database."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
