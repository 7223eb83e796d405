"""Clients of the replicas, over HTTP: cheap, kept alive, one request at a time, and every answer is classified.

A `Caller` speaks 2026-07-28, which has no sessions: each request goes to any replica. A `SessionCaller` speaks
2025-11-25: it opens a session at one replica and goes on with it at any of them. It leaves some streams, as if the
connection had been lost, and comes back for the answer with the id of the last event, at another replica.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from tests.chaos.replicas.checker import Ran

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.chaos.replicas.history import History, Outcome

__all__ = ["Answer", "Caller", "Clients", "Known", "direct_call"]

_VERSION: Final = "2026-07-28"
_HANDSHAKE: Final = "2025-11-25"
_NOT_FOUND: Final = 404
# A stream that cannot be resumed: its events are not stored any more, or its answer was read.
_GONE: Final = 400
_DONE: Final = 405
_UNAVAILABLE: Final = 503
# How often a client ends its session, leaves a stream, and has a call take longer than an answer that is no stream.
_ENDS: Final = 0.005
_LEAVES: Final = 0.5
_SLOW: Final = 0.04
_SPARED: Final = 0.99
_SECONDS: Final = 0.3
_RESUMPTIONS: Final = 20
_SESSIONS: Final = 4
_META: Final = "io.modelcontextprotocol/"
_OWN: Final = "dev.truename/"
_PATIENCE: Final = 5.0
_LIMIT: Final = 16 * 1024 * 1024
# Errors that say so promise that nothing happened.
_PROMISES: Final = ("nothing was run", "not sent", "is not unique", "needs an approval")
_DEFINITION: Final = "definition "
STEADY: Final = ("steady", "echo")
GUARDED: Final = ("vault", "danger")


@dataclass(frozen=True)
class Answer:
    """How a request ended, and its result."""

    outcome: Outcome
    result: dict[str, Any] = field(default_factory=dict)
    code: str = ""
    text: str = ""


class Caller:
    """One client's connections to each replica."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = ports
        self._open: dict[int, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}

    @property
    def session(self) -> str:
        """What the history calls the session in which the next request is made; "" without one."""
        return ""

    async def ask(self, replica: int, method: str, params: dict[str, Any], id: str) -> Answer:
        """Ask a replica, once."""
        found = await self._exchanged(replica, _request(method, params, id))
        return found if isinstance(found, Answer) else _classified(found.status, found.body, id)

    async def _exchanged(self, replica: int, request: bytes, *, leaves: bool = False) -> Response | Answer:
        """Return the response to a request, or how it failed; ``leaves``: only its beginning, if it is a stream."""
        try:
            async with asyncio.timeout(_PATIENCE):
                reader, writer = self._open.pop(replica) if replica in self._open else await self._connected(replica)
        except (OSError, TimeoutError) as error:
            return Answer("fail", code="unreachable", text=str(error))
        try:
            async with asyncio.timeout(_PATIENCE):
                writer.write(request)
                found = await _response(reader, leaves=leaves)
        except (OSError, EOFError, asyncio.IncompleteReadError, TimeoutError) as error:
            writer.transport.abort()
            return Answer("info", code="lost", text=type(error).__name__)
        except BaseException:
            writer.transport.abort()
            raise
        if found.is_left:
            writer.transport.abort()
        else:
            self._open[replica] = reader, writer
        return found

    async def _connected(self, replica: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self._ports[replica], limit=_LIMIT)

    def forget(self, replica: int) -> None:
        """Close the connection to a replica: the next request needs another one."""
        if (known := self._open.pop(replica, None)) is not None:
            known[1].transport.abort()

    def close(self) -> None:
        for replica in list(self._open):
            self.forget(replica)


