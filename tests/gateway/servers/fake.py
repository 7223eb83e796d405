"""A fake MCP server on standard input and output, standard library only; the scripts beside it misbehave with it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def tool(name: str, **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return {"name": name, "description": f"Does {name}.", "inputSchema": schema, **more}


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


class Fault(Exception):
    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, "data": data}


class Fake:
    """Speaks the handshake era. ``calls`` maps tool names to what is done; the rest say who was called with what."""

    def __init__(self, label: str, tools: list[dict[str, Any]]) -> None:
        self.label = label
        self.tools = tools
        self.calls: dict[str, Callable[[dict[str, Any], Any], dict[str, Any] | None]] = {}

    def initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        return {
            "protocolVersion": params.get("protocolVersion", "2025-06-18"),
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": self.label, "version": "1"},
        }

    def list_tools(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"tools": self.tools}

    def call(self, params: dict[str, Any], request_id: Any) -> dict[str, Any] | None:
        name = params.get("name", "")
        if name in self.calls:
            return self.calls[name](params, request_id)
        if not any(entry["name"] == name for entry in self.tools):
            raise Fault(-32602, f"Unknown tool: {name}")
        return self.echo(params)

    def echo(self, params: dict[str, Any]) -> dict[str, Any]:
        return {
            "content": [{"type": "text", "text": f"{self.label}:{params['name']}"}],
            "structuredContent": {"server": self.label, "params": params},
        }

    def answer(self, method: str, params: dict[str, Any], request_id: Any) -> dict[str, Any] | None:
        if method == "initialize":
            return self.initialize(params)
        if method == "ping":
            return {}
        if method == "tools/list":
            return self.list_tools(params)
        if method == "tools/call":
            return self.call(params, request_id)
        raise Fault(-32601, "Method not found")

    def notified(self, method: str, params: dict[str, Any]) -> None:
        pass

    def answered(self, message: dict[str, Any]) -> None:
        pass

    def run(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            method, params = message.get("method"), message.get("params") or {}
            if method is None:
                self.answered(message)
                continue
            if "id" not in message:
                self.notified(method, params)
                continue
            try:
                result = self.answer(method, params, message["id"])
            except Fault as fault:
                send({"id": message["id"], "error": fault.error})
                continue
            if result is not None:
                send({"id": message["id"], "result": result})


def changed() -> None:
    send({"method": "notifications/tools/list_changed"})
