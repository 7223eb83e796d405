"""Verify all chains of an audit log, against the heads in the state database and the anchors of this machine."""

from __future__ import annotations

import heapq
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Final, Literal

from truename.audit.chain import GENESIS, AuditRecord, BrokenChain, read_record
from truename.audit.chains import chains_of, directory_id, host_name
from truename.audit.head import Anchor, AnchorFile, read_heads, read_lines, segments
from truename.audit.reading import LogDefect, read_records
from truename.files import absolute

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from truename.audit.chains import ChainPlace
    from truename.audit.stored_heads import StoredHead

__all__ = ["ChainReport", "LogReport", "chain_id", "in_order_of_time", "verify_chains"]

_EXPECTED: Final = "which was expected, is missing or differs: the end was cut off, or the log was replaced by a copy"


@dataclass(frozen=True, kw_only=True)
class ChainReport:
    """What was found of one chain: its records, and up to which of them something outside of the files proves it.

    ``proven`` is the number of the last record that a head or an anchor has, and ``by`` which of the two. Records after
    it are whole, but somebody who can write the files could have written or cut them. ``lost`` counts records that were
    never written, by its ``gap`` records or its head.
    """

    place: ChainPlace
    id: str
    records: int
    last: Anchor
    proven: int
    by: Literal["database", "anchor", ""]
    lost: int
    head: StoredHead | None
    broken: tuple[LogDefect, ...]

    @property
    def name(self) -> str:
        """The chain's folder in the audit directory; "" for the directory itself."""
        return self.place.name

    @property
    def unproven(self) -> int:
        """The number of records after the last that is proven."""
        return self.last.number - self.proven


@dataclass(frozen=True, kw_only=True)
class LogReport:
    """What was found of an audit directory. ``elsewhere`` are heads of chains that other directories have."""

    chains: tuple[ChainReport, ...]
    elsewhere: tuple[StoredHead, ...]
    broken: tuple[LogDefect, ...]

    @property
    def records(self) -> int:
        """The number of records of all chains."""
        return sum(chain.records for chain in self.chains)

    @property
    def defects(self) -> tuple[LogDefect, ...]:
        """All defects, with the names of their chains in front of the files."""
        return (*self.broken, *(one for chain in self.chains for one in chain.broken))


def verify_chains(
    directory: Path,
    key: bytes | None = None,
    *,
    heads: Sequence[StoredHead] = (),
    expected: Sequence[Anchor] = (),
    is_database_known: bool = False,
) -> LogReport:
    """Read all chains of a directory, and compare them with the heads that were stored. Raises `OSError`.

    ``heads`` are read before: a head is never ahead of its chain. ``is_database_known`` says that they are all that the
    state database has, so that a chain without a head is one that nobody knows of.
    """
    by_chain = {head.chain: head for head in heads}
    awaited = {anchor for anchor in expected if anchor.number}
    reports = []
    for place in chains_of(directory):
        id = chain_id(place.path, key)
        reading = _ChainReading(place, key, id, by_chain.pop(id, None), awaited)
        reports.append(reading.report(is_database_known=is_database_known))
    here = directory_id(directory), host_name(), str(absolute(directory))
    missing = [one for one in by_chain.values() if one.state != "removed"]
    gone = [one for one in missing if _belongs(one, *here)]
    broken = [*(_removed(one) for one in gone), *(_unmet(anchor) for anchor in sorted(awaited))]
    elsewhere = tuple(one for one in missing if one not in gone)
    return LogReport(chains=tuple(reports), elsewhere=elsewhere, broken=tuple(broken))


def chain_id(path: Path, key: bytes | None) -> str:
    """Return the id of the chain in a folder: by its head, else by the first record that is whole; "" without both."""
    if (head := read_heads(path, key).newest) is not None:
        return head.journal
    for segment in segments(path):
        for _, line in read_lines(segment.path):
            with suppress(BrokenChain):
                return str(read_record(line, key).body.get("journal", ""))
            break
    return ""


