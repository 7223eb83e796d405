"""How a journal ends: what a record that is added has to follow, whoever wrote the last one."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.audit.chain import GENESIS, LONGEST, Record, Spoiled, read_record
from truename.audit.head import HEAD
from truename.files.durable import open_plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from truename.audit.head import Head

__all__ = ["Segment", "Tail", "broken_at_end", "end_near", "followed", "last_of", "lines_of", "noted", "segments"]

_NAME: Final = re.compile(r"(\d{6,9})\.jsonl")
_BLOCK: Final = 64 * 1024


class Segment(NamedTuple):
    """A file of records, and its number in the journal."""

    number: int
    path: Path


class Tail(NamedTuple):
    """How a journal ends: the last record's number and hash, its segment, and the offset behind it there.

    ``torn`` are the bytes behind it that are no record; ``seen`` are those known before it, by number and hash.
    """

    number: int = 0
    hash: str = GENESIS
    segment: int = 0
    offset: int = 0
    torn: bytes = b""
    seen: frozenset[tuple[int, str]] = frozenset()


def segments(path: Path) -> tuple[Segment, ...]:
    """Return the segments of a journal in order. Raises `OSError`."""
    found = ((_NAME.fullmatch(entry.name), entry) for entry in path.iterdir())
    return tuple(sorted(Segment(int(match[1]), entry) for match, entry in found if match))


def lines_of(path: Path, offset: int = 0, size: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield the lines behind an offset, numbered from 1; of one that is too long only as much as shows that it is.

    ``size`` is how much of the file was there when it was looked at, if not all that is there now counts.
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


def last_of(found: Sequence[Segment], key: bytes | None) -> Tail:
    """Return how a journal ends, read from its last files. Raises `Spoiled` for a line that is not what was written."""
    for place, (segment, path) in reversed(list(enumerate(found))):
        seen: dict[int, str] = {}
        torn, offset = b"", 0
        for line, content in lines_of(path):
            if not content.endswith(b"\n"):
                torn = content
                continue
            record = _read(content, key, path, line)
            seen[record.number] = record.hash
            offset += len(content)
        if seen:
            last = max(seen)
            return Tail(last, seen[last], segment, offset, torn, frozenset(seen.items()))
        if torn or place == 0:
            # A kill before the first record of a file was whole: the file before it ends the chain.
            before = last_of(found[:place], key) if place else Tail()
            return before._replace(torn=before.torn + torn)
    return Tail()


def end_near(found: Sequence[Segment], head: Head, key: bytes | None) -> Tail:
    """Return how a journal ends, read from the record that its head has, which is one of the last.

    Raises `Spoiled` where that is not there, or something does not follow on it.
    """
    if not head.number:
        return followed(found, Tail(), key)
    for segment, path in reversed(found):
        size, block = path.stat().st_size, _BLOCK
        while block:
            begin = max(0, size - block)
            first = None
            for record, end in _records(path, begin, key):
                first = record.number if first is None else first
                if (record.number, record.hash) == head[1:]:
                    return followed(found, Tail(record.number, record.hash, segment, end), key)
            # Of a file that is not known from its beginning a larger part is looked at, if it was not met by then.
            block = 0 if begin == 0 or (first is not None and first < head.number) else block * 4
    message = f"record {head.number:,} of {HEAD} is gone from the end, or another one"
    raise Spoiled(message)


def _records(path: Path, begin: int, key: bytes | None) -> Iterator[tuple[Record, int]]:
    """Yield the whole records behind an offset, each with the offset behind it."""
    end = begin
    for line, content in lines_of(path, begin):
        end += len(content)
        # The first line behind an offset in the middle is a part of one.
        if content.endswith(b"\n") and (line > 1 or begin == 0):
            yield _read(content, key, path, line), end


def followed(found: Sequence[Segment], tail: Tail, key: bytes | None) -> Tail:
    """Return how a journal ends now that ended with ``tail`` before; only what came since is read.

    Raises `Spoiled` where something is gone, or does not follow.
    """
    if tail.segment and tail.segment not in {number for number, _ in found}:
        message = f"file {tail.segment:06} is gone"
        raise Spoiled(message)
    now = tail._replace(torn=b"")
    for segment, path in found:
        if segment < tail.segment:
            continue
        offset = tail.offset if segment == tail.segment else 0
        if path.stat().st_size < offset:
            message = f"{path.name} was cut off"
            raise Spoiled(message)
        for line, content in lines_of(path, offset):
            if not content.endswith(b"\n"):
                now = now._replace(torn=now.torn + content)
                continue
            record = _read(content, key, path, line)
            if (record.number, record.previous) != (now.number + 1, now.hash):
                message = f"{path.name}: record {record.number:,} does not follow on record {now.number:,}"
                raise Spoiled(message)
            offset += len(content)
            now = Tail(record.number, record.hash, segment, offset)
    return now


def _read(content: bytes, key: bytes | None, path: Path, line: int) -> Record:
    try:
        return read_record(content, key)
    except Spoiled as error:
        message = f"{path.name}:{line}: {error}"
        raise Spoiled(message) from error


def broken_at_end(tail: Tail, head: Head) -> str:
    """Say what is wrong with the end of a journal, "" for nothing: the head may be older than the end, never newer."""
    if tail.number < head.number:
        return f"records {tail.number + 1:,} to {head.number:,} are gone from the end"
    before = dict((*tail.seen, (tail.number, tail.hash))).get(head.number)
    if before is not None and before != head.hash:
        return f"record {head.number:,} is another one than {HEAD} has"
    return ""


def noted(torn: bytes) -> dict[str, Any] | None:
    """Return what a segment says of the bytes of a line that was cut off before it; None where there are none."""
    return {"bytes": len(torn), "sha256": hashlib.sha256(torn).hexdigest()} if torn else None
