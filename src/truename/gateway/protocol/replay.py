"""What was sent to the clients of sessions, kept for those whose stream broke off (MCP 2025-11-25, basic/transports).

Each session has events of its own, and each of its streams too: nothing of one is ever given on another.
"""

from __future__ import annotations

import binascii
import re
import secrets
import sys
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio
from mcp.server.streamable_http import GET_STREAM_KEY, EventStore
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, JSONRPCResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from mcp.server.streamable_http import EventCallback
    from mcp_types import JSONRPCMessage

__all__ = ["Bounds", "Position", "Replay", "SessionEvents"]

_BITS: Final = 40
# A request's id that is longer is not told again after a restart.
_LONGEST_KEY: Final = 64
# An event's own cost beside its text.
_COST: Final = 300
_ID: Final = re.compile(r"([0-9]{1,19})-([0-9]{1,19})(?:-([A-Za-z0-9_-]{0,88}))?")
_TOO_LARGE: Final = (
    "The call was run, but its result was too large to keep for a client that reconnects "
    "(resume_bytes). Check what it did before you repeat it."
)


class Bounds(NamedTuple):
    """How many events of one session are kept, of how many bytes, and how many bytes of all sessions."""

    events: int
    bytes: int
    total: int


@dataclass(eq=False)
class _Stream:
    """One stream of a session: the events of a request, or those of none."""

    key: str
    number: int
    kept: int = 0
    is_over: bool = False
    readers: int = 0
    news: anyio.Event | None = None

    def id(self, serial: int) -> str:
        """Return the id of an event. It says which request it is of, for a gateway that knows nothing else any more."""
        if self.key == GET_STREAM_KEY:
            return f"{self.number}-{serial}"
        return f"{self.number}-{serial}-{_tag(self.key)}"

    def awaited(self) -> anyio.Event:
        """Return what is set when there is something new. Most streams are never followed."""
        self.news = self.news or anyio.Event()
        return self.news

    def tell(self) -> None:
        """Wake whoever follows it."""
        if self.news is not None:
            self.news.set()
            self.news = None


@dataclass(frozen=True)
class _Event:
    session: SessionEvents
    stream: _Stream
    serial: int
    text: str
    size: int
    is_as_sent: bool = True

    @property
    def id(self) -> str:
        return self.stream.id(self.serial)


class Position(NamedTuple):
    """A place in a stream, after which a client goes on."""

    stream: _Stream
    serial: int


