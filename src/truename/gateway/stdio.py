"""The gateway over standard input and output: one client, one view.

Written anew instead of the SDK's own transport for two reasons: that one reads lines of any length, and its reader
cannot be cancelled while it waits for input, so that a gateway told to end would not end before its client does. Here
two daemon threads read and write, which nothing waits for.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import sys
import threading
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio.lowlevel import current_token

from truename.gateway.background import background
from truename.gateway.calls.draining import note_written, piped
from truename.gateway.mcp.messages import IN_USE, encode, error, is_answer, is_id, kind_of, parse
from truename.gateway.mcp.pipe import serve_pipe
from truename.gateway.protocol.entries import has_more_entries, too_many_entries
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.lines import LineReader, TooLong, id_at_ends
from truename.gateway.protocol.specification import INVALID_REQUEST
from truename.gateway.protocol.writable import unwritable
from truename.policy.arguments import MAX_ENTRIES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from truename.gateway.drain import OutgoingAnswers
    from truename.gateway.gateway import Gateway
    from truename.gateway.mcp.requests import RequestId

__all__ = ["OpenRequests", "serve_stdio"]

log: Final = logging.getLogger("truename.gateway")

Message = dict[str, Any]

_CHUNK: Final = 65_536
_INPUT: Final = 0
_OUTPUT: Final = 1
_LAST_WORDS: Final = 2.0
_GONE: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream)
_TOO_MANY: Final = "This client has as many open requests as {name} allows ({most:,}); nothing was run. Try later."


async def serve_stdio(gateway: Gateway, path: str | None = None) -> None:
    """Serve one path of a running gateway (its main one unless given) until standard input ends, or until cancelled.

    Raises `UnknownView`.
    """
    endpoint = gateway.endpoint(path)
    settings = gateway.config.settings
    open_requests = OpenRequests(settings.max_requests, settings.max_incoming, settings.max_entries)
    with piped(gateway.registry.drain_tracker) as answers:
        async with _client(settings.max_body, open_requests, answers) as (from_client, to_client):
            await serve_pipe(from_client, to_client.send, endpoint.answer)


@asynccontextmanager
async def _client(
    max_line: int, open_requests: OpenRequests, answers: OutgoingAnswers
) -> AsyncIterator[tuple[MemoryObjectReceiveStream[Message], MemoryObjectSendStream[Message]]]:
    to_server, from_client = anyio.create_memory_object_stream[Message](0)
    to_client, from_server = anyio.create_memory_object_stream[Message](0)
    said_all = anyio.Event()
    with _diverted_output() as wire:
        async with background() as tasks, to_server, from_client, to_client, from_server:
            tasks.start_soon(_read, to_server.clone(), to_client.clone(), max_line, open_requests)
            tasks.start_soon(_write, from_server.clone(), wire, said_all, partial(_gone, open_requests, answers))
            to_server.close()
            yield from_client, to_client
            to_client.close()
            with anyio.move_on_after(_LAST_WORDS):
                await said_all.wait()


@contextmanager
def _diverted_output() -> Iterator[int]:
    """Give the descriptor of the client; whatever else prints to standard output goes to standard error meanwhile."""
    sys.stdout.flush()
    wire = os.dup(_OUTPUT)
    os.dup2(2, _OUTPUT)
    try:
        yield wire
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        # The copy stays open: the writing thread may still use it, and another file must not get its number.
        os.dup2(wire, _OUTPUT)


async def _read(
    to_server: MemoryObjectSendStream[Message],
    to_client: MemoryObjectSendStream[Message],
    max_line: int,
    open_requests: OpenRequests,
) -> None:
    sender, chunks = anyio.create_memory_object_stream[bytes](0)
    threading.Thread(target=_read_chunks, args=(sender, current_token()), daemon=True, name="stdin").start()
    reader = LineReader(max_line)
    with suppress(*_GONE):
        async with chunks, to_server, to_client:
            async for chunk in chunks:
                for line in reader.feed(chunk):
                    if isinstance(line, TooLong):
                        await _refuse(line, to_client)
                    elif await has_more_entries(line, open_requests.most_entries):
                        await _refuse_entries(line, open_requests.most_entries, to_client)
                    elif line.strip():
                        await _pass(line, open_requests, to_server, to_client)


def _read_chunks(sender: MemoryObjectSendStream[bytes], token: Any) -> None:
    # The loop may be gone, or the stream closed, when something is read at last: then nobody wants it.
    with suppress(RuntimeError, OSError, *_GONE):
        while chunk := _chunk():
            anyio.from_thread.run(sender.send, chunk, token=token)
        anyio.from_thread.run_sync(sender.close, token=token)


def _chunk() -> bytes:
    try:
        return os.read(_INPUT, _CHUNK)
    except OSError:
        # A terminal that was closed, or nothing there from the start: as good as its end.
        return b""


async def _pass(
    line: bytes,
    open_requests: OpenRequests,
    to_server: MemoryObjectSendStream[Message],
    to_client: MemoryObjectSendStream[Message],
) -> None:
    message = _message(line)
    refusal = _no_request(line) if message is None else open_requests.refusal(message, len(line))
    # A client that sends and does not read is not read either.
    if refusal is not None:
        await to_client.send(refusal)
    elif message is not None:
        await to_server.send(message)


def _message(line: bytes) -> Message | None:
    try:
        return parse(line)[1]
    except MCPError:
        return None


def _no_request(line: bytes) -> Message | None:
    """Return what answers a line that is no message, if somebody waits for an answer to it: one that has an id."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        id: object = id_at_ends(line)
    else:
        id = said.get("id") if isinstance(said, dict) and not said.keys() & {"result", "error"} else None
    # What cannot be written as an id cannot be answered either.
    if isinstance(id, bool) or not isinstance(id, int | str) or unwritable({"id": id}, 1):
        return None
    return error(id, INVALID_REQUEST, "The message is not a JSON-RPC request; nothing was run.")


