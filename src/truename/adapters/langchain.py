"""Adapt LangChain: a middleware that gives an agent the tools of several servers, and takes their calls.

Without it (measured with langchain 1.4 and langchain-mcp-adapters 0.3.2), the model sees the servers' own names, the
last of two tools with one name silently wins, and a protocol error ends the run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolRuntime
from langgraph.runtime import Runtime
from langgraph.types import interrupt
from pydantic import BaseModel, ConfigDict, Field

from truename.adapters.toolbox import ASK_ALL, NAMING, Toolbox, error_text
from truename.adapters.wire import NOBODY, offered_tools
from truename.errors import DuplicateTool, TruenameError, excerpt
from truename.policy import Call, Caller, Scope

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

    from langchain.agents.middleware.types import ModelRequest, ModelResponse, ToolCallRequest
    from langchain_core.tools import BaseTool
    from langgraph.types import Command

    from truename import ToolId
    from truename.adapters.reading import JsonObject
    from truename.adapters.toolbox import ToolboxNames
    from truename.policy import Decision, Policy

__all__ = ["NamedTools", "ToolAnswer"]

Callers = Caller | Callable[[Runtime[Any] | ToolRuntime[Any, Any]], Caller]
_LONGEST: Final = 4_096


class ToolAnswer(BaseModel):
    """A person's response to a pending call; ``message`` is the text for the model after a rejection."""

    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["approve", "reject"]
    scope: Scope = "call"
    message: str = Field("", max_length=_LONGEST)
    by: str = Field("", max_length=_LONGEST)


class _AnswerWithoutSession(ToolAnswer):
    """The response without the scope "session", for a caller without a session."""

    scope: Literal["call", "arguments", "always"] = "call"


