"""List and call the tools of a gateway over HTTP, with as many calls at a time as it bears."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import anyio
import httpx2

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["GatewayClient"]

_VERSION: Final = "2025-06-18"
_SECONDS: Final = 120.0


class GatewayClient:
    """A session with a gateway; an answer is JSON or the first event of a stream."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        accept = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        self._http = httpx2.AsyncClient(headers={**accept, **headers}, timeout=_SECONDS, follow_redirects=True)
        self._url, self._number = url, 0

    async def __aenter__(self) -> GatewayClient:
        info = {"name": "export-check", "version": "1"}
        await self.ask("initialize", {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": info})
        await self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the response to a request."""
        self._number += 1
        return await self._post({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})

    async def _post(self, message: Mapping[str, Any]) -> dict[str, Any]:
        answer = await self._http.post(self._url, content=json.dumps(message))
        if session := answer.headers.get("mcp-session-id"):
            self._http.headers["mcp-session-id"] = session
        text = answer.text
        if "id" not in message:
            return {}
        if answer.status_code != 200:
            return {"error": {"message": f"HTTP {answer.status_code}: {text[:200]}"}}
        for line in text.splitlines():
            if line.startswith("data:") and "jsonrpc" in line:
                return dict(json.loads(line.removeprefix("data:")))
        return dict(json.loads(text))

    async def names(self) -> list[str]:
        """Return the names of all pages of tools/list."""
        found: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            page = (await self.ask("tools/list", cursor))["result"]
            found += [tool["name"] for tool in page["tools"]]
            if not page.get("nextCursor"):
                return found
            cursor = {"cursor": page["nextCursor"]}

    async def call_all(self, calls: Sequence[tuple[str, Any]], at_a_time: int) -> dict[str, str]:
        """Call every tool with its arguments; return the texts of the answers by name."""
        answers: dict[str, str] = {}
        left = list(reversed(calls))

        async def work() -> None:
            while left:
                name, arguments = left.pop()
                answer = await self.ask("tools/call", {"name": name, "arguments": arguments})
                content = (answer.get("result") or {}).get("content") or [{}]
                answers[name] = str(content[0].get("text") or answer)

        async with anyio.create_task_group() as group:
            for _ in range(at_a_time):
                group.start_soon(work)
        return answers
