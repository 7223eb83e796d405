"""What the attacks share: servers that turn on those who ask them, the plain aggregator, and the gateway."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest
from mcp.shared.exceptions import MCPError
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from tests.attacks.plain import Plain
from tests.gateway.conftest import (  # noqa: F401 - fixtures
    Lab,
    Raw,
    Upstreams,
    anyio_backend,
    connect,
    connected,
    lab,
    raw,
    raw_client,
    text_of,
    upstreams,
)
from tests.support.gateway_memory import in_memory
from truename.config.trust import Trust
from truename.gateway import Gateway, listening
from truename.gateway.calls.draining import piped
from truename.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp import Client
    from starlette.requests import Request


def tool(name: str, description: str | None = None, **more: Any) -> dict[str, Any]:
    text = description or f"Has to do with {name}."
    return {"name": name, "description": text, "inputSchema": {"type": "object"}, **more}


class Source:
    """A server of the stateless era, or with a handshake: lists what it is told to, keeps all that it hears."""

    def __init__(self, key: str, *tools: dict[str, Any]) -> None:
        self.key, self.tools = key, list(tools)
        self.heads: list[dict[str, str]] = []
        self.called: list[dict[str, Any]] = []
        self.refuses: list[dict[str, Any]] = []
        self.says = ""
        self.has_sessions = False
        self.waits: dict[str, Any] | None = None
        self.app = Starlette(routes=[Route("/mcp", self.hear, methods=["GET", "POST", "DELETE"])])

    async def hear(self, request: Request) -> Response:
        self.heads.append(dict(request.headers))
        message = json.loads(await request.body() or b"{}")
        if request.method != "POST" or "id" not in message:
            return Response(status_code=202 if request.method == "POST" else 405)
        said: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] == "tools/call":
            self.called.append(message["params"])
            if self.refuses:
                return JSONResponse({**said, "error": self.refuses.pop(0)})
        # What answers the plain aggregator, which knows no handshake, is the same.
        if self.has_sessions and message["method"] == "server/discover":
            return JSONResponse({**said, "error": {"code": -32601, "message": "Method not found"}})
        return JSONResponse({**said, "result": self._result(message)})

    def _result(self, message: dict[str, Any]) -> dict[str, Any]:
        if message["method"] == "tools/call":
            if self.waits is not None and "requestState" not in message["params"]:
                return self.waits
            text = self.says or f"{self.key}:{message['params']['name']}"
            return {"resultType": "complete", "content": [{"type": "text", "text": text}]}
        listed = {"ttlMs": 0, "cacheScope": "public", "resultType": "complete"}
        if message["method"] == "tools/list":
            return {**listed, "tools": self.tools}
        able = {"capabilities": {"tools": {}}, "serverInfo": {"name": self.key, "version": "1"}}
        if message["method"] == "initialize":
            return {**able, "protocolVersion": message["params"]["protocolVersion"]}
        return {**listed, **able, "supportedVersions": ["2026-07-28"]}


class Voice:
    """A client of the SDK, asked in the words of `Raw`: over HTTP with sessions, or over a pipe without."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert (method, params) == ("tools/list", {})
        return {"tools": [one.model_dump(by_alias=True) for one in (await self.client.list_tools()).tools]}

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        try:
            return text_of(await self.client.call_tool(name, arguments))
        except MCPError as error:
            return str(error)


@asynccontextmanager
async def pipe_to(gateway: Gateway) -> AsyncIterator[Any]:
    """Serve a gateway as `serve_stdio` does, to a client in this process: what is written are messages, not lines."""
    with piped(gateway.registry.drain_tracker):
        async with in_memory(gateway.endpoint()) as streams:
            yield streams


# How clients come, and of which era the servers are: raw requests, a session over HTTP, a pipe without a handshake.
WAYS = ("raw", "session", "pipe")
every_way = pytest.mark.parametrize("bench", WAYS, indirect=True)


class Bench:
    """Both sides of a row: the same servers behind the plain aggregator, and behind the gateway."""

    def __init__(self, lab: Lab, upstreams: Upstreams, way: str = "raw") -> None:  # noqa: F811 - the fixtures above
        self.lab, self.upstreams, self.way = lab, upstreams, way

    @asynccontextmanager
    async def _urls(self, *sources: Source) -> AsyncIterator[dict[str, str]]:
        # One listener for all of them: a start each takes longer than most of the rows.
        together = Starlette(routes=[Mount(f"/{one.key}", one.app) for one in sources])
        async with self.upstreams.app(together) as address:
            yield {one.key: f"{address}/{one.key}/mcp" for one in sources}

    @asynccontextmanager
    async def plain(self, *sources: Source, **more: Any) -> AsyncIterator[Raw]:
        async with (
            self._urls(*sources) as urls,
            self.upstreams.app(Plain(urls, **more).app) as address,
            raw_client(address) as http,
        ):
            yield http

    @asynccontextmanager
    async def here(self, *sources: Source, trust: dict[str, Any] | None = None, **settings: Any) -> AsyncIterator[Raw]:
        """Serve by the gateway; what it wrote down of names and definitions outlives it, as on a disk it does."""
        ledger = str(self.lab.folder / "ledger")
        pins = Trust(pins=str(self.lab.folder / "pins"), **(trust or {}))
        more: dict[str, Any] = {"style": "prefixed", "trust": pins, "ledger": Ledger.open(ledger), **settings}
        for source in sources:
            source.has_sessions = self.way == "session"
        async with self._urls(*sources) as urls, AsyncExitStack() as stack:
            servers = [self.lab.at(key, url) for key, url in urls.items()]
            gateway = await stack.enter_async_context(self.lab.gateway(*servers, **more))
            if self.way == "pipe":
                client = await stack.enter_async_context(connected(pipe_to(gateway), "2026-07-28"))
            else:
                address = await stack.enter_async_context(listening(gateway))
                if self.way == "raw":
                    yield await stack.enter_async_context(raw_client(address))
                    return
                client = await stack.enter_async_context(connected(f"{address}/mcp", "legacy"))
            # In the words of `Raw` as far as rows of every way go.
            yield cast("Raw", Voice(client))


async def names(http: Raw) -> list[str]:
    return [one["name"] for one in (await http.result("tools/list", {}))["tools"]]


async def texts(http: Raw) -> dict[str, str]:
    return {one["name"]: one["description"] for one in (await http.result("tools/list", {}))["tools"]}


async def call(http: Raw, name: str, **more: Any) -> str:
    """Call: the text of what comes back, error or not."""
    if isinstance(http, Voice):
        return await http.call(name, more.get("arguments", {}))
    headers = {"mcp-name": name} if name.isascii() else {}
    answer = (await http.post("tools/call", {"name": name, "arguments": {}, **more}, headers=headers)).json()
    return str(answer["result"]["content"][0]["text"]) if "result" in answer else str(answer["error"])


@pytest.fixture
def bench(request: pytest.FixtureRequest, lab: Lab, upstreams: Upstreams) -> Bench:  # noqa: F811 - the fixtures above
    return Bench(lab, upstreams, getattr(request, "param", "raw"))
