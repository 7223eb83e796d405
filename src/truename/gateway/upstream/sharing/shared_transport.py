"""The transports of sessions with a program that several gateway processes share: here, or in another process."""

from __future__ import annotations

import secrets
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import anyio
import msgspec

from truename.gateway.replicas.client import PeerFailure
from truename.gateway.upstream.messages import receive
from truename.gateway.upstream.multiplexer import written
from truename.gateway.upstream.transport import Receiver, Transport, TransportError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from truename.gateway.protocol.envelopes import Envelope
    from truename.gateway.rate_limited_log import RateLimitedLog
    from truename.gateway.replicas.client import PeerClient, PeerResponse
    from truename.gateway.replicas.liveness import Replica
    from truename.gateway.upstream.sharing.shared_program import SharedProgram

__all__ = ["GONE", "SEND", "LocalTransport", "PeerTransport", "RemoteClient"]

SEND: Final = "program.send"
"""The kind of requests between replicas that carry messages to a program."""

_MESSAGE, _FAULT, _END = b"=", b"!", b"."
_NOISE: Final = "has text that is not a message in its stream from another process of the gateway"
GONE: Final = "was lost with the process of the gateway that ran it"
# Bytes of several messages in one request; one message alone may have as many as a client's request.
_MOST_AT_ONCE: Final = 128 * 1024
# Bytes that wait for another process to read them.
_MOST_UNREAD: Final = 128 * 1024 * 1024

_encode: Final = msgspec.json.Encoder().encode


class _Early:
    """Keeps what comes before there is a session."""

    def __init__(self) -> None:
        self.found: list[Envelope | tuple[int, TransportError]] = []

    def receive(self, found: Envelope) -> None:
        self.found.append(found)

    async def take(self, found: Envelope, call: int) -> None:  # noqa: ARG002 - a `Receiver`
        self.found.append(found)

    def fail(self, number: int, fault: TransportError) -> None:
        self.found.append((number, fault))


class _SharedTransport(Transport):
    def __init__(self) -> None:
        super().__init__()
        self._receiver: Receiver = _Early()

    def begin(self, receiver: Receiver) -> None:
        """Give to this receiver what comes from now on, and what came until now."""
        early, self._receiver = self._receiver, receiver
        for found in early.found if isinstance(early, _Early) else ():
            if isinstance(found, tuple):
                receiver.fail(*found)
            else:
                receiver.receive(found)

    async def request(self, number: int, message: bytes, headers: bytes) -> None:  # noqa: ARG002 - a `Transport`
        """Send a request; its response comes to the receiver."""
        self._put(message)

    async def notify(self, message: bytes, headers: bytes) -> None:  # noqa: ARG002 - a `Transport`
        """Send a message that is not answered."""
        with suppress(TransportError):
            self._put(message)

    def _put(self, message: bytes) -> None:
        raise NotImplementedError


class LocalTransport(_SharedTransport):
    """A session with a program that this process runs."""

    def __init__(self, program: SharedProgram) -> None:
        super().__init__()
        self._program = program
        self.run = program.id
        self.tail = program.tail

    def deliver(self, found: Envelope) -> None:
        """Take a message of the program."""
        self._receiver.receive(found)

    def fail(self, number: int, fault: TransportError) -> None:
        """Take it that a request has no answer."""
        self._receiver.fail(number, fault)

    def _put(self, message: bytes) -> None:
        self._program.send(self, message)

    def ending(self) -> str:
        """Say how it ended, as far as is known."""
        return self._program.ending()


class RemoteClient:
    """A session of another process with a program that this one runs: what is to be sent there."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._size = 0
        self._news = anyio.Event()
        self._is_over = False
        # Its process does not read.
        self.is_slow = False

    def deliver(self, found: Envelope) -> None:
        """Take a message of the program."""
        self._add(_MESSAGE + written(found))

    def fail(self, number: int, fault: TransportError) -> None:
        """Take it that a request has no answer."""
        self._add(_FAULT + _encode([number, fault.kind, fault.detail]))

    def close(self, ending: str, output: tuple[str, ...]) -> None:
        """Take it that the program has ended."""
        self._add(_END + _encode([ending, output]))
        self._is_over = True

    def _add(self, line: bytes) -> None:
        self._lines.append(line + b"\n")
        self._size += len(line)
        self.is_slow = self._size > _MOST_UNREAD
        self._news.set()

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield what is to be sent, as it comes, until the program has ended or the other process does not read."""
        # So that the head of the response leaves.
        yield b"\n"
        while not self.is_slow:
            await self._news.wait()
            self._news = anyio.Event()
            lines, self._lines, self._size = self._lines, [], 0
            if lines:
                yield b"".join(lines)
            if self._is_over and not self._lines:
                return


class PeerTransport(_SharedTransport):
    """A session with a program that another replica runs."""

    def __init__(
        self, client: PeerClient, replica: Replica, response: PeerResponse, key: str, log: RateLimitedLog
    ) -> None:
        super().__init__()
        self._client = client
        self._replica = replica
        self._response = response
        self._connection = response.about.get("connection")
        # A process of a version before does not tell: then it is a run of which nobody else knows.
        self.run = str(response.about.get("run") or secrets.token_hex(8))
        self._key = key
        self._log = log
        self._outgoing: deque[bytes] = deque()
        self._news = anyio.Event()
        self._ending = GONE

    def _put(self, message: bytes) -> None:
        if self.closed.is_set():
            raise TransportError("lost")
        self._outgoing.append(message)
        self._news.set()

    def ending(self) -> str:
        """Say how it ended, as far as is known."""
        return self._ending

    def close(self) -> None:
        """End the session."""
        self.closed.set()
        self._response.close()

    async def write(self) -> None:
        """Send what is to be sent, in order: one request carries all that came while the one before was under way."""
        try:
            while True:
                await self._news.wait()
                self._news = anyio.Event()
                while self._outgoing:
                    await self._send(self._next())
        except PeerFailure:
            # What arrived of it is not known.
            self.closed.set()

    def _next(self) -> bytes:
        """Return the messages of the next request: one, and as many more as the other process surely takes."""
        messages = [self._outgoing.popleft()]
        size = len(messages[0])
        while self._outgoing and (size := size + len(self._outgoing[0])) <= _MOST_AT_ONCE:
            messages.append(self._outgoing.popleft())
        return b"\n".join(messages)

    async def _send(self, messages: bytes) -> None:
        response = await self._client.send(self._replica, SEND, {"connection": self._connection}, messages)
        try:
            async for _ in response.body():
                pass
        finally:
            response.close()

    async def read(self) -> None:
        """Take what the program sends, until the stream ends."""
        rest = b""
        try:
            async for piece in self._response.body():
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    self._take(line)
        except PeerFailure:
            return
        finally:
            self.closed.set()

    def _take(self, line: bytes) -> None:
        content: Any = line[1:]
        match line[:1]:
            case b"=":
                receive(content, self._receiver, self._key, self._log, _NOISE)
            case b"!":
                number, kind, detail = msgspec.json.decode(content, type=tuple[int, str, str])
                self._receiver.fail(number, TransportError(kind, detail))
            case b".":
                self._ending, output = msgspec.json.decode(content, type=tuple[str, list[str]])
                for one in output:
                    self.tail.feed(one.encode() + b"\n")
