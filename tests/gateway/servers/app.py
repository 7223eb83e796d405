"""A server with an app over stdio; the argument is its label."""

from __future__ import annotations

import sys

import anyio
from mcp.server.stdio import stdio_server

from tests.gateway.app_server import app_server


async def main() -> None:
    server = app_server(sys.argv[1])
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
