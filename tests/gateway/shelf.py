"""A server of prompts and resources, in the test's process, that notes what it was asked."""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
)
from mcp.shared.exceptions import MCPError

from tests.conformance.fixture import refusing


class _Announcing(Server[Any]):
    def create_initialization_options(self, notification_options: NotificationOptions | None = None, *a: Any) -> Any:
        options = NotificationOptions(prompts_changed=True, resources_changed=True)
        return super().create_initialization_options(notification_options or options, *a)


class Shelf:
    """Prompts say their names; resources say whose they are. Lists can be changed while it runs.

    ``refuses`` are the eras (``stateless`` or ``handshake``) that it does not speak.
    """

    def __init__(
        self,
        label: str,
        *,
        prompts: tuple[str, ...] = (),
        uris: tuple[str, ...] = (),
        templates: tuple[str, ...] = (),
        refuses: str = "",
    ) -> None:
        self.label = label
        self.prompts = list(prompts)
        self.uris = list(uris)
        self.templates = list(templates)
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self._sessions: dict[str, list[Any]] = {}
        self._bus = InMemorySubscriptionBus()
        handlers: dict[str, Any] = {}
        if prompts:
            handlers |= {"on_list_prompts": self._list_prompts, "on_get_prompt": self._prompt}
        if uris or templates:
            handlers |= {
                "on_list_resources": self._list,
                "on_list_resource_templates": self._list_templates,
                "on_read_resource": self._read,
            }
        self.server = _Announcing(label, on_subscriptions_listen=ListenHandler(self._bus), **handlers)
        self.server.add_request_handler("resources/subscribe", types.SubscribeRequestParams, self._watch)
        self.server.add_request_handler("test/vendor", types.RequestParams, self._vendor)
        self.server.middleware.append(self._note)
        if refuses:
            self.server.middleware.append(refusing(refuses))

    async def change(self) -> None:
        await self._bus.publish(PromptsListChanged())
        await self._bus.publish(ResourcesListChanged())

    async def update(self, uri: str) -> None:
        """Tell who watches this resource, in the way of their era."""
        await self._bus.publish(ResourceUpdated(uri=uri))
        for session in self._sessions.get(uri, ()):
            await session.send_resource_updated(uri)

    async def _vendor(self, ctx: Any, _: object) -> dict[str, Any]:
        return {"from": self.label, "asked": {k: v for k, v in (ctx.params or {}).items() if k != "_meta"}}

    async def _watch(self, ctx: Any, params: types.SubscribeRequestParams) -> types.EmptyResult:
        self._sessions.setdefault(params.uri, []).append(ctx.session)
        return types.EmptyResult()

    async def _note(self, ctx: Any, call_next: Any) -> Any:
        self.asked.append(ctx.method)
        if ctx.request is not None:
            self.headers.append({k: v for k, v in ctx.request.headers.items() if k.startswith("mcp-")})
        return await call_next(ctx)

    async def _list_prompts(self, _: Any, __: object) -> types.ListPromptsResult:
        return types.ListPromptsResult(
            prompts=[types.Prompt(name=name, description=self.label) for name in self.prompts]
        )

    async def _prompt(self, _: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        said = types.TextContent(text=f"{self.label}:{params.name}")
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=said)])

    async def _list(self, _: Any, __: object) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[types.Resource(uri=uri, name=uri) for uri in self.uris])

    async def _list_templates(self, _: Any, __: object) -> types.ListResourceTemplatesResult:
        found = [types.ResourceTemplate(uri_template=one, name=one) for one in self.templates]
        return types.ListResourceTemplatesResult(resource_templates=found)

    async def _read(self, _: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        if "missing" in params.uri:
            raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": params.uri})
        said = types.TextResourceContents(uri=params.uri, text=self.label)
        return types.ReadResourceResult(contents=[said])
