"""A call as every place that shows one sees it: approval items, interruptions, traces, the context of a running tool.

All of them keep the namespace that came with the call, also the synthetic one of a deferred tool; only what the tool
itself is given goes without (seed 001).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from truename.catalog import Origin
from truename.compat.openai_agents import get_function_tool_approval_keys, normalize_tool_call_for_function_tool
from truename.compat.openai_calls import (
    get_hosted_mcp_approval_request_identity,
    get_tool_approval_item_call_id,
    tool_invocation_call_id,
    tool_invocation_identity,
)
from truename.compat.openai_errors import AgentsError
from truename.compat.openai_tools import payload_of, raw_item_of
from truename.errors import InvalidCall
from truename.identity import (
    ToolId,
    call_key,
    call_trace_name,
    component,
    definition_digest,
    lookup_key,
    with_digest,
)
from truename.identity.keys import payload_field, text
from truename.policy import Call, Caller
from truename.policy.arguments import arguments_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.compat.openai_calls import HostedRequest, Invocation
    from truename.compat.openai_tools import AgentTool
    from truename.identity import ApprovalKey, CallId, LookupKey, TraceName

__all__ = ["AgentCall"]

# What a call that names no tool is filed under, where it is not its type.
_UNNAMED: Final = "unknown_tool"
# No server may have this in its name, so none can be taken for an agent's own tools, or for a hosted server.
_MARK: Final = "\x1f"


@dataclass(frozen=True, slots=True)
class AgentCall:
    """One call: the item as it came, the tool that it is for if that is known, and the agent that made it.

    Of an approval item, which wraps a call as its ``raw_item``, the call is taken.

    ``agent`` tells one agent from another, also from one of the same name. ``bare_alias`` is whether a decision on
    this one call may be filed under the bare name too.

    >>> call = AgentCall({"type": "function_call", "name": "x", "namespace": "x", "call_id": "c", "arguments": "{}"})
    >>> call.tool_namespace, call.qualified_name, call.approval_keys
    ('x', 'x', ('deferred_top_level:x',))
    """

    raw: Any
    tool: AgentTool | None = None
    agent: str = ""
    bare_alias: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "raw", raw_item_of(self.raw))

    @property
    def tool_name(self) -> str | None:
        """The name that was called."""
        return text(payload_field(self.raw, "name"))

    @property
    def tool_namespace(self) -> str | None:
        """The namespace that came with it, a synthetic one too."""
        return text(payload_field(self.raw, "namespace"))

    @property
    def qualified_name(self) -> TraceName | None:
        """What people are shown, without the namespace that only stands for deferred loading."""
        return call_trace_name(self.tool_name, self.tool_namespace)

    @property
    def lookup_key(self) -> LookupKey | None:
        """The key that it is dispatched by; None if it is no call of a function."""
        if payload_field(self.raw, "type") != "function_call":
            return None
        return (self.tool.names.lookup_key if self.tool else None) or call_key(self.raw)

    @property
    def call_id(self) -> str | None:
        """The id that is shown with it."""
        return get_tool_approval_item_call_id(self.raw)

    @property
    def hosted(self) -> HostedRequest | None:
        """What it says if it is a hosted server's request for an approval."""
        return get_hosted_mcp_approval_request_identity(self.raw)

    @property
    def approval_keys(self) -> tuple[ApprovalKey, ...]:
        """The texts under which a decision on it is filed, the exact one last."""
        name = self.tool_name or text(payload_field(self.raw, "type")) or _UNNAMED
        return get_function_tool_approval_keys(
            tool_name=name,
            tool_namespace=self.tool_namespace,
            tool_lookup_key=self.lookup_key,
            allow_bare_name_alias=self.bare_alias,
        )

    @property
    def older_keys(self) -> tuple[ApprovalKey, ...]:
        """The text under which an older state filed a decision on a deferred call; none for other calls."""
        key = self.lookup_key
        if key is None or key.kind != "deferred_top_level":
            return ()
        return get_function_tool_approval_keys(tool_name=f"{key.name}.{key.name}")

    @property
    def for_tool(self) -> Any:
        """The call as the tool itself is to see it."""
        return self.raw if self.tool is None else normalize_tool_call_for_function_tool(self.raw, self.tool)

    @property
    def trace(self) -> dict[str, str | None]:
        """What a trace says of it, each in a field of its own: label, name, namespace, id of the call."""
        return {
            "label": self.qualified_name,
            "name": self.tool_name,
            "namespace": self.tool_namespace,
            "call_id": self.call_id,
        }

    def policy_call(self) -> Call:
        """Return it as `truename.policy` decides on it.

        The tool's id comes from its key, never from a text that another key could make too, and the origin from who
        brought it: another implementation of the name is another tool. Raises `AgentsError`: ``call_id_missing``,
        ``hosted_request_id_missing``, ``invocation_identity_missing``.
        """
        origin, name = self._origin(), self.approval_keys[-1]
        digest = definition_digest({**(self.tool.definition if self.tool else {}), "name": origin.name})
        key = self.lookup_key or lookup_key(name)
        assert key is not None  # noqa: S101 - no approval key is empty
        return Call(
            id=_id(origin),
            call_id=self._checked_id(),
            arguments=self._arguments(),
            origin=origin,
            digest=digest,
            wire_name=name,
            key=key,
            caller=Caller(agent=self.agent if self.lookup_key else ""),
            shape=digest,
        )

    def _checked_id(self) -> CallId:
        hosted, name = self.hosted, self.tool_name or ""
        if hosted is not None and hosted.request_id is None:
            raise AgentsError(code="hosted_request_id_missing", name=name)
        if (tool_invocation_call_id(self.raw) or ("", None))[1] is None:
            raise AgentsError(code="call_id_missing", name=name)
        invocation = self._invocation()
        if invocation is None:
            raise AgentsError(code="invocation_identity_missing", name=name)
        return invocation.call_id

    def _invocation(self) -> Invocation | None:
        return tool_invocation_identity(self.raw, tool_lookup_key=self.lookup_key, tool_name=self.tool_name)

    def _arguments(self) -> Mapping[str, Any]:
        """Return what the call says: its arguments if they are a sound object, else a digest of whatever it says."""
        try:
            return arguments_of(payload_of(self.raw).get("arguments") if self.lookup_key else None)
        except InvalidCall:
            found = self._invocation()
            return {"": found.fingerprint if found else ""}

    def _origin(self) -> Origin:
        if self.tool is not None and self.tool.origin is not None:
            return _checked(self.tool.origin)
        what, name = self._place()
        server = _MARK.join(("", *what))
        return Origin(server, name, f"{server}{_MARK}{self.tool.owner}" if self.tool else server)

    def _place(self) -> tuple[tuple[str, ...], str]:
        """Return what stands for the server where there is none of ours, in parts, and the name there."""
        hosted, key = self.hosted, self.lookup_key
        if hosted is not None:
            return ("hosted", hosted.server_label or ""), hosted.tool_name or ""
        if key is None:
            return ("item", text(payload_field(self.raw, "type")) or ""), self.approval_keys[-1]
        handoff = self.tool is not None and self.tool.kind == "handoff"
        return ("handoff" if handoff else "agent", *key.tagged[:-1]), key.name


def _checked(origin: Origin) -> Origin:
    if _MARK in origin.server or _MARK in origin.server_id:
        raise AgentsError(code="origin_invalid", name=origin.server)
    return origin


def _id(origin: Origin) -> ToolId:
    return ToolId(_component(origin.server), 1, None, _component(origin.name), 1)


def _component(verbatim: str) -> str:
    name = component(verbatim).name
    # Case counts in that library, so a capital tells two tools apart here too.
    return name if name == verbatim or component(verbatim).lossy else with_digest(name, verbatim)
