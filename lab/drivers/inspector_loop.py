"""The least that an agent does, on top of the Inspector's command line; standard library only, run as a program."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any
from urllib.request import Request, urlopen

_MOST_TURNS = 400


def _inspector(told: dict[str, Any], *options: str) -> subprocess.CompletedProcess[str]:
    target = next(iter(told["targets"].values()))
    return subprocess.run([*told["program"], *target, *options], capture_output=True, text=True, check=False)


def _asked(told: dict[str, Any], said: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    body = json.dumps({"model": "lab-model", "messages": said, "tools": tools}).encode()
    url = f"{told['model']}/v1/chat/completions"
    with urlopen(Request(url, body, {"Content-Type": "application/json"}), timeout=30) as reply:
        message: dict[str, Any] = json.load(reply)["choices"][0]["message"]
        return message


def _called(told: dict[str, Any], call: dict[str, Any]) -> str:
    function = call["function"]
    pairs = [f"{key}={value}" for key, value in json.loads(function["arguments"]).items()]
    done = _inspector(told, "--method", "tools/call", "--tool-name", function["name"], "--tool-arg", *pairs)
    return (done.stdout + done.stderr).strip()


def main() -> None:
    """List the tools, then do what the model says until it is done."""
    told = json.loads(sys.argv[1])
    listed = _inspector(told, "--method", "tools/list")
    try:
        found = json.loads(listed.stdout)["tools"]
    except (ValueError, KeyError):
        sys.exit(f"LAB FAILURE {listed.stdout}{listed.stderr}")
    tools = [
        {"type": "function", "function": {"name": tool["name"], "description": tool.get("description")}}
        for tool in found
    ]
    said: list[dict[str, Any]] = [{"role": "user", "content": "Use the tools."}]
    for _ in range(_MOST_TURNS):
        message = _asked(told, said, tools)
        said.append(message)
        if not message.get("tool_calls"):
            return
        said += [
            {"role": "tool", "tool_call_id": call["id"], "content": _called(told, call)}
            for call in message["tool_calls"]
        ]


if __name__ == "__main__":
    main()
