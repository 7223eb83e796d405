"""`python -m tests.conformance.through URL`: a client whose only server is a gateway in front of URL.

The suite's scenarios for clients are servers that watch what they are sent. What they are sent here comes from the
gateway's upstream side; behind it the SDK's client calls every tool, prompt and resource there is.
"""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CreateMessageResult,
    ElicitRequestFormParams,
    ElicitResult,
    ListRootsResult,
    TextContent,
    Tool,
)

from truename.config import Config, ServerConfig, Settings
from truename.gateway import Gateway, listening

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

_CONTEXT: Final = "MCP_CONFORMANCE_CONTEXT"
_ERA: Final = "MCP_CONFORMANCE_PROTOCOL_VERSION"
_STATELESS: Final = "2026-07-28"
# Wants to be told the schema of its neighbour, as the client sees it.
_ECHO: Final = "json_schema_echo"
_VALUES: Final[Mapping[str, Any]] = {"number": 1, "integer": 1, "boolean": True, "array": [], "object": {}}


async def _elicited(context: object, params: Any) -> ElicitResult:
    schema = params.requested_schema if isinstance(params, ElicitRequestFormParams) else {}
    fields: dict[str, dict[str, Any]] = schema.get("properties", {})
    return ElicitResult(action="accept", content={key: _value(one) for key, one in fields.items()})


async def _sampled(context: object, params: object) -> CreateMessageResult:
    return CreateMessageResult(role="assistant", content=TextContent(type="text", text="I am here."), model="none")


async def _rooted(context: object) -> ListRootsResult:
    return ListRootsResult(roots=[])


def _value(schema: Mapping[str, Any]) -> Any:
    return schema.get("default", _VALUES.get(schema.get("type", ""), "x"))


def _calls(tools: list[Tool]) -> list[dict[str, Any]]:
    """What the scenario wants called; otherwise every tool, with something for each argument."""
    asked: list[dict[str, Any]] = json.loads(os.environ.get(_CONTEXT) or "{}").get("toolCalls") or []
    if asked:
        return asked
    return [{"name": tool.name, "arguments": _arguments(tool, tools)} for tool in tools]


def _arguments(tool: Tool, tools: list[Tool]) -> dict[str, Any]:
    if tool.name == _ECHO:
        return {"schema": next((other.input_schema for other in tools if other.name != _ECHO), {})}
    fields: dict[str, dict[str, Any]] = tool.input_schema.get("properties") or {}
    return {key: _value(one) for key, one in fields.items()}


async def _tried(what: str, attempt: Callable[[], Awaitable[object]]) -> None:
    try:
        outcome = str(await attempt())
    except MCPError as error:
        outcome = f"was refused: {error}"
    sys.stderr.write(f"{what}: {outcome}\n")


async def _use(client: Client) -> None:
    tools = (await client.list_tools()).tools
    for call in _calls(tools):
        await _tried(call["name"], partial(client.call_tool, call["name"], call.get("arguments") or {}))
    await _tried("prompts", partial(_prompts, client))
    await _tried("resources", partial(_resources, client))


async def _prompts(client: Client) -> None:
    for prompt in (await client.list_prompts()).prompts:
        await client.get_prompt(prompt.name, {})


async def _resources(client: Client) -> None:
    for resource in (await client.list_resources()).resources:
        await client.read_resource(resource.uri)


async def main(url: str) -> None:
    mode = _STATELESS if os.environ.get(_ERA) == _STATELESS else "legacy"
    server = ServerConfig(key="suite", url=url, type="http")
    config = Config(servers=(server,), settings=Settings(style="on-conflict", state="memory"))
    async with Gateway(config) as gateway, listening(gateway) as address:
        client = Client(
            f"{address}/mcp",
            mode=mode,
            elicitation_callback=_elicited,
            sampling_callback=_sampled,
            list_roots_callback=_rooted,
        )
        async with client:
            await _use(client)


if __name__ == "__main__":
    anyio.run(main, sys.argv[-1])
