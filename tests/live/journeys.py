"""What every live test does: list an address, call each server's probe by every name that must work."""

from __future__ import annotations

import json
import os
import shutil
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp import Client, StdioServerParameters

from tests.live.real_servers import Probe, RealServer, repository
from truename.config import Config, Settings
from truename.gateway import Gateway
from truename.identity import ToolId, percent_encode, tilde_encode
from truename.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from truename.naming import NameTable

ERAS = ("legacy", "2026-07-28")
STARTUP = 180.0


def workshop(folder: Path) -> Path:
    repository(folder / "one", "first of one")
    repository(folder / "two", "first of two")
    return folder


def config_of(servers: Iterable[RealServer], work: Path) -> Config:
    settings = Settings(startup_timeout=STARTUP, state="memory", tool_search="off")
    return Config(servers=tuple(server.config(work) for server in servers), settings=settings)


@asynccontextmanager
async def real_gateway(servers: Iterable[RealServer], work: Path) -> AsyncIterator[Gateway]:
    """Run a gateway in front of them, on a ledger whose first names were made in another style."""
    wanted = tuple(servers)
    async with Gateway(config_of(wanted, work), ledger=Ledger.memory()) as gateway:
        failed = [report.error for report in gateway.status().servers if report.state != "ready"]
        assert failed == []
        yield gateway


def id_of(gateway: Gateway, server: RealServer) -> ToolId:
    return next(
        id
        for id, tool in gateway.catalog.items()
        if (tool.origin.server, tool.origin.name) == (server.key, server.probe.tool)
    )


def spellings(id: ToolId, *tables: NameTable) -> list[str]:
    """Return every way in which a call may name this tool: shown, canonical, encoded, without versions."""
    canonical = str(id)
    forms: list[str] = [table[id] for table in tables]
    forms += [canonical, id.short, canonical.upper(), percent_encode(canonical), tilde_encode(canonical)]
    return list(dict.fromkeys([*forms, f"{id.integration}@latest/{id.tool}@v1"]))


def filled(value: Any, work: Path) -> Any:
    return json.loads(json.dumps(value).replace("{work}", str(work)))


async def called(client: Client, name: str, probe: Probe, work: Path) -> str:
    result = await client.call_tool(name, filled(probe.arguments, work))
    return "\n".join(str(getattr(part, "text", part)) for part in result.content)


def gateway_command(servers: Iterable[RealServer], work: Path) -> StdioServerParameters:
    """Return how to start `truename serve` as a client would, over stdio."""
    entries = {}
    for server in servers:
        config = server.config(work)
        entries[config.key] = {"command": config.command, "args": list(config.args), "env": dict(config.env)}
    file = work / "mcp.json"
    settings = {"state": "memory", "startup_timeout": STARTUP, "tool_search": "off"}
    file.write_text(json.dumps({"mcpServers": entries, "truename": settings}))
    command = shutil.which("truename", path=str(Path(sys.executable).parent))
    assert command is not None
    return StdioServerParameters(command=command, args=["serve", str(file)], env=dict(os.environ))
