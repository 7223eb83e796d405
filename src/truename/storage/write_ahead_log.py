"""Recognise a write-ahead log that belongs to another database than the one beside it.

SQLite replays the file ``PATH-wal`` into whatever database it finds at PATH. If somebody replaces an open database by
another one, or by an older copy, the pages of two databases are mixed. Each transaction of a state database writes the
row of the table ``state``; the rows in the log show to which database it belongs and which revisions it continues.
"""

from __future__ import annotations

import re
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING, Final

from truename.storage.revision_file import Revision

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["is_foreign_log"]

# The format of the file: https://www.sqlite.org/walformat.html
_HEADER: Final = 32
_FRAME: Final = 24
_MAGIC: Final = (0x377F0682, 0x377F0683)
# `state` is the first table that is made, so its only row is on the second page.
_STATE_PAGE: Final = 2
# A record of a text of 32 characters and an integer: https://www.sqlite.org/fileformat2.html#record_format
_ROW: Final = re.compile(rb"\x03\x4d([\x01-\x06\x08\x09])([0-9a-f]{32})", re.DOTALL)
_INTEGER_BYTES: Final = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 8: 0, 9: 0}
# Another process may move pages from the log into the database between two reads.
_ATTEMPTS: Final = 4
_PAUSE: Final = 0.02


def is_foreign_log(database: Path) -> bool:
    """Return whether the write-ahead log beside a database does not continue it. Raises `OSError`."""
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_PAUSE)
        before = _revision_in_file(database)
        log = _revisions_in_log(database.with_name(f"{database.name}-wal"))
        if not log or _continues(before, log):
            return False
    return True


def _continues(present: Revision | None, log: list[Revision]) -> bool:
    if present is None:
        return log[0].number <= 1
    is_same = all(one.database == present.database for one in log)
    return is_same and log[0].number <= present.number + 1 and log[-1].number >= present.number


def _revision_in_file(database: Path) -> Revision | None:
    """Return the revision in the database file alone, without its log."""
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?immutable=1", uri=True)) as data:
            return Revision(*data.execute("SELECT id, revision FROM state").fetchone())
    except (sqlite3.Error, TypeError):
        # Nothing was moved from the log yet, or the file is damaged, which opening it reports.
        return None


def _revisions_in_log(path: Path) -> list[Revision]:
    """Return the revisions that the log holds, oldest first."""
    found: list[Revision] = []
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return found
    with file:
        header = file.read(_HEADER)
        if len(header) < _HEADER or int.from_bytes(header[:4], "big") not in _MAGIC:
            return found
        size = int.from_bytes(header[8:12], "big")
        while len(frame := file.read(_FRAME)) == _FRAME:
            # Frames with another salt are left from before the log was begun again.
            if frame[8:16] != header[16:24]:
                break
            if int.from_bytes(frame[:4], "big") != _STATE_PAGE:
                file.seek(size, 1)
                continue
            page = file.read(size)
            row = _ROW.search(page)
            if row is not None and len(page) == size:
                found.append(_revision(row, page))
    return found


def _revision(row: re.Match[bytes], page: bytes) -> Revision:
    kind = row[1][0]
    number = int.from_bytes(page[row.end() : row.end() + _INTEGER_BYTES[kind]], "big", signed=True)
    return Revision(row[2].decode(), 1 if kind == 9 else number)
