"""Serve a FastMCP proxy under the names of a table: `fastmcp_transform.py CONFIG LISTS PORT`, in this environment."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from fastmcp import Client
from fastmcp.server import create_proxy

from truename import Catalog, project
from truename.adapters.fastmcp import NameTableTransform


async def main() -> None:
    """Serve until a signal comes."""
    config, lists = (json.loads(Path(file).read_text("utf-8")) for file in sys.argv[1:3])
    for entry in config["mcpServers"].values():
        entry["transport"] = entry.pop("type")
    names = project(Catalog.from_mcp(lists, strict=False), "universal")
    async with Client(config) as client:
        proxy = create_proxy(client)
        proxy.add_transform(NameTableTransform(names))
        await proxy.run_http_async(host="127.0.0.1", port=int(sys.argv[3]), show_banner=False, log_level="error")


asyncio.run(main())
