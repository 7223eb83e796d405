"""Record the end of an audit log outside of its segments, so that records cut off the end are missed."""

from __future__ import annotations

import errno
import hashlib
import hmac
import json
import logging
import os
import re
import stat
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.audit.chain import GENESIS, LONGEST, AuditRecord, BrokenChain, canonical, read_record, sum_of
from truename.files import absolute
from truename.files.private import is_own, make_private, open_plain, state_directory, write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import Self

__all__ = [
    "HEAD",
    "Anchor",
    "AnchorFile",
    "HeadFile",
    "LogHead",
    "LogHeads",
    "LogTail",
    "anchor_file",
    "describe_torn",
    "find_end",
    "find_end_defect",
    "find_end_from",
    "follow",
    "read_heads",
    "read_lines",
    "segments",
]

HEAD: Final = "journal.head"
_LINE: Final = 256
_NONE: Final = b"\n".rjust(_LINE)
_OPEN: Final = (
    os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)


class LogHead(NamedTuple):
    """The id of an audit log, and the number and hash of one of its records: the last, or the one before a kill."""

    journal: str
    number: int
    hash: str


class LogHeads(NamedTuple):
    """The content of a head file: the newest head (None if it has none), and whether all its bytes are undamaged."""

    newest: LogHead | None
    is_whole: bool


def read_heads(path: Path, key: bytes | None, name: str = HEAD) -> LogHeads:
    """Read the head file of a directory. A head that was written with another key counts as damaged."""
    try:
        # Another user may verify a log; only the writer must own the file (`HeadFile`).
        with open_plain(path / name) as file:
            raw = file.read(2 * _LINE + 1)
    except OSError:
        raw = b""
    if not 0 < len(raw) <= 2 * _LINE:
        return LogHeads(None, is_whole=False)
    found = _both(raw, key)
    known = [head for head in found if head is not None]
    is_whole = found[0] is not None and (found[1] is not None or raw[_LINE:] == _NONE)
    is_one = len({head.journal for head in known}) == 1
    return LogHeads(max(known, key=lambda head: head.number) if is_one else None, is_whole and is_one)


class HeadFile:
    """A head file in a directory, open for writing and created if missing. Not thread-safe.

    Without ``is_synced``, the operating system decides when a write reaches the disk.
    """

    def __init__(self, path: Path, key: bytes | None, name: str = HEAD, *, is_synced: bool = True) -> None:
        """Open the file. Raises `OSError`, also for a pipe, a file of another user or a file that is too large."""
        self._key = key
        self._path = path / name
        self._put = write_whole if is_synced else _put
        self._file = os.open(self._path, _OPEN, 0o600)
        found = os.fstat(self._file)
        if not is_own(found) or found.st_size > 2 * _LINE:
            self.close()
            raise OSError(errno.EINVAL, f"{name} is not a regular file of yours, or is too large", str(self._path))
        self.is_empty = not found.st_size
        first, second = _both(os.read(self._file, 2 * _LINE), key)
        # Overwrite a damaged head first, else the older one.
        self._place = int(first is not None and (second is None or second.number < first.number))

    def is_there(self) -> bool:
        """Return whether the path still leads to the open file, which nobody removed or replaced."""
        try:
            return os.path.samestat(self._path.stat(), os.fstat(self._file))
        except OSError:
            return False

    def begin(self, head: LogHead) -> None:
        """Write the first head and truncate the rest. Raises `OSError`, also if the file has a second hard link."""
        if os.fstat(self._file).st_nlink != 1:
            raise OSError(
                errno.EINVAL, f"{self._path.name} has a second hard link, and may belong to a program", str(self._path)
            )
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)
        self._put(self._file, _line(head, self._key) + _NONE)
        self._place, self.is_empty = 1, False

    def write(self, head: LogHead) -> None:
        """Overwrite the older of the two heads, and sync. Raises `OSError`."""
        os.lseek(self._file, self._place * _LINE, os.SEEK_SET)
        self._put(self._file, _line(head, self._key))
        self._place = 1 - self._place

    def close(self) -> None:
        """Close the file; calling it again does nothing."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1


def _put(descriptor: int, raw: bytes) -> None:
    if os.write(descriptor, raw) != len(raw):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _both(raw: bytes, key: bytes | None) -> tuple[LogHead | None, LogHead | None]:
    return _head(raw[:_LINE], key), _head(raw[_LINE:], key)


def _head(line: bytes, key: bytes | None) -> LogHead | None:
    try:
        plain = json.loads(line)
        head = LogHead(*(plain[name] for name in LogHead._fields))
        # A head has exactly one encoding, like a record.
        is_same = hmac.compare_digest(line, _line(head, key))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return head if is_same and type(head.number) is int else None


def _line(head: LogHead, key: bytes | None) -> bytes:
    said = head._asdict()
    written = canonical({**said, "sum": sum_of(canonical(said), key)})
    return written.ljust(_LINE - 1) + b"\n"


_NAME: Final = re.compile(r"(\d{6,9})\.jsonl")
_BLOCK: Final = 64 * 1024


class LogSegment(NamedTuple):
    """A file of records, and its number in the log."""

    number: int
    path: Path


class LogTail(NamedTuple):
    """The end of a log: the number and hash of its last record, the segment, and the offset after the record there.

    ``torn`` are the bytes after it that are not a record; ``seen`` are the number and hash of each known record up to
    it.
    """

    number: int = 0
    hash: str = GENESIS
    segment: int = 0
    offset: int = 0
    torn: bytes = b""
    seen: frozenset[tuple[int, str]] = frozenset()


def segments(path: Path) -> tuple[LogSegment, ...]:
    """Return the segments of a log in order. Raises `OSError`."""
    found = ((_NAME.fullmatch(entry.name), entry) for entry in path.iterdir())
    return tuple(sorted(LogSegment(int(match[1]), entry) for match, entry in found if match))


def read_lines(path: Path, offset: int = 0, size: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield the lines after an offset, numbered from 1; a line that is too long is cut just beyond the limit.

    ``size`` is the size of the file at the time of the check, for a caller who ignores later additions.
    """
    with open_plain(path) as file:
        file.seek(offset)
        number = 0
        while (size is None or file.tell() < size) and (line := file.readline(LONGEST + 2)):
            number += 1
            if len(line) > LONGEST and not line.endswith(b"\n"):
                while (rest := file.readline(_BLOCK)) and not rest.endswith(b"\n"):
                    pass
                line += b"\n"
            yield number, line


