"""Serve a FastMCP configuration: `fastmcp_proxy.py CONFIG PORT`. It runs in an environment of its own.

`fastmcp run CONFIG` connects anew to every server for each request; here one client stays connected, so that all tools
can be called in seconds.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from fastmcp import Client
from fastmcp.server import create_proxy


async def main() -> None:
    """Serve until a signal comes."""
    async with Client(json.loads(Path(sys.argv[1]).read_text("utf-8"))) as client:
        proxy = create_proxy(client)
        await proxy.run_http_async(host="127.0.0.1", port=int(sys.argv[2]), show_banner=False, log_level="error")


asyncio.run(main())