class Replay:
    """The events of all sessions, within bounds: beyond them the oldest go."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        # An id of another process is of none of these streams, or hardly ever.
        self._first = self._last = secrets.randbits(_BITS)
        self._kept: OrderedDict[int, _Event] = OrderedDict()
        self.size = 0

    def __len__(self) -> int:
        return len(self._kept)

    def number(self) -> int:
        """Return a number that no stream and no event here has had."""
        self._last += 1
        return self._last

    def has_given(self, number: int) -> bool:
        """Tell whether a number is of a stream or an event of this process."""
        return self._first < number <= self._last

    def session(self, is_live: Callable[[str], bool]) -> SessionEvents:
        """Return the events of a session that begins; ``is_live`` tells whether a stream of it is being sent."""
        return SessionEvents(self, is_live)

    def keep(self, event: _Event) -> None:
        """Keep one more."""
        self._kept[event.serial] = event
        self.size += event.size
        while self.size > self.bounds.total:
            oldest = next(iter(self._kept.values()))
            oldest.session.drop(oldest)

    def drop(self, event: _Event) -> None:
        """Keep one no longer."""
        del self._kept[event.serial]
        self.size -= event.size


class SessionEvents(EventStore):
    """The events of one session, as the SDK's transport stores them."""

    def __init__(self, replay: Replay, is_live: Callable[[str], bool]) -> None:
        self._replay = replay
        self._is_live = is_live
        self._kept: OrderedDict[int, _Event] = OrderedDict()
        self._size = 0
        self._streams: dict[int, _Stream] = {}
        self._by_key: dict[str, _Stream] = {}
        self._is_closed = False

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        """Keep an event of a stream and return its id; no message is the place at which a request's stream begins.

        An answer before which its client was told no id has none ("") either, and is not kept: nobody can come back
        for it. The TypeScript SDK in Gemini CLI comes back for any stream with an id, answered or not.
        """
        is_answer = stream_id != GET_STREAM_KEY and isinstance(message, JSONRPCResponse | JSONRPCError)
        if is_answer and self._is_untold(stream_id):
            return ""
        stream = self._begun(stream_id) if message is None else self._of(stream_id)
        serial = self._replay.number()
        if message is None or (stream.number not in self._streams):
            return stream.id(serial)
        event = self._event(stream, serial, message)
        if isinstance(message, JSONRPCResponse | JSONRPCError) and is_answer:
            stream.is_over = True
            if event.size > self._replay.bounds.bytes:
                event = self._stand_in(event, message)
        # One that is too large would only drive all others out.
        if not self._is_closed and event.size <= self._replay.bounds.bytes:
            self._keep(event)
        stream.tell()
        return event.id

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> None:
        """Not used: `following` gives what comes later too, without a gap between the two."""
        raise NotImplementedError

    def _begun(self, key: str) -> _Stream:
        before = self._by_key.get(key)
        stream = self._by_key[key] = _Stream(key, self._replay.number())
        self._streams[stream.number] = stream
        if before is not None:
            # Its request was answered, or its id is another request's now.
            before.is_over = True
            before.tell()
            self._forget(before)
        return stream

    def _is_untold(self, key: str) -> bool:
        stream = self._by_key.get(key)
        return stream is None or stream.is_over

    def _of(self, key: str) -> _Stream:
        stream = self._by_key.get(key)
        if key == GET_STREAM_KEY and stream is None and not self._is_live(key):
            # No client has been told an id of this stream: none can ever go on with it.
            return _Stream(key, self._replay.number())
        return self._begun(key) if stream is None or (stream.is_over and key != GET_STREAM_KEY) else stream

    def _event(self, stream: _Stream, serial: int, message: JSONRPCMessage) -> _Event:
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
        return _Event(self, stream, serial, text, sys.getsizeof(text) + _COST)

    def _stand_in(self, event: _Event, answer: JSONRPCResponse | JSONRPCError) -> _Event:
        error = JSONRPCError(jsonrpc="2.0", id=answer.id, error=ErrorData(code=INTERNAL_ERROR, message=_TOO_LARGE))
        found = self._event(event.stream, event.serial, error)
        return _Event(self, found.stream, found.serial, found.text, found.size, is_as_sent=False)

    def _keep(self, event: _Event) -> None:
        self._kept[event.serial] = event
        event.stream.kept += 1
        self._size += event.size
        self._replay.keep(event)
        bounds = self._replay.bounds
        while self._size > bounds.bytes or len(self._kept) > bounds.events:
            self.drop(next(iter(self._kept.values())))

    def drop(self, event: _Event) -> None:
        """Keep an event no longer."""
        del self._kept[event.serial]
        self._size -= event.size
        event.stream.kept -= 1
        self._replay.drop(event)
        self._forget(event.stream)

    def _forget(self, stream: _Stream) -> None:
        if stream.is_over and not stream.kept:
            self._streams.pop(stream.number, None)
            if self._by_key.get(stream.key) is stream:
                del self._by_key[stream.key]

    def close(self) -> None:
        """Let go of everything: the session is over."""
        self._is_closed = True
        for event in list(self._kept.values()):
            self.drop(event)
        for stream in self._streams.values():
            stream.tell()

    def text(self, event_id: str | None) -> str | None:
        """Return the text of an event that was stored as it is sent, while it is kept."""
        event = self._kept.get(int(event_id.split("-", 2)[1])) if event_id else None
        return event.text if event is not None and event.is_as_sent else None

    def after(self, event_id: str) -> Position | None:
        """Return the place after an event; None for one that is not of this session, or of which nothing is kept."""
        found = _ID.fullmatch(event_id)
        stream = None if found is None else self._streams.get(int(found[1]))
        return None if found is None or stream is None else Position(stream, int(found[2]))

    def elsewhere(self, event_id: str) -> str | None:
        """Return which stream an event of another process is of, by its request's id; None for every other id."""
        found = _ID.fullmatch(event_id)
        if found is None or self._replay.has_given(int(found[1])):
            return None
        return GET_STREAM_KEY if found[3] is None else _key(found[3])

    def live_key(self, position: Position) -> str | None:
        """Return under which key the stream is being sent, if it is; its request's id may be another's by now."""
        key = position.stream.key
        return key if self._by_key.get(key) is position.stream and self._is_live(key) else None

    def is_done(self, position: Position) -> bool:
        """Tell whether nothing comes after a place any more."""
        stream, serial = position
        return stream.is_over and not any(one.stream is stream and one.serial > serial for one in self._kept.values())

    async def following(self, position: Position) -> AsyncIterator[dict[str, str]]:
        """Give the events of a stream that come after a place, until it is over or somebody else goes on with it."""
        stream, serial = position
        stream.readers += 1
        own = stream.readers
        stream.tell()
        while stream.readers == own and self.live_key(position) is None:
            news, is_over = stream.awaited(), stream.is_over
            for event in [one for one in self._kept.values() if one.stream is stream and one.serial > serial]:
                serial = event.serial
                yield {"event": "message", "data": event.text, "id": event.id}
            if is_over or self._is_closed:
                return
            await news.wait()


def _tag(key: str) -> str:
    raw = key.encode("utf-8", "surrogatepass")
    return urlsafe_b64encode(raw).decode().rstrip("=") if len(raw) <= _LONGEST_KEY else ""


def _key(tag: str) -> str | None:
    try:
        return urlsafe_b64decode(tag + "=" * (-len(tag) % 4)).decode("utf-8", "surrogatepass") or None
    except (binascii.Error, UnicodeError):
        return None
