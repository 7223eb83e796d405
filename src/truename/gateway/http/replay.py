"""What was sent to the clients of sessions, kept for those whose stream broke off (MCP 2025-11-25, basic/transports).

Each session has events of its own, and each of its streams too: nothing of one is ever given on another.
"""

from __future__ import annotations

import binascii
import json
import re
import secrets
import sys
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio

from truename.gateway.mcp.messages import encode, error, is_answer, is_id
from truename.gateway.protocol.specification import INTERNAL_ERROR

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from typing import Any

__all__ = ["STANDALONE", "Bounds", "Key", "Position", "Replay", "SessionEvents", "StoredEvent"]


class _Standalone(Enum):
    # No id of a request equals it.
    STREAM = 0


STANDALONE: Final = _Standalone.STREAM
"""The key of a session's stream of messages that belong to no request."""
Key = int | str | _Standalone
"""The key of a stream: the id of its request. 1 and "1" are two (JSON-RPC 2.0, section 4)."""
_BITS: Final = 40
# A request's id that is longer, as JSON, is not told again after a restart.
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

    key: Key
    number: int
    kept: int = 0
    is_over: bool = False
    readers: int = 0
    news: anyio.Event | None = None

    def id(self, serial: int) -> str:
        """Return the id of an event. It says which request it is of, for a gateway that knows nothing else any more."""
        if self.key is STANDALONE:
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
    text: bytes
    size: int

    @property
    def id(self) -> str:
        return self.stream.id(self.serial)


class StoredEvent(NamedTuple):
    """An event of a stream: its id, and its message as JSON."""

    id: str
    text: bytes


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

    def session(self, is_live: Callable[[Key], bool]) -> SessionEvents:
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


class SessionEvents:
    """The events of one session."""

    def __init__(self, replay: Replay, is_live: Callable[[Key], bool]) -> None:
        self._replay = replay
        self._is_live = is_live
        self._kept: OrderedDict[int, _Event] = OrderedDict()
        self._size = 0
        self._streams: dict[int, _Stream] = {}
        self._by_key: dict[Key, _Stream] = {}
        self._is_closed = False

    def begin(self, key: Key) -> str:
        """Return the id of the place at which a request's stream begins."""
        return self._begun(key).id(self._replay.number())

    def store(self, key: Key, message: dict[str, Any]) -> StoredEvent:
        """Keep a message of a stream, and return the event to send.

        An answer before which its client was told no id has none ("") either, and is not kept: nobody can come back
        for it. The TypeScript SDK in Gemini CLI comes back for any stream with an id, answered or not.
        """
        text = encode(message)
        is_last = key is not STANDALONE and is_answer(message)
        if is_last and self._is_untold(key):
            return StoredEvent("", text)
        stream, serial = self._of(key), self._replay.number()
        if stream.number not in self._streams:
            return StoredEvent(stream.id(serial), text)
        kept = _Event(self, stream, serial, text, sys.getsizeof(text) + _COST)
        if is_last:
            stream.is_over = True
            if kept.size > self._replay.bounds.bytes:
                text_kept = encode(error(message["id"], INTERNAL_ERROR, _TOO_LARGE))
                kept = _Event(self, stream, serial, text_kept, sys.getsizeof(text_kept) + _COST)
        # One that is too large would only drive all others out.
        if not self._is_closed and kept.size <= self._replay.bounds.bytes:
            self._keep(kept)
        else:
            self._forget(stream)
        stream.tell()
        return StoredEvent(kept.id, text)

    def _begun(self, key: Key) -> _Stream:
        before = self._by_key.get(key)
        stream = self._by_key[key] = _Stream(key, self._replay.number())
        self._streams[stream.number] = stream
        if before is not None:
            # Its request was answered, or its id is another request's now.
            before.is_over = True
            before.tell()
            self._forget(before)
        return stream

    def _is_untold(self, key: Key) -> bool:
        stream = self._by_key.get(key)
        return stream is None or stream.is_over

    def _of(self, key: Key) -> _Stream:
        stream = self._by_key.get(key)
        if key is STANDALONE and stream is None and not self._is_live(key):
            # No client has been told an id of this stream: none can ever go on with it.
            return _Stream(key, self._replay.number())
        return self._begun(key) if stream is None or (stream.is_over and key is not STANDALONE) else stream

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

    def after(self, event_id: str) -> Position | None:
        """Return the place after an event; None for one that is not of this session, or of which nothing is kept."""
        found = _ID.fullmatch(event_id)
        stream = None if found is None else self._streams.get(int(found[1]))
        return None if found is None or stream is None else Position(stream, int(found[2]))

    def elsewhere(self, event_id: str) -> Key | None:
        """Return which stream an event of another process is of, by its request's id; None for every other id."""
        found = _ID.fullmatch(event_id)
        if found is None or self._replay.has_given(int(found[1])):
            return None
        return STANDALONE if found[3] is None else _key(found[3])

    def live_key(self, position: Position) -> Key | None:
        """Return under which key the stream is being sent, if it is; its request's id may be another's by now."""
        key = position.stream.key
        return key if self._by_key.get(key) is position.stream and self._is_live(key) else None

    def is_done(self, position: Position) -> bool:
        """Tell whether nothing comes after a place any more."""
        stream, serial = position
        return stream.is_over and not any(one.stream is stream and one.serial > serial for one in self._kept.values())

    async def following(self, position: Position) -> AsyncIterator[StoredEvent]:
        """Give the events of a stream that come after a place, until it is over or somebody else goes on with it."""
        stream, serial = position
        stream.readers += 1
        own = stream.readers
        stream.tell()
        while stream.readers == own and self.live_key(position) is None:
            news, is_over = stream.awaited(), stream.is_over
            for event in [one for one in self._kept.values() if one.stream is stream and one.serial > serial]:
                serial = event.serial
                yield StoredEvent(event.id, event.text)
            if is_over or self._is_closed:
                return
            await news.wait()


def _tag(key: int | str) -> str:
    raw = json.dumps(key, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return urlsafe_b64encode(raw).decode().rstrip("=") if len(raw) <= _LONGEST_KEY else ""


def _key(tag: str) -> int | str | None:
    try:
        key = json.loads(urlsafe_b64decode(tag + "=" * (-len(tag) % 4)).decode("utf-8", "surrogatepass"))
    except (binascii.Error, ValueError):
        return None
    return key if is_id(key) else None