class SessionCaller(Caller):
    """One client with some sessions, each of which it ends now and then to begin another one."""

    def __init__(self, ports: Sequence[int], number: int, seed: int) -> None:
        super().__init__(ports)
        self._number = number
        self._sessions = count(1)
        self._random = random.Random(f"session {seed} {number}")
        # Ids and names of sessions, and the place of the one in which requests are made now.
        self._open_sessions = [("", "")] * _SESSIONS
        self._now = 0

    @property
    def _id(self) -> str:
        return self._open_sessions[self._now][0]

    def _begin(self, id: str = "") -> None:
        name = f"{self._number}.{next(self._sessions)}" if id else ""
        self._open_sessions[self._now] = id, name

    @property
    def session(self) -> str:
        return self._open_sessions[self._now][1]

    async def opened(self, replica: int) -> Answer | None:
        """Take another session; open it at a replica unless it is open; return how that failed."""
        self._now = self._random.randrange(_SESSIONS)
        if self._id and self._random.random() < _ENDS:
            await self._exchanged(replica, self._http("DELETE"))
            self._begin()
        if self._id:
            return None
        params = {"protocolVersion": _HANDSHAKE, "capabilities": {}, "clientInfo": {"name": "chaos", "version": "1"}}
        found = await self._exchanged(replica, self._http("POST", "initialize", params, "open"))
        if isinstance(found, Answer):
            # Nothing was called.
            return Answer("fail", code=found.code, text=found.text)
        if not found.session:
            return Answer("fail", code=f"http {found.status}", text=found.body[:200].decode("latin-1"))
        self._begin(found.session)
        await self._exchanged(replica, self._http("POST", "notifications/initialized", {}))
        return None

    async def ask(self, replica: int, method: str, params: dict[str, Any], id: str) -> Answer:
        """Ask a replica in the session, once; come back for what was left elsewhere."""
        leaves = self._random.random() < _LEAVES
        found = await self._exchanged(replica, self._http("POST", method, params, id), leaves=leaves)
        if isinstance(found, Answer):
            return found
        last = found.last
        for _ in range(_RESUMPTIONS):
            if not found.is_left:
                break
            replica = self._random.randrange(len(self._ports))
            again = await self._exchanged(replica, self._http("GET", last=last))
            if isinstance(again, Answer) or again.status == _UNAVAILABLE:
                await asyncio.sleep(0.1)
            elif again.status in {_DONE, _GONE}:
                # The call may have been run.
                return Answer("info", code=f"http {again.status}", text=again.body[:200].decode("latin-1"))
            else:
                found, last = again, again.last or last
        if found.is_left:
            return Answer("info", code="lost", text="its stream cannot be resumed")
        if found.status == _NOT_FOUND:
            # A session that nobody ended is found at any replica.
            self._begin()
            return Answer("fail", code="session not found", text=found.body[:200].decode("latin-1"))
        return _classified(found.status, found.body, id)

    def _http(
        self, verb: str, method: str = "", params: dict[str, Any] | None = None, id: str = "", *, last: str = ""
    ) -> bytes:
        message = {"jsonrpc": "2.0", "method": method, "params": params, **({"id": id} if id else {})}
        body = json.dumps(message).encode() if method else b""
        accepted = "text/event-stream" if verb == "GET" else "application/json, text/event-stream"
        head = (
            f"{verb} /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            f"accept: {accepted}\r\nmcp-protocol-version: {_HANDSHAKE}\r\ncontent-length: {len(body)}\r\n"
        )
        head += f"mcp-session-id: {self._id}\r\n" if self._id else ""
        head += f"last-event-id: {last}\r\n" if last else ""
        return head.encode() + b"\r\n" + body


