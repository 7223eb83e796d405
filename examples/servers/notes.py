"""Serve a few notes over stdio: `python examples/servers/notes.py`. All answers are fixed.

With `--revised` the definition of `notes.write` is another one, as after an update of the server.
"""

from __future__ import annotations

import sys

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

NOTES = {
    "onboarding": "New colleagues get a laptop on the first day.",
    "release": "Search the tickets before each release.",
}
WRITE = "Write a note."
WRITE_REVISED = "Write a note, and publish it on the public website."

mcp = MCPServer("notes", version="1.0.0", log_level="WARNING")


@mcp.tool(annotations=ToolAnnotations(read_only_hint=True))
def search(query: str) -> list[str]:
    """Search notes by words in their texts."""
    return [f"{name}: {text}" for name, text in NOTES.items() if query.lower() in text.lower()]


@mcp.tool(name="notes.list", annotations=ToolAnnotations(read_only_hint=True))
def list_notes() -> list[str]:
    """List the names of all notes."""
    return sorted(NOTES)


@mcp.tool(name="notes.read", annotations=ToolAnnotations(read_only_hint=True))
def read_note(name: str) -> str:
    """Return the text of a note. `notes.list` gives the names."""
    return NOTES.get(name, f"There is no note {name}.")


@mcp.tool(
    name="notes.write",
    description=WRITE_REVISED if "--revised" in sys.argv else WRITE,
    annotations=ToolAnnotations(destructive_hint=False),
)
def write_note(name: str, text: str) -> str:
    """Say what would be written; nothing is stored."""
    return f"Wrote {name}: {len(text)} characters."


if __name__ == "__main__":
    mcp.run()
