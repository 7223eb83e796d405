"""Adapt Pydantic AI: one toolset over several, with unique names; calls that need approval are deferred.

Without it (measured with 2.68.0), the model sees the servers' own names, also with a prefix, and a tool that two
toolsets have ends the run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, Self

from pydantic_ai import RunContext, ToolApproved, ToolDenied
from pydantic_ai.exceptions import ApprovalRequired as Deferred
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, ToolsetTool, WrapperToolset
from pydantic_core import SchemaValidator, ValidationError, core_schema

from truename.adapters.toolbox import ASK_ALL, NAMING, Toolbox, error_text, with_approvals
from truename.adapters.wire import NOBODY
from truename.errors import ApprovalRequired, TruenameError
from truename.policy import Caller

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.tools import ToolDefinition

    from truename import NameTable
    from truename.adapters.reading import JsonObject
    from truename.adapters.toolbox import ToolboxNames
    from truename.adapters.wire import OfferedTool
    from truename.policy import Call, Policy, Scope

__all__ = ["NamedToolset"]

Callers = Caller | Callable[[RunContext[Any]], Caller]
# The arguments as the model sent them, which a person decides on; `NamedToolset` validates them with the tool itself.
_AS_SENT: Final = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))


@dataclass(kw_only=True)
class _RenamedTool(ToolsetTool[Any]):
    """A tool under its unique name, with its toolset and the original tool."""

    box: Toolbox
    inner_toolset: AbstractToolset[Any]
    inner: ToolsetTool[Any]


@dataclass
class NamedToolset(WrapperToolset[Any]):
    """The tools of several toolsets, by server key, as one toolset; created by `of`.

    >>> toolset = NamedToolset.of({"docs": MCPToolset(docs), "crm": MCPToolset(crm)}, policy=policy)  # doctest: +SKIP
    >>> agent = Agent(model, toolsets=[toolset], output_type=[str, DeferredToolRequests])  # doctest: +SKIP
    >>> result = await agent.run("...")  # doctest: +SKIP
    >>> approvals = {part.tool_call_id: toolset.approve(part) for part in result.output.approvals}  # doctest: +SKIP
    >>> answers = DeferredToolResults(approvals=approvals)  # doctest: +SKIP
    >>> result = await agent.run(message_history=result.all_messages(), deferred_tool_results=answers)  # doctest: +SKIP

    An approval given only to the framework (``True``) runs nothing: the call is deferred again.
    """

    wrapped: CombinedToolset[Any]
    keys: tuple[str, ...]
    naming: ToolboxNames
    policy: Policy
    caller: Callers
    endpoints: Mapping[str, str]
    # The current names, shared by the copies that the framework makes of a toolset for its runs.
    latest: list[NameTable] = field(default_factory=list, repr=False)

    @classmethod
    def of(
        cls,
        toolsets: Mapping[str, AbstractToolset[Any]],
        *,
        naming: ToolboxNames = NAMING,
        policy: Policy = ASK_ALL,
        caller: Callers = NOBODY,
        endpoints: Mapping[str, str] | None = None,
    ) -> Self:
        """Combine toolsets. ``caller`` may be a function of the run's context, for the runs of several users."""
        return cls(
            wrapped=CombinedToolset([*toolsets.values()]),
            keys=tuple(toolsets),
            naming=naming,
            policy=with_approvals(policy),
            caller=caller,
            endpoints=endpoints or {},
        )

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the tools that the caller may see, under their names. Raises the errors of `project`."""
        toolsets = dict(zip(self.keys, self.wrapped.toolsets, strict=True))
        found = {key: await toolset.get_tools(ctx) for key, toolset in toolsets.items()}
        self.listed({key: [_definition(tool.tool_def) for tool in tools.values()] for key, tools in found.items()})
        box = self._box(self.caller if isinstance(self.caller, Caller) else self.caller(ctx))
        named: dict[str, ToolsetTool[Any]] = {}
        for offer in box.offered:
            key, name = offer.tool.origin.server_id, offer.tool.origin.name
            named[offer.key.name] = _named(self, box, offer, toolsets[key], found[key][name])
        return named

    async def call_tool(self, name: str, tool_args: JsonObject, ctx: RunContext[Any], tool: ToolsetTool[Any]) -> Any:
        """Run the call if it is allowed, once at most. Raises the framework's own errors otherwise."""
        if not isinstance(tool, _RenamedTool):
            message = f"{name!r} is not a tool from `get_tools`: pass on the tools that it returns"
            raise TypeError(message)
        try:
            call = tool.box.call(name, ctx.tool_call_id, tool_args)
            arguments = await _validated(tool.inner, call.arguments, ctx)
            with tool.box.running(call):
                own = call.origin.name
                return await tool.inner_toolset.call_tool(own, arguments, replace(ctx, tool_name=own), tool.inner)
        except ApprovalRequired as error:
            raise Deferred({"tool": str(error.id), "reason": error.decision}) from error
        except TruenameError as error:
            raise ToolFailed(error_text(error)) from error

    def approve(
        self, part: ToolCallPart, scope: Scope = "call", *, by: str = "", caller: Caller | None = None
    ) -> ToolApproved:
        """Approve a deferred call, and with a wider scope others of the same tool; pass the result to the next run.

        ``caller`` is required if the toolset's caller is a function.
        """
        box = self._box(caller)
        box.approve(_call_of(box, part), scope, by=by)
        return ToolApproved()

    def reject(
        self,
        part: ToolCallPart,
        scope: Scope = "call",
        *,
        message: str = "",
        by: str = "",
        caller: Caller | None = None,
    ) -> ToolDenied:
        """Reject a deferred call; the model reads the message."""
        box = self._box(caller)
        box.reject(_call_of(box, part), scope, message=message, by=by)
        return ToolDenied(message) if message else ToolDenied()

    def listed(self, listings: Mapping[str, Iterable[object]]) -> NameTable:
        """Set the current lists of tools (by key), for a program that decides on calls without a run."""
        self.latest[:] = [self.naming.table(listings)]
        return self.latest[0]

    def _box(self, caller: Caller | None) -> Toolbox:
        """Return the toolbox for a caller. Raises `RuntimeError` without listed tools, or without a caller."""
        if not self.latest:
            message = "no run has listed the tools yet; call `listed` with the definitions, or run the agent"
            raise RuntimeError(message)
        if caller is None and isinstance(self.caller, Caller):
            caller = self.caller
        if caller is None:
            message = "the toolset's caller depends on the run; pass `caller`"
            raise RuntimeError(message)
        return Toolbox(names=self.latest[0], policy=self.policy, caller=caller, endpoints=self.endpoints)


