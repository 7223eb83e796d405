"""Read whether anybody committed to a database in WAL mode, from the shared memory of its connections.

Each commit changes the header of the wal-index, which all connections map from the file ``PATH-shm``. A comparison of
its 48 bytes takes a hundredth of the time of ``PRAGMA data_version``, which reads them too.
Source: https://www.sqlite.org/walformat.html, "The WAL-Index File Format".
"""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["WalIndex"]

# One of the two copies of the header: its counter of transactions, the length of the log, checksums and salts.
_HEADER: Final = 48


class WalIndex:
    """The header of a database's wal-index, for as long as a connection of this process has the database open."""

    def __init__(self, shared: mmap.mmap) -> None:
        self._shared = shared

    @classmethod
    def of(cls, database: Path) -> WalIndex | None:
        """Return the wal-index of a database in use; None where this system or this file system has none to read."""
        try:
            with database.with_name(f"{database.name}-shm").open("rb") as file:
                return cls(mmap.mmap(file.fileno(), _HEADER, access=mmap.ACCESS_READ))
        except (OSError, ValueError):
            return None

    def header(self) -> bytes:
        """Return the header: another one than before means that somebody committed, maybe oneself."""
        return self._shared[:_HEADER]

    def close(self) -> None:
        """Release the memory."""
        self._shared.close()
