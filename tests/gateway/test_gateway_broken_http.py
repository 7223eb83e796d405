"""Requests that turn out to be no HTTP while they are being answered: one answer or none, and nothing in the log."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import anyio
import pytest

from tests.gateway.conftest import raw_client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from anyio.abc import ByteStream

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio

HEAD = b"%s HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n%s\r\ntransfer-encoding: chunked\r\n\r\n"
ACCEPT = b"accept: application/json, text/event-stream"
NO_CHUNK = b"2\r\n{}Pn\xd7\r\n"
BROKEN = {
    "before anything was said": (HEAD % (b"POST /mcp", ACCEPT) + NO_CHUNK, b"HTTP/1.1 400"),
    "where there is nothing": (HEAD % (b"POST /nothing", ACCEPT) + NO_CHUNK, b"HTTP/1.1 400"),
    "a head whose answer has no body": (HEAD % (b"HEAD /", ACCEPT) + NO_CHUNK, b""),
    "no head at all": (b"\x16\x03\x01\x00\xa5\x01\r\n\r\n", b"HTTP/1.1 400"),
    "a body that says nothing of its end": (HEAD % (b"GET /mcp", ACCEPT) + NO_CHUNK, b"HTTP/1.1 400"),
}


async def rest(stream: ByteStream) -> bytes:
    """Return what still comes until the connection ends."""
    said = b""
    with anyio.fail_after(10), suppress(anyio.EndOfStream, anyio.BrokenResourceError):
        while True:
            said += await stream.receive()
    return said


@asynccontextmanager
async def dialled(address: str) -> AsyncIterator[ByteStream]:
    async with await anyio.connect_tcp("127.0.0.1", int(address.rpartition(":")[2])) as stream:
        yield stream


@pytest.mark.parametrize("what", BROKEN)
async def test_what_is_no_http_has_one_answer_or_none(lab: Lab, caplog: pytest.LogCaptureFixture, what: str) -> None:
    raw, begins = BROKEN[what]
    caplog.set_level(logging.ERROR)
    async with lab.serving() as address, dialled(address) as stream:
        await stream.send(raw)
        said = await rest(stream)
    assert said.startswith(begins)
    assert said.count(b"HTTP/1.1") == bool(begins)
    assert caplog.records == []


async def test_what_is_no_http_within_an_answer_ends_the_connection(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    """An answer can be sent while the rest of its request still comes: nothing is written into it."""
    caplog.set_level(logging.ERROR)
    async with lab.serving() as address, dialled(address) as stream:
        await stream.send(HEAD % (b"GET /mcp/nowhere", ACCEPT) + b"2\r\n{}\r\n")
        said = await stream.receive()
        await stream.send(b"no chunk\r\n")
        said += await rest(stream)
    assert said.startswith(b"HTTP/1.1 404")
    assert said.count(b"HTTP/1.1") == 1
    assert caplog.records == []


@pytest.mark.parametrize("version", [b"2025-06-18", b"2026-07-28"])
async def test_who_leaves_within_a_request_is_no_fault(
    lab: Lab, caplog: pytest.LogCaptureFixture, version: bytes
) -> None:
    caplog.set_level(logging.ERROR)
    async with lab.serving() as address:
        async with dialled(address) as stream:
            await stream.send(HEAD % (b"POST /mcp", ACCEPT + b"\r\nmcp-protocol-version: " + version) + b"2\r\n{}\r\n")
        async with dialled(address) as stream:
            await stream.send(b"GET /readyz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
            assert b"200 OK" in await rest(stream)
    assert caplog.records == []


METHODS = ("tools/list", "tools/call", "prompts/list", "resources/read", "tasks/cancel", "tasks/result", "ping")
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}


@pytest.mark.parametrize("method", METHODS)
async def test_a_dialect_that_there_is_not_is_no_fault_of_the_gateway(
    lab: Lab, caplog: pytest.LogCaptureFixture, method: str
) -> None:
    caplog.set_level(logging.ERROR)
    accept = {"accept": "application/json, text/event-stream", "x-truename-dialect": "nothing"}
    async with lab.serving() as address, raw_client(address) as raw:
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
        begun = await raw.http.post(f"{address}/mcp", json=hello, headers=accept)
        session = {"mcp-session-id": begun.headers["mcp-session-id"], "mcp-protocol-version": "2025-06-18"}
        asked = {"jsonrpc": "2.0", "id": 2, "method": method, "params": {"name": "x", "uri": "x:x", "taskId": "x"}}
        answer = await raw.http.post(f"{address}/mcp", json=asked, headers={**accept, **session})
    assert '"id":2' in answer.text
    assert '"code":-32603' not in answer.text
    assert caplog.records == []
