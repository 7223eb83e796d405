"""Pages of apps as a host has them: found by the links of tools, run, and asked what they send."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mcp.client.extension import advertise

__all__ = ["APPS", "asked", "needs_node", "pages_of", "run_page"]

APPS = advertise("io.modelcontextprotocol/ui", {"mimeTypes": ["text/html;profile=mcp-app"]})
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="needs node, which runs the page's script")


def asked(method: str, **params: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def run_page(page: str, *messages: object) -> dict[str, Any]:
    """Return what reached the host, and what the page was answered."""
    script = Path(__file__).with_name("run_page.js")
    given = json.dumps([page, messages])
    done = subprocess.run([str(NODE), script], input=given, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


async def pages_of(client: Any) -> dict[str, str]:
    """Return the page of each server by its label, as a host finds it: by the link of a tool."""
    found: dict[str, str] = {}
    for tool in (await client.list_tools()).tools:
        if not tool.name.endswith("show"):
            continue
        uri = tool.meta["ui"]["resourceUri"]
        assert uri.startswith("ui://")
        assert tool.meta["ui/resourceUri"] == uri
        assert tool.meta["ui"]["x"] == 1
        label = (await client.call_tool(tool.name, {})).content[0].text.partition(":")[0]
        (content,) = (await client.read_resource(uri)).contents
        assert str(content.uri) == uri
        assert content.meta == {"ui": {"csp": {}}}
        found[label] = content.text
    return found
