"""MCP Inspector's command line: it knows no model and one server at a time, so a loop of ours is the agent."""

from __future__ import annotations

import json
import sys

from lab import places
from lab.drivers.stage import Launch, Stage

__all__ = ["launch"]


def launch(stage: Stage) -> Launch:
    """Return the loop with the command that it runs once for each call; the Inspector takes the server's address."""
    program = (stage.client.program("mcp-inspector"), "--cli")
    targets = {
        entry.key: [entry.url, "--transport", "http"] if entry.url else [entry.command, *entry.args]
        for entry in stage.servers
    }
    loop = str(places.ROOT / "lab" / "drivers" / "inspector_loop.py")
    told = json.dumps({"model": stage.model, "program": program, "targets": targets}, ensure_ascii=False)
    return Launch(command=(sys.executable, loop, told))
