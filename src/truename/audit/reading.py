"""Read an audit log, and report its damage by file and line."""

from __future__ import annotations

import logging
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from heapq import merge
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.audit.chain import GENESIS, LONGEST, AuditRecord, BrokenChain, read_record
from truename.audit.chains import chains_of
from truename.audit.head import HEAD, AnchorFile, describe_torn, read_heads, read_lines, segments
from truename.audit.log import read_lock
from truename.files.private import open_plain
from truename.storage import Revision

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import Self

    from truename.audit.chains import ChainPlace
    from truename.audit.head import Anchor, LogHead, LogHeads
    from truename.config import Config

__all__ = [
    "FollowedLog",
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
_RESETS: Final = frozenset({"accepted", "imported"})
# Chains of writers that are long gone are not read at each start.
_MOST_CHAINS: Final = 32


@dataclass(frozen=True, kw_only=True)
class LogDefect:
    """A defect of an audit log: its place, kind and problem. Line 0 means the whole file, no file the whole log.

    ``kind``: ``changed`` (a line differs from the one that was written), ``order`` (records are missing or not in their
    places), ``torn`` (an incomplete last line that no later segment mentions), ``truncated`` (records are missing from
    the end, or a whole chain), ``continued`` (records follow the last that their writer recorded), ``unknown`` (nothing
    outside of the directory knows the chain).
    """

    file: str
    line: int
    kind: str
    problem: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.problem}" if where else self.problem


def read_records(
    path: Path,
    key: bytes | None = None,
    *,
    anchor: Path | None = None,
    expected: Anchor | None = None,
    stored: LogHead | None = None,
) -> Iterator[AuditRecord | LogDefect]:
    """Yield all records of one chain in order, and each defect in its place.

    ``anchor`` is the anchor file of the chain, ``expected`` an anchor that was kept elsewhere, ``stored`` the head that
    the state database has. Records that are written meanwhile are ignored. Raises `OSError` for files that cannot be
    read.
    """
    with read_lock(path):
        walk = _ChainReader(read_heads(path, key), key)
        # The anchor is read before the size of the log: it is never ahead of the log.
        yield from walk.await_anchor(None if anchor is None else AnchorFile(anchor, key), expected)
        yield from walk.await_stored(stored)
        found = [(segment, segment.path.stat().st_size) for segment in segments(path)]
    # Old segments are removed by `truename audit prune`: a record of it says up to which.
    begin = found[0][0].number if found else 1
    for count, ((number, file), size) in enumerate(found, begin):
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
        # The record before the first that is there, where old ones were pruned, and what was pruned.
        self._before_first: tuple[int, str] | None = None
        self._pruned: PrunedRecords | None = None
        self._has_begun = False

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

    def await_stored(self, stored: LogHead | None) -> Iterator[LogDefect]:
        """Require the record of the head that the state database has of this chain."""
        if stored is None:
            return
        if self._journal and stored.journal != self._journal:
            problem = f"chain {stored.journal} was here, and chain {self._journal} is in its place"
            yield LogDefect(file="", line=0, kind="truncated", problem=problem)
        elif stored.number:
            self._await(stored.number, stored.hash, "which the state database records")

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
            if not self._has_begun and record.kind == "segment" and record.number > 1:
                self._before_first = (record.number - 1, record.previous)
            elif problem := _misplaced(record, self._expected, self._last):
                yield self._broken(line, "order", problem)
            self._has_begun = True
            if line == 1:
                yield from self._begun(record)
            self._is_head_met |= self._head is not None and (record.number, record.hash) == self._head[1:]
            self._awaited.pop((record.number, record.hash), None)
            if record.kind == "pruned":
                self._pruned = PrunedRecords.of(record, self._journal) or self._pruned
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
        yield from self._unexplained_begin()
        if self._torn:
            yield self._broken(0, "torn", _TORN)
        if not self._is_head_whole and self._file:
            yield LogDefect(file=HEAD, line=0, kind="truncated", problem=_GONE if self._head is None else _DAMAGED)
        if self._head is not None and self._head.number and not self._is_head_met:
            gone = f"record {self._head.number:,}, which was written, is missing; the last is {self._expected - 1:,}"
            yield LogDefect(file=HEAD, line=0, kind="truncated", problem=gone)
        yield from self._awaited.values()

    def _unexplained_begin(self) -> Iterator[LogDefect]:
        """Report records that are missing from the begin, and that no later record says to be pruned."""
        if self._before_first is None:
            return
        number, digest = self._before_first
        pruned = self._pruned
        # A prune that was killed left some of the files that it recorded.
        if pruned is not None and (number < pruned.through or (number, digest) == (pruned.through, pruned.hash)):
            return
        problem = f"records 1 to {number:,} are missing before its first, and no record of `audit prune` explains it"
        yield LogDefect(file="", line=0, kind="order", problem=problem)

    def _broken(self, line: int, kind: str, problem: str) -> LogDefect:
        return LogDefect(file=self._file, line=line, kind=kind, problem=problem)


