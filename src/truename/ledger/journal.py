"""The journal: a ledger's events in a file, one a line, only ever appended.

Each line is the CRC-32 of itself and all lines before it, and a JSON object. A line that a killed writer left torn is
dropped with a warning and cut off by the next writer; any other damage (a changed, missing or moved line) is refused
with its number, for a ledger that forgets a claim could break the promise. Compaction writes a new file beside the
old one and puts it in its place in one step.
"""

from __future__ import annotations

import json
import logging
import os
import re
import zlib
from contextlib import ExitStack, contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from truename.errors import LedgerError, TruenameError
from truename.files.private import make_private
from truename.ledger.events import Claim, Event, LedgerSettings, from_plain
from truename.ledger.lock import locked
from truename.ledger.state import State

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["FORMAT", "Journal"]

# The newest format that is understood; a file has the oldest that can say what is in it.
FORMAT: Final = 4
_MAGIC: Final = b"truename-ledger"
_HEADER: Final = re.compile(rb"truename-ledger ([1-9][0-9]{0,8}) ([0-9a-f]{16})")
_TORN_HEADER: Final = re.compile(rb"truename-ledger (?:[1-9][0-9]{0,8}(?: [0-9a-f]{0,16})?)?")
_COMPACT_FROM: Final = 2_000
_log = logging.getLogger("truename.ledger")


class _Position(NamedTuple):
    """How far a file was read: its header (random for each file, so a new one is never taken for it), bytes, lines."""

    header: bytes = b""
    offset: int = 0
    line: int = 0
    crc: int = 0
    format: int = 1


class _Seen(NamedTuple):
    """What a look at the file without reading it says: enough to know whether reading is worth it."""

    device: int
    inode: int
    size: int
    modified: int

    @classmethod
    def of(cls, file: BinaryIO | FileIO) -> _Seen:
        found = os.fstat(file.fileno())
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


