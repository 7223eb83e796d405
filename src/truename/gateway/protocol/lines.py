"""Messages out of a stream of bytes: one JSON-RPC message a line, bounded in length."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LineReader", "TooLong", "id_at_ends", "lenient", "repaired"]

_EDGE: Final = 512
# Within a stream of events, a message stands behind the name of a field.
_ID_FIRST: Final = re.compile(rb'(?:data:)?\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})\s*,')
_ID_LAST: Final = re.compile(rb'"id"\s*:\s*(\d{1,18})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')


def lenient(text: bytes) -> Any:
    """Return what a JSON text says, also with numbers that JSON does not have (``NaN``); None for any other text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def repaired(message: bytes) -> bytes | None:
    r"""Return a JSON object with U+FFFD for what is no text in it, None if it is no JSON object.

    Servers cut texts in the middle of a character, and JavaScript writes the rest as a lone surrogate, which strict
    parsers refuse. The answer would be lost, and its caller would wait for it in vain.

    >>> repaired(rb'{"a": "\ud83d", "b": "\ud83d\ude00"}').decode() == '{"a": "\ufffd", "b": "\U0001f600"}'
    True
    """
    try:
        text = message.decode("utf-8", "replace")
        content = json.loads(text, parse_constant=_nothing, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    text = json.dumps(content, ensure_ascii=False)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def _nothing(_: str) -> None:
    """Read the constants that Python writes and JSON does not have (NaN, Infinity)."""


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def id_at_ends(message: bytes, head: bytes = b"") -> int | None:
    """Return the number of the request that a message seems to answer, by its two ends alone.

    >>> id_at_ends(b'{"jsonrpc":"2.0","id":7,"result":[[[['), id_at_ends(b'{"result":{"id":7}}')
    (7, None)
    """
    found = _ID_FIRST.match(head or message[:_EDGE]) or _ID_LAST.search(message[-_EDGE:])
    return int(found[1]) if found else None


class TooLong(NamedTuple):
    """A line that was longer than allowed, and the number of the request that it seems to answer."""

    size: int
    request_id: int | None


class LineReader:
    """Cuts bytes into lines. A line over the limit is dropped as it arrives; only its two ends are kept."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._searched = 0
        self._dropped = 0
        self._head = b""

    def feed(self, chunk: bytes) -> Iterator[bytes | TooLong]:
        """Take what was read and give the lines that are complete."""
        self._buffer += chunk
        while (end := self._buffer.find(b"\n", self._searched)) >= 0:
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            self._searched = 0
            yield self._finished(line)
        self._searched = len(self._buffer)
        if len(self._buffer) > self._limit:
            self._drop()

    def _finished(self, line: bytes) -> bytes | TooLong:
        if not self._dropped and len(line) <= self._limit:
            return line
        head, size = self._head or line[:_EDGE], self._dropped + len(line)
        self._dropped, self._head = 0, b""
        return TooLong(size, id_at_ends(line, head))

    def _drop(self) -> None:
        if not self._head:
            self._head = bytes(self._buffer[:_EDGE])
        self._dropped += len(self._buffer) - _EDGE
        del self._buffer[:-_EDGE]
        self._searched = len(self._buffer)
