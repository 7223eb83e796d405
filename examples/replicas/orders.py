"""An MCP server over HTTP that writes down each call that it runs: `python examples/replicas/orders.py PORT FILE`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from mcp.server import MCPServer

PORT, CALLS = int(sys.argv[1]), Path(sys.argv[2])
server = MCPServer("orders")


@server.tool()
async def place_order(number: str) -> str:
    """Place the order with this number."""
    with CALLS.open("a") as calls:
        calls.write(f"{number}\n")
    # So calls are under way whenever a replica is killed.
    await asyncio.sleep(0.2)
    return f"order {number} is placed"


server.run("streamable-http", host="127.0.0.1", port=PORT, stateless_http=True, json_response=True)