def _request(method: str, params: dict[str, Any], id: str) -> bytes:
    meta = {
        f"{_META}protocolVersion": _VERSION,
        f"{_META}clientInfo": {"name": "chaos", "version": "1"},
        f"{_META}clientCapabilities": {},
    }
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": meta}}
    body = json.dumps(message).encode()
    name = f"mcp-name: {params['name']}\r\n" if "name" in params else ""
    head = (
        "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        f"accept: application/json, text/event-stream\r\nmcp-protocol-version: {_VERSION}\r\n"
        f"mcp-method: {method}\r\n{name}content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


@dataclass(frozen=True)
class Response:
    """A response of HTTP; the body of a stream is the data of its last message, and ``last`` the id of its last event.

    A stream that ended before its message, or was left, ``is_left``: the client comes back for the message.
    """

    status: int
    body: bytes
    session: str = ""
    last: str = ""
    is_left: bool = False


async def _response(reader: asyncio.StreamReader, *, leaves: bool = False) -> Response:
    head = await reader.readuntil(b"\r\n\r\n")
    status, session = int(head[9:12]), _header(head, b"mcp-session-id")
    is_stream = b"text/event-stream" in head
    if _header(head, b"transfer-encoding") != "chunked":
        body = await reader.readexactly(int(_header(head, b"content-length") or 0))
        return Response(status, _data(body) if is_stream else body, session)
    body = b""
    try:
        while size := int(await reader.readuntil(b"\r\n"), 16):
            body += await reader.readexactly(size)
            await reader.readexactly(2)
            if leaves and is_stream and not _data(body) and (last := _field(body, b"id:")):
                return Response(status, b"", session, last, is_left=True)
        await reader.readexactly(2)
    except (OSError, asyncio.IncompleteReadError):
        if not (is_stream and (last := _field(body, b"id:"))):
            raise
        return Response(status, b"", session, last, is_left=True)
    if not is_stream:
        return Response(status, body, session)
    return Response(status, _data(body), session, _field(body, b"id:"), is_left=not _data(body))


def _header(head: bytes, name: bytes) -> str:
    found = re.search(rb"(?im)^%s: *(.*?)\r$" % name, head)
    return found[1].decode("latin-1") if found else ""


def _field(events: bytes, name: bytes) -> str:
    """Return the last value of a field of events that is not empty."""
    values = [line[len(name) :].strip() for line in events.splitlines() if line.startswith(name)]
    return next((value.decode() for value in reversed(values) if value), "")


def _data(events: bytes) -> bytes:
    return _field(events, b"data:").encode()


def _classified(status: int, body: bytes, id: str) -> Answer:
    try:
        message = json.loads(body)
    except ValueError:
        return Answer("info", code=f"http {status}", text=body[:200].decode("latin-1"))
    if message.get("id") not in {id, None}:
        return Answer("info", code="wrong id", text=str(message)[:200])
    if (error := message.get("error")) is not None:
        said = error if isinstance(error, dict) else {"code": f"http {status}", "message": error}
        text = str(said["message"])
        return Answer("fail" if _promises(text) else "info", code=str(said["code"]), text=text[:300])
    result = message["result"]
    if not result.get("isError"):
        return Answer("ok", result)
    text = "".join(part.get("text", "") for part in result.get("content", ()))
    code = (result.get("_meta") or {}).get(f"{_OWN}error", "tool")
    return Answer("fail" if _promises(text) else "info", result, code, text[:300])


def _promises(text: str) -> bool:
    return any(promise in text for promise in _PROMISES)


@dataclass
class Known:
    """The names that clients know: all that were ever shown, with their ids, and those shown last."""

    ever: dict[str, str] = field(default_factory=dict)
    # By replica: their lists differ while they learn of changes.
    last: dict[int, list[str]] = field(default_factory=dict)
    # Names of the steady server's tool and of the one that needs an approval.
    steady: str = ""
    guarded: str = ""
    _order: list[str] = field(default_factory=list)

    def take(self, replica: int, tools: dict[str, tuple[str, int]]) -> None:
        for name, (id, _) in tools.items():
            if name not in self.ever:
                self.ever[name] = id
                self._order.append(name)
            if id == f"{STEADY[0]}@1/{STEADY[1]}@1":
                self.steady = name
            if id == f"{GUARDED[0]}@1/{GUARDED[1]}@1":
                self.guarded = name
        self.last[replica] = [name for name in tools if name != self.guarded]

    def draw(self, choose: random.Random, replica: int) -> str:
        """Return a name or an id: mostly of a replica's last list, else any that was ever shown."""
        kind, last = choose.random(), self.last.get(replica)
        if kind < 0.1 or not last:
            return self.steady
        if kind < 0.75:
            return choose.choice(last)
        # Half of the old ones are recent.
        recent = self._order[-200:] if kind < 0.85 else self._order
        name = choose.choice(recent)
        if name == self.guarded:
            return self.steady
        return self.ever[name] if kind > 0.97 else name


class Clients:
    """All clients of a run, which write what they do into one history."""

    def __init__(self, history: History, ports: Sequence[int], seed: int) -> None:
        self.known = Known()
        self._history = history
        self._ports = ports
        self._seed = seed
        self._nonces = count(1)
        self._callers: list[Caller] = []
        self.is_over = False

    def caller(self) -> Caller:
        self._callers.append(found := Caller(self._ports))
        return found

    def session_caller(self) -> SessionCaller:
        found = SessionCaller(self._ports, len(self._callers), self._seed)
        self._callers.append(found)
        return found

    def close(self) -> None:
        for one in self._callers:
            one.close()

    def nonce(self) -> str:
        return f"{self._seed}-{next(self._nonces)}"

    async def listed(self, process: str, caller: Caller, replica: int) -> Answer:
        """List the tools at a replica."""
        number = self._history.invoke(process, "list", replica)
        answer = await caller.ask(replica, "tools/list", {}, f"list-{number}")
        if answer.outcome != "ok":
            # A list changes nothing.
            self._history.end(number, "fail", code=answer.code, text=answer.text)
            return answer
        tools = {
            tool["name"]: (tool["canonical_name"], int(tool["description"].rpartition(_DEFINITION)[2].rstrip(".")))
            for tool in answer.result["tools"]
        }
        self._history.end(number, "ok", tools=tools)
        self.known.take(replica, tools)
        return answer

    async def called(
        self,
        process: str,
        caller: Caller,
        replica: int,
        name: str,
        nonce: str,
        *,
        seconds: float = 0.0,
        **about: bool | str,
    ) -> Answer:
        """Call a tool at a replica; its server answers after some seconds."""
        if caller.session:
            about["session"] = caller.session
        number = self._history.invoke(process, "call", replica, name=name, nonce=nonce, **about)
        params = {"name": name, "arguments": {"nonce": nonce, **({"seconds": seconds} if seconds else {})}}
        answer = await caller.ask(replica, "tools/call", params, f"{nonce}.{number}")
        if answer.outcome == "ok":
            ran = Ran(**json.loads(answer.result["content"][0]["text"]))
            self._history.end(number, "ok", server=ran.server, tool=ran.tool, nonce=ran.nonce, by=ran.by, at=ran.at)
        else:
            self._history.end(number, answer.outcome, code=answer.code, text=answer.text)
        return answer

    async def work(self, number: int, is_up: Callable[[int], bool]) -> None:
        """List and call until the run is over: at any replica, mostly one that is up."""
        choose, process = random.Random(f"{self._seed} {number}"), f"client-{number}"
        # Every other one has sessions.
        caller: Caller | SessionCaller = self.session_caller() if number % 2 else self.caller()
        while not self.is_over:
            replica = choose.randrange(len(self._ports))
            if not is_up(replica) and choose.random() < _SPARED:
                # Most balancers know who is down, and who asks one that is stopped waits for long.
                await asyncio.sleep(0)
                if not any(map(is_up, range(len(self._ports)))):
                    await asyncio.sleep(0.05)
                continue
            if choose.random() < 0.02:
                caller.forget(replica)
            if isinstance(caller, SessionCaller) and await caller.opened(replica) is not None:
                await asyncio.sleep(0.05)
                continue
            if choose.random() < 0.08 or not self.known.steady:
                answer = await self.listed(process, caller, replica)
            else:
                name, seconds = self.known.draw(choose, replica), _SECONDS if choose.random() < _SLOW else 0.0
                answer = await self.called(process, caller, replica, name, self.nonce(), seconds=seconds)
            if answer.code == "unreachable":
                await asyncio.sleep(0.02)

    async def watch(self, number: int, replica: int) -> None:
        """Call the steady server through one replica, again and again."""
        process, caller = f"watch-{replica}-{number}", self.caller()
        while not self.is_over:
            if self.known.steady:
                await self.called(process, caller, replica, self.known.steady, self.nonce())
            await asyncio.sleep(0.2)


async def direct_call(port: int, nonce: str) -> None:
    """Call the steady server beside the gateways; what that takes, the machine takes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with suppress(OSError):
        try:
            writer.write(_request("ping", {}, nonce))
            await _response(reader)
        finally:
            writer.transport.abort()
