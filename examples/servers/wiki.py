"""Serve a wiki with very long tool names over stdio: `python examples/servers/wiki.py`. All answers are fixed.

Clients that cut names see one name for the last two tools.
"""

from __future__ import annotations

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

mcp = MCPServer("wiki", version="1.0.0", log_level="WARNING")


@mcp.tool(name="getPage", annotations=ToolAnnotations(read_only_hint=True))
def get_page(title: str) -> str:
    """Return the text of a page."""
    return f"# {title}"


@mcp.tool(
    name="pagesOfSpaceWithLabelsAndAttachmentsForTheWholeTeamFromTemplate_create",
    annotations=ToolAnnotations(destructive_hint=False),
)
def create_pages(template: str) -> str:
    """Create the pages of a space from a template."""
    return f"Created pages from {template}."


@mcp.tool(
    name="pagesOfSpaceWithLabelsAndAttachmentsForTheWholeTeamFromTemplate_delete",
    annotations=ToolAnnotations(destructive_hint=True),
)
def delete_pages(template: str) -> str:
    """Delete the pages of a space that were made from a template."""
    return f"Deleted pages from {template}."


if __name__ == "__main__":
    mcp.run()
