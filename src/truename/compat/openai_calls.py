"""Compute ids, fingerprints and items of calls as openai-agents does."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn

from truename.catalog import Origin
from truename.compat.openai_agents import get_function_tool_approval_keys, normalize_tool_call_for_function_tool
from truename.compat.openai_tools import AgentsError, payload_of, raw_item_of
from truename.errors import InvalidCall
from truename.identity import (
    LookupKey,
    ToolId,
    call_id,
    call_key,
    call_trace_name,
    component,
    definition_digest,
    displayed_id,
    required_key,
    with_digest,
)
from truename.identity.keys import payload_field, text
from truename.policy import Call, Caller
from truename.policy.arguments import read_arguments

if TYPE_CHECKING:
    from truename.compat.openai_tools import AgentTool
    from truename.identity import ApprovalKey, CallId, TraceName

__all__ = [
    "AgentCall",
    "arguments_of",
    "get_hosted_mcp_approval_request_identity",
    "get_tool_approval_item_call_id",
    "get_tool_call_id",
    "tool_invocation_call_id",
    "tool_invocation_identity",
]

_HOSTED: Final = "mcp_approval_request"
# The type of a call, and the fields of which it must have one.
_BODIES: Final[Mapping[str, tuple[str, ...]]] = {
    "apply_patch_call": ("operation", "operations"),
    "computer_call": ("action",),
    "custom_tool_call": ("input",),
    "function_call": ("arguments",),
    "local_shell_call": ("action",),
    _HOSTED: ("arguments",),
    "shell_call": ("action",),
}
_MEANING: Final = (
    *("server_label", "arguments", "input", "action", "actions", "pending_safety_checks"),
    *("operation", "operations", "environment", "caller"),
)


@dataclass(frozen=True, slots=True)
class HostedRequest:
    """A hosted MCP server's request for an approval: its id, server and tool, as far as it names them."""

    request_id: str | None
    server_label: str | None
    tool_name: str | None

    @property
    def persistent_identity(self) -> tuple[str, str, str] | None:
        """The key of a permanent decision; None if server or tool is missing."""
        if self.server_label is None or self.tool_name is None:
            return None
        return ("hosted_mcp", self.server_label, self.tool_name)


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call as the library compares it: digests of the tool it means, and of its whole content."""

    type: str
    call_id: CallId
    approval_scope: str
    fingerprint: str


def get_hosted_mcp_approval_request_identity(item: object) -> HostedRequest | None:
    """Return the fields of a hosted request, also inside an approval item; None for any other item.

    A wrapped request with an id that is not a string has no id; only if it has none at all, the wrapper's id counts.

    >>> get_hosted_mcp_approval_request_identity({"type": "mcp_approval_request", "id": 7, "name": "x"})
    HostedRequest(request_id=None, server_label=None, tool_name='x')
    """
    item = raw_item_of(item)
    request = _request(item)
    if request is None:
        return None
    found = text(payload_field(request, "id"))
    if payload_field(request, "id") is None:
        found = call_id(item) or text(payload_field(item, "id"))
    name = text(payload_field(request, "name")) or text(payload_field(item, "name"))
    return HostedRequest(found, text(payload_field(request, "server_label")), name)


def _request(item: object) -> object | None:
    if payload_field(item, "type") == _HOSTED:
        return item
    wrapped = payload_field(item, "provider_data") if payload_field(item, "type") == "hosted_tool_call" else None
    return wrapped if payload_field(wrapped, "type") == _HOSTED else None


def get_tool_call_id(item: object) -> str | None:
    """Return the id to display for any item."""
    return displayed_id(item)


def get_tool_approval_item_call_id(item: object) -> str | None:
    """Return the id to display for a pending approval: a hosted request's own, else that of `get_tool_call_id`."""
    hosted = get_hosted_mcp_approval_request_identity(item)
    return displayed_id(raw_item_of(item)) if hosted is None else hosted.request_id


def tool_invocation_call_id(item: object) -> tuple[str, CallId | None] | None:
    """Return type and id of a call; None for another item. The id is that of `truename.identity.call_id`."""
    payload = _unwrapped(item)
    kind = payload.get("type")
    return (kind, call_id(payload)) if isinstance(kind, str) and kind in _BODIES else None


