"""Clients of the replicas, over HTTP: cheap, kept alive, one request at a time, and every answer is classified.

All requests are those of 2026-07-28, which has no sessions: each goes to any replica. A client of a handshake version
would be another `Caller`, which opens a session at one replica and goes on with it at the others.
"""

from __future__ import annotations

import asyncio
import json
import random
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

    async def ask(self, replica: int, method: str, params: dict[str, Any], id: str) -> Answer:
        """Ask a replica, once."""
        try:
            async with asyncio.timeout(_PATIENCE):
                reader, writer = self._open.pop(replica) if replica in self._open else await self._connected(replica)
        except (OSError, TimeoutError) as error:
            return Answer("fail", code="unreachable", text=str(error))
        try:
            async with asyncio.timeout(_PATIENCE):
                writer.write(_request(method, params, id))
                status, body = await _response(reader)
        except (OSError, EOFError, asyncio.IncompleteReadError, TimeoutError) as error:
            writer.transport.abort()
            return Answer("info", code="lost", text=type(error).__name__)
        except BaseException:
            writer.transport.abort()
            raise
        self._open[replica] = reader, writer
        return _classified(status, body, id)

    async def _connected(self, replica: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self._ports[replica], limit=_LIMIT)

    def forget(self, replica: int) -> None:
        """Close the connection to a replica: the next request needs another one."""
        if (known := self._open.pop(replica, None)) is not None:
            known[1].transport.abort()

    def close(self) -> None:
        for replica in list(self._open):
            self.forget(replica)


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


async def _response(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if b"transfer-encoding: chunked" in head:
        body = b""
        while size := int(await reader.readuntil(b"\r\n"), 16):
            body += await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readexactly(2)
    else:
        body = await reader.readexactly(int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0))
    if b"text/event-stream" in head:
        body = [line[5:] for line in body.splitlines() if line.startswith(b"data:") and len(line) > len("data: ")][-1]
    return int(head[9:12]), body


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
    """The names that clients know: all that were ever shown, those shown last, and their ids."""

    ever: dict[str, str] = field(default_factory=dict)
    last: list[str] = field(default_factory=list)
    # Names of the steady server's tool and of the one that needs an approval.
    steady: str = ""
    guarded: str = ""
    _order: list[str] = field(default_factory=list)

    def take(self, tools: dict[str, tuple[str, int]]) -> None:
        for name, (id, _) in tools.items():
            if name not in self.ever:
                self.ever[name] = id
                self._order.append(name)
            if id == f"{STEADY[0]}@1/{STEADY[1]}@1":
                self.steady = name
            if id == f"{GUARDED[0]}@1/{GUARDED[1]}@1":
                self.guarded = name
        self.last = [name for name in tools if name != self.guarded]

    def draw(self, choose: random.Random) -> str:
        """Return a name or an id: mostly of the last lists, else any that was ever shown."""
        kind = choose.random()
        if kind < 0.1 or not self.last:
            return self.steady
        if kind < 0.7:
            return choose.choice(self.last)
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
        self.known.take(tools)
        return answer

    async def called(self, process: str, caller: Caller, replica: int, name: str, nonce: str, **about: bool) -> Answer:
        """Call a tool at a replica."""
        number = self._history.invoke(process, "call", replica, name=name, nonce=nonce, **about)
        params = {"name": name, "arguments": {"nonce": nonce}}
        answer = await caller.ask(replica, "tools/call", params, f"{nonce}.{number}")
        if answer.outcome == "ok":
            ran = Ran(**json.loads(answer.result["content"][0]["text"]))
            self._history.end(number, "ok", server=ran.server, tool=ran.tool, nonce=ran.nonce)
        else:
            self._history.end(number, answer.outcome, code=answer.code, text=answer.text)
        return answer

    async def work(self, number: int, is_up: Callable[[int], bool]) -> None:
        """List and call until the run is over: at any replica, mostly one that is up."""
        choose, caller, process = random.Random(f"{self._seed} {number}"), self.caller(), f"client-{number}"
        while not self.is_over:
            replica = choose.randrange(len(self._ports))
            if not is_up(replica) and choose.random() < 0.9:
                # Most balancers know who is down.
                await asyncio.sleep(0)
                if not any(map(is_up, range(len(self._ports)))):
                    await asyncio.sleep(0.05)
                continue
            if choose.random() < 0.02:
                caller.forget(replica)
            if choose.random() < 0.08 or not self.known.steady:
                answer = await self.listed(process, caller, replica)
            else:
                answer = await self.called(process, caller, replica, self.known.draw(choose), self.nonce())
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
