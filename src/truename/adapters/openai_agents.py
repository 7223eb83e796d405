"""Adapt the OpenAI Agents SDK: several MCP servers' tools under unique names, approved by identity.

Without it (measured with 0.24.0), the model sees the servers' own names, a tool that two servers have ends the run, as
does an unknown name, the text of a JSON-RPC error is lost, and a permanent approval passes to any server that later has
the name.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

from agents import FunctionTool, Handoff, RunConfig
from agents.mcp import MCPUtil

from truename import resolve
from truename.adapters.toolbox import ASK_ALL, NAMING, Toolbox, error_text
from truename.adapters.wire import NOBODY
from truename.errors import DuplicateTool, TruenameError
from truename.identity.keys import call_id, payload_field

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agents import AgentBase, RunContextWrapper, RunState, Tool
    from agents.items import ToolApprovalItem
    from agents.mcp import MCPServer
    from agents.run_config import ToolErrorFormatterArgs
    from agents.tool_context import ToolContext
    from mcp.types import Tool as UpstreamTool

    from truename import ToolId
    from truename.adapters.reading import JsonObject
    from truename.adapters.toolbox import ToolboxNames
    from truename.adapters.wire import OfferedTool
    from truename.policy import Call, Caller, Grant, Policy, Scope

__all__ = ["AgentTools"]

_NO_PROPERTIES: Final[Mapping[str, object]] = {"properties": {}}


@dataclass(frozen=True, kw_only=True)
class AgentTools:
    """The tools of connected MCP servers for one agent; created by `of`.

    >>> tools = await AgentTools.of({"docs": docs, "crm": crm}, policy=policy)  # doctest: +SKIP
    >>> agent = Agent(name="clerk", tools=tools.tools)  # doctest: +SKIP
    >>> result = await Runner.run(agent, "...", run_config=tools.run_config())  # doctest: +SKIP
    >>> state = result.to_state()  # doctest: +SKIP
    >>> tools.approve(state, result.interruptions[0], "always")  # doctest: +SKIP
    >>> result = await Runner.run(agent, state, run_config=tools.run_config())  # doctest: +SKIP

    A decision made only in the SDK (``state.approve``) runs nothing: the SDK files it under a name.
    """

    box: Toolbox
    servers: Mapping[str, MCPServer]
    upstream: Mapping[ToolId, UpstreamTool]

    @classmethod
    async def of(
        cls,
        servers: Mapping[str, MCPServer],
        *,
        naming: ToolboxNames = NAMING,
        policy: Policy = ASK_ALL,
        caller: Caller = NOBODY,
        endpoints: Mapping[str, str] | None = None,
    ) -> Self:
        """List the tools of the servers (connected, by key). Raises the errors of the servers and of `project`.

        ``caller.agent`` should be the agent's name, ``caller.session`` the conversation.
        """
        listed = {key: await server.list_tools() for key, server in servers.items()}
        box = Toolbox(names=naming.table(listed), policy=policy, caller=caller, endpoints=endpoints or {})
        origins = {(tool.origin.server_id, tool.origin.name): id for id, tool in box.names.catalog.items()}
        # If a server lists a name twice, the first tool counts, as in the catalog.
        pairs = [(origins.get((key, tool.name)), tool) for key, tools in listed.items() for tool in reversed(tools)]
        return cls(box=box, servers=dict(servers), upstream={id: tool for id, tool in pairs if id is not None})

    def for_caller(self, caller: Caller) -> Self:
        """Return the same tools for another caller or conversation, without listing them again."""
        return replace(self, box=replace(self.box, caller=caller))

    @cached_property
    def tools(self) -> list[Tool]:
        """The value for the agent's ``tools``."""
        return [self._function(offer) for offer in self.box.offered]

    def run_config(self, **settings: Any) -> RunConfig:
        """Return a run configuration in which an unknown name returns the nearest names to the model.

        Without it the SDK ends the run. ``settings`` are passed on to the SDK.
        """
        ours: JsonObject = {
            "tool_not_found_behavior": "return_error_to_model",
            "tool_error_formatter": self._wording,
        }
        return RunConfig(**ours | settings)

    def call_of(self, item: ToolApprovalItem) -> Call:
        """Return the call of a pending approval. Raises `InvalidCall`, or the errors of `resolve`."""
        raw = item.raw_item
        return self.box.call(payload_field(raw, "name"), call_id(raw), payload_field(raw, "arguments"))

    def approve(
        self, state: RunState[Any, Any], item: ToolApprovalItem, scope: Scope = "call", *, by: str = ""
    ) -> Grant:
        """Approve a pending call, and with a wider scope other calls of the same tool. Then run the state again."""
        grant = self.box.approve(self.call_of(item), scope, by=by)
        state.approve(item)
        return grant

    def reject(
        self,
        state: RunState[Any, Any],
        item: ToolApprovalItem,
        scope: Scope = "call",
        *,
        message: str = "",
        by: str = "",
    ) -> Grant:
        """Reject a pending call; the model reads the message. Then run the state again."""
        grant = self.box.reject(self.call_of(item), scope, message=message, by=by)
        state.reject(item, rejection_message=message or None)
        return grant

    def _function(self, offer: OfferedTool) -> FunctionTool:
        name = offer.key.name

        async def invoke(context: ToolContext[Any], arguments: str) -> Any:
            return await self._invoked(offer, context, arguments)

        async def asks(_: RunContextWrapper[Any], arguments: JsonObject, call_id: str) -> bool:
            try:
                return self.box.decide(self.box.call(name, call_id, arguments)).outcome == "ask"
            except TruenameError:
                # The tool itself returns the error, and runs nothing.
                return False

        return FunctionTool(
            name=name,
            description=offer.description,
            params_json_schema={**_NO_PROPERTIES, **offer.schema},
            on_invoke_tool=invoke,
            strict_json_schema=False,
            needs_approval=asks,
            is_enabled=_alone(name),
        )

    async def _invoked(self, offer: OfferedTool, context: ToolContext[Any], arguments: str) -> Any:
        try:
            call = self.box.call(offer.key.name, context.tool_call_id, arguments)
            with self.box.running(call):
                return await MCPUtil.invoke_mcp_tool(
                    self.servers[call.origin.server_id],
                    self.upstream[call.id],
                    context,
                    json.dumps(call.arguments),
                    tool_display_name=offer.key.name,
                )
        except Exception as error:  # noqa: BLE001 - a server may raise any error, and the SDK hides its text from the model
            return error_text(error)

    def _wording(self, failure: ToolErrorFormatterArgs[Any]) -> str | None:
        if failure.kind != "tool_not_found":
            return None
        try:
            found = resolve(failure.tool_name, self.box.names).id
        except TruenameError as error:
            return str(error)
        refused = self.box.refused(found)
        return error_text(refused) if refused else f"Nothing was run. Call it exactly {self.box.names[found]!r}."


def _alone(name: str) -> Callable[[RunContextWrapper[Any], AgentBase[Any]], bool]:
    # Of two tools with one name the SDK silently keeps the last; it calls this function before it shows any tool.
    def check(_: RunContextWrapper[Any], agent: AgentBase[Any]) -> bool:
        handoffs = [
            one.tool_name if isinstance(one, Handoff) else Handoff.default_tool_name(one)
            for one in getattr(agent, "handoffs", ())
        ]
        tools = [getattr(tool, "qualified_name", None) or tool.name for tool in agent.tools]
        if [*tools, *handoffs].count(name) > 1:
            raise DuplicateTool(existing="a server's tool", duplicate="a tool or handoff of the agent", name=name)
        return True

    return check
