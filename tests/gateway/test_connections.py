"""Connections to servers over HTTP: used again, never a closed one, and each failure under its own name."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from tests.gateway.wire import read_request
from truename.gateway.background import background
from truename.gateway.http_connections import Connections, HttpFailure, HttpResponse, fields_of
from truename.gateway.upstream.addresses import ServerUrl

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    Answer = Callable[["Peer", SocketStream], Awaitable[None]]

pytestmark = pytest.mark.anyio

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Peer:
    """A server that does with each request what it was told, and counts connections and bodies."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.connections = 0
        self.bodies: list[bytes] = []
        self.url = ""

    async def serve(self, stream: SocketStream) -> None:
        self.connections += 1
        async with stream:
            try:
                while True:
                    self.bodies.append((await read_request(stream))[1])
                    await self.answer(self, stream)
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                return


@asynccontextmanager
async def peer(answer: Answer) -> AsyncIterator[tuple[Peer, Connections]]:
    found, connections = Peer(answer), Connections()
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    found.url = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}/mcp"
    async with background() as tasks:
        tasks.start_soon(_serve, listener, found.serve)
        try:
            yield found, connections
        finally:
            await connections.aclose()


async def _serve(listener: Any, answer: Callable[[SocketStream], Awaitable[None]]) -> None:
    async with listener:
        await listener.serve(answer)


async def sent(
    url: str, connections: Connections, body: bytes = b"{}", connect: float = 2.0, read: float = 2.0
) -> HttpResponse:
    place = ServerUrl.of(url)
    fields = fields_of([(b"host", place.host)])
    return await connections.send(b"POST", place.origin, place.target, fields, body, connect=connect, read=read)


async def post(found: Peer, connections: Connections, body: bytes = b"{}", read: float = 2.0) -> bytes:
    response = await sent(found.url, connections, body, read=read)
    try:
        whole = b""
        while (chunk := await response.chunk()) is not None:
            whole += chunk
        return whole
    finally:
        response.close()


async def ok(_: Peer, stream: SocketStream) -> None:
    await stream.send(OK)


async def test_requests_one_after_the_other_share_a_connection() -> None:
    async with peer(ok) as (found, connections):
        assert [await post(found, connections, body) for body in (b"1", b"2", b"3")] == [b"ok"] * 3
        assert found.bodies == [b"1", b"2", b"3"]
        assert found.connections == 1


async def test_requests_at_a_time_have_a_connection_each() -> None:
    both = anyio.Event()

    async def together(found: Peer, stream: SocketStream) -> None:
        if len(found.bodies) == 2:
            both.set()
        await both.wait()
        await stream.send(OK)

    async with peer(together) as (found, connections):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(post, found, connections)
            tasks.start_soon(post, found, connections)
        assert found.connections == 2


async def test_a_connection_that_was_closed_meanwhile_is_not_used() -> None:
    closed = anyio.Event()

    async def once(_: Peer, stream: SocketStream) -> None:
        await stream.send(OK)
        await stream.aclose()
        closed.set()

    async with peer(once) as (found, connections):
        for body in (b"1", b"2"):
            assert await post(found, connections, body) == b"ok"
            await closed.wait()
        assert found.bodies == [b"1", b"2"]
        assert found.connections == 2


async def test_a_connection_on_which_something_came_unasked_is_not_used() -> None:
    sent = anyio.Event()

    async def more(found: Peer, stream: SocketStream) -> None:
        await stream.send(OK)
        if len(found.bodies) == 1:
            await stream.send(OK)
        sent.set()

    async with peer(more) as (found, connections):
        await post(found, connections)
        await sent.wait()
        assert await post(found, connections) == b"ok"
        assert found.connections == 2


async def test_a_response_that_is_not_read_to_its_end_takes_its_connection_with_it() -> None:
    async def half(_: Peer, stream: SocketStream) -> None:
        await stream.send(OK[:-1])

    async with peer(half) as (found, connections):
        for _ in range(2):
            (await sent(found.url, connections)).close()
        assert found.connections == 2


async def test_one_that_was_left_alone_for_long_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with peer(ok) as (found, connections):
        await post(found, connections)
        monkeypatch.setattr("truename.gateway.http_connections.IDLE_SECONDS", -1.0)
        await post(found, connections)
        assert found.connections == 2


