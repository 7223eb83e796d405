"""The load: clients on connections of their own that call one tool after the other and look at every answer.

`python -m bench.gateways.load` is a process by itself. It reads an `Order` as one line of JSON, opens its sessions,
prints ``ready``, waits for a line, works, and prints what it has measured as one line of JSON. Between the two lines
the caller reads the clocks of the gateway's processes.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import sys
import time
from array import array
from dataclasses import dataclass, field, fields
from itertools import cycle
from typing import Any, Final, Self

import uvloop
from httptools import HttpResponseParser

from bench.gateways.servers import MODERN

__all__ = ["Order", "Tally", "message_in", "percentile", "run"]

_META: Final = "io.modelcontextprotocol/"
_INFO: Final = {"name": "bench", "version": "1"}
_ORIGIN: Final = re.compile(rb'"description": ?"\[(s\d+ \d{5})\] ')
_NAME: Final = re.compile(r"\[(s\d+ \d{5})\] ")
_ANSWERED: Final = re.compile(rb'"s\d+ \d{5}:')
_CURSOR: Final = re.compile(rb'"nextCursor": ?("(?:[^"\\]|\\.)*")')
_IS_ERROR: Final = re.compile(rb'"isError": ?true')
_ID: Final = b'"id":%s'
_SPACED_ID: Final = b'"id": %s'
_SENTENCE: Final = b"A plain sentence that no tool has to understand. "
# Numbers of one length, so that a request's length is known before its number.
_FIRST_NUMBER: Final = 100_000_000
# So many tools are called in turns, taken from all over the list.
_MOST_TOOLS: Final = 48
# An answer that takes longer has failed; all sessions together are opened in as long.
_ANSWER_SECONDS: Final = 60.0
_TEXT_OF_ERRORS: Final = 300


@dataclass(frozen=True)
class Order:
    """What to do: calls on so many connections, or walks through the whole list on one."""

    kind: str
    port: int
    path: str
    headers: dict[str, str]
    version: str
    connections: int
    size: int
    tools: int
    seconds: float
    # The certificate to trust; empty without TLS.
    trusted: str
    # The synthetic servers: lists are timed beside the direct answer of the same bytes.
    direct_port: int
    direct_trusted: str


@dataclass
class Tally:
    """What was measured: answers that are right, and what was wrong with the others."""

    right: int = 0
    wrong: int = 0
    failed: int = 0
    first_failure: str = ""
    seconds: float = 0.0
    load_seconds: float = 0.0
    p50_us: float = 0.0
    p99_us: float = 0.0
    list_pages: int = 0
    list_bytes: int = 0
    direct_p50_us: float = 0.0
    latencies: array[float] = field(default_factory=lambda: array("d"), repr=False)

    def refuse(self, status: int, body: bytes) -> None:
        """Count an answer that is not right: wrong if a tool has answered, else a failure."""
        if status == 200 and _ANSWERED.search(body):
            self.wrong += 1
        else:
            self.failed += 1
        self.first_failure = self.first_failure or f"{status} {body[:_TEXT_OF_ERRORS].decode('utf-8', 'replace')}"

    def record(self) -> dict[str, Any]:
        """Return the figures without the single latencies."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name != "latencies"}


class Failed(Exception):
    """A gateway does not answer what the load needs before it can begin."""


