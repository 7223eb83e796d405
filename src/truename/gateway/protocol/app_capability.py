"""The extension for apps (io.modelcontextprotocol/ui): who declares it, and how the gateway does.

Source: MCP Apps of 2026-01-26, "Client-Server Capability Negotiation".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["APP_TYPE", "UI_EXTENSION", "shows_apps", "with_apps"]

UI_EXTENSION: Final = "io.modelcontextprotocol/ui"
APP_TYPE: Final = "text/html;profile=mcp-app"


def shows_apps(capabilities: Mapping[str, Any]) -> bool:
    """Tell whether a client with these capabilities shows apps, and so keeps tools that are for them from models.

    Without a list of types it shows those that there are.

    >>> shows_apps({"extensions": {"io.modelcontextprotocol/ui": {}}}), shows_apps({"extensions": []})
    (True, False)
    >>> shows_apps({"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/x-other"]}}})
    False
    """
    extensions = capabilities.get("extensions")
    said = extensions.get(UI_EXTENSION) if isinstance(extensions, dict) else None
    if not isinstance(said, dict):
        return False
    types = said.get("mimeTypes")
    return not isinstance(types, list) or APP_TYPE in types


def with_apps(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Return capabilities that declare apps too.

    >>> with_apps({"roots": {}})["extensions"]
    {'io.modelcontextprotocol/ui': {'mimeTypes': ['text/html;profile=mcp-app']}}
    """
    said = capabilities.get("extensions")
    others = said if isinstance(said, dict) else {}
    return {**capabilities, "extensions": {**others, UI_EXTENSION: {"mimeTypes": [APP_TYPE]}}}
