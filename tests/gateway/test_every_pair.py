"""Every pair of client era, server era and transport, through every primitive: equal to the server without a gateway.

A row of `PRIMITIVES` says what is done with a client; its answer is compared but for what belongs to an era alone.
"""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.subscriptions import PromptsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import PromptListChangedNotification, PromptReference, ResourceTemplateReference

from tests.conformance.fixture import Everything, refusing
from tests.gateway.conftest import ERAS, PATIENCE, ROOT, Lab, Upstreams, connected
from tests.gateway.ears import Ear
from tests.gateway.old_transport import old_app
from truename.config import ServerConfig

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from pydantic import BaseModel

pytestmark = [
    pytest.mark.slow,
    pytest.mark.anyio,
    # The fixture serves what one of the eras no longer has.
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

# What each refuses: the other eras.
SERVERS = {"handshake": "stateless", "stateless": "handshake"}
WAYS = ("http", "stdio", "stdio at both ends", "the old transport")
# The old transport carries versions with a handshake only.
PAIRS = [(server, way) for server in SERVERS for way in WAYS if (server, way) != ("stateless", WAYS[-1])]
# What only one of the eras says, or the gateway adds to names.
_OF_AN_ERA = {"resultType", "ttlMs", "cacheScope", "_meta", "openai_name", "canonical_name"}


def _told(value: BaseModel) -> dict[str, Any]:
    said = value.model_dump(by_alias=True, mode="json", exclude_none=True)
    return {key: content for key, content in said.items() if key not in _OF_AN_ERA}


async def _tools(client: Client) -> Any:
    return [_told(tool) for tool in (await client.list_tools()).tools]


async def _prompts(client: Client) -> Any:
    return [_told(prompt) for prompt in (await client.list_prompts()).prompts]


async def _resources(client: Client) -> Any:
    return [_told(resource) for resource in (await client.list_resources()).resources]


async def _templates(client: Client) -> Any:
    return [_told(template) for template in (await client.list_resource_templates()).resource_templates]


def _called(name: str, **arguments: Any) -> Callable[[Client], Awaitable[Any]]:
    async def call(client: Client) -> Any:
        return _told(await client.call_tool(name, arguments))

    return call


def _got(name: str, **arguments: str) -> Callable[[Client], Awaitable[Any]]:
    async def get(client: Client) -> Any:
        return _told(await client.get_prompt(name, arguments))

    return get


def _read(uri: str) -> Callable[[Client], Awaitable[Any]]:
    async def read(client: Client) -> Any:
        return _told(await client.read_resource(uri))

    return read


def _completed(ref: PromptReference | ResourceTemplateReference) -> Callable[[Client], Awaitable[Any]]:
    async def complete(client: Client) -> Any:
        return _told(await client.complete(ref, {"name": "arg1", "value": "pa"}))

    return complete


def _refused(attempt: Callable[[Client], Awaitable[Any]]) -> Callable[[Client], Awaitable[Any]]:
    async def refuse(client: Client) -> Any:
        with pytest.raises(MCPError) as caught:
            await attempt(client)
        return type(caught.value).__name__

    return refuse


async def _progress(client: Client) -> Any:
    steps: list[tuple[float, float | None]] = []

    async def step(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total))

    await client.call_tool("test_tool_with_progress", {}, progress_callback=step)
    return steps


PRIMITIVES: Mapping[str, Callable[[Client], Awaitable[Any]]] = {
    "tools/list": _tools,
    "tools/call": _called("test_simple_text"),
    "tools/call of pictures": _called("test_multiple_content_types"),
    "tools/call that fails": _called("test_error_handling"),
    "progress": _progress,
    "prompts/list": _prompts,
    "prompts/get": _got("test_simple_prompt"),
    "prompts/get with arguments": _got("test_prompt_with_arguments", arg1="hello", arg2="world"),
    "prompts/get with a resource": _got("test_prompt_with_embedded_resource", resourceUri="test://x"),
    "prompts/get of none": _refused(_got("no_such_prompt_at_all")),
    "resources/list": _resources,
    "resources/templates/list": _templates,
    "resources/read of text": _read("test://static-text"),
    "resources/read of bytes": _read("test://static-binary"),
    "resources/read of a template": _read("test://template/123/data"),
    "resources/read of none": _refused(_read("test://no-such-resource")),
    "completion of a prompt's argument": _completed(PromptReference(name="test_prompt_with_arguments")),
    "completion of a template's": _completed(ResourceTemplateReference(uri="test://template/{id}/data")),
}


async def _through(client: Client) -> dict[str, Any]:
    return {name: await primitive(client) for name, primitive in PRIMITIVES.items()}


async def _hears_of_changes(client: Client, era: str, ear: Ear) -> None:
    """Have a prompt come: it is told in the way of the client's era, and then it is listed."""
    with anyio.fail_after(PATIENCE):
        if era == "legacy":
            await client.call_tool("test_trigger_prompt_change", {})
            await ear.hears(PromptListChangedNotification)
        else:
            async with client.listen(prompts_list_changed=True) as events:
                await client.call_tool("test_trigger_prompt_change", {})
                assert await anext(aiter(events)) == PromptsListChanged()
    assert "test_comes_and_goes" in [prompt.name for prompt in (await client.list_prompts()).prompts]


def _everything(refused: str) -> Any:
    server = Everything().server
    server.middleware.append(refusing(refused))
    return server


def _program(refused: str) -> ServerConfig:
    args = ("-m", "tests.conformance.fixture", "--stdio", "--without", refused)
    return ServerConfig(key="far", command=sys.executable, args=args, env={"PYTHONPATH": str(ROOT)})


@asynccontextmanager
async def _fronted(way: str, refused: str, lab: Lab, upstreams: Upstreams) -> AsyncIterator[tuple[Any, Any]]:
    """Give the addresses of a gateway and of the server behind it."""
    if way == "http":
        async with upstreams.serve(_everything(refused)) as url, lab.serving(lab.at("far", url)) as address:
            yield address + "/mcp", url
        return
    if way == "the old transport":
        async with upstreams.app(old_app(_everything(refused))) as url:
            old = ServerConfig(key="far", url=f"{url}/sse", type="sse")
            async with lab.serving(old) as address:
                yield address + "/mcp", sse_client(f"{url}/sse")
        return
    server = _program(refused)
    assert server.command is not None
    alone = StdioServerParameters(command=server.command, args=list(server.args), env=dict(server.env))
    if way == "stdio":
        async with lab.serving(server) as address:
            yield address + "/mcp", alone
    else:
        yield lab.over_stdio(server), alone


_ALONE: dict[tuple[str, str], dict[str, Any]] = {}


async def _asked_alone(target: Any, server: str, way: str) -> dict[str, Any]:
    """Return what the server itself answers, asked once for all tests that front it in the same way."""
    key = (server, way.removesuffix(" at both ends"))
    if key not in _ALONE:
        async with connected(target, "legacy" if server == "handshake" else "2026-07-28") as directly:
            _ALONE[key] = await _through(directly)
    return _ALONE[key]


@pytest.mark.parametrize(("server", "way"), PAIRS)
@pytest.mark.parametrize("client", ERAS)
async def test_a_gateway_answers_as_its_server_does(
    client: str, server: str, way: str, lab: Lab, upstreams: Upstreams
) -> None:
    async with _fronted(way, SERVERS[server], lab, upstreams) as (gateway, alone):
        expected = await _asked_alone(alone, server, way)
        ear = Ear()
        async with connected(gateway, client, message_handler=ear) as behind:
            assert await _through(behind) == expected
            await _hears_of_changes(behind, client, ear)
