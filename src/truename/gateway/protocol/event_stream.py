"""Events out of a stream of bytes (`text/event-stream`), each bounded in length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from truename.gateway.protocol.lines import LineReader, TooLong

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["EventReader", "SentEvent"]

_KIND: Final = b"message"


class SentEvent(NamedTuple):
    """One event: its kind, its text (None where it has none), and what it says of going on after it.

    ``id`` is where to go on, ``retry`` after how many milliseconds.
    """

    kind: bytes = _KIND
    text: bytes | None = None
    id: bytes | None = None
    retry: int | None = None

    def written(self) -> bytes:
        r"""Return it as it is sent.

        >>> SentEvent(text=b"", id=b"7", retry=500).written()
        b'id: 7\nretry: 500\ndata: \n\n'
        """
        lines = [] if self.kind == _KIND else [b"event: " + self.kind]
        if self.id is not None:
            lines.append(b"id: " + self.id)
        if self.retry is not None:
            lines.append(b"retry: %d" % self.retry)
        lines += [b"data: " + line for line in (self.text or b"").split(b"\n")] if self.text is not None else []
        return b"".join(line + b"\n" for line in lines) + b"\n"


class EventReader:
    r"""Cuts bytes into events (HTML standard, section 9.2.6). One over the limit is dropped as it arrives.

    >>> [event.text for event in EventReader(100).feed(b"data: a\r\ndata: b\r\n\r\n: a comment\n\ndata:c\n")]
    [b'a\nb']
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lines = LineReader(limit)
        self._after_return = False
        self._begin()

    def _begin(self) -> None:
        self._event = SentEvent()
        self._texts: list[bytes] = []
        self._size = 0
        self._too_long: TooLong | None = None

    def feed(self, chunk: bytes) -> Iterator[SentEvent | TooLong]:
        """Take what was read and give the events that are complete."""
        for line in self._lines.feed(self._unified(chunk)):
            if isinstance(line, TooLong):
                self._too_long = line
            elif line:
                self._field(line)
            else:
                ended, texts, too_long = self._event, self._texts, self._too_long
                self._begin()
                if too_long is not None:
                    yield too_long
                elif texts:
                    yield ended._replace(text=b"\n".join(texts))
                elif ended != SentEvent():
                    yield ended

    def _unified(self, chunk: bytes) -> bytes:
        """Return it with the one of three ends of lines that `LineReader` knows."""
        if self._after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_return = False
        if chunk:
            self._after_return = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in chunk else chunk

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        self._size += len(line)
        if self._size > self._limit:
            self._too_long, self._texts = self._too_long or TooLong(self._size, None), []
        elif name == b"data":
            self._texts.append(value)
        elif name == b"event":
            self._event = self._event._replace(kind=value or _KIND)
        elif name == b"id" and b"\0" not in value:
            self._event = self._event._replace(id=value)
        elif name == b"retry" and value.isdigit() and len(value) < 10:
            self._event = self._event._replace(retry=int(value))
