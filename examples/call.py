"""List or call the tools of an MCP server over HTTP, as the clients of the documentation do.

`python examples/call.py URL` lists the tools; `python examples/call.py URL TOOL '{"key": "value"}'` calls one. A form
that the user is shown is printed, and answered with the choice of `--choose`; without it the client shows no forms.
Exit status 1: the call was refused, or failed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
from typing import TYPE_CHECKING, Any

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult, TextContent

if TYPE_CHECKING:
    from mcp.client import ClientRequestContext
    from mcp.types import ElicitRequestParams


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="List or call the tools of an MCP server over HTTP.")
    parser.add_argument("url")
    parser.add_argument("tool", nargs="?")
    parser.add_argument("arguments", nargs="?", default="{}")
    parser.add_argument("--token", help="the bearer token")
    parser.add_argument("--choose", help="the choice in a form; `decline` declines it")
    return parser.parse_args()


async def run(options: argparse.Namespace) -> int:
    """List the tools, or call one, and print the answer."""

    async def answer_form(_: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        sys.stdout.write(f"{params.message}\n\n")
        if options.choose == "decline":
            return ElicitResult(action="decline")
        schema: Any = getattr(params, "requested_schema", {})
        return ElicitResult(action="accept", content=dict.fromkeys(schema.get("properties", {}), options.choose))

    headers = {"Authorization": f"Bearer {options.token}"} if options.token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(
            streamable_http_client(options.url, http_client=http),
            elicitation_callback=answer_form if options.choose else None,
        ) as client,
    ):
        if options.tool is None:
            sys.stdout.writelines(f"{tool.name}\n" for tool in (await client.list_tools()).tools)
            return 0
        result = await client.call_tool(options.tool, json.loads(options.arguments))
        sys.stdout.writelines(f"{part.text if isinstance(part, TextContent) else part}\n" for part in result.content)
        return int(result.is_error or False)


# The client reports each call of a tool that it did not list.
logging.disable(logging.WARNING)
try:
    sys.exit(asyncio.run(run(read_arguments())))
except* (MCPError, httpx2.HTTPError) as group:
    errors = [error for one in group.exceptions for error in getattr(one, "exceptions", [one])]
    sys.stderr.writelines(f"{error}\n" for error in errors)
    sys.exit(1)
