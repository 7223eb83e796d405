"""Read a journal of the format before the state database: events in a file, one a line.

Each line is the CRC-32 of itself and all lines before it, and a JSON object. If a killed writer left an incomplete last
line, it is dropped with a warning. Any other damage (a changed, missing or moved line) is refused with its number,
because a ledger that forgets a claim could give its name to another tool.
"""

from __future__ import annotations

import json
import logging
import re
import zlib
from typing import TYPE_CHECKING, Final

from truename.errors import LedgerError, TruenameError
from truename.ledger.events import from_plain

if TYPE_CHECKING:
    from pathlib import Path

    from truename.ledger.events import Event

__all__ = ["is_journal", "read_journal"]

_FORMAT: Final = 4
_MAGIC: Final = b"truename-ledger"
_HEADER: Final = re.compile(rb"truename-ledger ([1-9][0-9]{0,8}) ([0-9a-f]{16})")
_TORN_HEADER: Final = re.compile(rb"truename-ledger (?:[1-9][0-9]{0,8}(?: [0-9a-f]{0,16})?)?")
_log = logging.getLogger("truename.ledger")


def is_journal(path: Path) -> bool:
    """Return whether a file begins as a journal does; False if it cannot be read."""
    try:
        with path.open("rb") as file:
            head = file.read(len(_MAGIC))
            # A writer that was killed may have left a part of the first word.
            return bool(head) and _MAGIC.startswith(head)
    except OSError:
        return False


def read_journal(path: Path) -> list[Event]:
    """Return all events. Raises `LedgerError`: ``corrupt`` with the line, ``newer``; `OSError`."""
    *lines, torn = path.read_bytes().split(b"\n")
    events = []
    crc = 0
    for number, line in enumerate(lines, 1):
        if number == 1:
            _check_header(path, line)
            crc = zlib.crc32(line)
            continue
        checksum, _, body = line.partition(b" ")
        crc = zlib.crc32(body, crc)
        if checksum != b"%08x" % crc:
            raise _corrupt(path, number, "its checksum does not fit")
        try:
            events.append(from_plain(json.loads(body)))
        except (ValueError, TypeError, TruenameError) as error:
            raise _corrupt(path, number, str(error)) from error
    if torn:
        number = len(lines) + 1
        # Only the beginning of a header is a journal whose first write was torn; anything else is somebody's file.
        if number == 1 and not (_MAGIC.startswith(torn) or _TORN_HEADER.fullmatch(torn)):
            raise _corrupt(path, 1, "it is not a ledger")
        _log.warning("%s: line %d was not written whole and is dropped", path, number)
    return events


def _check_header(path: Path, line: bytes) -> None:
    match = _HEADER.fullmatch(line)
    if match is None:
        raise _corrupt(path, 1, "it is not a ledger")
    if (found := int(match[1])) > _FORMAT:
        raise LedgerError(code="newer", path=path, version=found)


def _corrupt(path: Path, line: int, reason: str) -> LedgerError:
    return LedgerError(code="corrupt", path=path, line=line, reason=reason)
