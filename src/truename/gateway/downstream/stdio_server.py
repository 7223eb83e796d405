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
from truename.gateway.downstream.intake import OpenRequests
from truename.gateway.mcp.messages import encode, error, parse
from truename.gateway.mcp.pipe import serve_pipe
from truename.gateway.protocol.entries import has_more_entries, too_many_entries
from truename.gateway.protocol.lines import LineReader, TooLong, id_at_ends
from truename.gateway.protocol.sdk import MCPError
from truename.gateway.protocol.specification import INVALID_REQUEST
from truename.gateway.protocol.writable import unwritable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from truename.gateway.drain import OutgoingAnswers
    from truename.gateway.gateway import Gateway

__all__ = ["serve_stdio"]

log: Final = logging.getLogger("truename.gateway")

Message = dict[str, Any]

_CHUNK: Final = 65_536
_INPUT: Final = 0
_OUTPUT: Final = 1
_LAST_WORDS: Final = 2.0
_GONE: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream)


async def serve_stdio(gateway: Gateway, path: str | None = None) -> None:
    """Serve one path of a running gateway (its main one unless given) until standard input ends, or until cancelled.

    Raises `UnknownView`.
    """
    endpoint = gateway.endpoint(path)
    settings = gateway.config.settings
    intake = OpenRequests(settings.max_requests, settings.max_incoming, settings.max_entries)
    with piped(gateway.registry.drain_tracker) as answers:
        async with _client(settings.max_body, intake, answers) as (from_client, to_client):
            await serve_pipe(from_client, to_client.send, endpoint.answer)


@asynccontextmanager
async def _client(
    max_line: int, intake: OpenRequests, answers: OutgoingAnswers
) -> AsyncIterator[tuple[MemoryObjectReceiveStream[Message], MemoryObjectSendStream[Message]]]:
    to_server, from_client = anyio.create_memory_object_stream[Message](0)
    to_client, from_server = anyio.create_memory_object_stream[Message](0)
    said_all = anyio.Event()
    with _diverted_output() as wire:
        async with background() as tasks, to_server, from_client, to_client, from_server:
            tasks.start_soon(_read, to_server.clone(), to_client.clone(), max_line, intake)
            tasks.start_soon(_write, from_server.clone(), wire, said_all, partial(_gone, intake, answers))
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
    intake: OpenRequests,
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
                    elif await has_more_entries(line, intake.most_entries):
                        await _refuse_entries(line, intake.most_entries, to_client)
                    elif line.strip():
                        await _pass(line, intake, to_server, to_client)


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
    intake: OpenRequests,
    to_server: MemoryObjectSendStream[Message],
    to_client: MemoryObjectSendStream[Message],
) -> None:
    message = _message(line)
    refusal = _no_request(line) if message is None else intake.refusal(message, len(line))
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


def _gone(intake: OpenRequests, answers: OutgoingAnswers, message: Message) -> None:
    intake.gone(message)
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