class NamedTools(AgentMiddleware[Any, Any]):
    """A middleware with the tools of several servers under unique names; a call that needs approval interrupts the run.

    >>> tools = NamedTools({"docs": docs_tools, "crm": crm_tools}, policy=policy)  # doctest: +SKIP
    >>> agent = create_agent(model, middleware=[tools], checkpointer=InMemorySaver())  # doctest: +SKIP
    >>> state = agent.invoke({"messages": [("user", "...")]}, config)  # doctest: +SKIP
    >>> state["__interrupt__"][0].value["tool"]  # doctest: +SKIP
    'crm@1/search@1'
    >>> answer = {"type": "approve", "scope": "always"}  # doctest: +SKIP
    >>> agent.invoke(Command(resume={state["__interrupt__"][0].id: answer}), config)  # doctest: +SKIP

    The interrupt has the fields of LangChain's own interrupt for a single call (type, tool_call_id, name, args,
    description), and ``tool``, the identity. Resume with a `ToolAnswer`, as ``{"type": "approve"}``.
    ``caller`` may be a function of the run's runtime (its ``context``), for an agent with several users.
    """

    def __init__(
        self,
        servers: Mapping[str, Sequence[BaseTool]],
        *,
        naming: ToolboxNames = NAMING,
        policy: Policy = ASK_ALL,
        caller: Callers = NOBODY,
        endpoints: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        listings = {key: [_definition(tool) for tool in tools] for key, tools in servers.items()}
        known = caller if isinstance(caller, Caller) else NOBODY
        self.box = Toolbox(names=naming.table(listings), policy=policy, caller=known, endpoints=endpoints or {})
        self._caller = caller
        # If a server lists a name twice, the first tool counts, as in the catalog.
        given = {(key, tool.name): tool for key, tools in servers.items() for tool in reversed(tools)}
        self._named: dict[ToolId, BaseTool] = {
            offer.id: given[offer.tool.origin.server_id, offer.tool.origin.name].model_copy(
                update={"name": offer.key.name}
            )
            for offer in offered_tools(self.box.names, self.box.names.dialect.name)
        }
        self._names = frozenset(tool.name for tool in self._named.values())
        self.tools = [*self._named.values()]

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Show the model the tools that the caller may see."""
        return handler(self._for_caller(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Show the model the tools that the caller may see."""
        return await handler(self._for_caller(request))

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Run the call if it is allowed, once at most."""
        call = self._gated(request)
        if not isinstance(call, Call):
            return handler(request) if call is None else call
        try:
            with self.box.running(call):
                return handler(self._directed(request, call))
        except GraphBubbleUp:
            raise
        except Exception as error:  # noqa: BLE001 - any tool may raise anything, and one error ends the whole run
            return _failed(request, error)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """Run the call if it is allowed, once at most."""
        call = self._gated(request)
        if not isinstance(call, Call):
            return await handler(request) if call is None else call
        try:
            with self.box.running(call):
                return await handler(self._directed(request, call))
        except GraphBubbleUp:
            raise
        except Exception as error:  # noqa: BLE001 - any tool may raise anything, and one error ends the whole run
            return _failed(request, error)

    def _box(self, runtime: Runtime[Any] | ToolRuntime[Any, Any]) -> Toolbox:
        return self.box if isinstance(self._caller, Caller) else replace(self.box, caller=self._caller(runtime))

    def _for_caller(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        # LangChain would keep the agent's own tool of that name and show its description for ours. Copies of our tools,
        # which other middlewares make, have the same schema object.
        ours = {tool.name: tool.args_schema for tool in self.tools}
        for tool in request.tools:
            if not isinstance(tool, dict) and tool.name in ours and tool.args_schema is not ours[tool.name]:
                raise DuplicateTool(existing="a server's tool", duplicate="a tool of the agent", name=tool.name)
        shown = {offer.key.name for offer in self._box(request.runtime).offered}
        hidden = self._names - shown
        return request.override(tools=[tool for tool in request.tools if getattr(tool, "name", None) not in hidden])

    def _gated(self, request: ToolCallRequest) -> Call | ToolMessage | None:
        """Return the call, an error message for the model, or None for a tool that the agent has from elsewhere.

        Raises pydantic's `ValidationError` for a response that is not a `ToolAnswer`: the run stays interrupted.
        """
        if request.tool is not None and request.tool.name not in self._names:
            return None
        asked = request.tool_call
        try:
            call = self._box(request.runtime).call(asked["name"], asked["id"], asked["args"])
            decision = self.box.decide(call)
        except TruenameError as error:
            return _failed(request, error)
        if decision.outcome == "ask":
            # A resumed run comes here again: `interrupt` then returns the response to this call.
            kind = ToolAnswer if call.caller.session else _AnswerWithoutSession
            answer: ToolAnswer = interrupt(_request(call, decision), response_schema=kind)
            if answer.type == "approve":
                self.box.approve(call, answer.scope, by=answer.by)
            else:
                self.box.reject(call, answer.scope, message=answer.message, by=answer.by)
        return call

    def _directed(self, request: ToolCallRequest, call: Call) -> ToolCallRequest:
        """Return the request for the resolved tool, with the arguments that were decided on."""
        tool = self._named[call.id]
        return request.override(
            tool=tool, tool_call={**request.tool_call, "name": tool.name, "args": dict(call.arguments)}
        )


def _definition(tool: BaseTool) -> JsonObject:
    function = convert_to_openai_tool(tool)["function"]
    return {
        "name": tool.name,
        "description": function.get("description", ""),
        "inputSchema": function.get("parameters", {}),
        "annotations": tool.metadata or {},
        # LangChain's MCP adapters keep it here.
        "_meta": (tool.metadata or {}).get("_meta"),
    }


def _request(call: Call, decision: Decision) -> JsonObject:
    why = f": {decision.reason}" if decision.reason else ""
    return {
        "type": "tool_approval",
        "tool_call_id": call.call_id,
        "name": call.wire_name,
        "args": dict(call.arguments),
        "description": f"{call.id} of server {excerpt(call.origin.server)} needs an approval{why}",
        "tool": str(call.id),
        "server": call.origin.server,
    }


def _failed(request: ToolCallRequest, error: Exception) -> ToolMessage:
    asked = request.tool_call
    return ToolMessage(content=error_text(error), name=asked["name"], tool_call_id=asked["id"], status="error")
