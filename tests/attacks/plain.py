"""What the attacks are shown against first: an aggregator as it is written on an afternoon."""

from __future__ import annotations

import asyncio
import re
import ssl
from typing import TYPE_CHECKING, Any

import httpx2
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from starlette.requests import Request

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


# To read the certificates takes longer than a request.
_TLS = ssl.create_default_context()


def joined(key: str, tool: str) -> str:
    """Join with one separator, and put `_` for what models don't like."""
    return re.sub(r"[^\w-]", "_", f"{key}_{tool}")


class Plain:
    """It prefixes, lets the last one win, keeps what was approved by the displayed name, and forwards everything."""

    def __init__(
        self,
        servers: Mapping[str, str],
        *,
        approved: Collection[str] | None = None,
        join: Callable[[str, str], str] = joined,
    ) -> None:
        self.servers, self.approved, self.join = dict(servers), approved, join
        self.shown: dict[str, str] | None = None
        self.app = Starlette(routes=[Route("/mcp", self.answer, methods=["POST"])])

    async def answer(self, request: Request) -> JSONResponse:
        message = await request.json()
        # One connection for all: whoever comes first has logged it in.
        self.shown = self.shown or {name: value for name, value in request.headers.items() if name not in _HOP}
        params, tools = message["params"], {}
        for key, url in self.servers.items():
            for tool in (await self._asked(url, "tools/list", {}))["tools"]:
                tools[self.join(key, tool["name"])] = url, tool
        if message["method"] == "tools/list":
            result: dict[str, Any] = {"tools": [{**tool, "name": name} for name, (_, tool) in tools.items()]}
        elif self.approved is not None and params["name"] not in self.approved:
            result = {"content": [{"type": "text", "text": "not approved"}], "isError": True}
        else:
            url, tool = tools[params["name"]]
            result = await self._asked(url, "tools/call", {**params, "name": tool["name"]})
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": result})

    async def _asked(self, url: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
        async with httpx2.AsyncClient(follow_redirects=True, timeout=15, verify=_TLS) as web:
            answer = (await web.post(url, json=body, headers=self.shown)).json()
        if "error" in answer:
            # Its text decides whether a call is repeated.
            if "session terminated" in answer["error"]["message"].lower():
                return await self._asked(url, method, params)
            return {"content": [{"type": "text", "text": str(answer["error"])}], "isError": True}
        found: dict[str, Any] = answer["result"]
        return found


def starting() -> Starlette:
    """Return a proxy for pipes, as debuggers of servers have one: its client says which program it is to run."""

    async def start(request: Request) -> PlainTextResponse:
        said = request.query_params
        program, code = said["command"], said["args"].split(" ", 1)
        run = await asyncio.create_subprocess_exec(program, *code)
        return PlainTextResponse(str(await run.wait()))

    return Starlette(routes=[Route("/stdio", start)])


_HOP = frozenset({"host", "connection", "content-length", "content-type", "accept-encoding"})
