"""How a response comes over HTTP: as one body when the answer comes first, as a stream when something else does."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp_types import JSONRPCNotification, JSONRPCRequest, jsonrpc_message_adapter
from pydantic import ValidationError

from tests.gateway.streams import reader
from truename.gateway.http.sessions import accepts
from truename.gateway.mcp.messages import kind_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gateway.conftest import Lab

anyio_test = pytest.mark.anyio
VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


@anyio_test
@pytest.mark.parametrize("version", VERSIONS)
async def test_an_answer_that_comes_first_is_one_body_of_its_session(lab: Lab, version: str) -> None:
    async with lab.serving(lab.normal("w", "get")) as address, reader(address, version) as client:
        async with client.call("get", 7) as stream:
            (answer,) = await stream.rest()
        assert stream.is_json
        assert stream.response.headers["mcp-session-id"] == client.headers["mcp-session-id"]
        assert answer["id"] == 7


@anyio_test
async def test_an_answer_that_takes_long_comes_on_a_stream_that_can_be_resumed(lab: Lab, tmp_path: Path) -> None:
    journal = tmp_path / "ran"
    server = lab.script("j", "journal", str(journal), "hold")
    async with lab.serving(server) as address, reader(address) as client:
        async with client.call("hold", 7) as stream:
            first = await stream.next()
            assert first.id
            assert first.message is None
            journal.with_suffix(".gate").touch()
            assert [answer["id"] for answer in await stream.rest()] == [7]
        assert not stream.is_json


def test_a_program_on_asyncio_alone_gets_such_a_stream_too(lab: Lab, tmp_path: Path) -> None:
    """Nothing of anyio runs around the gateway there, least of all in a timer."""
    journal = tmp_path / "ran"

    async def use() -> None:
        server = lab.script("j", "journal", str(journal), "hold")
        async with lab.serving(server) as address, reader(address) as client, client.call("hold", 7) as stream:
            assert (await stream.next()).id
            journal.with_suffix(".gate").touch()
            assert len(await stream.rest()) == 1

    asyncio.run(use())


@anyio_test
async def test_a_request_under_an_id_that_is_in_use_is_refused_and_not_run(lab: Lab, tmp_path: Path) -> None:
    journal = tmp_path / "ran"
    servers = lab.script("j", "journal", str(journal), "hold"), lab.normal("w", "get")
    async with lab.serving(*servers) as address, reader(address) as client, client.call("j_hold", 7) as first:
        await first.next()
        body = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "j_hold"}}
        refused = await client.http.post(client.url, json=body, headers=client.headers)
        assert refused.status_code == 400
        # Under its own id the client would take it for the answer to the first.
        assert refused.json()["id"] is None
        assert refused.json()["error"]["code"] == -32600
        # Another type is another id (JSON-RPC 2.0, section 4).
        async with client.call("w_get", "7") as second:
            assert [answer["id"] for answer in await second.rest()] == ["7"]
        journal.with_suffix(".gate").touch()
        assert [answer["id"] for answer in await first.rest()] == [7]
        async with client.call("w_get", 7) as again:
            assert [answer["id"] for answer in await again.rest()] == [7]
    assert len(journal.read_text().splitlines()) == 1


@anyio_test
async def test_an_upgrade_that_is_offered_changes_nothing(lab: Lab) -> None:
    """Java's client offers h2c with each request, and goes on using the connection."""
    head = (
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\n"
        b"http2-settings: AAEAAEAA\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n"
        b"mcp-protocol-version: 2026-07-28\r\nmcp-method: ping\r\ncontent-length: %d\r\n\r\n%s"
    )
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    async with (
        lab.serving(lab.normal("w", "get")) as address,
        await anyio.connect_tcp("127.0.0.1", int(address.rpartition(":")[2])) as stream,
    ):
        for _ in range(3):
            await stream.send(head % (len(body), body))
            answer = b""
            with anyio.fail_after(5):
                while b"has no _meta" not in answer:
                    answer += await stream.receive()
            assert answer.startswith(b"HTTP/1.1 400 ")
            assert answer.count(b"HTTP/1.1") == 1


@anyio_test
async def test_many_upgrades_in_one_piece_are_answered_one_after_the_other(lab: Lab) -> None:
    one = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
    last = one.replace(b"connection: upgrade", b"connection: upgrade, close")
    async with (
        lab.serving(lab.normal("w", "get")) as address,
        await anyio.connect_tcp("127.0.0.1", int(address.rpartition(":")[2])) as stream,
    ):
        await stream.send(one * 1_500 + last)
        said = b""
        with anyio.fail_after(20), contextlib.suppress(anyio.EndOfStream):
            while True:
                said += await stream.receive()
    assert said.count(b"HTTP/1.1 200 OK") == 1_501


@anyio_test
@pytest.mark.parametrize("piece", [b"x: y\r\n", b"y" * 1_000], ids=["many headers", "a long one"])
async def test_a_head_without_end_is_refused(lab: Lab, piece: bytes) -> None:
    async with lab.serving(lab.normal("w", "get")) as address:
        async with await anyio.connect_tcp("127.0.0.1", int(address.rpartition(":")[2])) as stream:
            await stream.send(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nx: ")
            said = b""
            with anyio.fail_after(10):
                try:
                    for _ in range(1_000):
                        await stream.send(piece * 100)
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    pass
                try:
                    while True:
                        said += await stream.receive()
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    pass
        assert said == b"" or said.startswith(b"HTTP/1.1 400 ")
        async with httpx2.AsyncClient() as http:
            assert (await http.get(f"{address}/healthz")).status_code == 200


values = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)
members = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "1.0", 2.0, None]),
        "id": values,
        "method": values,
        "params": values | st.dictionaries(st.text(max_size=2), values, max_size=2),
        "result": values | st.just({}),
        "error": values | st.just({"code": 1, "message": "x"}),
    },
)


@settings(max_examples=400)
@given(members)
def test_what_is_taken_for_a_message_is_one_for_the_sdk_too(content: dict[str, Any]) -> None:
    kind = kind_of(content)
    try:
        found = jsonrpc_message_adapter.validate_python(content, by_name=False)
    except ValidationError:
        assert kind is None
        return
    if kind is not None:
        names = {JSONRPCRequest: "request", JSONRPCNotification: "notification"}
        assert names.get(type(found), "response") == kind


@given(st.lists(st.sampled_from(["*/*", "application/json", "text/event-stream", "TEXT/*;q=0.1", "x"]), max_size=4))
def test_what_a_client_accepts_is_read_whatever_the_order(kinds: list[str]) -> None:
    def said(kinds: list[str]) -> tuple[bool, bool]:
        return accepts({"headers": [(b"accept", ", ".join(kinds).encode())]})

    assert said(kinds) == said(kinds[::-1])
    assert said([*kinds, "*/*"]) == (True, True)