class _ChainReading:
    """Reads one chain, and finds which of its records something outside of its folder proves."""

    def __init__(
        self, place: ChainPlace, key: bytes | None, id: str, head: StoredHead | None, awaited: set[Anchor]
    ) -> None:
        self._place, self._key, self._id, self._head = place, key, id, head
        self._awaited = awaited
        self._count, self._last = 0, Anchor(0, GENESIS)
        self._lost = 0
        self._broken: list[LogDefect] = []
        self._anchor: Anchor | None = None
        # Whether something outside has a record of this chain: one that is missing here is reported by itself.
        self._is_known = head is not None and head.number > 0
        with suppress(BrokenChain):
            kept = AnchorFile(place.anchor, key).read()
            self._anchor = kept and Anchor(kept.number, kept.hash)
            self._is_known |= kept is not None and kept.number > 0 and kept.journal == id
        self._met: Counter[str] = Counter()

    def report(self, *, is_database_known: bool) -> ChainReport:
        """Read the chain and return what was found."""
        place, head = self._place, self._head
        stored = head.head if head is not None and head.is_genuine else None
        for found in read_records(place.path, self._key, anchor=place.anchor, stored=stored):
            if isinstance(found, LogDefect):
                self._broken.append(found)
            else:
                self._see(found)
        proven = max(self._met.values(), default=0)
        self._judge_end(proven)
        if is_database_known and place.name and not proven and self._count and not self._is_known:
            self._report("unknown", "neither the state database nor an anchor of this machine knows this chain")
        return ChainReport(
            place=place,
            id=self._id,
            records=self._count,
            last=self._last,
            proven=proven,
            by="" if not proven else "database" if self._met["database"] == proven else "anchor",
            lost=max(self._lost, 0 if head is None else head.lost),
            head=head,
            broken=tuple(self._named(one) for one in self._broken),
        )

    def _see(self, record: AuditRecord) -> None:
        here = Anchor(record.number, record.hash)
        self._count, self._last = self._count + 1, here
        self._awaited.discard(here)
        if here == self._anchor:
            self._met["anchor"] = here.number
        if self._head is not None and self._head.is_genuine and here == self._head.head[1:]:
            self._met["database"] = here.number
        if record.kind == "gap" and type(lost := record.body.get("lost")) is int:
            self._lost += lost

    def _judge_end(self, proven: int) -> None:
        head = self._head
        if head is None:
            return
        if not head.is_genuine:
            self._report("changed", "its head in the state database was changed, or made with another key")
        elif head.state == "removed":
            self._report("continued", "it was pruned as a whole, and is here again")
        elif head.state == "closed" and self._last.number > head.number and proven < self._last.number:
            more = f"records {head.number + 1:,} to {self._last.number:,} follow the last that its writer recorded"
            self._report("continued", f"{more}: written without the state database, or by somebody else")

    def _report(self, kind: str, problem: str) -> None:
        self._broken.append(LogDefect(file="", line=0, kind=kind, problem=problem))

    def _named(self, defect: LogDefect) -> LogDefect:
        """Return a defect with the name of the chain in front of the file."""
        if not self._place.name:
            return defect
        file = f"{self._place.name}/{defect.file}"
        return LogDefect(file=file, line=defect.line, kind=defect.kind, problem=defect.problem)


def _belongs(head: StoredHead, directory: str, host: str, path: str) -> bool:
    """Return whether a chain must be in this directory: by its id, which is copied with it, or by its path here."""
    return (directory != "" and head.directory == directory) or (head.host == host and head.path == path)


def _removed(head: StoredHead) -> LogDefect:
    records = "1 record" if head.number == 1 else f"{head.number:,} records"
    problem = f"the chain is missing; it had {records} at {head.at} ({head.host})"
    return LogDefect(file=head.name or "journal", line=0, kind="truncated", problem=problem)


def _unmet(anchor: Anchor) -> LogDefect:
    return LogDefect(file="", line=0, kind="truncated", problem=f"record {anchor.number:,}, {_EXPECTED}")


@dataclass(order=True)
class _Timed:
    at: str
    chain: str
    found: tuple[str, AuditRecord | LogDefect] = field(compare=False)


def in_order_of_time(directory: Path, key: bytes | None = None) -> Iterator[tuple[str, AuditRecord | LogDefect]]:
    """Yield the records and defects of all chains by the time of their records, each with the name of its chain.

    Records of one chain keep their order, also where a clock was set back. Raises `OSError`.
    """
    for one in heapq.merge(*(_timed(place, key) for place in chains_of(directory))):
        yield one.found


def _timed(place: ChainPlace, key: bytes | None) -> Iterator[_Timed]:
    found = ((place.name, one) for one in read_records(place.path, key))
    return accumulate(
        (_Timed(one[1].at if isinstance(one[1], AuditRecord) else "", place.name, one) for one in found),
        lambda before, now: _Timed(max(before.at, now.at), now.chain, now.found),
    )
