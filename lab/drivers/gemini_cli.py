"""Gemini CLI, and what Qwen Code has from it: `settings.json` in the home folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lab.drivers.stage import PROMPT, Launch, Stage, write_json

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["launch", "settings"]


def launch(stage: Stage) -> Launch:
    """Write the settings and start a headless run that asks for nothing."""
    write_json(stage.home / ".gemini" / "settings.json", settings(stage, "gemini-api-key"))
    env = {
        "GEMINI_API_KEY": "lab",
        "GOOGLE_GEMINI_BASE_URL": stage.model,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_CLI_NO_RELAUNCH": "true",
    }
    flags = ("--approval-mode=yolo", "--skip-trust", "-m", "gemini-2.5-pro")
    return Launch(command=(stage.client.program("gemini"), "-p", PROMPT, *flags), env=env)


def settings(stage: Stage, auth: str, extra: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the settings; ``extra`` goes into each server's entry."""
    servers = {}
    for entry in stage.servers:
        target = {"httpUrl": entry.url} if entry.url else {"command": entry.command, "args": list(entry.args)}
        servers[entry.key] = target | {"trust": True} | dict(extra or {})
    return {
        "mcpServers": servers,
        "security": {"auth": {"selectedType": auth}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
        "telemetry": {"enabled": False},
        "model": {"disableLoopDetection": True, "skipLoopDetection": True},
    }
