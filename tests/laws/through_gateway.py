"""The law of `resolution` through a running gateway: real calls over HTTP, in both protocol versions.

The servers behind the gateway list what the law wants, and answer each call with their own label and the tool's own
name, so that a wrong tool is seen for what it is. All that the oracle knows, it has from tools/list.
"""

from __future__ import annotations

import base64
import json
import random
import tempfile
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import httpx2

from tests.gateway.conftest import Upstreams
from tests.laws.drawing import changed, servers_drawn, spelled, text_at_random
from tests.laws.oracle import Oracle, ToolRecord
from truename import Ledger, ToolId
from truename.config import Config, ServerConfig, Settings
from truename.config.trust import Trust
from truename.errors import TruenameError
from truename.gateway import Gateway, listening
from truename.policy.profiles import Profile, Profiles

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from starlette.types import Receive, Scope, Send

__all__ = ["GatewayRun", "judged_through_a_gateway"]

STATELESS, HANDSHAKE = "2026-07-28", "2025-11-25"
_ORIGIN: Final = "law/origin"
_PATHS: Final = ("/mcp", "/mcp", "/mcp/for/openai", "/mcp/for/claude-code", "/mcp/for/native")
_PATIENCE: Final = 30.0
_CALLS_A_TABLE: Final = 60
_MOST_CHANGES: Final = 8


class ListedServer:
    """An MCP server over HTTP that lists what it is given, tells of changes, and answers calls with what was called."""

    def __init__(self, label: str, names: list[str]) -> None:
        self.label = label
        self.names = names
        self.changes = 0
        self._streams: list[anyio.Event] = []
        self._is_heard = anyio.Event()
        self._is_closed = False

    def close(self) -> None:
        self._is_closed = True
        self._tell()

    async def change(self, names: list[str]) -> None:
        """List other tools, and tell the gateway so, once it listens."""
        await self._is_heard.wait()
        self.changes += 1
        self.names = names
        self._tell()

    def _tell(self) -> None:
        for stream in self._streams:
            stream.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", "it has no life beside its requests"
        if scope["method"] == "GET":
            await self._announce(send)
        elif scope["method"] == "POST":
            await self._post(receive, send)
        else:
            await _respond(send, 200, b"")

    async def _post(self, receive: Receive, send: Send) -> None:
        body, is_more = b"", True
        while is_more:
            message = await receive()
            body, is_more = body + message.get("body", b""), message.get("more_body", False)
        request = json.loads(body)
        if "id" not in request:
            await _respond(send, 202, b"")
            return
        answer = {"jsonrpc": "2.0", "id": request["id"], **self._answer(request["method"], request.get("params") or {})}
        await _respond(send, 200, json.dumps(answer).encode())

    def _answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "initialize":
            capabilities = {"tools": {"listChanged": True}}
            server = {"name": self.label, "version": "1"}
            return {"result": {"protocolVersion": HANDSHAKE, "capabilities": capabilities, "serverInfo": server}}
        if method == "tools/list":
            return {"result": {"tools": [self._listed(name) for name in self.names]}}
        if method == "tools/call":
            ran = json.dumps([self.label, params["name"]])
            return {"result": {"content": [{"type": "text", "text": ran}]}}
        return {"result": {}} if method == "ping" else {"error": {"code": -32601, "message": "Method not found"}}

    def _listed(self, name: str) -> dict[str, Any]:
        return {"name": name, "inputSchema": {"type": "object"}, "_meta": {_ORIGIN: [self.label, name]}}

    async def _announce(self, send: Send) -> None:
        stream = anyio.Event()
        self._streams.append(stream)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        await send({"type": "http.response.body", "body": b": open\n\n", "more_body": True})
        self._is_heard.set()
        while True:
            await stream.wait()
            self._streams.remove(stream)
            if self._is_closed:
                await send({"type": "http.response.body", "body": b""})
                return
            stream = anyio.Event()
            self._streams.append(stream)
            news = json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            body = f"event: message\ndata: {news}\n\n".encode()
            await send({"type": "http.response.body", "body": body, "more_body": True})