async def _refuse(line: TooLong, to_client: MemoryObjectSendStream[Message]) -> None:
    log.warning("the client sent a message of %s bytes, more than max_body allows", f"{line.size:,}")
    await _answer_wrong(line.request_id, "The message is larger than max_body allows; nothing was run.", to_client)


async def _refuse_entries(line: bytes, most: int, to_client: MemoryObjectSendStream[Message]) -> None:
    log.warning("the client sent a message of more keys and items than max_entries allows")
    await _answer_wrong(id_at_ends(line), too_many_entries(most), to_client)


async def _answer_wrong(id: int | None, text: str, to_client: MemoryObjectSendStream[Message]) -> None:
    if id is not None:
        await to_client.send(error(id, INVALID_REQUEST, text))


def _gone(open_requests: OpenRequests, answers: OutgoingAnswers, message: Message) -> None:
    open_requests.gone(message)
    note_written(answers, message)


async def _write(
    from_server: MemoryObjectReceiveStream[Message],
    wire: int,
    said_all: anyio.Event,
    gone: Callable[[Message], None],
) -> None:
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    written, receipts = anyio.create_memory_object_stream[bool](1)
    args = (wire, lines, written, current_token())
    threading.Thread(target=_write_lines, args=args, daemon=True, name="stdout").start()
    # One line at a time, so that a client that does not read is felt by whoever writes to it.
    with suppress(*_GONE):
        async with from_server, receipts:
            async for message in from_server:
                lines.put(encode(message) + b"\n")
                if not await receipts.receive():
                    break
                gone(message)
    said_all.set()


def _write_lines(wire: int, lines: queue.SimpleQueue[bytes], written: MemoryObjectSendStream[bool], token: Any) -> None:
    with suppress(RuntimeError, *_GONE):
        while True:
            anyio.from_thread.run_sync(written.send_nowait, _sent(wire, lines.get()), token=token)


def _sent(wire: int, line: bytes) -> bool:
    rest = memoryview(line)
    try:
        while rest:
            rest = rest[os.write(wire, rest) :]
    except OSError:
        return False
    return True


class OpenRequests:
    """Notes requests from when they come until they are answered, or taken back by the client.

    ``most_entries`` is how many keys and items one of them may have.

    >>> requests = OpenRequests(most=1, most_bytes=100)
    >>> ask = lambda id: requests.refusal({"jsonrpc": "2.0", "id": id, "method": "ping"}, 10)
    >>> ask(1), ask(2)["error"]["message"][:49]
    (None, 'This client has as many open requests as max_requ')
    >>> requests.gone({"jsonrpc": "2.0", "id": 1, "result": {}}), ask(2)
    (None, None)
    """

    def __init__(self, most: int, most_bytes: int, most_entries: int = MAX_ENTRIES) -> None:
        self.most_entries = most_entries
        self._most = most
        self._most_bytes = most_bytes
        self._open: dict[RequestId, int] = {}
        self._bytes = 0

    def refusal(self, message: Message, size: int) -> Message | None:
        """Note what came, of this size; return the error that it is answered with where it cannot be taken."""
        if message.get("method") == "notifications/cancelled":
            # It is never answered then.
            self._forget((message.get("params") or {}).get("requestId"))
        if kind_of(message) != "request":
            return None
        id = message["id"]
        if id in self._open:
            # Under this id the client waits for another answer.
            return error(None, INVALID_REQUEST, IN_USE)
        if len(self._open) >= self._most:
            return error(id, INVALID_REQUEST, _TOO_MANY.format(name="max_requests", most=self._most))
        if self._open and self._bytes + size > self._most_bytes:
            return error(id, INVALID_REQUEST, _TOO_MANY.format(name="max_incoming", most=self._most_bytes))
        self._open[id] = size
        self._bytes += size
        return None

    def gone(self, message: Message) -> None:
        """Note what went out: an answer makes room."""
        if is_answer(message):
            self._forget(message["id"])

    def _forget(self, id: object) -> None:
        if is_id(id):
            self._bytes -= self._open.pop(id, 0)
