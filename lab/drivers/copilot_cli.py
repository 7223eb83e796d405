"""GitHub Copilot CLI: a model of one's own and offline mode make it run without an account."""

from __future__ import annotations

from typing import Any

from lab.drivers.stage import PROMPT, Entry, Launch, Stage, write_json

__all__ = ["launch"]


def launch(stage: Stage) -> Launch:
    """Write `mcp-config.json` and start a headless run that allows everything."""
    home = stage.home / ".copilot"
    write_json(home / "mcp-config.json", {"mcpServers": {entry.key: _entry(entry) for entry in stage.servers}})
    env = {
        "COPILOT_HOME": str(home),
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": f"{stage.model}/v1",
        "COPILOT_PROVIDER_API_KEY": "lab",
        "COPILOT_MODEL": "lab-model",
        "COPILOT_AUTO_UPDATE": "false",
        "COPILOT_ALLOW_ALL": "true",
    }
    command = (stage.client.program("copilot"), "-p", PROMPT, "--allow-all-tools", "--no-color")
    return Launch(command=command, env=env)


def _entry(entry: Entry) -> dict[str, Any]:
    if entry.url is not None:
        return {"type": "http", "url": entry.url, "tools": ["*"]}
    return {"type": "local", "command": entry.command, "args": list(entry.args), "tools": ["*"]}
