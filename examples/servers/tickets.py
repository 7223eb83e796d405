"""Serve a small ticket system over stdio: `python examples/servers/tickets.py`. All answers are fixed."""

from __future__ import annotations

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

TICKETS = {
    "T-1": "Login fails after the update",
    "T-2": "Export has no header line",
    "T-3": "Search is slow on large accounts",
}

mcp = MCPServer("tickets", version="1.0.0", log_level="WARNING")


@mcp.tool(annotations=ToolAnnotations(read_only_hint=True))
def search(query: str) -> list[str]:
    """Search tickets by words in their titles."""
    return [f"{key}: {title}" for key, title in TICKETS.items() if query.lower() in title.lower()]


@mcp.tool(annotations=ToolAnnotations(read_only_hint=True))
def get_ticket(key: str) -> str:
    """Return the title of a ticket."""
    return TICKETS.get(key, f"There is no ticket {key}.")


@mcp.tool(annotations=ToolAnnotations(destructive_hint=False))
def create_ticket(title: str) -> str:
    """Create a ticket. Call `search` first, to find a ticket that exists already."""
    return f"Created T-{len(TICKETS) + 1}: {title}"


@mcp.tool(annotations=ToolAnnotations(destructive_hint=False, idempotent_hint=True))
def close_ticket(key: str) -> str:
    """Close a ticket."""
    return f"Closed {key}."


if __name__ == "__main__":
    mcp.run()
