"""Test support: trust, used by tests of several modules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    from pathlib import Path

    from mcp import Client

    from tests.gateway.conftest import Lab
    from truename.config import ServerConfig

READ: dict[str, Any] = {
    "name": "read",
    "description": "Read a file.",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
}


REWORDED: dict[str, Any] = {**READ, "description": "Read a file, or a part of it."}


PAY: dict[str, Any] = {
    "name": "transfer_funds",
    "description": "Transfer money from one account of the bank to another.",
    "inputSchema": {"type": "object"},
}


class Turning:
    """A server whose tools are what is written down."""

    def __init__(self, folder: Path, key: str) -> None:
        self.key = key
        self._file = folder / f"{key}.json"

    def says(self, *tools: dict[str, Any]) -> None:
        self._file.write_text(json.dumps(tools))

    def config(self, lab: Lab) -> ServerConfig:
        return lab.script(self.key, "turning", str(self._file), self.key)


async def texts(client: Client) -> dict[str, str]:
    listed = (await client.list_tools(cache_mode="bypass")).tools
    return {tool.name: str(tool.description) for tool in listed if not tool.name.endswith("_turn")}


async def until(client: Client, wanted: dict[str, str]) -> None:
    with anyio.fail_after(15):
        while await texts(client) != wanted:
            await anyio.sleep(0.02)
