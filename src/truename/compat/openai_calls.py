"""Ids and fingerprints of calls as openai-agents has them, for states and items that it wrote.

Truename identifies a call by `truename.identity.call_id` alone; the looser ids here are read for display. The
fingerprints are that library's, byte for byte: over its JSON, in which 1 and 1.0 differ.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn

from truename.compat.openai_errors import AgentsError
from truename.compat.openai_tools import payload_of, raw_item_of
from truename.identity import LookupKey, call_id, call_key, displayed_id
from truename.identity.keys import payload_field, text

if TYPE_CHECKING:
    from truename.identity import CallId

__all__ = [
    "HostedRequest",
    "Invocation",
    "arguments_of",
    "get_hosted_mcp_approval_request_identity",
    "get_tool_approval_item_call_id",
    "get_tool_call_id",
    "tool_invocation_call_id",
    "tool_invocation_identity",
]

_HOSTED: Final = "mcp_approval_request"
# Type of a call -> what it has to hold, one of these, to be one.
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
    """A hosted MCP server's request for an approval: whose it is, and what it is about, as far as it says."""

    request_id: str | None
    server_label: str | None
    tool_name: str | None

    @property
    def persistent_identity(self) -> tuple[str, str, str] | None:
        """What a decision for always is filed under; None if server or tool is missing."""
        if self.server_label is None or self.tool_name is None:
            return None
        return ("hosted_mcp", self.server_label, self.tool_name)


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call, as that library tells two calls apart: digests of the tool meant, and of all that is meant."""

    type: str
    call_id: CallId
    approval_scope: str
    fingerprint: str


def get_hosted_mcp_approval_request_identity(item: object) -> HostedRequest | None:
    """Return what a hosted request says of itself, also inside of an approval item; None for any other item.

    A wrapped request whose own id is no string has none; only where it has no id at all the wrapper's counts.

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
    """Return the id that is shown with any item."""
    return displayed_id(item)


def get_tool_approval_item_call_id(item: object) -> str | None:
    """Return the id that is shown with a pending approval: a hosted request's own, else as `get_tool_call_id`."""
    hosted = get_hosted_mcp_approval_request_identity(item)
    return displayed_id(raw_item_of(item)) if hosted is None else hosted.request_id


def tool_invocation_call_id(item: object) -> tuple[str, CallId | None] | None:
    """Return type and id of a call; None for an item that is no call. The id is `truename.identity.call_id`'s."""
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
    """Return what identifies one call; None if it is none, has no id, or misses its body.

    Neither ids nor status count, nor the order of keys in the arguments. Raises `AgentsError` ``item_too_deep``.
    """
    try:
        return _identity(_unwrapped(item), LookupKey.of(tool_lookup_key), tool_name, invocation_role)
    except RecursionError as error:
        raise AgentsError(code="item_too_deep") from error


def _identity(
    payload: Mapping[str, Any], key: LookupKey | None, name: str | None, role: str | None
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


def _about(kind: str, payload: Mapping[str, Any], key: LookupKey | None, name: str | None) -> dict[str, Any] | None:
    """Return what a call is of: the tool's key, a hosted server's tool, or a name; None if it does not say."""
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


def _unwrapped(item: object) -> Mapping[str, Any]:
    """Return an item's payload; of a wrapped hosted request the request, under the id that it has."""
    payload = payload_of(item)
    request = _request(payload)
    if request is None or request is payload:
        return payload
    hosted = get_hosted_mcp_approval_request_identity(payload)
    assert hosted is not None  # noqa: S101 - it is a request
    return {**payload, **payload_of(request), "id": hosted.request_id, "name": hosted.tool_name}


def arguments_of(value: Any) -> Any:
    """Return arguments parsed, or as they are written if they can't be."""
    if not isinstance(value, str):
        return _plain(value, keep_none=True)
    try:
        return json.loads(value, parse_constant=_refused)
    except (ValueError, RecursionError):
        # What is no JSON, or too deep to read, is compared as it is written.
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


def _digest(payload: Mapping[str, Any]) -> str:
    written = json.dumps(payload, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()
