"""Serve a calendar over stdio: `python examples/servers/agenda.py`. All answers are fixed.

It is not called calendar.py: a script with the name of a module of the standard library hides that module from itself.
"""

from __future__ import annotations

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

EVENTS = {"E-1": "2027-03-01 Planning", "E-2": "2027-03-02 Review", "E-3": "2027-03-03 Lunch"}

mcp = MCPServer("agenda", version="1.0.0", log_level="WARNING")


@mcp.tool(annotations=ToolAnnotations(read_only_hint=True))
def search(query: str) -> list[str]:
    """Find the events whose titles contain a word."""
    return [f"{key}: {event}" for key, event in EVENTS.items() if query.lower() in event.lower()]


@mcp.tool(annotations=ToolAnnotations(read_only_hint=True))
def list_events(day: str) -> list[str]:
    """List the events of a day (YYYY-MM-DD)."""
    return [f"{key}: {event}" for key, event in EVENTS.items() if event.startswith(day)]


@mcp.tool(annotations=ToolAnnotations(destructive_hint=False))
def create_event(day: str, title: str) -> str:
    """Create an event on a day (YYYY-MM-DD)."""
    return f"Created E-{len(EVENTS) + 1}: {day} {title}"


@mcp.tool(annotations=ToolAnnotations(destructive_hint=True, idempotent_hint=True))
def delete_event(key: str) -> str:
    """Delete an event for all who take part."""
    return f"Deleted {key}."


if __name__ == "__main__":
    mcp.run()