def percentile(ordered: list[float], share: float) -> float:
    """Return the smallest value that at least this share of the ordered values does not exceed; 0 for none.

    >>> percentile([1.0, 2.0, 3.0, 4.0], 0.5), percentile([1.0, 2.0], 0.99), percentile([], 0.5)
    (2.0, 2.0, 0.0)
    """
    return ordered[max(0, -int(-len(ordered) * share // 1) - 1)] if ordered else 0.0


class _Opening:
    """Reads the responses of a client's first requests, whose headers name its session."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.on_body = client.on_body
        self.on_message_complete = client.on_message_complete

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"mcp-session-id":
            self._client.session = value


class Client(asyncio.Protocol):
    """One connection, with its session in the handshake versions."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._body: list[bytes] = []
        self.session = b""
        self._parser = HttpResponseParser(_Opening(self))
        # Called with the status and the body of the next response; 0 if the connection is lost.
        self.answered: Any = None

    async def open(self, port: int, *, trusted: str) -> Self:
        """Connect, or connect anew: servers close connections on which nothing was asked for some seconds."""
        self._port, self._trusted = port, trusted
        context = ssl.create_default_context(cafile=trusted) if trusted else None
        host = "localhost" if context else None
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self, "127.0.0.1", port, ssl=context, server_hostname=host)
        return self

    async def begin(self) -> None:
        """Open a session, where the version has one."""
        if self._order.version != MODERN:
            params = {"protocolVersion": self._order.version, "capabilities": {}, "clientInfo": _INFO}
            await self._ask("initialize", params)
        # From here on no header matters.
        self._parser = HttpResponseParser(self)
        if self._order.version == MODERN:
            return
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await self.exchange(self.head("notifications/initialized", "", len(_packed(note))) + _packed(note))

    async def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the result of a request; raise `Failed` for anything else."""
        body = _packed({"jsonrpc": "2.0", "id": 1, "method": method, "params": params | self.meta()})
        status, text = await self.exchange(self.head(method, params.get("name", ""), len(body)) + body)
        try:
            found: dict[str, Any] = json.loads(message_in(text))["result"]
        except (ValueError, KeyError):
            said = text[:_TEXT_OF_ERRORS].decode("utf-8", "replace")
            raise Failed(f"{method} is answered with status {status}: {said}") from None
        return found

    async def reopen(self) -> None:
        """Connect anew if the connection is closed; the session goes on."""
        if self.transport.is_closing():
            self.answered = None
            self._parser = HttpResponseParser(self)
            await self.open(self._port, trusted=self._trusted)

    async def exchange(self, request: bytes) -> tuple[int, bytes]:
        await self.reopen()
        waiting = asyncio.get_running_loop().create_future()

        def answered(status: int, body: bytes) -> None:
            if not waiting.done():
                waiting.set_result((status, body))

        self.answered = answered
        self.transport.write(request)
        async with asyncio.timeout(_ANSWER_SECONDS):
            status, body = await waiting
        return status, body

    def meta(self) -> dict[str, Any]:
        if self._order.version != MODERN:
            return {}
        return {
            "_meta": {f"{_META}protocolVersion": MODERN, f"{_META}clientInfo": _INFO, f"{_META}clientCapabilities": {}}
        }

    def head(self, method: str, name: str, length: int) -> bytes:
        given = {
            "host": f"localhost:{self._order.port}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            **({} if method == "initialize" else {"mcp-protocol-version": self._order.version}),
            **({"mcp-method": method} if self._order.version == MODERN else {}),
            **({"mcp-name": name} if self._order.version == MODERN and name else {}),
            **({"mcp-session-id": self.session.decode()} if self.session else {}),
            **self._order.headers,
            "content-length": str(length),
        }
        lines = "".join(f"{key}: {value}\r\n" for key, value in given.items())
        return f"POST {self._order.path} HTTP/1.1\r\n{lines}\r\n".encode()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def connection_lost(self, error: Exception | None) -> None:
        if self.answered is not None:
            self.answered(0, f"the connection is closed: {error or 'by the other side'}".encode())

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        status = self._parser.get_status_code()
        self._body.clear()
        if self.answered is not None:
            self.answered(status, body)


def _packed(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def message_in(body: bytes) -> bytes:
    """Return the JSON of a response, also of one that comes as an event stream."""
    if body.lstrip()[:1] == b"{":
        return body
    data = [line[5:].strip() for line in body.splitlines() if line.startswith(b"data:")]
    return next((one for one in reversed(data) if b'"result"' in one or b'"error"' in one), b"")


@dataclass(frozen=True)
class _Target:
    """A tool as the gateway shows it: a request to it up to its first number and up to its second, and the answer."""

    before: bytes
    middle: bytes
    expected: bytes


def _filler(size: int) -> bytes:
    return b"-" + (_SENTENCE * (size // len(_SENTENCE) + 1))[:size] + b'"'


def _target(client: Client, name: str, origin: str, after: int) -> _Target:
    """Return a target for a session; so many bytes follow the second number of a request."""
    before = b'{"jsonrpc":"2.0","id":'
    middle = b',"method":"tools/call","params":{"name":%s,"arguments":{"message":"' % json.dumps(name).encode()
    length = len(before) + len(middle) + after + 2 * len(str(_FIRST_NUMBER))
    return _Target(client.head("tools/call", name, length) + before, middle, b'"%s:' % origin.encode())


def _is_result(before: bytes, after: bytes, digits: bytes) -> bool:
    """Whether what stands around the text of an answer makes it the result of the request with this id."""
    return (
        b'"result"' in before
        and any(_ID % digits in part or _SPACED_ID % digits in part for part in (before, after))
        and not any(_IS_ERROR.search(part) for part in (before, after))
    )


class _Caller:
    """Calls on one connection, one after the other, until the time is over."""

    def __init__(self, client: Client, targets: list[_Target], first: int, filler: bytes, after: bytes) -> None:
        self._client = client
        self._targets = cycle(targets[first % len(targets) :] + targets[: first % len(targets)])
        self._filler, self._after = filler, after
        self._number = _FIRST_NUMBER + first * 1_000_000

    async def run(self, until: float, tally: Tally) -> None:
        self._until, self._tally = until, tally
        self._ended = asyncio.get_running_loop().create_future()
        await self._client.reopen()
        self._client.answered = self._answered
        self._is_first = True
        self._call()
        async with asyncio.timeout(until - time.perf_counter() + _ANSWER_SECONDS):
            await self._ended

    def _call(self) -> None:
        self._number += 1
        self._target, self._digits = next(self._targets), b"%d" % self._number
        target, digits = self._target, self._digits
        self._began = time.perf_counter()
        self._client.transport.write(b"".join((target.before, digits, target.middle, digits, self._after)))

    async def _call_anew(self) -> None:
        await self._client.reopen()
        self._client.answered = self._answered
        self._call()

    def _answered(self, status: int, body: bytes) -> None:
        now = time.perf_counter()
        is_first, self._is_first = self._is_first, False
        if is_first and not status:
            # The server closed an idle connection just now: no client takes that for an answer.
            self._anew = asyncio.get_running_loop().create_task(self._call_anew())
            return
        digits = self._digits
        expected = b"".join((self._target.expected, digits, self._filler))
        before, found, after = body.partition(expected)
        if status == 200 and found and _is_result(before, after, digits):
            self._tally.right += 1
            self._tally.latencies.append(now - self._began)
        else:
            self._tally.refuse(status, body)
        if now < self._until and status:
            self._call()
        elif not self._ended.done():
            # What closes from here on is no answer.
            self._client.answered = None
            self._ended.set_result(None)


async def _walk(client: Client, tally: Tally | None = None) -> tuple[list[bytes], float]:
    """Return the pages of the whole list, and how long the gateway took for them."""
    pages: list[bytes] = []
    cursor, took = None, 0.0
    while True:
        params: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
        body = _packed({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params | client.meta()})
        request = client.head("tools/list", "", len(body)) + body
        began = time.perf_counter()
        status, text = await client.exchange(request)
        took += time.perf_counter() - began
        pages.append(text)
        if status != 200:
            if tally is None:
                said = text[:_TEXT_OF_ERRORS].decode("utf-8", "replace")
                raise Failed(f"tools/list is answered with status {status}: {said}")
            tally.refuse(status, text)
            break
        if (found := _CURSOR.search(text)) is None:
            break
        cursor = json.loads(found[1])
    return pages, took


def _shown(pages: list[bytes], expected: int) -> dict[str, str]:
    """Return the names that are shown, each with the origin of its tool; raise `Failed` unless all are there."""
    shown = {}
    for page in pages:
        for tool in json.loads(message_in(page))["result"]["tools"]:
            if marked := _NAME.match(tool.get("description", "")):
                shown[tool["name"]] = marked[1]
    if len(set(shown.values())) != expected or len(shown) != expected:
        raise Failed(f"tools/list has {len(shown)} of {expected} tools")
    return shown


async def _calls(clients: list[Client], order: Order, shown: dict[str, str]) -> Tally:
    names = list(shown)[:: max(1, len(shown) // _MOST_TOOLS)]
    # Long messages are in memory once, whatever the number of connections and tools.
    filler = _filler(order.size)
    meta = json.dumps(clients[0].meta(), separators=(",", ":"))[1:-1].encode()
    after = filler + b"}" + (b"," + meta if meta else b"") + b"}}"
    callers = [
        _Caller(one, [_target(one, name, shown[name], len(after)) for name in names], number, filler, after)
        for number, one in enumerate(clients)
    ]
    warm = Tally()
    await asyncio.gather(*(one.run(time.perf_counter() + order.seconds / 4, warm) for one in callers))
    await _told_to_go()
    tally, began, cpu = Tally(), time.perf_counter(), time.process_time()
    await asyncio.gather(*(one.run(began + order.seconds, tally) for one in callers))
    tally.seconds, tally.load_seconds = time.perf_counter() - began, time.process_time() - cpu
    tally.wrong, tally.failed = tally.wrong + warm.wrong, tally.failed + warm.failed
    tally.first_failure = warm.first_failure or tally.first_failure
    return tally


async def _lists(client: Client, order: Order) -> Tally:
    pages, _ = await _walk(client)
    direct = await Client(order).open(order.direct_port, trusted=order.direct_trusted)
    await _told_to_go()
    tally, began, cpu = (
        Tally(list_pages=len(pages), list_bytes=sum(map(len, pages))),
        time.perf_counter(),
        time.process_time(),
    )
    while not tally.right or time.perf_counter() < began + order.seconds:
        again, took = await _walk(client, tally)
        if sum(len(_ORIGIN.findall(page)) for page in again) == order.tools:
            tally.right += 1
            tally.latencies.append(took)
        else:
            tally.refuse(200, b"tools/list without all tools: " + again[-1])
            break
    tally.seconds, tally.load_seconds = time.perf_counter() - began, time.process_time() - cpu
    beside = []
    for _ in range(max(5, tally.right)):
        requests = [_request_of(order, len(page)) for page in pages]
        began = time.perf_counter()
        for request in requests:
            await direct.exchange(request)
        beside.append(time.perf_counter() - began)
    tally.direct_p50_us = round(1e6 * percentile(sorted(beside), 0.5), 1)
    return tally


def _request_of(order: Order, size: int) -> bytes:
    return (
        f"POST /bytes/{size} HTTP/1.1\r\nhost: localhost:{order.direct_port}\r\ncontent-length: 2\r\n\r\n{{}}".encode()
    )


async def _told_to_go() -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)


async def run(order: Order) -> Tally:
    """Do what is ordered. Raises `Failed` if it cannot begin."""
    clients = [Client(order) for _ in range(1 if order.kind == "list" else order.connections)]
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            for one in clients:
                await one.open(order.port, trusted=order.trusted)
                await one.begin()
    except TimeoutError:
        raise Failed(f"{len(clients)} sessions are not open after {_ANSWER_SECONDS:g} seconds") from None
    shown = _shown((await _walk(clients[0]))[0], order.tools)
    tally = await (_lists(clients[0], order) if order.kind == "list" else _calls(clients, order, shown))
    ordered = sorted(tally.latencies)
    tally.p50_us = round(1e6 * percentile(ordered, 0.5), 1)
    tally.p99_us = round(1e6 * percentile(ordered, 0.99), 1)
    return tally


def main() -> None:
    order = Order(**json.loads(sys.stdin.readline()))
    try:
        answer = uvloop.run(run(order)).record()
    except TimeoutError:
        answer = {"error": f"no answer in {_ANSWER_SECONDS:g} seconds"}
    except (Failed, OSError) as error:
        answer = {"error": str(error)}
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
