"""The head: how far a journal went, kept outside of it, so that records taken off its end are missed.

``journal.head`` has two lines of a fixed length, and they are written in turn, each in its place: for every batch of
records that costs a third of putting a whole file in the place of another. What a power cut tears is one of the two;
the other is as good, for a head may be older than its journal's end.
"""

from __future__ import annotations

import errno
import hmac
import json
import os
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.audit.canonical import canonical
from truename.audit.chain import sum_of
from truename.files.durable import is_own, open_plain, write_whole

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["HEAD", "Head", "HeadFile", "Heads", "read_heads"]

HEAD: Final = "journal.head"
_LINE: Final = 256
_NONE: Final = b"\n".rjust(_LINE)
_OPEN: Final = (
    os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)


class Head(NamedTuple):
    """A journal's id, and the number and hash of a record that it has: the last one, or one before a kill."""

    journal: str
    number: int
    hash: str


class Heads(NamedTuple):
    """What a head file says: the newest head, None for none; and whether every byte of it is one that was written."""

    newest: Head | None
    is_whole: bool


def read_heads(path: Path, key: bytes | None, name: str = HEAD) -> Heads:
    """Return what the head file in a directory says; of another key than this nothing."""
    try:
        # Another user may prove a journal; whoever writes it has to own it (`HeadFile`).
        with open_plain(path / name) as file:
            raw = file.read(2 * _LINE + 1)
    except OSError:
        raw = b""
    if not 0 < len(raw) <= 2 * _LINE:
        return Heads(None, is_whole=False)
    found = _both(raw, key)
    known = [head for head in found if head is not None]
    is_whole = found[0] is not None and (found[1] is not None or raw[_LINE:] == _NONE)
    is_one = len({head.journal for head in known}) == 1
    return Heads(max(known, key=lambda head: head.number) if is_one else None, is_whole and is_one)


class HeadFile:
    """A head file in a directory, open for writing; made if there is none. Not for two threads at once.

    Unless it is synced, what is written gets to the disk when the system likes.
    """

    def __init__(self, path: Path, key: bytes | None, name: str = HEAD, *, is_synced: bool = True) -> None:
        """Open it. Raises `OSError`, also for what is no head file of the user's: a pipe, another's, a larger one."""
        self._key = key
        self._path = path / name
        self._put = write_whole if is_synced else _put
        self._file = os.open(self._path, _OPEN, 0o600)
        found = os.fstat(self._file)
        if not is_own(found) or found.st_size > 2 * _LINE:
            self.close()
            raise OSError(errno.EINVAL, f"{name} is no plain file of yours, or too large", str(self._path))
        self.is_empty = not found.st_size
        first, second = _both(os.read(self._file, 2 * _LINE), key)
        # What is damaged is written first, then what is older.
        self._place = int(first is not None and (second is None or second.number < first.number))

    def is_there(self) -> bool:
        """Tell whether it is still the one that the journal has: nobody took it away, or put another in its place."""
        try:
            return os.path.samestat(self._path.stat(), os.fstat(self._file))
        except OSError:
            return False

    def begin(self, head: Head) -> None:
        """Write the first head, and nothing besides. Raises `OSError`, also where it is another file's as well."""
        if os.fstat(self._file).st_nlink != 1:
            raise OSError(
                errno.EINVAL, f"{self._path.name} has another name, too: it may be somebody's", str(self._path)
            )
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)
        self._put(self._file, _line(head, self._key) + _NONE)
        self._place, self.is_empty = 1, False

    def write(self, head: Head) -> None:
        """Write a head in the place of the one before the last, down to the disk. Raises `OSError`."""
        os.lseek(self._file, self._place * _LINE, os.SEEK_SET)
        self._put(self._file, _line(head, self._key))
        self._place = 1 - self._place

    def close(self) -> None:
        """Close it; twice does no harm."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1


def _put(descriptor: int, raw: bytes) -> None:
    if os.write(descriptor, raw) != len(raw):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _both(raw: bytes, key: bytes | None) -> tuple[Head | None, Head | None]:
    return _head(raw[:_LINE], key), _head(raw[_LINE:], key)


def _head(line: bytes, key: bytes | None) -> Head | None:
    try:
        plain = json.loads(line)
        head = Head(*(plain[name] for name in Head._fields))
        # It has exactly one form, as the records have.
        is_same = hmac.compare_digest(line, _line(head, key))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return head if is_same and type(head.number) is int else None


def _line(head: Head, key: bytes | None) -> bytes:
    said = head._asdict()
    written = canonical({**said, "sum": sum_of(canonical(said), key)})
    return written.ljust(_LINE - 1) + b"\n"
