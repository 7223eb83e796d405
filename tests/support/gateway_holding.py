"""Test support: holding, used by tests of several modules."""

from __future__ import annotations

from typing import Any

ABLE: dict[str, Any] = {"_meta": {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}}


ANSWER = {"q1": {"action": "accept", "content": {"name": "ada"}}}


ASK: dict[str, Any] = {"name": "ask", "arguments": {}, **ABLE}