async def test_so_many_are_kept_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truename.gateway.http_connections.MAX_IDLE", 0)
    async with peer(ok) as (found, connections):
        await post(found, connections)
        await post(found, connections)
        assert found.connections == 2


async def test_a_body_in_chunks_comes_as_it_was_sent() -> None:
    async def chunked(_: Peer, stream: SocketStream) -> None:
        await stream.send(b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        await stream.send(b"2\r\nok\r\n3\r\n..!\r\n0\r\n\r\n")

    async with peer(chunked) as (found, connections):
        assert [await post(found, connections) for _ in range(2)] == [b"ok..!"] * 2
        assert found.connections == 1


def sends(*parts: bytes) -> Answer:
    async def answer(_: Peer, stream: SocketStream) -> None:
        for part in parts:
            await stream.send(part)
        await stream.aclose()

    return answer


async def never(_: Peer, __: SocketStream) -> None:
    await anyio.sleep_forever()


FAILURES: tuple[tuple[str, Answer, str], ...] = (
    ("closes without a word", sends(), "RemoteProtocolError"),
    ("sends no HTTP", sends(b"\x00\x01 nonsense\r\n\r\n"), "RemoteProtocolError"),
    ("sends an endless head", sends(b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 40_000), "RemoteProtocolError"),
    ("breaks off its body", sends(OK[:-1]), "RemoteProtocolError"),
    (
        "breaks off its chunks",
        sends(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab"),
        "RemoteProtocolError",
    ),
    ("says nothing", never, "ReadTimeout"),
)


@pytest.mark.parametrize(("answer", "named"), [row[1:] for row in FAILURES], ids=[row[0] for row in FAILURES])
async def test_each_failure_has_a_name_of_its_own(answer: Answer, named: str) -> None:
    async with peer(answer) as (found, connections):
        with pytest.raises(HttpFailure) as failed:
            await post(found, connections, read=0.2)
        assert failed.value.name == named
        found.answer = ok
        assert await post(found, connections) == b"ok"


async def test_who_is_not_there_can_not_be_reached() -> None:
    async with peer(ok) as (found, connections):
        for url in ("http://127.0.0.1:9/mcp", f"https{found.url[4:]}", "http://no.such.host.invalid/"):
            with pytest.raises(HttpFailure) as failed:
                await sent(url, connections, connect=0.5)
            assert failed.value.name in {"ConnectError", "ConnectTimeout"}
            assert not failed.value.was_sent


async def test_closing_ends_what_is_awaited() -> None:
    asked = anyio.Event()

    async def hold(_: Peer, __: SocketStream) -> None:
        asked.set()
        await anyio.sleep_forever()

    async with peer(hold) as (found, connections), anyio.create_task_group() as tasks:

        async def ask() -> None:
            with pytest.raises(HttpFailure):
                await post(found, connections)

        tasks.start_soon(ask)
        await asked.wait()
        await connections.aclose()


async def test_a_server_that_answers_before_it_is_asked_is_not_waited_for() -> None:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    url = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}/mcp"

    async def hasty(stream: SocketStream) -> None:
        async with stream:
            await stream.send(OK)
            await anyio.sleep_forever()

    connections = Connections()
    async with background() as tasks:
        tasks.start_soon(_serve, listener, hasty)
        place = ServerUrl.of(url)
        opened = await connections._opened(place.origin, 2.0)
        with anyio.fail_after(5):
            while opened.is_fit:
                await anyio.sleep(0)
            while not opened._has_more:
                await anyio.sleep(0)
            with pytest.raises(HttpFailure, match="The server answered before it was asked") as failed:
                opened.write(b"POST / HTTP/1.1\r\n\r\n")
        assert not failed.value.was_sent
        await connections.aclose()


async def test_what_follows_a_body_in_chunks_is_no_header_and_is_bounded() -> None:
    chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n"
    trailers = b"set-cookie: a=b\r\nmcp-session-id: other\r\n"
    async with peer(sends(chunked + trailers + b"\r\n")) as (found, connections):
        response = await sent(found.url, connections)
        while await response.chunk() is not None:
            pass
        assert response.header(b"set-cookie") == response.header(b"mcp-session-id") == b""
        response.close()

        found.answer = sends(chunked + b"x: y\r\n" * 40_000)
        with pytest.raises(HttpFailure, match="The head of the response is too large"):
            await post(found, connections)