class Journal:
    """The file store of a ledger; safe against two writers and a kill at any byte."""

    def __init__(self, path: str | Path, *, readonly: bool) -> None:
        self.path = Path(path)
        self.readonly = readonly
        self._at = _Position()
        self._seen: _Seen | None = None
        if not readonly:
            with self._usable():
                make_private(self.path.parent)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other writers out (readers share the lock)."""
        with ExitStack() as stack:
            with self._usable():
                stack.enter_context(locked(self.path, shared=self.readonly))
            yield

    def is_locked(self) -> bool:
        """Tell, without waiting, whether another process keeps the lock."""
        try:
            with self._usable(), locked(self.path, shared=self.readonly, patience=0):
                return False
        except LedgerError as error:
            return error.code == "busy"

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise LedgerError(code="unusable", path=self.path, reason=error.strerror or str(error)) from error

    def changed(self) -> bool:
        """Tell whether the file is another one, or another size, than when it was last read or written."""
        try:
            found = self.path.stat()
        except OSError:
            return self._seen is not None
        return self._seen != _Seen(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)

    def refresh(self, state: State) -> State:
        """Read what was appended since; all of it again if another file was put in place.

        Raises `LedgerError` (``corrupt``) if what was read before is no longer there: a promise would be forgotten.
        """
        try:
            with self._usable(), self.path.open("rb") as file:
                self._seen = _Seen.of(file)
                size = self._seen.size
                if self._at.header and file.read(len(self._at.header)) == self._at.header:
                    if size < self._at.offset:
                        raise self._corrupt(self._at.line, "lines that were there are missing")
                    file.seek(self._at.offset)
                    self._read(file.read(), state)
                    return state
                file.seek(0)
                known, self._at = self._at, _Position()
                fresh = State()
                self._read(file.read(), fresh)
        except LedgerError as error:
            if isinstance(error.__cause__, FileNotFoundError) and not self._at.offset:
                return state
            raise
        if known.header and not fresh.keeps(state):
            self._at = known
            raise self._corrupt(1, "it is another ledger, without names that were shown")
        return fresh

    def _read(self, raw: bytes, state: State) -> None:
        lines = raw.split(b"\n")
        torn = lines.pop()
        for line in lines:
            number, offset = self._at.line + 1, self._at.offset + len(line) + 1
            if number == 1:
                self._at = _Position(line + b"\n", offset, number, zlib.crc32(line), self._format(line))
            else:
                event, crc = self._event(line, number)
                state.apply(event)
                self._at = self._at._replace(offset=offset, line=number, crc=crc)
        if torn:
            self._drop(torn)

    def _drop(self, torn: bytes) -> None:
        number = self._at.line + 1
        # Only the beginning of a header is a ledger whose first write was torn; anything else is somebody's file.
        if number == 1 and not (_MAGIC.startswith(torn) or _TORN_HEADER.fullmatch(torn)):
            raise self._corrupt(1, "it is no ledger")
        _log.warning("%s: line %d was not written whole and is dropped", self.path, number)

    def _format(self, line: bytes) -> int:
        match = _HEADER.fullmatch(line)
        if match is None:
            raise self._corrupt(1, "it is no ledger")
        if (found := int(match[1])) > FORMAT:
            raise LedgerError(code="newer", path=self.path, version=found)
        return found

    def _event(self, line: bytes, number: int) -> tuple[Event, int]:
        checksum, _, body = line.partition(b" ")
        crc = zlib.crc32(body, self._at.crc)
        if checksum != b"%08x" % crc:
            raise self._corrupt(number, "its checksum does not fit")
        try:
            return from_plain(json.loads(body)), crc
        except (ValueError, TypeError, TruenameError) as error:
            raise self._corrupt(number, str(error)) from error

    def _corrupt(self, line: int, reason: str) -> LedgerError:
        return LedgerError(code="corrupt", path=self.path, line=line, reason=reason)

    def append(self, events: Sequence[Event]) -> None:
        """Write the events behind the last whole line, in one go, and wait until the disk has them.

        A file of a format that has no such events is written anew first, so that an older program refuses it whole.
        """
        needed = max(event.format for event in events)
        if self._at.header and needed > self._at.format:
            self._raise_format(needed)
        at = self._at
        text = b""
        if not at.header:
            at, text = _begin(needed)
        body, after = _encode(events, at)
        with self._usable(), _open_private(self.path) as file:
            try:
                _overwrite(file, self._at.offset, text + body)
            except OSError:
                # Nobody may read what was not acknowledged.
                with suppress(OSError):
                    file.truncate(self._at.offset)
                raise
            self._seen = _Seen.of(file)
        self._at = after

    def tidy(self, state: State) -> None:
        """Put a shorter file in place when more than half of a large one says the same thing again."""
        if len(state.events) < _COMPACT_FROM:
            return
        kept = compacted(state.events)
        if len(kept) * 2 > len(state.events):
            return
        at, header = _begin(self._at.format)
        body, after = _encode(kept, at)
        try:
            self._replace(header + body, after)
        except OSError as error:
            _log.warning("%s: could not be made smaller (%s); it goes on as it is", self.path, error)
            return
        state.events[:] = kept

    def _raise_format(self, number: int) -> None:
        at, header = _begin(number)
        with self._usable():
            written = self.path.read_bytes()[: self._at.offset].split(b"\n")[1:-1]
            body, after = _chained([line.partition(b" ")[2] for line in written], at)
            self._replace(header + body, after)

    def _replace(self, text: bytes, after: _Position) -> None:
        """Put another file in this one's place, in one step."""
        draft = self.path.with_name(f".{self.path.name}.{os.getpid()}.draft")
        try:
            with _open_private(draft) as file:
                _overwrite(file, 0, text)
                seen = _Seen.of(file)
            draft.replace(self.path)
        except OSError:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise
        self._at, self._seen = after, seen


def _begin(number: int) -> tuple[_Position, bytes]:
    header = b"%s %d %s\n" % (_MAGIC, number, os.urandom(8).hex().encode())
    return _Position(header, len(header), 1, zlib.crc32(header[:-1]), number), header


def _encode(events: Sequence[Event], at: _Position) -> tuple[bytes, _Position]:
    plain = (event.plain() for event in events)
    return _chained([json.dumps(one, ensure_ascii=True, separators=(",", ":")).encode() for one in plain], at)


def _chained(bodies: Sequence[bytes], at: _Position) -> tuple[bytes, _Position]:
    lines = []
    crc = at.crc
    for body in bodies:
        crc = zlib.crc32(body, crc)
        lines.append(b"%08x %s\n" % (crc, body))
    text = b"".join(lines)
    return text, at._replace(offset=at.offset + len(text), line=at.line + len(lines), crc=crc)


def _open_private(path: Path) -> FileIO:
    return FileIO(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")


def _overwrite(file: FileIO, offset: int, text: bytes) -> None:
    file.truncate(offset)
    file.seek(offset)
    rest = memoryview(text)
    while rest:
        rest = rest[file.write(rest) or 0 :]
    os.fsync(file.fileno())


def compacted(events: Sequence[Event]) -> list[Event]:
    """Return the events without those that say again what was said; the first and the last time of each is kept.

    The first claim of a name is its holder's, and the last one counts: between them others may have had a say.
    """
    first: dict[object, int] = {}
    last: dict[object, int] = {}
    for place, event in enumerate(events):
        key: object = event
        if isinstance(event, Claim):
            key = (event.scope, event.table, event.name, event.id)
        elif isinstance(event, LedgerSettings):
            key = place
        first.setdefault(key, place)
        last[key] = place
    return [events[place] for place in sorted({*first.values(), *last.values()})]