def find_end(found: Sequence[LogSegment], key: bytes | None) -> LogTail:
    """Find the end of a log by reading its last segments. Raises `BrokenChain` for a line that was changed."""
    for place, (segment, path) in reversed(list(enumerate(found))):
        seen: dict[int, str] = {}
        torn, offset = b"", 0
        for line, content in read_lines(path):
            if not content.endswith(b"\n"):
                torn = content
                continue
            record = _read(content, key, path, line)
            seen[record.number] = record.hash
            offset += len(content)
        if seen:
            last = max(seen)
            return LogTail(last, seen[last], segment, offset, torn, frozenset(seen.items()))
        if torn or place == 0:
            # A process was killed while it wrote the first record of this segment: the one before it ends the chain.
            before = find_end(found[:place], key) if place else LogTail()
            return before._replace(torn=before.torn + torn)
    return LogTail()


def find_end_from(found: Sequence[LogSegment], head: LogHead, key: bytes | None) -> LogTail:
    """Find the end of a log by reading on from the record of a head, which is one of the last.

    Raises `BrokenChain` if that record is missing, or the chain breaks after it.
    """
    if not head.number:
        return follow(found, LogTail(), key)
    for segment, path in reversed(found):
        size, block = path.stat().st_size, _BLOCK
        while block:
            begin = max(0, size - block)
            first = None
            for record, end in _records(path, begin, key):
                first = record.number if first is None else first
                if (record.number, record.hash) == head[1:]:
                    return follow(found, LogTail(record.number, record.hash, segment, end), key)
            # Read a larger part of the segment, unless all of it was read or the record comes later.
            block = 0 if begin == 0 or (first is not None and first < head.number) else block * 4
    message = f"record {head.number:,} of {HEAD} is missing from the end, or differs"
    raise BrokenChain(message)


def _records(path: Path, begin: int, key: bytes | None) -> Iterator[tuple[AuditRecord, int]]:
    """Yield the complete records after an offset, each with the offset at which it ends."""
    end = begin
    for line, content in read_lines(path, begin):
        end += len(content)
        # After an offset in the middle of the file, the first line may be incomplete.
        if content.endswith(b"\n") and (line > 1 or begin == 0):
            yield _read(content, key, path, line), end


def follow(found: Sequence[LogSegment], tail: LogTail, key: bytes | None) -> LogTail:
    """Find the end of a log that ended with ``tail`` before; read only the records that were added since.

    Raises `BrokenChain` if records are missing or the chain breaks.
    """
    if tail.segment and tail.segment not in {number for number, _ in found}:
        message = f"file {tail.segment:06} is missing"
        raise BrokenChain(message)
    now = tail._replace(torn=b"")
    for segment, path in found:
        if segment < tail.segment:
            continue
        offset = tail.offset if segment == tail.segment else 0
        if path.stat().st_size < offset:
            message = f"{path.name} was cut off"
            raise BrokenChain(message)
        for line, content in read_lines(path, offset):
            if not content.endswith(b"\n"):
                now = now._replace(torn=now.torn + content)
                continue
            record = _read(content, key, path, line)
            if (record.number, record.previous) != (now.number + 1, now.hash):
                message = f"{path.name}: record {record.number:,} does not continue record {now.number:,}"
                raise BrokenChain(message)
            offset += len(content)
            now = LogTail(record.number, record.hash, segment, offset)
    return now