def tool_invocation_identity(
    item: object,
    *,
    tool_lookup_key: LookupKey | tuple[str, ...] | None = None,
    tool_name: str | None = None,
    invocation_role: str | None = None,
) -> Invocation | None:
    """Return the identity of a call; None for an item that is not one, or lacks its id or body.

    Ids, status and the order of keys in the arguments do not count. Raises `AgentsError` ``item_too_deep``.
    """
    try:
        return _identity(_unwrapped(item), LookupKey.of(tool_lookup_key), tool_name, invocation_role)
    except RecursionError as error:
        raise AgentsError(code="item_too_deep") from error


def _identity(
    payload: Mapping[str, object], key: LookupKey | None, name: str | None, role: str | None
) -> Invocation | None:
    kind, identifier = tool_invocation_call_id(payload) or ("", None)
    if identifier is None:
        return None
    about = _about(kind, payload, key, name)
    if about is None or not any(body in payload for body in _BODIES[kind]):
        return None
    scope = _digest({"type": kind, **about} | ({} if role is None else {"invocation_role": role}))
    named = () if kind == "function_call" else ("name", "namespace")
    said = {name: payload[name] for name in (*named, *_MEANING) if payload.get(name) is not None}
    meaning = {name: arguments_of(value) if name == "arguments" else _plain(value) for name, value in said.items()}
    return Invocation(kind, identifier, scope, _digest({"approval_scope": scope, "type": kind, **meaning}))


def _about(
    kind: str, payload: Mapping[str, object], key: LookupKey | None, name: str | None
) -> dict[str, object] | None:
    """Return the tool of a call: its key, a hosted server's tool, or a name; None if the call does not say."""
    if kind == "function_call":
        found = key or call_key(payload)
        return None if found is None else {"tool_lookup_key": list(found.tagged)}
    own = text(payload.get("name"))
    if kind == _HOSTED:
        label = text(payload.get("server_label"))
        return None if own is None or label is None else {"name": own, "server_label": label}
    if kind == "custom_tool_call" and own is None:
        return None
    named = text(name) or own
    return {} if named is None else {"name": named}


def _unwrapped(item: object) -> Mapping[str, object]:
    """Return an item's payload; for a wrapped hosted request, that of the request with its id."""
    payload = payload_of(item)
    request, hosted = _request(payload), get_hosted_mcp_approval_request_identity(payload)
    if hosted is None or request is payload:
        return payload
    return {**payload, **payload_of(request), "id": hosted.request_id, "name": hosted.tool_name}


def arguments_of(value: Any) -> Any:
    """Parse arguments; return them unchanged if they are not valid."""
    if not isinstance(value, str):
        return _plain(value, keep_none=True)
    try:
        return json.loads(value, parse_constant=_refused)
    except (ValueError, RecursionError):
        # A text that is not JSON, or nested too deeply, is compared as it is.
        return value


def _refused(constant: str) -> NoReturn:
    raise ValueError(constant)


def _plain(value: Any, *, keep_none: bool = False) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item, keep_none=keep_none) for item in value]
    if value is None or isinstance(value, str | int | float):
        return value
    payload = payload_of(value)
    if payload or isinstance(value, Mapping):
        kept = {str(name): item for name, item in payload.items() if keep_none or item is not None}
        return {name: _plain(item, keep_none=keep_none) for name, item in kept.items()}
    return str(value)