class PrunedRecords(NamedTuple):
    """The last of the records that were pruned from the begin of a chain: its number and hash."""

    through: int
    hash: str

    @classmethod
    def of(cls, record: AuditRecord, chain: str) -> Self | None:
        """Return what a record of kind ``pruned`` says of its own chain; None if it says nothing of it."""
        through, digest = record.body.get("through"), record.body.get("through_hash")
        if record.body.get("of_chain") != chain or type(through) is not int or not isinstance(digest, str):
            return None
        return cls(through, digest) if 0 < through < record.number else None


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
    """Return the revision of the state database that the chains of a log recorded last; None if they recorded none.

    Raises `OSError`.
    """
    if not path.is_dir():
        return None
    written = sorted(chains_of(path), key=_last_written, reverse=True)[:_MOST_CHAINS]
    found = sorted((one for place in written for one in _recorded_in(place.path, key)), key=lambda one: one.at)
    # What an operator accepted or imported counts instead of all that was before.
    begin = max((number for number, one in enumerate(found) if one.is_reset), default=0)
    latest = found[-1].revision if found else None
    if latest is None:
        return None
    # The clocks of several writers differ; the number of changes only grows.
    of_it = (one.revision for one in found[begin:] if one.revision and one.revision.database == latest.database)
    return max(of_it, key=lambda one: one.number)


class _RecordedRevision(NamedTuple):
    at: str
    revision: Revision | None
    is_reset: bool


def _last_written(place: ChainPlace) -> float:
    found = segments(place.path)
    return found[-1].path.stat().st_mtime if found else 0.0


def _recorded_in(path: Path, key: bytes | None) -> Iterator[_RecordedRevision]:
    """Yield the revision that a chain recorded last, and the last one that was accepted or imported."""
    is_last = True
    for record in reversed(recent_records(path, _FAR, key)[0]):
        is_reset = record.kind == "state" and record.body.get("what") in _RESETS
        if is_reset or (is_last and record.kind == "state"):
            database, number = record.body.get("database"), record.body.get("revision")
            revision = Revision(database, number) if isinstance(database, str) and isinstance(number, int) else None
            yield _RecordedRevision(record.at, revision if number else None, is_reset)
            is_last = False
        if is_reset:
            return


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


class FollowedLog:
    """The records of all chains of a directory, the last ones and then those that are added, by time."""

    def __init__(self, directory: Path, key: bytes | None = None) -> None:
        self._directory, self._key = directory, key
        self._places: dict[str, LogPlace] = {}

    @property
    def has_lines(self) -> bool:
        """Whether any chain had a line, readable or not."""
        return any(place.offset for place in self._places.values())

    def recent(self, count: int) -> list[tuple[str, AuditRecord]]:
        """Return the last ``count`` records of all chains, each with the name of its chain. Raises `OSError`."""
        found = []
        for chain in chains_of(self._directory):
            records, self._places[chain.name] = recent_records(chain.path, count, self._key)
            found.append([(chain.name, record) for record in records])
        return list(merge(*found, key=_time))[-count:] if count else []

    def more(self) -> list[tuple[str, AuditRecord]]:
        """Return the records that were added since the last call. Raises `OSError`."""
        found = []
        for chain in chains_of(self._directory):
            before = self._places.get(chain.name, LogPlace())
            records, self._places[chain.name] = records_since(chain.path, before, self._key)
            found.append([(chain.name, record) for record in records])
        return list(merge(*found, key=_time))


def _time(found: tuple[str, AuditRecord]) -> str:
    return found[1].at


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