async def _respond(send: Send, status: int, body: bytes) -> None:
    # Only a server with sessions is asked for a stream of its news.
    length = str(len(body)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", length), (b"mcp-session-id", b"law")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Caller:
    """A client that speaks JSON-RPC by hand, so that any text can be sent as a name."""

    def __init__(self, http: httpx2.AsyncClient, address: str) -> None:
        self._http = http
        self._address = address
        self._sessions: dict[str, str] = {}
        self._last = 0

    async def ask(self, path: str, version: str, method: str, **params: Any) -> dict[str, Any]:
        """Send one request and return the whole response."""
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": version}
        if version == STATELESS:
            headers["mcp-method"] = method
            if "name" in params:
                coded = base64.b64encode(params["name"].encode()).decode()
                headers["mcp-name"] = f"=?base64?{coded}?="
            meta = {f"io.modelcontextprotocol/{key}": value for key, value in _META.items()}
            params = {**params, "_meta": meta}
        else:
            if path not in self._sessions:
                self._sessions[path] = await self._begin(path, headers)
            headers["mcp-session-id"] = self._sessions[path]
        return _message(await self._post(path, method, params, headers))

    async def _begin(self, path: str, headers: dict[str, str]) -> str:
        params = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": {"name": "law", "version": "1"}}
        begun = await self._post(path, "initialize", params, headers)
        session = begun.headers["mcp-session-id"]
        news = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await self._http.post(self._address + path, json=news, headers={**headers, "mcp-session-id": session})
        return session

    async def _post(self, path: str, method: str, params: dict[str, Any], headers: dict[str, str]) -> httpx2.Response:
        self._last += 1
        body = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        return await self._http.post(self._address + path, json=body, headers=headers)


_META: Final = {"protocolVersion": STATELESS, "clientCapabilities": {}}


def _message(response: httpx2.Response) -> dict[str, Any]:
    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        answer: dict[str, Any] = response.json()
        return answer
    lines = [line.removeprefix("data:") for line in response.text.splitlines() if line.startswith("data:")]
    said = [json.loads(line) for line in lines if line.strip()]
    return next(one for one in said if "result" in one or "error" in one)


@dataclass
class GatewayRun:
    """One gateway, its servers, and the oracle beside it."""

    draw: random.Random
    count: Counter[str]
    caller: Caller
    ledger: Ledger
    servers: dict[str, ListedServer]
    oracle: Oracle = field(default_factory=lambda: Oracle(remembers=True))
    log: list[str] = field(default_factory=list)
    ids: dict[tuple[str, str], str] = field(default_factory=dict)
    # The addresses whose lists were asked for, the first one first.
    asked: dict[str, None] = field(default_factory=dict)
    # The servers that the profile "part" shows; None where there are no profiles.
    seen: tuple[str, ...] | None = None

    async def change(self) -> None:
        """Have a server list other tools: some join, some leave, some are renamed, some come back."""
        drawn = servers_drawn(self.draw)
        # The lists of a server that does not cease to change are read less and less often.
        calm = sorted(label for label, server in self.servers.items() if server.changes < _MOST_CHANGES)
        label = self.draw.choice(calm or sorted(self.servers))
        server = self.servers[label]
        past = [name for owner, name in self.ids if owner == label]
        new = [name for names in drawn.values() for name in names]
        names = [name for name in server.names if self.draw.random() < 0.7]
        names += self.draw.sample(past, min(len(past), self.draw.randrange(3)))
        names += self.draw.sample(new, min(len(new), self.draw.randrange(4)))
        if server.names and self.draw.random() < 0.3:
            names.append(changed(self.draw, self.draw.choice(server.names)))
        names = [name for name in dict.fromkeys(names) if name.strip() and name.isprintable()][:8]
        self.log.append(f"{label} lists {names}")
        await server.change(names)

    def operate(self) -> None:
        """Have an operator retire or redirect a name, or an id."""
        oracle, draw = self.oracle, self.draw
        names = sorted(name for name in oracle.shown if not set("/~%") & set(name))
        if not names:
            return
        new = draw.choice(sorted(oracle.known))
        old = draw.choice((draw.choice(names), draw.choice(sorted(oracle.known)), spelled(draw, oracle)))
        is_id = "@" in old and "/" in old
        if old in oracle.retired or not (old.strip() and old.isprintable()) or (set("/~%") & set(old) and not is_id):
            return
        try:
            if draw.random() < 0.3 and old in names and old not in oracle.moved:
                self.ledger.retire(old)
                oracle.retire(old)
                self.log.append(f"retire {old!r}")
            else:
                self.ledger.redirect(old, ToolId.parse(new))
                oracle.redirect(old, new)
                self.log.append(f"redirect {old!r} to {new}")
        except TruenameError as error:
            self.log.append(f"refused: {error}")

    async def listed(self, path: str, version: str) -> list[str]:
        """Take in the list of a view, once it has what the servers list; return what the list breaks.

        First the lists of all views that were asked for before: the gateway makes those anew too, with names that are
        shown to their clients from then on.
        """
        before = [other for other in self.asked if other != path]
        self.asked[path] = None
        return [text for each in (*before, path) for text in await self._taken_in(each, version)]

    async def _taken_in(self, path: str, version: str) -> list[str]:
        wanted = {(label, name) for label, server in self.servers.items() for name in server.names}
        found: set[tuple[str, str]] | None = None
        with anyio.move_on_after(_PATIENCE):
            while found != wanted:
                tools = (await self.caller.ask(path, version, "tools/list"))["result"]["tools"]
                found = {tuple(tool["_meta"][_ORIGIN]) for tool in tools}
                await anyio.sleep(0.01)
        if found != wanted:
            return [f"{path} lists {sorted(found or ())}, not {sorted(wanted)}"]
        self.log.append(f"{path} shows " + ", ".join(f"{t['name']} = {t['canonical_name']}" for t in tools))
        records = [ToolRecord(tool["canonical_name"], *tool["_meta"][_ORIGIN]) for tool in tools]
        self.ids |= {(tool.label, tool.name): tool.id for tool in records}
        names = {tool["canonical_name"]: tool["name"] for tool in tools}
        return self.oracle.projected(records, names, canonical=all(id == name for id, name in names.items()))

    async def narrowed(self, path: str) -> tuple[str, frozenset[str], list[str]]:
        """Choose who calls: return the path, what is hidden there, and what its list breaks."""
        if self.seen is None or self.draw.random() < 0.5:
            return path, frozenset(), []
        hidden = {id for id, tool in self.oracle.known.items() if tool.label not in self.seen}
        names = {id: name for name, id in self.oracle.table.items() if id not in hidden}
        path = f"{path}/profile/part"
        tools = (await self.caller.ask(path, STATELESS, "tools/list"))["result"]["tools"]
        shown = {tool["canonical_name"]: tool["name"] for tool in tools}
        return path, frozenset(hidden), [] if shown == names else [f"{path} shows {shown}, not {names}"]

    async def call(self, path: str, version: str, text: str, hidden: frozenset[str]) -> str:
        """Call a text; return what is wrong with what it ran."""
        verdict = self.oracle.verdict(text, hidden)
        self.count[verdict.kind] += 1
        answer = await self.caller.ask(path, version, "tools/call", name=text, arguments={})
        result = answer.get("result", {})
        if "error" in answer or result.get("isError"):
            return verdict.objection(None, result.get("_meta", {}).get("dev.truename/error", ""))
        label, name = json.loads(result["content"][0]["text"])
        return verdict.objection(self.ids[label, name])

    async def live(self, texts: int, tables: int) -> list[str]:
        """Change, list and call until enough texts were sent; return what breaks the law."""
        if broken := await self.listed("/mcp", STATELESS):
            return [*self.log, *broken]
        for _ in range(tables):
            await self.change()
            # What the gateway claims for its own list, the oracle has to see.
            if broken := await self.listed("/mcp", HANDSHAKE):
                return [*self.log, *broken]
            if self.draw.random() < 0.3:
                self.operate()
            path = self.draw.choice(_PATHS)
            for one in dict.fromkeys(("/mcp", path)):
                if broken := await self.listed(one, self.draw.choice((STATELESS, HANDSHAKE))):
                    return [*self.log, *broken]
            path, hidden, broken = await self.narrowed(path)
            if broken:
                return [*self.log, *broken]
            for i in range(min(_CALLS_A_TABLE, texts)):
                text = spelled(self.draw, self.oracle) if i % 2 else text_at_random(self.draw)
                if wrong := await self.call(path, self.draw.choice((STATELESS, HANDSHAKE)), text, hidden):
                    return [*self.log, f"{path}, text {text!r}: {wrong}"]
        return []


@asynccontextmanager
async def _running(draw: random.Random, folder: Path) -> AsyncIterator[GatewayRun]:
    servers = {label: ListedServer(label, names) for label, names in servers_drawn(draw).items()}
    async with AsyncExitStack() as stack:
        entries = []
        for label, server in servers.items():
            address = await stack.enter_async_context(Upstreams().app(server))
            stack.callback(server.close)
            entries.append(ServerConfig(key=label, url=address + "/mcp", type="http"))
        # Tools whose names look alike are what this is about: none of them waits for a review.
        trust = Trust(rules=dict.fromkeys(("shadowed_tool", "near_name", "confusable_name"), "warn"))
        settings = Settings(startup_timeout=20.0, style=draw.choice(("prefixed", "on-conflict")), trust=trust)
        path = folder / "names.ledger"
        seen = tuple(draw.sample(sorted(servers), max(1, len(servers) - 1))) if draw.random() < 0.5 else None
        if seen is not None:
            everything, part = Profile(servers=("*",), everyone=True), Profile(servers=seen, everyone=True)
            settings = replace(settings, profiles=Profiles({"all": everything, "part": part}))
        config = Config(servers=tuple(entries), settings=settings)
        gateway = await stack.enter_async_context(Gateway(config, ledger=Ledger.open(path)))
        address = await stack.enter_async_context(listening(gateway))
        http = await stack.enter_async_context(httpx2.AsyncClient(timeout=_PATIENCE))
        begun = [f"style {settings.style!r}", *(f"{label} lists {server.names}" for label, server in servers.items())]
        run = GatewayRun(draw, Counter(), Caller(http, address), Ledger.open(path), servers, log=begun, seen=seen)
        yield run


async def judged_through_a_gateway(
    seed: int, texts: int, tell: Callable[[Counter[str]], Awaitable[None]] | None = None
) -> tuple[Counter[str], list[str]]:
    """Run gateways until so many texts were called; return the counts, and the first life that breaks the law."""
    total: Counter[str] = Counter()
    draw = random.Random(seed)
    while total.total() < texts:
        with tempfile.TemporaryDirectory() as folder:
            async with _running(draw, Path(folder)) as run:
                broken = await run.live(
                    texts, max(1, min(_MOST_CHANGES * len(run.servers), 12, (texts - total.total()) // _CALLS_A_TABLE))
                )
            total += run.count
        if tell is not None:
            await tell(total)
        if broken:
            return total, broken
    return total, []
