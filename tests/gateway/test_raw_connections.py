"""Connections of clients by hand: who does not read, sends several requests at once, or leaves in the middle."""

from __future__ import annotations

import gc
import json
import logging
import re
import socket
import weakref
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio
import httpx2
import pytest
from anyio.abc import ByteStream, SocketAttribute, SocketStream
from anyio.streams.tls import TLSStream
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tests.fuzz.house import Hostile, upstream
from tests.gateway.conftest import PATIENCE
from tests.gateway.streams import BOTH, reader
from tests.support.tls import trusting
from truename.gateway.http import web_server
from truename.gateway.http.session import Session

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.gateway.conftest import Lab
    from tests.gateway.streams import Reader

pytestmark = [pytest.mark.slow, pytest.mark.anyio, pytest.mark.usefixtures("schemes")]

PING: Final = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
SAID: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
STATELESS: Final = (
    b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nmcp-name: wait\r\n"
    b"accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\n"
    b"content-length: %d\r\n\r\n%s"
)
IDLE: Final = "truename.gateway.http.web_server.IDLE_SECONDS"


class Chatty(Hostile):
    """Tells at length how far it has got, before it answers."""

    def _answer(self, head: bytes, body: bytes) -> bytes:
        message = json.loads(body) if body else {}
        if message.get("method") != "tools/call":
            return super()._answer(head, body)
        token = message["params"]["_meta"]["progressToken"]
        told = [
            {
                "method": "notifications/progress",
                "params": {"progressToken": token, "progress": n, "message": "x" * 20_000},
            }
            for n in range(1, 151)
        ]
        answer = {"id": message["id"], "result": {"content": [{"type": "text", "text": "the answer"}]}}
        events = b"".join(b"data: %s\n\n" % json.dumps({"jsonrpc": "2.0", **one}).encode() for one in (*told, answer))
        return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n" + events


def request(client: Reader, verb: str, message: dict[str, Any] | None = None, last: str = "") -> bytes:
    body = b"" if message is None else json.dumps({"jsonrpc": "2.0", **message}).encode()
    said = {"host": "localhost", "content-type": "application/json", "content-length": str(len(body))}
    said |= {"last-event-id": last} if last else {}
    head = "".join(f"{name}: {value}\r\n" for name, value in {**said, **client.headers}.items())
    return f"{verb} /mcp HTTP/1.1\r\n{head}\r\n".encode() + body


def call(name: str, id: int | str = 7, **params: Any) -> dict[str, Any]:
    return {"id": id, "method": "tools/call", "params": {"name": name, "arguments": {}, **params}}


@asynccontextmanager
async def dialled(address: str, *, unread: int | None = None) -> AsyncIterator[ByteStream]:
    """Connect, over TLS to an https address; ``unread`` is how many bytes may wait on this side."""
    plain = socket.socket()
    if unread is not None:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, unread)
    plain.setblocking(False)
    with anyio.fail_after(PATIENCE):
        try:
            plain.connect(("127.0.0.1", int(address.rpartition(":")[2])))
        except BlockingIOError:
            await anyio.wait_writable(plain)
    stream: ByteStream = await SocketStream.from_socket(plain)
    if address.startswith("https:"):
        stream = await TLSStream.wrap(
            stream, hostname="localhost", ssl_context=trusting(), standard_compatible=False, server_side=False
        )
    async with stream:
        yield stream


async def until(stream: ByteStream, wanted: bytes, most: int = 65_536) -> bytes:
    said = b""
    with anyio.fail_after(PATIENCE):
        while wanted not in said:
            said += await stream.receive(most)
    return said


async def rest(stream: ByteStream) -> bytes:
    said = b""
    with anyio.fail_after(PATIENCE):
        while True:
            try:
                said += await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return said


def connection(stream: ByteStream) -> HttpToolsProtocol:
    """Return the gateway's side of a connection."""
    own = stream.extra(SocketAttribute.local_address)
    (found,) = [one for one in gc.get_objects() if isinstance(one, HttpToolsProtocol) and one.client == own]
    return found


