"""What a tool is called, for ever: `ToolId`, `ToolRef`, encodings, foreign names, folding, the definition digest."""

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
from truename.identity.tool_id import LATEST, ToolId, ToolRef

__all__ = [
    "LATEST",
    "MAX_FOREIGN",
    "MAX_ID_LENGTH",
    "Component",
    "ToolId",
    "ToolRef",
    "component",
    "decode",
    "default_agent_tool_name",
    "default_handoff_name",
    "definition_digest",
    "digest_of",
    "dotted_component",
    "fold",
    "is_kebab",
    "is_name",
    "lower_ascii",
    "percent_encode",
    "tilde_encode",
    "with_digest",
]
