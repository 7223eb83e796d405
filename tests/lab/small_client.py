"""A client for the tests, of the standard library alone: joins key and name with two underscores, and the last wins."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from lab.asking import Session


def main() -> None:
    """Do what the model says with the servers' tools."""
    told = json.loads(sys.argv[1])
    if "file" in told:
        entries = json.loads(Path(told["file"]).read_text(encoding="utf-8"))["mcpServers"]
        told["servers"] = {key: entry.get("transport", entry)["url"] for key, entry in entries.items()}
    tools: dict[str, tuple[Session, dict[str, Any]]] = {}
    for key, url in told["servers"].items():
        session = Session(url)
        tools |= {f"{key}__{tool['name']}": (session, tool) for tool in session.tools()}
    offered = [
        {"type": "function", "function": {"name": name, "description": tool["description"]}}
        for name, (_, tool) in tools.items()
    ]
    said: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    while True:
        body = json.dumps({"messages": said, "tools": offered}).encode()
        with urlopen(Request(f"{told['model']}/v1/chat/completions", body), timeout=30) as answer:
            message = json.load(answer)["choices"][0]["message"]
        said.append(message)
        if not message.get("tool_calls"):
            return
        for call in message["tool_calls"]:
            session, tool = tools[call["function"]["name"]]
            arguments = json.loads(call["function"]["arguments"])
            result = session.ask("tools/call", {"name": tool["name"], "arguments": arguments})
            said.append({"role": "tool", "content": json.dumps(result)})


if __name__ == "__main__":
    main()