async def stuck(many: int) -> None:
    """Wait until so many clients keep the gateway from writing."""
    with anyio.fail_after(PATIENCE):
        while sum(isinstance(one, HttpToolsProtocol) and one.flow.write_paused for one in gc.get_objects()) != many:
            await anyio.sleep(0.01)


def place(said: bytes) -> str:
    found = re.search(rb"\nid: (\S+)", said)
    assert found is not None
    return found[1].decode()


async def test_who_stopped_reading_gets_everything_on_another_connection(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    async with upstream(Chatty(tools=("read",))) as url, lab.serving(lab.at("far", url)) as address:  # noqa: SIM117
        async with reader(address) as client, dialled(address, unread=4_096) as stalled:
            asked = call("read", _meta={"progressToken": "p"})
            await stalled.send(request(client, "POST", asked))
            first = place(await until(stalled, b"\nretry: ", 200))
            await stuck(1)
            async with dialled(address, unread=4_096) as again:
                await again.send(request(client, "GET", last=first))
                await until(again, b"notifications/progress", 2_000)
                await stuck(1)
                async with client.get(first) as stream:
                    messages = await stream.rest()
                assert b"the answer" not in await rest(again)
            progress = [one["params"]["progress"] for one in messages[:-1]]
            assert progress == list(range(1, 151))
            assert messages[-1]["result"]["content"][0]["text"] == "the answer"
            # What was sent before is read to its end, and nothing comes behind it.
            assert b"the answer" not in await rest(stalled)
    assert caplog.records == []


async def test_a_listener_that_stopped_reading_makes_room_for_who_comes_back(lab: Lab) -> None:
    server = lab.script("c", "changing")
    async with lab.serving(server) as address, reader(address) as client:  # noqa: SIM117
        async with dialled(address) as stale:
            await stale.send(request(client, "GET"))
            await until(stale, b"200 OK")
            async with client.call("grow", "one", arguments={"name": "one"}) as stream:
                await stream.rest()
            last = place(await until(stale, b"list_changed"))
            async with client.get(last) as again:
                await until(stale, b"\r\n0\r\n\r\n")
                async with client.call("grow", "two", arguments={"name": "two"}) as stream:
                    await stream.rest()
                assert (await again.message())["method"] == "notifications/tools/list_changed"


async def test_cancelling_a_number_leaves_the_text_of_its_digits_alone(lab: Lab, tmp_path: Path) -> None:
    journals = [tmp_path / name for name in ("one", "two")]
    servers = [lab.script(journal.name, "journal", str(journal), "hold") for journal in journals]
    async with lab.serving(*servers) as address, reader(address) as client:
        async with client.call("one_hold", 1) as number, client.call("two_hold", "1") as text:
            first, second = await number.next(), await text.next()
            for wrong in (True, 1.0, [1], {"1": 1}, None):
                await client.send({"method": "notifications/cancelled", "params": {"requestId": wrong}})
            await client.send({"method": "notifications/cancelled", "params": {"requestId": 1}})
            assert [answer["error"]["code"] for answer in await number.rest()] == [-32800]
            journals[1].with_suffix(".gate").touch()
            (answer,) = await text.rest()
            assert answer["result"]["content"][0]["text"] == "journal:hold"
        for told, id in ((first, 1), (second, "1")):
            async with client.get(told.id) as again:
                assert [one["id"] for one in await again.rest()] == [id]


@pytest.mark.usefixtures("streams_at_once")
async def test_an_id_that_is_the_name_of_the_other_stream_is_an_id_like_others(lab: Lab) -> None:
    async with lab.serving(lab.normal("w", "get")) as address, reader(address) as client, client.get():
        for id in ("_GET_stream", "None", "standalone", ""):
            async with client.call("get", id) as stream:
                assert [answer["id"] for answer in await stream.rest()] == [id]
            async with client.get(stream.last, status=405):
                pass


@pytest.mark.parametrize("behind", ["a request", "a stream"])
async def test_a_disconnect_ends_a_stream_behind_which_another_request_waits(lab: Lab, behind: str) -> None:
    async with lab.serving(lab.normal("w", "get")) as address, reader(address) as client:
        stream = request(client, "GET")
        async with dialled(address) as leaving:
            await leaving.send(stream + (PING if behind == "a request" else stream))
            await until(leaving, b"200 OK")
        with anyio.fail_after(5):
            while True:
                async with client.http.stream("GET", client.url, headers=client.headers) as again:
                    if again.status_code == 200:
                        return
                await anyio.sleep(0.01)


async def test_nobody_is_told_of_a_fault_when_who_sent_two_requests_leaves(
    lab: Lab, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    journal = tmp_path / "ran"
    body = json.dumps({"jsonrpc": "2.0", **call("wait", _meta=SAID)}).encode()
    asked = STATELESS % (len(body), body)
    async with lab.serving(lab.script("j", "journal", str(journal), "wait")) as address:
        async with dialled(address) as leaving:
            await leaving.send(asked + PING)
            with anyio.fail_after(PATIENCE):
                while not journal.exists():
                    await anyio.sleep(0.01)
        async with httpx2.AsyncClient() as http:
            assert (await http.get(f"{address}/healthz")).status_code == 200
    assert caplog.records == []


async def test_a_broken_second_request_is_not_answered_within_the_first_response(lab: Lab, tmp_path: Path) -> None:
    journal = tmp_path / "ran"
    broken = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n"
    async with lab.serving(lab.script("j", "journal", str(journal), "hold")) as address, reader(address) as client:
        for second in (broken, b"\x00\r\n\r\n"):
            async with dialled(address) as stream:
                await stream.send(request(client, "POST", call("hold", second.hex())))
                said = await until(stream, b"\nretry: ")
                await stream.send(second)
                assert (said + await rest(stream)).count(b"HTTP/1.1 ") == 1
        journal.with_suffix(".gate").touch()


async def test_many_requests_in_one_piece_are_answered_and_read_piece_by_piece(lab: Lab) -> None:
    many, deepest = 1_000, 0
    async with lab.serving(lab.normal("w", "get")) as address, reader(address) as client, dialled(address) as stream:
        one = request(client, "POST", {"id": 1, "method": "ping", "params": {"_meta": {"x": "x" * 1_000}}})
        said, there = b"", connection(stream)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stream.send, one * many)
            with anyio.fail_after(4 * PATIENCE):
                while said.count(b"HTTP/1.1 200 ") < many:
                    said += await stream.receive()
                    deepest = max(deepest, len(there.pipeline))
    assert 0 < deepest < 50


async def test_the_end_of_a_session_ends_the_streams_that_nobody_reads(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    async with upstream(Chatty(tools=("read",))) as url, lab.serving(lab.at("far", url)) as address:  # noqa: SIM117
        async with reader(address) as client:
            for resumed in (False, True):
                async with dialled(address, unread=4_096) as stalled, dialled(address, unread=4_096) as again:
                    asked = call("read", f"{resumed}", _meta={"progressToken": "p"})
                    await stalled.send(request(client, "POST", asked))
                    first = place(await until(stalled, b"\nretry: ", 200))
                    await stuck(1)
                    if resumed:
                        await again.send(request(client, "GET", last=first))
                        await until(again, b"notifications/progress", 2_000)
                        await stuck(1)
                    ended = await client.http.delete(client.url, headers=client.headers)
                    assert ended.status_code == 200
                    await stuck(0)
                    assert b"the answer" not in await rest(again if resumed else stalled)
                del client.headers["mcp-session-id"]
                await client.open()
    assert caplog.records == []


UPGRADE: Final = b"%s /healthz HTTP/%s\r\nhost: localhost\r\nconnection: %s\r\nupgrade: h2c\r\n\r\n"


@pytest.mark.parametrize("behind", [b"", b"\r\n", PING, b"no HTTP at all"])
async def test_an_offered_upgrade_on_a_last_request_is_answered_whatever_comes_behind(lab: Lab, behind: bytes) -> None:
    async with lab.serving(lab.normal("w", "get")) as address, dialled(address) as stream:
        await stream.send(UPGRADE % (b"GET", b"1.1", b"close, Upgrade") + behind)
        said = await rest(stream)
    assert said.startswith(b"HTTP/1.1 200 OK")
    assert said.count(b"HTTP/1.1 ") == 1


async def test_an_upgrade_that_a_client_of_http_1_0_offers_leaves_it_one(lab: Lab) -> None:
    async with lab.serving(lab.normal("w", "get")) as address, dialled(address) as stream:
        await stream.send(UPGRADE % (b"GET", b"1.0", b"upgrade"))
        # Its connection ends with the response (RFC 9112, section 9.3).
        assert (await rest(stream)).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize(("balancer", "seconds"), [("HAProxy", 5), ("nginx", 60), ("AWS ALB", 60)])
def test_a_balancer_ends_idle_connections_before_the_gateway_does(balancer: str, seconds: int) -> None:
    # Defaults of pool-purge-delay, of keepalive_timeout in an upstream, and of the idle timeout.
    assert seconds < web_server.IDLE_SECONDS, balancer


async def test_empty_lines_keep_no_connection_open(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IDLE, 0.3)
    async with lab.serving(lab.normal("w", "get")) as address, dialled(address) as stream:
        await stream.send(PING)
        await until(stream, b'"ok"}')
        await stream.send(b"\r\n")
        assert await rest(stream) == b""


async def test_a_request_that_comes_slowly_behind_a_response_is_answered(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(IDLE, 0.3)
    async with lab.serving(lab.normal("w", "get")) as address, dialled(address) as stream, dialled(address) as idle:
        await stream.send(PING + PING[:-10])
        await until(stream, b"200 OK")
        await idle.send(PING)
        # So long nothing comes that the other is closed.
        await rest(idle)
        await stream.send(PING[-10:])
        await until(stream, b"200 OK")


async def test_a_client_that_says_too_much_of_itself_gets_no_session(lab: Lab) -> None:
    said = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    async with lab.serving(lab.normal("w", "get")) as address, httpx2.AsyncClient(timeout=PATIENCE) as http:

        async def hello(**more: Any) -> dict[str, Any]:
            body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {**said, **more}}
            answer: dict[str, Any] = (await http.post(f"{address}/mcp", json=body, headers=BOTH)).json()
            return answer

        for more in (
            {"clientInfo": {"name": "x" * 100_000, "version": "1"}},
            {"clientInfo": {"name": "x", "version": "1", "title": "x" * 100_000}},
            {"capabilities": {"sampling": {"context": {"y": "z" * 100_000}}}},
        ):
            refused = await hello(**more)
            assert refused["error"]["code"] == -32602
            assert "Send less" in refused["error"]["message"]
        # What nobody here reads is not kept, and an image in a description of itself is no reason to refuse a client.
        icons = [{"src": "data:image/png;base64," + "A" * 100_000}]
        assert "result" in await hello(clientInfo={"name": "x", "version": "1", "icons": icons})


async def test_an_ended_session_is_not_in_memory_until_it_would_have_expired(lab: Lab) -> None:
    def sessions() -> list[weakref.ref[Session]]:
        gc.collect()
        return [weakref.ref(one) for one in gc.get_objects() if isinstance(one, Session)]

    before = len(sessions())
    async with lab.serving(lab.normal("w", "get"), session_timeout=3_600) as address:
        for _ in range(3):
            async with reader(address) as client:
                assert len(sessions()) == before + 1
                ended = await client.http.delete(client.url, headers=client.headers)
                assert ended.status_code == 200
        assert len(sessions()) == before


async def test_a_handshake_that_is_repeated_in_a_session_costs_nothing(lab: Lab) -> None:
    said = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    async with lab.serving(lab.normal("w", "get")) as address, reader(address) as client:
        (session,) = [one for one in gc.get_objects() if isinstance(one, Session) and not one.is_over]
        for _ in range(5):
            async with client.post("initialize", said) as stream:
                assert "result" in await stream.message()
        callbacks: Any = session.connection.exit_stack
        assert len(callbacks._exit_callbacks) == 1
