"""The whole of the protocol (`servers/whole.py`) over HTTP, on the SDK's transport, which passes what it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated, ToolsListChanged
from mcp.shared.exceptions import MCPError

from tests.conformance.fixture import refusing
from tests.gateway.servers.whole import Refused, Whole

if TYPE_CHECKING:
    from mcp_types import ServerCapabilities


class _Announcing(Server[Any]):
    whole: Whole

    def get_capabilities(self, *_: Any, **__: Any) -> ServerCapabilities:
        return types.ServerCapabilities.model_validate(self.whole.capabilities)


class WholeServer(Whole):
    def __init__(self, label: str, version: str) -> None:
        super().__init__(label, version)
        self.bus = InMemorySubscriptionBus()
        self.watching: dict[str, list[Any]] = {}
        self.connections: list[Any] = []
        self.server = _Announcing(label, version="1", on_subscriptions_listen=ListenHandler(self.bus))
        self.server.whole = self
        self.server.middleware.append(refusing("handshake" if self.modern else "stateless"))
        self.server.middleware.append(self._middleware)

    async def _middleware(self, ctx: Any, call_next: Any) -> Any:
        if ctx.request_id is None or ctx.method in {"server/discover", "subscriptions/listen"}:
            return await call_next(ctx)
        if ctx.method == "initialize":
            self.connections.append(ctx.session._connection)
            # The SDK leaves out capabilities that its schema of the version does not have.
            said = {"protocolVersion": self.version, "capabilities": self.capabilities}
            return {**dict(await call_next(ctx)), **said}
        params = dict(ctx.params or {})
        if ctx.method == "resources/subscribe":
            self.watching.setdefault(params["uri"], []).append(ctx.session._connection)
        try:
            return await self.answer(ctx.method, params, _Stream(self, ctx))
        except Refused as refused:
            raise MCPError(**refused.error) from refused


class _Stream:
    def __init__(self, server: WholeServer, ctx: Any) -> None:
        self.server = server
        self.channel = ctx.session._request_outbound

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = await self.channel.send_raw_request(method, params, {})
        except MCPError as error:
            return {"refused": {"code": error.code, "message": error.message}}
        return answer

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        await self.channel.notify(method, params)

    async def touch(self, uri: str) -> None:
        await self.server.bus.publish(ResourceUpdated(uri=uri))
        for connection in self.server.watching.get(uri, ()):
            await connection.notify("notifications/resources/updated", {"uri": uri})

    async def changed(self) -> None:
        await self.server.bus.publish(ToolsListChanged())
        for connection in self.server.connections:
            await connection.notify("notifications/tools/list_changed", None)
