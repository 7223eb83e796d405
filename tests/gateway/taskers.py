"""Clients that follow tasks, in the ways of both eras, and a gateway before two servers that have some."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mcp.shared.exceptions import MCPError

from tests.conformance.tasks import EXTENSION
from tests.gateway.conftest import connected, raw_client
from tests.gateway.servers.tasking import Tasking

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.gateway.conftest import Lab, Raw, Upstreams

V1, V2 = "2025-11-25", "2026-07-28"
WAYS = (V1, V2)
_CAPABLE = "io.modelcontextprotocol/clientCapabilities"


class Old:
    """A client of 2025-11-25, which says what is to be a task."""

    def __init__(self, client: Any) -> None:
        self.client = client

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        dispatcher = self.client.session._dispatcher
        answer: dict[str, Any] = await dispatcher.send_raw_request(method, params, {})
        return answer

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return await self.ask("tools/call", name=tool, arguments=arguments, task={"ttl": 60_000})

    async def begin(self, tool: str, **arguments: Any) -> str:
        return str((await self.call(tool, **arguments))["task"]["taskId"])

    async def outcome(self, id: str) -> dict[str, Any]:
        return await self.ask("tasks/result", taskId=id)


class New:
    """A client of 2026-07-28, which says that it can follow tasks."""

    def __init__(
        self,
        http: Raw,
        path: str = "/mcp",
        extensions: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.http = http
        self.headers = headers or {}
        self.path = path
        self.able = {"extensions": {EXTENSION: {}} if extensions is None else extensions, "elicitation": {"form": {}}}

    async def ask(self, method: str, *, header: str | None = None, **params: Any) -> dict[str, Any]:
        named = {"mcp-name": header or params["taskId"]} if "taskId" in params else {}
        body = {**params, "_meta": {_CAPABLE: self.able}}
        answer = (await self.http.post(method, body, headers={**self.headers, **named}, path=self.path)).json()
        if "error" in answer:
            raise MCPError(answer["error"]["code"], answer["error"]["message"], answer["error"].get("data"))
        found: dict[str, Any] = answer["result"]
        return found

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return await self.ask("tools/call", name=tool, arguments=arguments)

    async def begin(self, tool: str, **arguments: Any) -> str:
        return str((await self.call(tool, **arguments))["taskId"])

    async def outcome(self, id: str) -> dict[str, Any]:
        result: dict[str, Any] = (await self.ask("tasks/get", taskId=id))["result"]
        return result


@asynccontextmanager
async def speaking(way: str, address: str, path: str = "/mcp", **more: Any) -> AsyncIterator[Any]:
    """Give a client that speaks this version at an address."""
    if way == V1:
        async with connected(address + path, "legacy", **more) as client:
            yield Old(client)
    else:
        async with raw_client(address) as http:
            yield New(http, path)


def refused_by(way: str) -> str:
    """Return what a server that speaks this version alone refuses."""
    return "stateless" if way == V1 else "handshake"


@asynccontextmanager
async def two(way: str, lab: Lab, upstreams: Upstreams, **settings: Any) -> AsyncIterator[tuple[Tasking, Tasking, str]]:
    """Give two servers of one version whose tasks have the same ids, and the address of the gateway before them."""
    a, b = Tasking("a", refuses=refused_by(way)), Tasking("b", refuses=refused_by(way))
    async with (
        upstreams.serve(a.server) as first,
        upstreams.serve(b.server) as second,
        lab.serving(lab.at("a", first), lab.at("b", second), **settings) as address,
    ):
        yield a, b, address
