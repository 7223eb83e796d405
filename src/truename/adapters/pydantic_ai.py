"""Pydantic AI: one toolset over several, under names that never clash; what a policy asks about is deferred.

Without it (measured with 2.68.0) names go to the model as servers spell them, also with a prefix, and a tool that two
toolsets have ends the run.
"""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, Self

from pydantic_ai import ToolApproved, ToolDenied
from pydantic_ai.exceptions import ApprovalRequired as Deferred
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, ValidationError, core_schema

from truename.adapters.toolbox import ASK_ALL, NAMING, Toolbox, told, with_approvals
from truename.adapters.wire import NOBODY
from truename.errors import ApprovalRequired, TruenameError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic_ai import RunContext
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.tools import ToolDefinition

    from truename.adapters.toolbox import Naming
    from truename.policy import Call, Caller, Policy, Scope

__all__ = ["NamedToolset"]

# Arguments as the model sent them: what a person decides on, and what `NamedToolset` has the tool itself validate.
_AS_SENT: Final = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))


@dataclass(kw_only=True)
class _Named(ToolsetTool[Any]):
    """A tool under its name, with the toolset and the tool that it stands for."""

    box: Toolbox
    inner_toolset: AbstractToolset[Any]
    inner: ToolsetTool[Any]


class NamedToolset(AbstractToolset[Any]):
    """The tools of several toolsets, by server key, as one toolset.

    >>> toolset = NamedToolset({"docs": MCPToolset(docs), "crm": MCPToolset(crm)}, policy=policy)  # doctest: +SKIP
    >>> agent = Agent(model, toolsets=[toolset], output_type=[str, DeferredToolRequests])  # doctest: +SKIP
    >>> result = await agent.run("...")  # doctest: +SKIP
    >>> approvals = {part.tool_call_id: toolset.approve(part) for part in result.output.approvals}  # doctest: +SKIP
    >>> answers = DeferredToolResults(approvals=approvals)  # doctest: +SKIP
    >>> result = await agent.run(message_history=result.all_messages(), deferred_tool_results=answers)  # doctest: +SKIP

    An approval that only the framework was told (``True``) runs nothing: the call is deferred again.
    """

    def __init__(
        self,
        toolsets: Mapping[str, AbstractToolset[Any]],
        *,
        naming: Naming = NAMING,
        policy: Policy = ASK_ALL,
        caller: Caller = NOBODY,
        endpoints: Mapping[str, str] | None = None,
        id: str | None = None,
    ) -> None:
        self._toolsets = dict(toolsets)
        self._naming, self._caller, self._endpoints = naming, caller, endpoints or {}
        self._policy = with_approvals(policy)
        self._id = id
        self._box: Toolbox | None = None
        self._stack = AsyncExitStack()

    @property
    def id(self) -> str | None:
        """The id that durable execution knows the toolset by."""
        return self._id

    @property
    def box(self) -> Toolbox:
        """The names as of the last time that a run asked for tools, and the policy.

        Raises `RuntimeError` before that; `listed` asks without a run.
        """
        if self._box is None:
            message = "no run has listed the tools yet: call `listed` with the definitions, or run the agent"
            raise RuntimeError(message)
        return self._box

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for toolset in self._toolsets.values():
                await stack.enter_async_context(toolset)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the tools that the caller may see, under their names. Raises as `project`."""
        found = {key: await toolset.get_tools(ctx) for key, toolset in self._toolsets.items()}
        self._box = box = self._boxed(
            {key: [_definition(tool.tool_def) for tool in tools.values()] for key, tools in found.items()}
        )
        return {
            offer.key.name: _named(
                self, box, offer.key.name, self._toolsets[origin.server_id], found[origin.server_id][origin.name]
            )
            for offer in box.offered
            for origin in (offer.tool.origin,)
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Run the call if it is allowed, once at most. Raises the framework's own errors for what is not."""
        assert isinstance(tool, _Named)  # noqa: S101 - made by get_tools
        try:
            call = tool.box.call(name, ctx.tool_call_id, tool_args)
            arguments = await _validated(tool.inner, call.arguments, ctx)
            with tool.box.running(call):
                return await _ran(tool, call.origin.name, arguments, ctx)
        except ApprovalRequired as error:
            raise Deferred({"tool": str(error.id), "reason": error.decision}) from error
        except TruenameError as error:
            raise ToolFailed(told(error)) from error

    def approve(self, part: ToolCallPart, scope: Scope = "call", *, by: str = "") -> ToolApproved:
        """Allow a deferred call, and with a wider scope others of the same tool; give the answer to the next run."""
        self.box.approve(self.call_of(part), scope, by=by)
        return ToolApproved()

    def reject(self, part: ToolCallPart, scope: Scope = "call", *, message: str = "", by: str = "") -> ToolDenied:
        """Refuse a deferred call; the model reads the message."""
        self.box.reject(self.call_of(part), scope, message=message, by=by)
        return ToolDenied(message) if message else ToolDenied()

    def call_of(self, part: ToolCallPart) -> Call:
        """Return the call that waits for a decision. Raises `InvalidCall`, or what `resolve` raises."""
        return self.box.call(part.tool_name, part.tool_call_id, part.args if part.args is not None else {})

    def listed(self, listings: Mapping[str, Any]) -> Toolbox:
        """Take the tools from elsewhere (tools/list results by key), to decide on calls in a program without a run."""
        self._box = self._boxed(listings)
        return self._box

    def _boxed(self, listings: Mapping[str, Any]) -> Toolbox:
        names = self._naming.table(listings)
        return Toolbox(names=names, policy=self._policy, caller=self._caller, endpoints=self._endpoints)

    def apply(self, visitor: Callable[[AbstractToolset[Any]], None]) -> None:
        """Show the framework the toolsets inside."""
        for toolset in self._toolsets.values():
            toolset.apply(visitor)


async def _validated(tool: ToolsetTool[Any], arguments: Mapping[str, Any], ctx: RunContext[Any]) -> dict[str, Any]:
    """Return the arguments as the tool takes them. Raises `ModelRetry`, before anybody is asked about the call."""
    try:
        found: dict[str, Any] = tool.args_validator.validate_json(json.dumps(arguments), context=ctx.validation_context)
    except ValidationError as error:
        raise ModelRetry(str(error)) from error
    if tool.args_validator_func is not None:
        checked = tool.args_validator_func(ctx, **found)
        if isawaitable(checked):
            await checked
    return found


async def _ran(tool: _Named, name: str, arguments: dict[str, Any], ctx: RunContext[Any]) -> Any:
    return await tool.inner_toolset.call_tool(name, arguments, replace(ctx, tool_name=name), tool.inner)


def _definition(tool: ToolDefinition) -> dict[str, Any]:
    found = {
        "name": tool.name,
        "description": tool.description or "",
        "inputSchema": tool.parameters_json_schema,
        "annotations": (tool.metadata or {}).get("annotations"),
        "outputSchema": tool.return_schema,
    }
    return {key: value for key, value in found.items() if value is not None}


def _named(
    outer: NamedToolset, box: Toolbox, name: str, toolset: AbstractToolset[Any], inner: ToolsetTool[Any]
) -> _Named:
    return _Named(
        toolset=outer,
        tool_def=replace(inner.tool_def, name=name),
        max_retries=inner.max_retries,
        args_validator=_AS_SENT,
        box=box,
        inner_toolset=toolset,
        inner=inner,
    )
