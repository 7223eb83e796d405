"""An agent loop with a scripted model, over the public API: the proof that the layers of identity work together.

A turn: the tools are listed and named, the model calls, each call is resolved by its key, identified by its id, decided
on, and run once. A pause saves what is pending; a resume reads it, perhaps with other tools.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from tests.acceptance.agents import call_of, shown_key, tools_of
from truename.catalog import Origin
from truename.compat import openai_agents as compat
from truename.compat.openai_approvals import AgentApprovals
from truename.compat.openai_calls import tool_invocation_identity
from truename.compat.openai_items import AgentCall
from truename.compat.openai_mcp import held_by, prefixed_names, reserved_names, unprefixed_names
from truename.compat.openai_tools import AgentTool
from truename.identity import ToolNames

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from truename.compat.openai_mcp import Held

__all__ = ["Loop", "run_of"]

AGENT: Final = "ag"
# What a tool answers here: an agent's own, and one of an MCP server.
_OWN: Final = "ran {}"
_SERVED: Final = "{'type': 'text', 'text': 'ok'}"
# What the library saves since: fingerprints of calls, owners of decisions and where MCP tools come from.
_FINGERPRINTS, _OWNERS = 15, 18


@dataclass
class Loop:
    """One run of one agent, and everything that can be seen of it."""

    given: Mapping[str, Any]
    approvals: AgentApprovals = field(default_factory=AgentApprovals)
    seen: dict[str, Any] = field(default_factory=lambda: {"model_called": False})
    spans: list[dict[str, Any]] = field(default_factory=list)
    executed: list[dict[str, Any]] = field(default_factory=list)
    outputs: list[dict[str, str]] = field(default_factory=list)
    pending: list[AgentCall] = field(default_factory=list)
    held: Held = field(default_factory=dict)
    agent: str = AGENT
    # The tools of this turn: as the model sees them, and by the key that dispatches to each.
    tools: list[AgentTool] = field(default_factory=list)
    handoffs: list[AgentTool] = field(default_factory=list)
    asking: set[str] = field(default_factory=set)
    keys: dict[Any, AgentTool] = field(default_factory=dict)

    def observed(self) -> dict[str, Any]:
        """Return what was seen so far."""
        return {**self.seen, "spans": self.spans, "executed": self.executed, "tool_outputs": self.outputs}
