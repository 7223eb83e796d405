"""Record a database's revision in a file beside it, so that a lost, emptied or older database is recognised."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Revision", "RevisionFile", "latest_revision"]

_LINE: Final = re.compile(rb"truename-state ([0-9a-f]{32}) ([0-9]{20})\n")
_OPEN: Final = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class Revision(NamedTuple):
    """The id of a database, and the number of its changes."""

    database: str
    number: int

    @property
    def changes(self) -> str:
        """The number of changes with its noun."""
        return "1 change" if self.number == 1 else f"{self.number:,} changes"


def latest_revision(beside: Revision | None, audited: Revision | None) -> Revision | None:
    """Return the later of two records of a revision; of two databases, that of the audit log."""
    if beside is None or audited is None or beside.database != audited.database:
        return audited or beside
    return max(beside, audited, key=lambda one: one.number)


class RevisionFile:
    """The file ``PATH.revision``: one line of fixed length, overwritten after each change of the database.

    The file may be behind the database (a process was killed between the two writes), never ahead of it.
    """

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(f"{database.name}.revision")
        self._descriptor = -1

    def read(self) -> Revision | None:
        """Return the recorded revision; None if there is none. Raises `OSError`."""
        try:
            descriptor = os.open(self.path, _OPEN & ~os.O_RDWR | os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            found = _LINE.fullmatch(os.read(descriptor, 128))
        finally:
            os.close(descriptor)
        # A power failure may tear the line; the next change writes it again.
        return None if found is None else Revision(found[1].decode(), int(found[2]))

    def write(self, revision: Revision) -> None:
        """Record a revision that is on the disk. A failure is not reported: the file is then behind."""
        with suppress(OSError):
            if self._is_lost():
                self.close()
            if self._descriptor < 0:
                self._descriptor = os.open(self.path, _OPEN | os.O_CREAT, 0o600)
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            os.write(self._descriptor, b"truename-state %s %020d\n" % (revision.database.encode(), revision.number))

    def _is_lost(self) -> bool:
        """Return whether the open file was removed or replaced, so that nobody reads what is written to it."""
        if self._descriptor < 0:
            return False
        try:
            return not os.path.samestat(os.fstat(self._descriptor), self.path.lstat())
        except FileNotFoundError:
            return True

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
