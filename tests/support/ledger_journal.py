"""Write a ledger's events as a journal, the format before the state database."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from truename.ledger import Event

__all__ = ["journal"]


def journal(events: Iterable[Event], mark: str = "0123456789abcdef") -> bytes:
    """Return the bytes of a journal: a header, and one line for each event, with a checksum of all before it."""
    lines = [b"truename-ledger 4 " + mark.encode()]
    crc = zlib.crc32(lines[0])
    for event in events:
        body = json.dumps(event.plain(), separators=(",", ":")).encode()
        crc = zlib.crc32(body, crc)
        lines.append(b"%08x %s" % (crc, body))
    return b"\n".join(lines) + b"\n"
