"""Read an audit log, and report its damage by file and line."""

from __future__ import annotations

import logging
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.audit.chain import GENESIS, LONGEST, AuditRecord, BrokenChain, read_record
from truename.audit.head import HEAD, AnchorFile, describe_torn, read_heads, read_lines, segments
from truename.audit.log import read_lock
from truename.files.private import open_plain
from truename.storage import Revision

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from truename.audit.head import Anchor, LogHeads
    from truename.config import Config

__all__ = [
    "LogDefect",
    "LogPlace",
    "read_records",
    "recent_records",
    "recorded_revision",
    "records_since",
    "verify_log",
    "with_recorded_revision",
]

_log: Final = logging.getLogger("truename.audit")

# A gateway records the revision when it changes, and at its start and end.
_FAR: Final = 20_000


@dataclass(frozen=True, kw_only=True)
class LogDefect:
    """A defect of an audit log: its place, kind and problem. Line 0 means the whole file, no file the whole log.

    ``kind``: ``changed`` (a line differs from the one that was written), ``order`` (records are missing or not in their
    places), ``torn`` (an incomplete last line that no later segment mentions), ``truncated`` (records are missing from
    the end).
    """

    file: str
    line: int
    kind: str
    problem: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.problem}" if where else self.problem


def read_records(
    path: Path, key: bytes | None = None, *, anchor: Path | None = None, expected: Anchor | None = None
) -> Iterator[AuditRecord | LogDefect]:
    """Yield all records of a log in order, and each defect in its place.

    ``anchor`` is the anchor file of the log, ``expected`` an anchor that was kept elsewhere. Records that are written
    meanwhile are ignored. Raises `OSError` for files that cannot be read.
    """
    with read_lock(path):
        walk = _ChainReader(read_heads(path, key), key)
        # The anchor is read before the size of the log: it is never ahead of the log.
        yield from walk.await_anchor(None if anchor is None else AnchorFile(anchor, key), expected)
        found = [(segment, segment.path.stat().st_size) for segment in segments(path)]
    for count, ((number, file), size) in enumerate(found, 1):
        if number != count:
            yield LogDefect(file=file.name, line=0, kind="order", problem=f"segment {count:06} is missing before it")
        yield from walk.through(file, size)
    yield from walk.end()


class _ChainReader:
    """The state of reading a log: the expected next record, and the bytes of an incomplete line."""

    def __init__(self, heads: LogHeads, key: bytes | None) -> None:
        self._head, self._is_head_whole = heads
        self._key = key
        self._journal = self._head.journal if self._head else ""
        self._expected, self._last = 1, GENESIS
        self._torn, self._file = b"", ""
        self._is_head_met = False
        self._awaited: dict[tuple[int, str], LogDefect] = {}

    def await_anchor(self, anchor: AnchorFile | None, expected: Anchor | None) -> Iterator[LogDefect]:
        """Require the records of these anchors: `end` reports those that were not read."""
        try:
            kept = None if anchor is None else anchor.read()
        except BrokenChain as error:
            yield LogDefect(file="", line=0, kind="changed", problem=str(error))
            kept = None
        if kept is not None:
            self._await(kept.number, kept.hash, "which the anchor file records")
        if expected is not None and expected.number:
            self._await(expected.number, expected.hash, "which was expected")

    def _await(self, number: int, digest: str, why: str) -> None:
        problem = (
            f"record {number:,}, {why}, is missing or differs: the end was cut off, or the log was replaced by a copy"
        )
        self._awaited[number, digest] = LogDefect(file="", line=0, kind="truncated", problem=problem)

    def through(self, path: Path, size: int) -> Iterator[AuditRecord | LogDefect]:
        """Yield the records and defects of the next file, reading ``size`` bytes."""
        self._file = path.name
        for line, content in read_lines(path, size=size):
            if not content.endswith(b"\n"):
                self._torn += content
                continue
            try:
                record = read_record(content, self._key)
            except BrokenChain as error:
                yield self._broken(line, "changed", f"the line was changed: {error}")
                self._expected, self._last = self._expected + 1, ""
                continue
            if problem := _misplaced(record, self._expected, self._last):
                yield self._broken(line, "order", problem)
            if line == 1:
                yield from self._begun(record)
            self._is_head_met |= self._head is not None and (record.number, record.hash) == self._head[1:]
            self._awaited.pop((record.number, record.hash), None)
            self._expected, self._last = record.number + 1, record.hash
            yield record

    def _begun(self, record: AuditRecord) -> Iterator[LogDefect]:
        """Check the first record of a segment against the file before it."""
        self._journal = self._journal or str(record.body.get("journal"))
        if record.kind != "segment" or record.body.get("journal") != self._journal:
            yield self._broken(1, "order", "its first record does not begin a segment of this log")
            return
        torn, self._torn = self._torn, b""
        if record.body.get("torn") != describe_torn(torn):
            yield self._broken(1, "torn", "the file before it ends differently than when this one was started")

    def end(self) -> Iterator[LogDefect]:
        """Yield the defects at the end."""
        if self._torn:
            yield self._broken(0, "torn", _TORN)
        if not self._is_head_whole and self._file:
            yield LogDefect(file=HEAD, line=0, kind="truncated", problem=_GONE if self._head is None else _DAMAGED)
        if self._head is not None and self._head.number and not self._is_head_met:
            gone = f"record {self._head.number:,}, which was written, is missing; the last is {self._expected - 1:,}"
            yield LogDefect(file=HEAD, line=0, kind="truncated", problem=gone)
        yield from self._awaited.values()

    def _broken(self, line: int, kind: str, problem: str) -> LogDefect:
        return LogDefect(file=self._file, line=line, kind=kind, problem=problem)


