"""What the attacks share: servers that turn on those who ask them, the plain aggregator, and the gateway."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.attacks.plain import Plain
from tests.gateway.conftest import (  # noqa: F401 - fixtures
    Lab,
    Raw,
    Upstreams,
    anyio_backend,
    connect,
    lab,
    raw,
    raw_client,
    upstreams,
)
from truename.config.trust import Trust
from truename.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request


def tool(name: str, description: str | None = None, **more: Any) -> dict[str, Any]:
    text = description or f"Has to do with {name}."
    return {"name": name, "description": text, "inputSchema": {"type": "object"}, **more}


class Source:
    """A server of the stateless era: lists what it is told to, says who answered, keeps all that it hears."""

    def __init__(self, key: str, *tools: dict[str, Any]) -> None:
        self.key, self.tools = key, list(tools)
        self.heads: list[dict[str, str]] = []
        self.called: list[dict[str, Any]] = []
        self.refuses: list[dict[str, Any]] = []
        self.says = ""
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
        return {**listed, **able, "supportedVersions": ["2026-07-28"]}


class Bench:
    """Both sides of a row: the same servers behind the plain aggregator, and behind the gateway."""

    def __init__(self, lab: Lab, upstreams: Upstreams) -> None:  # noqa: F811 - the fixtures above
        self.lab, self.upstreams = lab, upstreams

    @asynccontextmanager
    async def _urls(self, *sources: Source) -> AsyncIterator[dict[str, str]]:
        async with AsyncExitStack() as stack:
            yield {one.key: await stack.enter_async_context(self.upstreams.app(one.app)) + "/mcp" for one in sources}

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
        async with (
            self._urls(*sources) as urls,
            self.lab.serving(*(self.lab.at(key, url) for key, url in urls.items()), **more) as address,
            raw_client(address) as http,
        ):
            yield http


async def names(http: Raw) -> list[str]:
    return [one["name"] for one in (await http.result("tools/list", {}))["tools"]]


async def texts(http: Raw) -> dict[str, str]:
    return {one["name"]: one["description"] for one in (await http.result("tools/list", {}))["tools"]}


async def call(http: Raw, name: str, **more: Any) -> str:
    """Call: the text of what comes back, error or not."""
    headers = {"mcp-name": name} if name.isascii() else {}
    answer = (await http.post("tools/call", {"name": name, "arguments": {}, **more}, headers=headers)).json()
    return str(answer["result"]["content"][0]["text"]) if "result" in answer else str(answer["error"])


@pytest.fixture
def bench(lab: Lab, upstreams: Upstreams) -> Bench:  # noqa: F811 - the fixtures above
    return Bench(lab, upstreams)
