"""A whole gateway in this process, with an honest server and a hostile one behind it, and raw HTTP in front of it.

It is started at first need and lives as long as the process: a case costs a connection, not a gateway.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
import h11

from truename.config import Config, ServerConfig, Settings
from truename.gateway import Gateway, listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping

    from anyio.abc import SocketStream

__all__ = ["TOKEN", "Answer", "Asked", "Hostile", "House", "at", "close", "here", "upstream", "visited"]

T = TypeVar("T")
TOKEN: Final = "the-one-token-0123456789"
HONEST: Final = ("read", "fs.list", "createPage", "delete", "天気")
_PATIENCE: Final = 20.0


@dataclass
class Hostile:
    """A server by hand: what it answers to is ``said``, by method; calls it answers by naming the tool called.

    ``raw`` goes out as it is in answer to the next call, head and all.
    """

    tools: tuple[str, ...] = HONEST
    said: dict[str, Any] = field(default_factory=dict)
    raw: bytes | None = None
    calls: list[dict[str, Any]] = field(default_factory=list)

    async def __call__(self, stream: SocketStream) -> None:
        """Answer one connection."""
        async with stream:
            try:
                head, body = await _request(stream)
                await stream.send(self._answer(head, body))
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, ValueError):
                return

    def _answer(self, head: bytes, body: bytes) -> bytes:
        if not head.startswith(b"POST"):
            return _response("405 Method Not Allowed", b"")
        message = json.loads(body)
        if "id" not in message or "method" not in message:
            return _response("202 Accepted", b"")
        if message["method"] == "tools/call":
            self.calls.append(message["params"])
            if self.raw is not None:
                return self.raw.replace(b"@ID@", json.dumps(message["id"]).encode())
        if message["method"] == "server/discover":
            return _response("400 Bad Request", b"")
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": self._result(message)}
        return _response("200 OK", json.dumps(answer).encode())

    def _result(self, message: dict[str, Any]) -> Any:
        method = message["method"]
        if method in self.said:
            return self.said[method]
        if method == "initialize":
            able: dict[str, Any] = {"tools": {}}
            server = {"name": "x", "version": "1"}
            return {"protocolVersion": "2025-06-18", "capabilities": able, "serverInfo": server}
        if method == "tools/list":
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in self.tools]}
        if method == "tools/call":
            return {"content": [{"type": "text", "text": f"answer of {message['params']['name']}"}]}
        return {}


async def _request(stream: SocketStream) -> tuple[bytes, bytes]:
    raw = b""
    while b"\r\n\r\n" not in raw:
        raw += await stream.receive()
    head, _, body = raw.partition(b"\r\n\r\n")
    said = [line.partition(b":")[2] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    while len(body) < (int(said[0]) if said else 0):
        body += await stream.receive()
    return head, body


def _response(status: str, body: bytes, kind: str = "application/json") -> bytes:
    lines = (f"HTTP/1.1 {status}", f"content-type: {kind}", f"content-length: {len(body)}", "connection: close")
    return "\r\n".join((*lines, "", "")).encode() + body


@asynccontextmanager
async def upstream(server: Hostile) -> AsyncIterator[str]:
    """Have a server listen on loopback while the block lasts; gives its address."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, server)
        yield f"http://127.0.0.1:{port}/mcp"
        tasks.cancel_scope.cancel()


@dataclass(frozen=True)
class Answer:
    """What came back: ``status`` 0 is nothing at all. ``body`` of an endless stream is its beginning."""

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def is_stream(self) -> bool:
        return self.headers.get("content-type", "").startswith("text/event-stream")

    def messages(self) -> list[Any]:
        """Return the messages in it. Raises `ValueError` for what is none."""
        if not self.is_stream:
            return [json.loads(self.body)] if self.body else []
        lines = self.body.replace(b"\r\n", b"\n").split(b"\n")
        texts = [line.removeprefix(b"data:").strip() for line in lines if line.startswith(b"data:")]
        return [json.loads(text) for text in texts if text]


