"""Cline CLI: its key and model have to be set by a command of its own before it runs."""

from __future__ import annotations

import shlex
from typing import Any

from lab.drivers.stage import PROMPT, Entry, Launch, Stage, write_json

__all__ = ["launch"]


def launch(stage: Stage) -> Launch:
    """Write the settings of its servers; set the model, then run a task that approves everything."""
    servers = {"mcpServers": {entry.key: _entry(entry) for entry in stage.servers}}
    for folder in (".cline/data/settings", ".cline"):
        write_json(stage.home / folder / "cline_mcp_settings.json", servers)
    program = shlex.quote(stage.client.program("cline"))
    login = f"{program} auth -p openai-compatible -k lab -m lab-model -b {stage.model}/v1"
    task = f"{program} --json --auto-approve true -t 300 {shlex.quote(PROMPT)}"
    env = {"CLINE_TELEMETRY_DISABLED": "1", "CLINE_NO_AUTO_UPDATE": "1", "POSTHOG_TELEMETRY_ENABLED": "false"}
    return Launch(command=("/bin/sh", "-c", f"{login}; {task}"), env=env)


def _entry(entry: Entry) -> dict[str, Any]:
    if entry.url is not None:
        return {"type": "streamableHttp", "url": entry.url, "disabled": False, "autoApprove": []}
    return {"type": "stdio", "command": entry.command, "args": list(entry.args), "disabled": False}
