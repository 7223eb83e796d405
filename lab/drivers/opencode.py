"""opencode: `opencode.json` in the project."""

from __future__ import annotations

from typing import Any

from lab.drivers.stage import PROMPT, Entry, Launch, Stage, write_json

__all__ = ["launch"]


def launch(stage: Stage) -> Launch:
    """Write the project's configuration with a provider of our own, and start `opencode run`."""
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "lab",
        "options": {"baseURL": f"{stage.model}/v1", "apiKey": "lab"},
        "models": {"lab-model": {"name": "lab", "tool_call": True}},
    }
    config = {
        "provider": {"lab": provider},
        "mcp": {entry.key: _entry(entry) for entry in stage.servers},
        "model": "lab/lab-model",
        "autoupdate": False,
        "share": "disabled",
        "permission": {"*": "allow"},
    }
    write_json(stage.work / "opencode.json", config)
    names = ("AUTOUPDATE", "DEFAULT_PLUGINS", "LSP_DOWNLOAD", "MODELS_FETCH")
    command = (stage.client.program("opencode"), "run", "-m", "lab/lab-model", PROMPT)
    return Launch(command=command, env={f"OPENCODE_DISABLE_{name}": "1" for name in names})


def _entry(entry: Entry) -> dict[str, Any]:
    if entry.url is not None:
        return {"type": "remote", "url": entry.url, "enabled": True, "oauth": False}
    return {"type": "local", "command": [entry.command, *entry.args], "enabled": True}
