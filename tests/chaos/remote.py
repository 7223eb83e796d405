"""remote.py KEY JOURNAL: an upstream of the stateless era over HTTP, on the SDK; prints its port."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import mcp_types as types
import uvicorn
from mcp.server.lowlevel.server import Server

from tests.chaos.journal import Journal
from tests.chaos.server import SLOW, answer, tools


def build(key: str, journal: Journal) -> Server[None]:
    async def list_tools(_: object, __: object) -> types.ListToolsResult:
        schema = {"type": "object"}
        return types.ListToolsResult(tools=[types.Tool(name=name, input_schema=schema) for name in tools(key, 0)])

    async def call_tool(_: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        nonce = str((params.arguments or {})["text"])
        journal.write(params.name, nonce)
        if params.name == "slow":
            await anyio.sleep(SLOW)
        return types.CallToolResult.model_validate(answer(key, params.name, nonce))

    return Server(key, on_list_tools=list_tools, on_call_tool=call_tool)


async def main(key: str, path: Path) -> None:
    journal = Journal(path, key)
    app = build(key, journal).streamable_http_app()
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, access_log=False, ws="none"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve)
        while not server.started:
            await anyio.sleep(0.01)
        journal.write()
        sys.stdout.write(f"{server.servers[0].sockets[0].getsockname()[1]}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], Path(sys.argv[2]))
