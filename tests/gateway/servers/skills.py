"""A server with a skill over stdio; the argument is its label."""

from __future__ import annotations

import sys

import anyio
from mcp.server.stdio import stdio_server

from tests.gateway.skill_server import SkillServer


async def main() -> None:
    server = SkillServer(sys.argv[1]).server()
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
