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
import tempfile
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from truename.errors import LedgerError, TruenameError
from truename.ledger.events import Claim, Event, Settings, from_plain
from truename.ledger.lock import locked
from truename.ledger.state import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["FORMAT", "Journal"]

FORMAT: Final = 1
_HEADER: Final = "truename-ledger"
_HEADER_LINE: Final = f"{_HEADER} {FORMAT}\n".encode()
_COMPACT_FROM: Final = 2_000
_log = logging.getLogger("truename.ledger")


class Journal:
    """The file store of a ledger; safe against two writers and a kill at any byte."""

    def __init__(self, path: str | Path, *, readonly: bool) -> None:
        self.path = Path(path)
        self.readonly = readonly
        self._identity: tuple[int, int] | None = None
        self._offset = 0
        self._line = 0
        self._crc = 0
        if not readonly:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other writers out (readers share the lock)."""
        with locked(self.path, shared=self.readonly):
            yield

    def refresh(self, state: State) -> State:
        """Read what was appended since; all of it again if the file was put in place anew."""
        try:
            with self.path.open("rb") as file:
                identity = os.fstat(file.fileno())
                if self._identity != (identity.st_dev, identity.st_ino) or identity.st_size < self._offset:
                    self._identity = (identity.st_dev, identity.st_ino)
                    self._offset, self._line, self._crc = 0, 0, 0
                    state = State()
                file.seek(self._offset)
                self._read(file.read(), state)
        except FileNotFoundError:
            if self._offset:
                raise self._corrupt("the file is gone") from None
        return state

    def _read(self, raw: bytes, state: State) -> None:
        lines = raw.split(b"\n")
        torn = lines.pop()
        for line in lines:
            self._line += 1
            if self._line == 1:
                self._check_header(line)
            else:
                state.apply(self._event(line))
            self._offset += len(line) + 1
        if torn:
            _log.warning("%s: the last line was not written whole and is dropped (line %d)", self.path, self._line + 1)

    def _check_header(self, line: bytes) -> None:
        name, _, version = line.partition(b" ")
        if name != _HEADER.encode() or not version.isdigit():
            raise self._corrupt("it is no ledger")
        if int(version) > FORMAT:
            raise LedgerError(code="newer", path=self.path, version=int(version))

    def _event(self, line: bytes) -> Event:
        checksum, _, body = line.partition(b" ")
        crc = zlib.crc32(body, self._crc)
        if checksum != b"%08x" % crc:
            raise self._corrupt("its checksum does not fit")
        self._crc = crc
        try:
            return from_plain(json.loads(body))
        except (ValueError, TypeError, TruenameError) as error:
            raise self._corrupt(str(error)) from error

    def _corrupt(self, reason: str) -> LedgerError:
        return LedgerError(code="corrupt", path=self.path, line=max(self._line, 1), reason=reason)

    def append(self, events: Sequence[Event]) -> None:
        """Write the events behind the last whole line, in one go, and wait until the disk has them."""
        text, crc = _encode(events, self._crc)
        if self._offset == 0:
            text = _HEADER_LINE + text
        with open(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0) as file:  # noqa: PTH123
            file.truncate(self._offset)
            file.seek(self._offset)
            rest = memoryview(text)
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
            identity = os.fstat(file.fileno())
        self._identity = (identity.st_dev, identity.st_ino)
        self._line += text.count(b"\n")
        self._offset += len(text)
        self._crc = crc

    def tidy(self, state: State) -> None:
        """Put a shorter file in place when more than half of a large one says the same thing again."""
        if len(state.events) < _COMPACT_FROM:
            return
        kept = compacted(state.events)
        if len(kept) * 2 > len(state.events):
            return
        text, crc = _encode(kept, 0)
        with tempfile.NamedTemporaryFile(dir=self.path.parent, prefix=f".{self.path.name}.", delete=False) as file:
            try:
                file.write(_HEADER_LINE + text)
                file.flush()
                os.fsync(file.fileno())
                Path(file.name).replace(self.path)
            except OSError:
                Path(file.name).unlink(missing_ok=True)
                raise
            identity = os.fstat(file.fileno())
        self._identity = (identity.st_dev, identity.st_ino)
        self._offset, self._line, self._crc = len(_HEADER_LINE) + len(text), 1 + len(kept), crc
        state.events[:] = kept


def compacted(events: Iterable[Event]) -> list[Event]:
    """Return the events without those that say again what an earlier one said; a claim keeps its last place."""
    last: dict[object, Event] = {}
    for event in events:
        key: object = event
        if isinstance(event, Claim):
            key = (event.scope, event.table, event.name, event.id)
            last.pop(key, None)
        elif isinstance(event, Settings):
            key = id(event)
        last[key] = event
    return list(last.values())


def _encode(events: Iterable[Event], crc: int) -> tuple[bytes, int]:
    lines = []
    for event in events:
        body = json.dumps(event.plain(), ensure_ascii=True, separators=(",", ":")).encode()
        crc = zlib.crc32(body, crc)
        lines.append(b"%08x %s\n" % (crc, body))
    return b"".join(lines), crc