_GONE: Final = "it is missing or damaged: the end cannot be verified"
_DAMAGED: Final = "a power cut tore one of its two lines (the next record repairs it), or somebody changed it"
_TORN: Final = "its last line is incomplete; the next start of the gateway records that, unless somebody cut it"


def _misplaced(record: AuditRecord, expected: int, last: str) -> str:
    if record.number > expected:
        return f"records {expected:,} to {record.number - 1:,} are missing before it"
    if record.number < expected:
        return f"record {record.number:,} is in the place of record {expected:,}"
    if last and record.previous != last:
        return "the record before it differs from the one it was chained to"
    return ""


class LogPlace(NamedTuple):
    """A reading position: the number of a segment, and the bytes of it that were read."""

    segment: int = 0
    offset: int = 0


def recent_records(path: Path, count: int, key: bytes | None = None) -> tuple[list[AuditRecord], LogPlace]:
    """Return the last ``count`` records, oldest first, and the position after them; read only the last files.

    Lines that are not records are skipped: `verify_log` reports them. Raises `OSError`.
    """
    found, place = deque[AuditRecord](), LogPlace()
    for number, file in reversed(segments(path)):
        lines = deque[bytes](maxlen=max(1, count - len(found)))
        offset = 0
        for line, size in _whole_lines(file, 0):
            lines.append(line)
            offset += size
        place = place if place.segment else LogPlace(number, offset)
        found.extendleft(reversed(list(_read(lines, key))))
        if len(found) >= count:
            break
    return list(found)[-count:] if count else [], place


def recorded_revision(path: Path, key: bytes | None = None) -> Revision | None:
    """Return the revision of the state database that a log recorded last; None if it recorded none.

    Raises `OSError`.
    """
    if not path.is_dir():
        return None
    found, _ = recent_records(path, _FAR, key)
    bodies = (one.body for one in reversed(found) if one.kind == "state")
    database, number = next(((body.get("database"), body.get("revision")) for body in bodies), (None, None))
    return Revision(database, number) if isinstance(database, str) and isinstance(number, int) and number else None


def with_recorded_revision(config: Config) -> Config:
    """Return the configuration with the revision of the state that its audit log recorded last.

    Whatever opens the state by it refuses a database that is older, or another one. If the log cannot be read, a
    warning is logged, and the state is compared only with the file beside it.
    """
    audit = config.settings.audit
    if audit.path is None or config.known_revision is not None:
        return config
    try:
        known = recorded_revision(audit.directory, None if audit.key is None else audit.key.encode())
    except OSError as error:
        _log.warning("The audit log cannot be read, so the state is not compared with it. %s", error)
        return config
    return replace(config, known_revision=known)


def records_since(path: Path, place: LogPlace, key: bytes | None = None) -> tuple[list[AuditRecord], LogPlace]:
    """Return the records after a position, and the position after them. Raises `OSError`."""
    found: list[AuditRecord] = []
    for number, file in segments(path):
        if number < place.segment:
            continue
        offset = place.offset if number == place.segment else 0
        lines = list(_whole_lines(file, offset))
        found += _read((line for line, _ in lines), key)
        place = LogPlace(number, offset + sum(size for _, size in lines))
    return found, place


def _read(lines: Iterable[bytes], key: bytes | None) -> Iterator[AuditRecord]:
    for line in lines:
        with suppress(BrokenChain):
            yield read_record(line, key)


def _whole_lines(path: Path, offset: int) -> Iterator[tuple[bytes, int]]:
    """Yield the complete lines after an offset, each with its size; skip a last line that is still being written."""
    with open_plain(path) as file:
        file.seek(offset)
        while line := file.readline(LONGEST + 2):
            if not line.endswith(b"\n") and len(line) <= LONGEST:
                return
            yield line, len(line)


def verify_log(
    path: Path, key: bytes | None = None, *, anchor: Path | None = None, expected: Anchor | None = None
) -> tuple[int, tuple[LogDefect, ...]]:
    """Count the records of a log and collect its defects. Raises `OSError`."""
    count, broken = 0, list[LogDefect]()
    for found in read_records(path, key, anchor=anchor, expected=expected):
        if isinstance(found, LogDefect):
            broken.append(found)
        else:
            count += 1
    return count, tuple(broken)
