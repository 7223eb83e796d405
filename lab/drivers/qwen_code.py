"""Qwen Code: like Gemini CLI, with a model over Chat Completions. Option ``always_load``: nothing is deferred."""

from __future__ import annotations

from lab.drivers.gemini_cli import settings
from lab.drivers.stage import PROMPT, Launch, Stage, write_json

__all__ = ["launch"]


def launch(stage: Stage) -> Launch:
    """Write the settings and start a headless run that asks for nothing."""
    extra = {"alwaysLoadTools": True} if stage.client.options["always_load"] else {}
    write_json(stage.home / ".qwen" / "settings.json", settings(stage, "openai", extra))
    env = {"OPENAI_API_KEY": "lab", "OPENAI_BASE_URL": f"{stage.model}/v1", "OPENAI_MODEL": "lab-model"}
    return Launch(command=(stage.client.program("qwen"), "-p", PROMPT, "--yolo", "--auth-type", "openai"), env=env)
