"""Continue CLI: a YAML configuration given on the command line."""

from __future__ import annotations

from typing import Any

from lab.drivers.stage import PROMPT, Entry, Launch, Stage, write_json

__all__ = ["launch"]


def launch(stage: Stage) -> Launch:
    """Write the configuration (JSON is YAML) and start a headless run that allows everything."""
    model = {
        "name": "lab",
        "provider": "openai",
        "model": "lab-model",
        "apiBase": f"{stage.model}/v1/",
        "apiKey": "lab",
        "roles": ["chat"],
        "capabilities": ["tool_use"],
    }
    servers = [_entry(entry) for entry in stage.servers]
    config = {"name": "lab", "version": "1.0.0", "schema": "v1", "models": [model], "mcpServers": servers}
    path = write_json(stage.home / "config.yaml", config)
    env = {
        "CONTINUE_TELEMETRY_ENABLED": "0",
        "CONTINUE_METRICS_ENABLED": "0",
        "POSTHOG_DISABLED": "1",
        "CONTINUE_GLOBAL_DIR": str(stage.home / ".continue"),
    }
    flags = ("--config", str(path), "--auto", "--allow", "*")
    return Launch(command=(stage.client.program("cn"), "-p", PROMPT, *flags), env=env)


def _entry(entry: Entry) -> dict[str, Any]:
    if entry.url is not None:
        return {"name": entry.key, "type": "streamable-http", "url": entry.url}
    return {"name": entry.key, "type": "stdio", "command": entry.command, "args": list(entry.args)}
