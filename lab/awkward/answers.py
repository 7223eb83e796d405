"""What the awkward server answers, whatever the transport; both eras of the protocol."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from lab.model.turn import marked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["LATER", "Answers", "Received"]

# The marks of tools that were not there at first begin here, after the server's own base.
LATER: Final = 900
_HANDSHAKES: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
_MODERN: Final = "2026-07-28"
_CHANGED: Final = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
_CAPABILITIES: Final = {"tools": {"listChanged": True}}
_EMPTY: Final = {
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
# As long as a client needs to ask for the list again before the call that changed it is answered.
_PAUSE: Final = 1.0


@dataclass(frozen=True)
class Received:
    """One message of a client, with the HTTP headers that came with it."""

    message: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


class _Refused(Exception):
    """A JSON-RPC error."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Answers:
    """One server: its tools' names in order, and a note of all that it was sent.

    A call of ``rename_now`` renames the first tool, adding ``_v2``, and says so; ``err_jsonrpc`` and ``err_iserror``
    answer as servers do that don't know a tool. ``base`` is added to the marks in descriptions.
    """

    def __init__(
        self, names: tuple[str, ...], *, base: int = 0, modern: bool = False, pause: Callable[[float], None]
    ) -> None:
        self._names = list(names)
        self._marks = [base + place for place in range(1, len(names) + 1)]
        self._base, self._modern, self._pause = base, modern, pause
        self._lock = Lock()
        self.received: list[Received] = []

    def note(self, received: Received) -> None:
        """Keep a message."""
        with self._lock:
            self.received.append(received)

    def answer(self, message: Mapping[str, Any], notify: Callable[[Mapping[str, Any]], None]) -> dict[str, Any] | None:
        """Return the answer to one message; None if it wants none."""
        if "id" not in message or "method" not in message:
            return None
        try:
            result = self._result(message["method"], message.get("params") or {}, notify)
        except _Refused as error:
            return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": error.code, "message": str(error)}}
        if self._modern:
            result["resultType"] = "complete"
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    def _result(
        self, method: str, params: Mapping[str, Any], notify: Callable[[Mapping[str, Any]], None]
    ) -> dict[str, Any]:
        if method == "tools/call":
            return self._called(params, notify)
        if method == "tools/list":
            return {"tools": self._tools()} | ({"ttlMs": 0, "cacheScope": "private"} if self._modern else {})
        if method == "initialize":
            return self._welcome(params)
        if method == "server/discover" and self._modern:
            return {"supportedVersions": [_MODERN], "ttlMs": 0, "cacheScope": "private"} | self._itself()
        if method == "ping":
            return {}
        if method in _EMPTY:
            return {_EMPTY[method]: []}
        raise _Refused(-32601, f"Method not found: {method}")

    def _welcome(self, params: Mapping[str, Any]) -> dict[str, Any]:
        wanted = params.get("protocolVersion")
        version = wanted if wanted in _HANDSHAKES else _HANDSHAKES[-1]
        return {"protocolVersion": version} | self._itself()

    def _itself(self) -> dict[str, Any]:
        return {"capabilities": _CAPABILITIES, "serverInfo": {"name": "awkward", "version": "1.0"}}

    def _tools(self) -> list[dict[str, Any]]:
        schema = {"type": "object", "properties": {"q": {"type": "string", "description": "any text"}}}
        return [
            {"name": name, "description": f"{marked(mark)} awkward tool", "inputSchema": schema}
            for name, mark in zip(self._names, self._marks, strict=True)
        ]

    def _called(self, params: Mapping[str, Any], notify: Callable[[Mapping[str, Any]], None]) -> dict[str, Any]:
        name = params.get("name")
        if name == "err_jsonrpc":
            raise _Refused(-32602, "JSONRPC-WORDING: there is no such tool")
        if name == "err_iserror":
            return _text("ISERROR-WORDING: there is no such tool", error=True)
        if name not in self._names:
            raise _Refused(-32602, f"UPSTREAM-UNKNOWN {name}")
        if name == "rename_now":
            self._rename(notify)
        return _text(f"UPSTREAM-OK {name} {(params.get('arguments') or {}).get('q')}")

    def _rename(self, notify: Callable[[Mapping[str, Any]], None]) -> None:
        with self._lock:
            self._names[0] += "_v2"
            self._marks[0] = self._base + LATER
        notify(_CHANGED)
        self._pause(_PAUSE)


def _text(text: str, *, error: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": error}