def _call_of(box: Toolbox, part: ToolCallPart) -> Call:
    return box.call(part.tool_name, part.tool_call_id, part.args if part.args is not None else {})


async def _validated(tool: ToolsetTool[Any], arguments: Mapping[str, object], ctx: RunContext[Any]) -> JsonObject:
    """Return the arguments as validated by the tool. Raises `ModelRetry`, before anybody is asked about the call."""
    try:
        found: JsonObject = tool.args_validator.validate_json(json.dumps(arguments), context=ctx.validation_context)
    except ValidationError as error:
        raise ModelRetry(str(error)) from error
    if tool.args_validator_func is not None:
        checked = tool.args_validator_func(ctx, **found)
        if isawaitable(checked):
            await checked
    return found


def _definition(tool: ToolDefinition) -> JsonObject:
    found = {
        "name": tool.name,
        "description": tool.description or "",
        "inputSchema": tool.parameters_json_schema,
        "annotations": (tool.metadata or {}).get("annotations"),
        "_meta": (tool.metadata or {}).get("meta"),
        "outputSchema": tool.return_schema,
    }
    return {key: value for key, value in found.items() if value is not None}


def _named(
    outer: NamedToolset, box: Toolbox, offer: OfferedTool, toolset: AbstractToolset[Any], inner: ToolsetTool[Any]
) -> _RenamedTool:
    description = offer.description or inner.tool_def.description
    return _RenamedTool(
        toolset=outer,
        tool_def=replace(inner.tool_def, name=offer.key.name, description=description),
        max_retries=inner.max_retries,
        args_validator=_AS_SENT,
        box=box,
        inner_toolset=toolset,
        inner=inner,
    )
