"""What a tool is called, for ever: `ToolId`, `ToolRef`, keys, tool sets, encodings, foreign names, folding, digests."""

from truename.identity.agents import default_agent_tool_name, default_handoff_name
from truename.identity.definition import definition_digest
from truename.identity.encoding import decode, percent_encode, tilde_encode
from truename.identity.fold import fold
from truename.identity.foreign import (
    MAX_FOREIGN,
    Component,
    component,
    digest_of,
    dotted_component,
    with_digest,
)
from truename.identity.grammar import MAX_ID_LENGTH, is_kebab, is_name, lower_ascii
from truename.identity.keys import (
    ApprovalKey,
    CallId,
    LookupKey,
    ToolNames,
    TraceName,
    approval_keys,
    call_id,
    call_key,
    call_trace_name,
    displayed_id,
    is_reserved,
    lookup_key,
    normalized,
    qualified_name,
    required_key,
    restored,
)
from truename.identity.tool_id import LATEST, ToolId, ToolRef
from truename.identity.toolsets import Clash, Kept, Member, check, clashes, collisions

__all__ = [
    "LATEST",
    "MAX_FOREIGN",
    "MAX_ID_LENGTH",
    "ApprovalKey",
    "CallId",
    "Clash",
    "Component",
    "Kept",
    "LookupKey",
    "Member",
    "ToolId",
    "ToolNames",
    "ToolRef",
    "TraceName",
    "approval_keys",
    "call_id",
    "call_key",
    "call_trace_name",
    "check",
    "clashes",
    "collisions",
    "component",
    "decode",
    "default_agent_tool_name",
    "default_handoff_name",
    "definition_digest",
    "digest_of",
    "displayed_id",
    "dotted_component",
    "fold",
    "is_kebab",
    "is_name",
    "is_reserved",
    "lookup_key",
    "lower_ascii",
    "normalized",
    "percent_encode",
    "qualified_name",
    "required_key",
    "restored",
    "tilde_encode",
    "with_digest",
]
