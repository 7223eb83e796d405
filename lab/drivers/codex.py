"""Codex: `config.toml`; which tools it shows directly depends on the model's name (option ``model``)."""

from __future__ import annotations

import json

from lab.drivers.stage import PROMPT, Entry, Launch, Stage, write

__all__ = ["launch"]

_CONFIG = """\
model = "{model}"
model_provider = "lab"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[model_providers.lab]
name = "lab"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "LAB_KEY"
request_max_retries = 0
stream_max_retries = 0

[analytics]
enabled = false
"""


def launch(stage: Stage) -> Launch:
    """Write `config.toml` and start `codex exec`."""
    head = _CONFIG.format(model=stage.client.options["model"], url=stage.model)
    home = stage.home / ".codex"
    write(home / "config.toml", head + "".join(map(_entry, stage.servers)))
    command = (stage.client.program("codex"), "exec", "--skip-git-repo-check", PROMPT)
    return Launch(command=command, env={"LAB_KEY": "lab", "CODEX_HOME": str(home)})


def _entry(entry: Entry) -> str:
    # JSON's texts and lists are TOML's too.
    lines = [f"\n[mcp_servers.{json.dumps(entry.key, ensure_ascii=False)}]"]
    if entry.url is not None:
        lines.append(f"url = {json.dumps(entry.url)}")
    else:
        lines += [f"command = {json.dumps(entry.command)}", f"args = {json.dumps(entry.args)}"]
    return "\n".join(lines) + "\n"