def _digest(payload: Mapping[str, object]) -> str:
    written = json.dumps(payload, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()


# The name under which a call without a tool name or type is filed.
_UNNAMED: Final = "unknown_tool"
# No server name may contain it, so no server can be mistaken for an agent's own tools or a hosted server.
_MARK: Final = "\x1f"


@dataclass(frozen=True, slots=True)
class AgentCall:
    """One call: the item as it came, its tool if known, and the agent that made it.

    For an approval item, which wraps a call in ``raw_item``, the wrapped call is used.

    ``agent`` identifies the agent, also among agents of the same name. With ``bare_alias``, a decision on this call may
    be filed under the bare name too.

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
        """The called name."""
        return text(payload_field(self.raw, "name"))

    @property
    def tool_namespace(self) -> str | None:
        """The call's namespace as sent. For a deferred top-level tool it is the tool's own name."""
        return text(payload_field(self.raw, "namespace"))

    @property
    def qualified_name(self) -> TraceName | None:
        """The name to display, without a namespace that only marks deferred loading."""
        return call_trace_name(self.tool_name, self.tool_namespace)

    @property
    def lookup_key(self) -> LookupKey | None:
        """The key by which it is dispatched; None if it is not a function call."""
        if payload_field(self.raw, "type") != "function_call":
            return None
        return (self.tool.names.lookup_key if self.tool else None) or call_key(self.raw)

    @property
    def call_id(self) -> str | None:
        """The id to display."""
        return get_tool_approval_item_call_id(self.raw)

    @property
    def hosted(self) -> HostedRequest | None:
        """The fields of a hosted server's request for an approval; None for other calls."""
        return get_hosted_mcp_approval_request_identity(self.raw)

    @property
    def approval_keys(self) -> tuple[ApprovalKey, ...]:
        """The texts under which a decision is filed, the exact one last."""
        name = self.tool_name or text(payload_field(self.raw, "type")) or _UNNAMED
        return get_function_tool_approval_keys(
            tool_name=name,
            tool_namespace=self.tool_namespace,
            tool_lookup_key=self.lookup_key,
            allow_bare_name_alias=self.bare_alias,
        )

    @property
    def older_keys(self) -> tuple[ApprovalKey, ...]:
        """The text under which older states filed a decision on a deferred call; none for other calls."""
        key = self.lookup_key
        if key is None or key.kind != "deferred_top_level":
            return ()
        return get_function_tool_approval_keys(tool_name=f"{key.name}.{key.name}")

    @property
    def for_tool(self) -> Any:
        """The call as the tool expects it."""
        return self.raw if self.tool is None else normalize_tool_call_for_function_tool(self.raw, self.tool)

    @property
    def trace(self) -> dict[str, str | None]:
        """The fields of a trace: label, name, namespace, id of the call."""
        return {
            "label": self.qualified_name,
            "name": self.tool_name,
            "namespace": self.tool_namespace,
            "call_id": self.call_id,
        }

    def policy_call(self) -> Call:
        """Return the call for a decision by `truename.policy`.

        The tool's id comes from its key, never from a text that another key could produce; the origin comes from the
        tool's provider: another implementation of the name is another tool. Raises `AgentsError`: ``call_id_missing``,
        ``hosted_request_id_missing``, ``invocation_identity_missing``.
        """
        origin, name = self._origin(), self.approval_keys[-1]
        digest = definition_digest({**(self.tool.definition if self.tool else {}), "name": origin.name})
        return Call(
            id=ToolId(_component(origin.server), 1, None, _component(origin.name), 1),
            call_id=self._checked_id(),
            arguments=self._arguments(),
            origin=origin,
            digest=digest,
            wire_name=name,
            key=self.lookup_key or required_key(name),
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

    def _arguments(self) -> Mapping[str, object]:
        """Return the arguments if they are a valid object, else a digest of the call's content."""
        try:
            return read_arguments(payload_of(self.raw).get("arguments") if self.lookup_key else None)
        except InvalidCall:
            found = self._invocation()
            return {"": found.fingerprint if found else ""}

    def _origin(self) -> Origin:
        if self.tool is not None and self.tool.origin is not None:
            origin = self.tool.origin
            if _MARK in origin.server or _MARK in origin.server_id:
                raise AgentsError(code="origin_invalid", name=origin.server)
            return origin
        what, name = self._place()
        server = _MARK.join(("", *what))
        return Origin(server, name, f"{server}{_MARK}{self.tool.owner}" if self.tool else server)

    def _place(self) -> tuple[tuple[str, ...], str]:
        """Return the parts that replace the server of a call without an MCP origin, and the name of the tool."""
        hosted, key = self.hosted, self.lookup_key
        if hosted is not None:
            return ("hosted", hosted.server_label or ""), hosted.tool_name or ""
        if key is None:
            return ("item", text(payload_field(self.raw, "type")) or ""), self.approval_keys[-1]
        handoff = self.tool is not None and self.tool.kind == "handoff"
        return ("handoff" if handoff else "agent", *key.tagged[:-1]), key.name


def _component(verbatim: str) -> str:
    name = component(verbatim).name
    # Names are case-sensitive in the library, so they stay distinct here.
    return name if name == verbatim or component(verbatim).lossy else with_digest(name, verbatim)