class House:
    """The gateway, and a loop in which it runs whenever something is asked of it."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.good, self.bad = Hostile(), Hostile(tools=("hostile",))
        self.unforeseen: list[str] = []
        self.guests: list[Callable[[], None]] = []
        self.loop.set_exception_handler(lambda _, said: self.unforeseen.append(str(said.get("message"))))
        self._leaving = asyncio.Event()
        self._ready: asyncio.Future[None] = self.loop.create_future()
        self._task = self.loop.create_task(self._live())
        self.do(asyncio.wait({self._task, self._ready}, return_when=asyncio.FIRST_COMPLETED))
        if self._task.done():
            self._task.result()

    def do(self, what: Coroutine[Any, Any, T]) -> T:
        """Let the loop run until this is done."""
        return self.loop.run_until_complete(what)

    async def _live(self) -> None:
        async with AsyncExitStack() as stack:
            urls = [await stack.enter_async_context(upstream(one)) for one in (self.good, self.bad)]
            servers = (_server("g", urls[0]), _server("b", urls[1], timeout=1.0))
            config = Config(servers=servers, settings=SETTINGS)
            self.gateway = await stack.enter_async_context(Gateway(config))
            address = await stack.enter_async_context(listening(self.gateway))
            self.port = int(address.rpartition(":")[2])
            self.names = {self.gateway.catalog[id].origin.name: name for id, name in self.gateway.table().items()}
            self._ready.set_result(None)
            await self._leaving.wait()

    def leave(self) -> None:
        """End it, and what was begun in it."""
        for end in self.guests:
            end()
        self.loop.call_soon(self._leaving.set)
        self.do(asyncio.wait({self._task}))
        self.loop.close()


def _server(key: str, url: str, timeout: float = 15.0) -> ServerConfig:
    return ServerConfig(key=key, url=url, type="http", timeout=timeout)


# Many failures are what its servers are for; the hostile one is waited for as short as may be.
SETTINGS: Final = Settings(
    state="memory",
    token=TOKEN,
    answer_timeout=1.0,
    startup_timeout=5.0,
    breaker_failures=10**9,
    max_views=8,
    max_body=100_000,
    max_result=100_000,
    max_sessions=32,
    session_timeout=60.0,
)
_ONE: Final[list[House]] = []


def here() -> House:
    """Return the gateway of this process."""
    if not _ONE:
        _ONE.append(House())
    return _ONE[0]


@contextmanager
def visited() -> Iterator[House]:
    """Have the gateway of this process for one case. After one that failed it may be hurt: the next has another."""
    try:
        yield here()
    except BaseException:
        _ONE.clear()
        raise


def close() -> None:
    """End it, if there is one."""
    while _ONE:
        _ONE.pop().leave()


@dataclass(frozen=True)
class Asked:
    """What bytes are to a web server: a request, or what is none. Where they are not whole no answer has to come."""

    method: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    is_whole: bool = False

    @classmethod
    def of(cls, raw: bytes) -> Asked:
        """Read bytes as the gateway's web server does."""
        ours = h11.Connection(h11.SERVER)
        found = cls()
        try:
            ours.receive_data(raw)
            while (event := ours.next_event()) is not h11.NEED_DATA and event is not h11.PAUSED:
                if isinstance(event, h11.Request):
                    headers = tuple((name.decode(), value.decode("latin-1")) for name, value in event.headers)
                    found = cls(event.method.decode(), headers)
                elif isinstance(event, h11.Data):
                    found = replace(found, body=found.body + bytes(event.data))
                elif isinstance(event, h11.EndOfMessage):
                    return replace(found, is_whole=True)
                else:
                    return found
        except h11.RemoteProtocolError:
            # The gateway's server may have read a method there, and answers HEAD without a body.
            return cls("HEAD" if raw.lstrip(b"\r\n").startswith(b"HEAD ") else "", is_whole=True)
        return found

    def all(self, name: str) -> list[str]:
        """Return the values of a header, as often as it stands there."""
        return [value for known, value in self.headers if known == name]


def at(house: House, raw: bytes, *, chunks: int = 1) -> tuple[Asked, Answer]:
    """Send bytes, in so many parts: what they are, and what came back."""
    asked = Asked.of(raw)
    return asked, house.do(asyncio.wait_for(_exchange(house.port, raw, chunks, asked), _PATIENCE))


async def _exchange(port: int, raw: bytes, chunks: int, asked: Asked) -> Answer:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        step = max(1, -(-len(raw) // chunks))
        for start in range(0, len(raw), step):
            writer.write(raw[start : start + step])
            await asyncio.sleep(0)
        return await _answer(reader, asked.method or "GET") if asked.is_whole else Answer()
    except ConnectionError:
        return Answer()
    finally:
        writer.close()


async def _answer(reader: asyncio.StreamReader, method: str) -> Answer:
    if method == "CONNECT":
        return Answer()
    theirs = h11.Connection(h11.CLIENT)
    theirs.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
    theirs.send(h11.EndOfMessage())
    found = Answer()
    while True:
        try:
            event = theirs.next_event()
        except h11.RemoteProtocolError:
            # The connection ended within the answer, as it may where the request was broken.
            return found
        if event is h11.NEED_DATA:
            theirs.receive_data(await reader.read(65_536))
        elif isinstance(event, h11.Response):
            found = Answer(event.status_code, {name.decode(): value.decode("latin-1") for name, value in event.headers})
            if found.is_stream and method != "POST":
                return found
        elif isinstance(event, h11.Data):
            found = Answer(found.status, found.headers, found.body + bytes(event.data))
            # A subscription goes on; what it begins with is enough.
            if found.is_stream and b"subscriptions" in found.body:
                return found
        elif isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
            return found
