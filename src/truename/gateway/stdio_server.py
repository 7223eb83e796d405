"""The gateway over standard input and output: one client, one view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp.server.stdio import stdio_server

from truename.gateway.views import MAIN

if TYPE_CHECKING:
    from truename.gateway.gateway import Gateway

__all__ = ["serve_stdio"]


async def serve_stdio(gateway: Gateway, path: str = MAIN) -> None:
    """Serve one path of a running gateway until standard input ends. Raises `UnknownView`."""
    server = gateway.endpoint(path).server
    async with stdio_server() as (from_client, to_client):
        await server.run(from_client, to_client, server.create_initialization_options())
