"""Read a journal, and report damage by file and line."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.audit.chain import GENESIS, LONGEST, AuditRecord, BrokenChain, read_record
from truename.audit.head import HEAD, AnchorFile, lines_of, noted, read_heads, segments
from truename.audit.log import look
from truename.files.private import open_plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from truename.audit.head import Anchor, LogHeads

__all__ = ["LogDefect", "LogPlace", "recent", "records_in", "since", "verified"]


@dataclass(frozen=True, kw_only=True)
class LogDefect:
    """What is wrong, where (a line of 0 is the whole file, no file the whole journal), and which kind of fault it is.

    ``kind``: ``changed`` (a line is not the one that was written), ``order`` (records are missing, or stand where they
    were not written), ``torn`` (bytes at an end that nobody noted), ``truncated`` (records are gone from the end).
    """

    file: str
    line: int
    kind: str
    problem: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.problem}" if where else self.problem


def records_in(
    path: Path, key: bytes | None = None, *, anchor: Path | None = None, expected: Anchor | None = None
) -> Iterator[AuditRecord | LogDefect]:
    """Yield all records of a journal in order, and in their places what is wrong with it.

    ``anchor`` is the file outside of it that says how far it went, ``expected`` what somebody kept elsewhere.
    What is written meanwhile is not looked at. Raises `OSError` for files that can't be read.
    """
    with look(path):
        walk = _ChainReader(read_heads(path, key), key)
        # Before it is looked how far the journal goes: it is never behind its anchor.
        yield from walk.await_anchor(None if anchor is None else AnchorFile(anchor, key), expected)
        found = [(segment, segment.path.stat().st_size) for segment in segments(path)]
    for count, ((number, file), size) in enumerate(found, 1):
        if number != count:
            yield LogDefect(file=file.name, line=0, kind="order", problem=f"segment {count:06} is missing before it")
        yield from walk.through(file, size)
    yield from walk.end()


class _ChainReader:
    """What is known of a journal up to a line: what has to come next, and what a cut-off end left."""

    def __init__(self, heads: LogHeads, key: bytes | None) -> None:
        self._head, self._is_head_whole = heads
        self._key = key
        self._journal = self._head.journal if self._head else ""
        self._expected, self._last = 1, GENESIS
        self._torn, self._file = b"", ""
        self._is_head_met = False
        self._awaited: dict[tuple[int, str], LogDefect] = {}

    def await_anchor(self, anchor: AnchorFile | None, expected: Anchor | None) -> Iterator[LogDefect]:
        """Have `end` tell whether the records of these were met."""
        try:
            kept = None if anchor is None else anchor.read()
        except BrokenChain as error:
            yield LogDefect(file="", line=0, kind="changed", problem=str(error))
            kept = None
        if kept is not None:
            self._await(kept.number, kept.hash, "which was written by the anchor in the state")
        if expected is not None and expected.number:
            self._await(expected.number, expected.hash, "which was expected")

    def _await(self, number: int, digest: str, why: str) -> None:
        problem = (
            f"record {number:,}, {why}, is gone or another one: the end was cut off, or an older copy put in place"
        )
        self._awaited[number, digest] = LogDefect(file="", line=0, kind="truncated", problem=problem)

    def through(self, path: Path, size: int) -> Iterator[AuditRecord | LogDefect]:
        """Yield the records of the next file, of which there are so many bytes, and what is wrong with them."""
        self._file = path.name
        for line, content in lines_of(path, size=size):
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
        """Check what the first record of a segment says of the file before it."""
        self._journal = self._journal or str(record.body.get("journal"))
        if record.kind != "segment" or record.body.get("journal") != self._journal:
            yield self._broken(1, "order", "it begins with a record of the middle, or of another journal")
            return
        torn, self._torn = self._torn, b""
        if record.body.get("torn") != noted(torn):
            yield self._broken(1, "torn", "the file before it does not end as it did when this one was begun")

    def end(self) -> Iterator[LogDefect]:
        """Yield what is wrong with the end."""
        if self._torn:
            yield self._broken(0, "torn", _TORN)
        if not self._is_head_whole and self._file:
            yield LogDefect(file=HEAD, line=0, kind="truncated", problem=_GONE if self._head is None else _DAMAGED)
        if self._head is not None and self._head.number and not self._is_head_met:
            gone = f"record {self._head.number:,}, which was written, is gone; the last one is {self._expected - 1:,}"
            yield LogDefect(file=HEAD, line=0, kind="truncated", problem=gone)
        yield from self._awaited.values()

    def _broken(self, line: int, kind: str, problem: str) -> LogDefect:
        return LogDefect(file=self._file, line=line, kind=kind, problem=problem)


_GONE: Final = "it is gone or damaged: the end can't be proved"
_DAMAGED: Final = "one of its two lines was torn by a power cut, which the next record mends, or changed by somebody"
_TORN: Final = "its last line is cut off; the next start of the gateway notes that, unless it was cut by somebody"


def _misplaced(record: AuditRecord, expected: int, last: str) -> str:
    if record.number > expected:
        return f"records {expected:,} to {record.number - 1:,} are missing before it"
    if record.number < expected:
        return f"record {record.number:,} stands where record {expected:,} was written"
    if last and record.previous != last:
        return "the record before it is not the one that was there when it was written"
    return ""


class LogPlace(NamedTuple):
    """How far a journal was read: a segment's number, and the bytes of it that were."""

    segment: int = 0
    offset: int = 0


def recent(path: Path, count: int, key: bytes | None = None) -> tuple[list[AuditRecord], LogPlace]:
    """Return the last records, the oldest first, and the place behind them; only the last files are read.

    Lines that are no records are left out: `verified` tells of them. Raises `OSError`.
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


def since(path: Path, place: LogPlace, key: bytes | None = None) -> tuple[list[AuditRecord], LogPlace]:
    """Return the records that came behind a place, and the place behind them. Raises `OSError`."""
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
    """Yield the lines behind an offset that are whole, each with its size; one that is being written is none yet."""
    with open_plain(path) as file:
        file.seek(offset)
        while line := file.readline(LONGEST + 2):
            if not line.endswith(b"\n") and len(line) <= LONGEST:
                return
            yield line, len(line)


def verified(
    path: Path, key: bytes | None = None, *, anchor: Path | None = None, expected: Anchor | None = None
) -> tuple[int, tuple[LogDefect, ...]]:
    """Return how many records a journal has and all that is wrong with it. Raises `OSError`."""
    count, broken = 0, list[LogDefect]()
    for found in records_in(path, key, anchor=anchor, expected=expected):
        if isinstance(found, LogDefect):
            broken.append(found)
        else:
            count += 1
    return count, tuple(broken)
