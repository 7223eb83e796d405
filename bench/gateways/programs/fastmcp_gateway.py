"""FastMCP's proxy: `fastmcp_gateway.py PLACE shared|default`. It runs in an environment of its own."""

from __future__ import annotations

import json
import logging
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import uvloop
from fastmcp import Client, FastMCP
from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy

PLACE = json.loads(Path(sys.argv[1]).read_text())
MODE = sys.argv[2]
logging.disable(logging.INFO)


def target(entry: dict[str, Any]) -> Any:
    if "url" in entry:
        return entry["url"]
    return StdioTransport(command=entry["command"], args=entry["args"])


async def main() -> None:
    gateway = FastMCP("proxy")
    tls = dict(zip(("ssl_certfile", "ssl_keyfile"), PLACE["tls"], strict=False))
    async with AsyncExitStack() as stack:
        for key, entry in PLACE["servers"].items():
            if MODE == "shared":
                behind = await stack.enter_async_context(Client(target(entry)))
            else:
                behind = target(entry)
            gateway.mount(create_proxy(behind), namespace=key)
        await gateway.run_http_async(
            host="127.0.0.1",
            port=PLACE["port"],
            show_banner=False,
            log_level="error",
            json_response=True,
            uvicorn_config={"access_log": False, "loop": "uvloop", "http": "httptools", **tls},
        )


uvloop.run(main())
