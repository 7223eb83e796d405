"""Remove old records from the audit log, and keep the proof of those that stay.

Whole segments are removed from the begin of a chain. A record in the chain says first up to which record, with its
hash, so that the first record that stays is still chained to something known.
"""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from truename.audit.chain import AuditRecord, read_record
from truename.audit.chains import command_chain, host_name
from truename.audit.head import read_lines, segments
from truename.audit.log import AuditLog
from truename.audit.stored_heads import HeadStore
from truename.files.lock import locked
from truename.files.private import sync_directory

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from truename.audit.chains import ChainPlace
    from truename.audit.head import LogHead
    from truename.audit.stored_heads import StoredHead
    from truename.audit.verification import ChainReport, LogReport
    from truename.config.audit import Audit
    from truename.storage import StateLocation

__all__ = ["OldRecords", "find_old", "prune", "remove_leftovers"]


@dataclass(frozen=True, kw_only=True)
class OldRecords:
    """The old files of one chain, and the last record in them.

    ``gone`` is the stored head of a chain of which nothing is left, because its writer is gone and all of its records
    are old; None for another.
    """

    chain: ChainReport
    files: tuple[Path, ...]
    records: int
    last: AuditRecord
    gone: StoredHead | None = None

    def fields(self, said: Mapping[str, object]) -> dict[str, object]:
        """Return the fields of the record that says what was pruned."""
        found: dict[str, object] = {
            "of_chain": self.chain.id,
            "through": self.last.number,
            "through_hash": self.last.hash,
            "count": self.records,
            "until": self.last.at,
            **said,
        }
        return found if self.gone is None else {**found, "chain": self.chain.name}


def find_old(report: LogReport, before: str, key: bytes | None) -> tuple[OldRecords, ...]:
    """Return what can be removed: files all of whose records were written before a time. Raises `OSError`.

    The last file of a chain stays, unless the state database has the head of the chain, nobody writes it and it is old
    as a whole. A chain that a gateway on another machine writes is left alone: prune it there.
    """
    return tuple(old for chain in report.chains if (old := _old_of(chain, before, key)) is not None)


def _old_of(chain: ChainReport, before: str, key: bytes | None) -> OldRecords | None:
    head, every = chain.head, segments(chain.place.path)
    if head is not None and head.host != host_name() and head.state == "open" and head.at >= before:
        return None
    old: list[tuple[Path, AuditRecord, int]] = []
    for segment in every:
        lines = [line for _, line in read_lines(segment.path) if line.endswith(b"\n")]
        if not lines or (last := read_record(lines[-1], key)).at >= before:
            break
        old.append((segment.path, last, len(lines)))
    is_all_old = len(old) == len(every)
    gone = head if is_all_old and chain.name and not _is_written(chain.place) else None
    if is_all_old and gone is None:
        del old[-1:]
    if not old:
        return None
    files, records = tuple(path for path, _, _ in old), sum(count for _, _, count in old)
    return OldRecords(chain=chain, files=files, records=records, last=old[-1][1], gone=gone)


def _is_written(place: ChainPlace) -> bool:
    """Return whether a gateway has the chain open now."""
    try:
        with locked(place.path / "journal", shared=False, patience=0):
            return False
    except (TimeoutError, OSError):
        return True


def prune(old: OldRecords, settings: Audit, location: StateLocation, said: Mapping[str, object]) -> None:
    """Record what is removed, then remove it. ``said`` are more fields of the record, as who does it.

    A prune that is killed in between can be repeated. Raises `StoreError` and `OSError`; nothing is removed that is not
    on record.
    """
    key = None if settings.key is None else settings.key.encode()
    place = old.chain.place
    if old.gone is not None:
        with command_chain(settings, location)[0] as log:
            log.append([("pruned", old.fields(said))])
        with closing(HeadStore(location, key)) as store:
            store.remove(old.gone)
        shutil.rmtree(place.path)
        place.anchor.unlink(missing_ok=True)
        return
    with AuditLog.beside(place.path, key, max_bytes=settings.max_segment, anchor=place.anchor) as log:
        log.append([("pruned", old.fields(said))])
        _store_end(log.head, place, location, key)
    # The oldest first: what is left after a kill is one chain.
    for file in old.files:
        file.unlink()
    sync_directory(place.path)


def remove_leftovers(report: LogReport) -> bool:
    """Remove what a prune that was killed left of chains that it had removed as a whole; return whether there was any.

    Raises `OSError`.
    """
    found = [
        chain
        for chain in report.chains
        if chain.name and chain.head is not None and chain.head.state == "removed"
        if chain.head.is_genuine and chain.last.number <= chain.head.number
    ]
    for chain in found:
        shutil.rmtree(chain.place.path)
        chain.place.anchor.unlink(missing_ok=True)
    return bool(found)


def _store_end(head: LogHead, place: ChainPlace, location: StateLocation, key: bytes | None) -> None:
    store = HeadStore.writable(location, key)
    if store is not None:
        with closing(store):
            store.add(head, place)
