"""All frameworks: one script each in `lab/frameworks`, told by its environment where the model and the servers are.

``LAB_MODEL``: the model's address without a version. ``LAB_SERVERS``: a JSON list of {name, url} or {name, command,
args}. ``LAB_MODULES``: the folder of the Node packages. ``LAB_PREFIX``, ``LAB_API``: set by the client's row.
"""

from __future__ import annotations

import json

from lab import clients, places
from lab.drivers.stage import Entry, Launch, Stage

__all__ = ["launch"]


def launch(stage: Stage) -> Launch:
    """Return the command: the environment's Python, or the lab's node."""
    client = stage.client
    script = str(places.FRAMEWORKS / str(client.script))
    program = client.program("python") if client.kind == "python" else str(clients.node() / "node")
    env = {
        "LAB_MODEL": stage.model,
        "LAB_SERVERS": json.dumps([_entry(entry) for entry in stage.servers], ensure_ascii=False),
        "LAB_MODULES": str(client.place / "node_modules"),
        "OPENAI_API_KEY": "lab",
        "OPENAI_BASE_URL": f"{stage.model}/v1",
        "DO_NOT_TRACK": "1",
        "OTEL_SDK_DISABLED": "true",
        "ANONYMIZED_TELEMETRY": "false",
        "LANGCHAIN_TRACING_V2": "false",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return Launch(command=(program, script), env=env | dict(client.env))


def _entry(entry: Entry) -> dict[str, object]:
    if entry.url is not None:
        return {"name": entry.key, "url": entry.url}
    return {"name": entry.key, "command": entry.command, "args": list(entry.args)}