def _read(content: bytes, key: bytes | None, path: Path, line: int) -> AuditRecord:
    try:
        return read_record(content, key)
    except BrokenChain as error:
        message = f"{path.name}:{line}: {error}"
        raise BrokenChain(message) from error


def find_end_defect(tail: LogTail, head: LogHead) -> str:
    """Describe how the end of a log contradicts its head, or return "". Records after the head are no defect."""
    if tail.number < head.number:
        return f"records {tail.number + 1:,} to {head.number:,} are missing from the end"
    before = dict((*tail.seen, (tail.number, tail.hash))).get(head.number)
    if before is not None and before != head.hash:
        return f"record {head.number:,} differs from the one in {HEAD}"
    return ""


def describe_torn(torn: bytes) -> dict[str, object] | None:
    """Describe the incomplete line before a segment, for the segment's first record; None if there is none."""
    return {"bytes": len(torn), "sha256": hashlib.sha256(torn).hexdigest()} if torn else None


_log: Final = logging.getLogger("truename.audit")
_WRITTEN: Final = re.compile(r"(0|[1-9][0-9]{0,18}):([0-9a-f]{64})")


class Anchor(NamedTuple):
    """The number and hash of a record that a log must have."""

    number: int
    hash: str

    def __str__(self) -> str:
        return f"{self.number}:{self.hash}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse ``NUMBER:HASH``. Raises `ValueError`.

        >>> Anchor.parse(f"12:{'ab' * 32}").number
        12
        """
        found = _WRITTEN.fullmatch(text)
        if found is None or (int(found[1]) == 0) is not (found[2] == GENESIS):
            message = "it is not NUMBER:HASH of a record"
            raise ValueError(message)
        return cls(int(found[1]), found[2])


def anchor_file(log: Path) -> Path:
    """Return the path of a log's anchor file, which need not exist.

    The path is taken as spelled: a symbolic link that is pointed at an older copy still has the same anchor.
    """
    directory = absolute(log)
    digest = hashlib.sha256(str(directory).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    stem = "".join(character if character.isalnum() else "-" for character in directory.name)[:40]
    return state_directory() / "audit" / f"{stem}-{digest}.anchor"


class AnchorFile:
    """The anchor of one log, kept by its writers. Not thread-safe.

    It is written after the records are on the disk, and is not synced itself: after a power cut it may be older than
    the log, never newer. A failure to write it is logged once, and does not prevent records.
    """

    def __init__(self, path: Path, key: bytes | None) -> None:
        self.path = path
        self._key = key
        self._file: HeadFile | None = None
        self._is_logged = False

    def read(self) -> LogHead | None:
        """Return the anchor; None if none was written yet. Raises `BrokenChain` if it is damaged."""
        try:
            there = self.path.lstat()
            if stat.S_ISREG(there.st_mode) and not there.st_size:
                return None
        except OSError:
            return None
        found = read_heads(self.path.parent, self._key, self.path.name).newest
        if found is None:
            message = f"its anchor {self.path} is damaged, or was made with another key"
            raise BrokenChain(message)
        return found

    def check(self, found: Sequence[LogSegment], tail: LogTail) -> None:
        """Raise `BrokenChain` if a log with this end does not have the record of its anchor."""
        anchor = self.read()
        if anchor is None or (anchor.number, anchor.hash) in {(tail.number, tail.hash), *tail.seen}:
            return
        try:
            find_end_from(found, anchor, self._key)
        except BrokenChain as error:
            message = (
                f"record {anchor.number:,} was written, and is missing or differs: records were cut off, or the log "
                f"was replaced by an older copy or another log (if that was intended, remove {self.path})"
            )
            raise BrokenChain(message) from error

    def keep(self, head: LogHead) -> None:
        """Store the head of the log, as far as it was written."""
        try:
            if self._file is not None and not self._file.is_there():
                self.close()
            if self._file is None:
                make_private(self.path.parent)
                self._file = HeadFile(self.path.parent, self._key, self.path.name, is_synced=False)
            if self._file.is_empty:
                self._begin(self._file, head)
            else:
                self._file.write(head)
        except OSError as error:
            self.close()
            if not self._is_logged:
                self._is_logged = True
                _log.warning("Cannot write the anchor %s: %s", self.path, error.strerror or error)

    def _begin(self, file: HeadFile, head: LogHead) -> None:
        try:
            file.begin(head)
        except OSError:
            # Half an anchor would be reported as damaged by somebody.
            self.path.unlink(missing_ok=True)
            raise

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
        self._file = None
