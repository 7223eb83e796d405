"""tasking.py LABEL [ERA]: calls that become tasks, in the ways of both eras, or of the one that is said."""

from __future__ import annotations

import sys
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

from tests.conformance.fixture import refusing
from tests.conformance.tasks import TaskedTools


class _Announcing(Server[Any]):
    says_tasks = True

    def get_capabilities(self, *args: Any, **more: Any) -> Any:
        found = super().get_capabilities(*args, **more)
        return TaskedTools.announce(found, more.get("protocol_version")) if self.says_tasks else found


class Tasking(TaskedTools):
    """The server; ``refuses`` is the era that it does not speak, ``says`` whether it announces its tasks."""

    def __init__(self, label: str, *, refuses: str = "", says: bool = True, rude: bool = False) -> None:
        super().__init__(label, rude=rude)
        self.server = _Announcing(label, on_list_tools=self._list, on_call_tool=_never)
        self.server.says_tasks = says
        if refuses:
            self.server.middleware.append(refusing(refuses))
        self.server.middleware.append(self.middleware)

    async def _list(self, _: Any, __: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self.tools)


async def _never(_: Any, __: object) -> types.CallToolResult:
    raise AssertionError


async def main(label: str, era: str) -> None:
    refuses = {"handshake": "stateless", "stateless": "handshake"}.get(era, "")
    server = Tasking(label, refuses=refuses).server
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], (sys.argv[2:] or [""])[0])
