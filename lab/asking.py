"""The least of an MCP client over streamable HTTP: one session, one question at a time."""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.request import Request, urlopen

__all__ = ["Session"]

_HEADERS: Final = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
_VERSION: Final = "2025-11-25"
_ABOUT: Final = {"name": "truename-lab", "version": "1"}


class Session:
    """A session with one server, begun at once. Raises `OSError` where the server cannot be asked."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._headers = dict(_HEADERS)
        self.ask("initialize", {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": _ABOUT})

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the whole answer, a result or an error."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        with urlopen(Request(self._url, body, self._headers), timeout=30) as answer:
            text, kind = answer.read().decode(), answer.headers.get_content_type()
            session = answer.headers.get("Mcp-Session-Id")
        if session:
            self._headers |= {"Mcp-Session-Id": session, "Mcp-Protocol-Version": _VERSION}
        if kind == "text/event-stream":
            lines = [line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:")]
            text = next(line for line in lines if '"id"' in line)
        found: dict[str, Any] = json.loads(text)
        return found

    def tools(self) -> list[dict[str, Any]]:
        """Return all pages of the list of tools."""
        tools: list[dict[str, Any]] = []
        cursor: dict[str, Any] = {}
        while True:
            page = self.ask("tools/list", cursor)["result"]
            tools += page["tools"]
            if not page.get("nextCursor"):
                return tools
            cursor = {"cursor": page["nextCursor"]}
