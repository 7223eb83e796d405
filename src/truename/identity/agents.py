"""Default names of tools that stand for agents, made in one place for every path (seed 001)."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["default_agent_tool_name", "default_handoff_name"]

_OUTSIDE: Final = re.compile(r"[^A-Za-z0-9_]")


def default_agent_tool_name(agent: str) -> str:
    """Return the name of the tool that calls this agent.

    >>> default_agent_tool_name("Billing Agent")
    'billing_agent'
    """
    return _OUTSIDE.sub("_", agent).lower()


def default_handoff_name(agent: str) -> str:
    """Return the name of the tool that hands over to this agent, the same for realtime and other runs.

    >>> default_handoff_name("Billing Agent")
    'transfer_to_billing_agent'
    """
    return default_agent_tool_name(f"transfer_to_{agent}")
