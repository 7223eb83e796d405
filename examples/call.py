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
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult, TextContent

if TYPE_CHECKING:
    from mcp.client import ClientRequestContext
    from mcp.types import ElicitRequestParams


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="List or call the tools of an MCP server over HTTP.")
    parser.add_argument("url")
    parser.add_argument("tool", nargs="?")
    parser.add_argument("arguments", nargs="?", default="{}")
    parser.add_argument("--token", help="the bearer token")
    parser.add_argument("--choose", help="the choice in a form; `decline` declines it")
    return parser.parse_args()


# The client reports each call of a tool that it did not list.
logging.disable(logging.WARNING)


async def run(asked: argparse.Namespace) -> int:
    """List the tools, or call one, and print the answer."""

    async def form(_: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        print(params.message, end="\n\n")
        if asked.choose == "decline":
            return ElicitResult(action="decline")
        schema: Any = getattr(params, "requested_schema", {})
        return ElicitResult(action="accept", content=dict.fromkeys(schema.get("properties", {}), asked.choose))

    headers = {"Authorization": f"Bearer {asked.token}"} if asked.token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(
            streamable_http_client(asked.url, http_client=http), elicitation_callback=form if asked.choose else None
        ) as client,
    ):
        if asked.tool is None:
            for tool in (await client.list_tools()).tools:
                print(tool.name)
            return 0
        result = await client.call_tool(asked.tool, json.loads(asked.arguments))
        for part in result.content:
            print(part.text if isinstance(part, TextContent) else part)
        return int(result.is_error or False)


def causes(error: BaseException) -> list[str]:
    """Return the messages of an error, or of all errors in a group."""
    if isinstance(error, BaseExceptionGroup):
        return [text for one in error.exceptions for text in causes(one)]
    return [str(error)]


try:
    sys.exit(asyncio.run(run(arguments())))
except Exception as error:
    print(*causes(error), sep="\n", file=sys.stderr)
    sys.exit(1)
