"""Every version of client and server, through every primitive: equal to the server without a gateway, but for names.

A row of `PRIMITIVES` says what a client does, and since when the versions have it. Clients and servers are written by
hand (`speakers.py`, `servers/whole.py`), with much that no version knows, which has to arrive as it was said.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp import StdioServerParameters

from tests.gateway.conftest import ROOT, Lab, Upstreams
from tests.gateway.doings import PRIMITIVES, Server, outcome, plain
from tests.gateway.servers.whole import QUESTIONS, VERSIONS
from tests.gateway.speakers import Speaker, Wrong, speaking_http, speaking_stdio
from tests.gateway.whole_http import WholeServer
from truename.config import ServerConfig

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

# A server's key by its version.
KEYS = {version: f"v{index}" for index, version in enumerate(VERSIONS)}
# A program asks and logs over its one pipe, and over HTTP a client of the stateless era has no session: whose those are
# cannot be told.
_NOT_TOLD_APART = frozenset({"log messages", "sampling", "roots", "elicitation by a form", "elicitation by a URL"})


async def _through(client: Speaker, server: Server, without: Collection[str] = ()) -> dict[str, Any]:
    return {
        name: await primitive(client, server)
        for name, (primitive, since) in PRIMITIVES.items()
        if since <= min(client.version, server.version) and name not in without
    }


async def _hears_of_changes(client: Speaker, server: Server) -> None:
    """Have a tool come: it is told in the way of the client's version, and then it is listed."""
    client.heard.clear()
    number = 0
    if client.modern:
        number = await client.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        await client.hears("notifications/subscriptions/acknowledged")
    before = await PRIMITIVES["tools/list, in pages"][0](client, server)
    await client.ask("tools/call", name=f"{server.prefix}grow")
    await client.hears("notifications/tools/list_changed")
    after = await PRIMITIVES["tools/list, in pages"][0](client, server)
    assert [tool["name"] for tool in after if tool not in before] == [f"grown_{len(before)}"]
    if client.modern:
        await client.cancel(number)


async def _refuses_to_be_asked(client: Speaker, server: Server) -> list[str]:
    """Return the questions that reached a client which is too old for them."""
    client.asked.clear()
    for name, (_, since) in PRIMITIVES.items():
        if client.version < since <= server.version:
            tool = {"elicitation by a form": "form", "elicitation by a URL": "url"}[name]
            assert tool in QUESTIONS
            await outcome(client.ask("tools/call", name=server.prefix + tool))
    return [str(question["method"]) for question in client.asked]


def _program(label: str, version: str) -> ServerConfig:
    args = ("-m", "tests.gateway.servers.whole", label, version)
    return ServerConfig(key=label, command=sys.executable, args=args, env={"PYTHONPATH": str(ROOT)})


_ASKED: dict[str, dict[str, Any]] = {}


@asynccontextmanager
async def _all_http(upstreams: Upstreams) -> AsyncIterator[dict[str, str]]:
    async with AsyncExitStack() as stack:
        yield {
            key: await stack.enter_async_context(upstreams.serve(WholeServer(key, version).server))
            for version, key in KEYS.items()
        }


async def _directly_http(upstreams: Upstreams) -> dict[str, Any]:
    """Return what each server answers a client of its own version, asked once for all tests."""
    if "http" in _ASKED:
        return _ASKED["http"]
    found = _ASKED["http"] = dict[str, Any]()
    async with _all_http(upstreams) as urls:
        for version, key in KEYS.items():
            async with speaking_http(version, urls[key]) as client:
                found[key] = await _through(client, Server(key, version))
    return found


async def _directly_stdio() -> dict[str, Any]:
    if "stdio" in _ASKED:
        return _ASKED["stdio"]
    found = _ASKED["stdio"] = dict[str, Any]()

    async def ask(version: str, key: str) -> None:
        server = _program(key, version)
        program = StdioServerParameters(
            command=sys.executable, args=list(server.args), env={**os.environ, **server.env}
        )
        async with speaking_stdio(version, program) as client:
            found[key] = await _through(client, Server(key, version))

    async with anyio.create_task_group() as tasks:
        for version, key in KEYS.items():
            tasks.start_soon(ask, version, key)
    return found


def _unattributed(value: dict[str, Any]) -> dict[str, Any]:
    """Return what is asked of a model without the sentence of the gateway that says who asks."""
    said = str(value.get("systemPrompt", ""))
    return {k: v for k, v in value.items() if k != "systemPrompt" or not said.endswith("' asks for this.")}


async def _differing(client: Speaker, directly: Mapping[str, Any], without: Collection[str] = ()) -> dict[str, Any]:
    """Return what a client gets otherwise through the gateway than each server's own clients do."""
    differing: dict[str, Any] = {}
    for version, key in KEYS.items():
        server = Server(key, version, f"{key}_")
        for name, told in (await _through(client, server, without)).items():
            # The gateway says which server asks; nothing else may differ.
            unmarked = json.loads(json.dumps(told).replace(f"Server '{key}' asks: ", ""), object_hook=_unattributed)
            if unmarked != json.loads(json.dumps(directly[key][name])):
                differing[f"{client.version} to {version}: {name}"] = (told, directly[key][name])
        if asked := await _refuses_to_be_asked(client, server):
            differing[f"{client.version} to {version}: asked"] = asked
        await _hears_of_changes(client, server)
    return differing


@pytest.mark.parametrize("version", VERSIONS)
async def test_over_http(version: str, lab: Lab, upstreams: Upstreams) -> None:
    directly = await _directly_http(upstreams)
    async with (
        _all_http(upstreams) as urls,
        lab.serving(*(lab.at(key, url) for key, url in urls.items())) as address,
        speaking_http(version, address + "/mcp") as client,
    ):
        assert await _differing(client, directly) == {}


PROGRAMS = [_program(key, version) for version, key in KEYS.items()]


@pytest.mark.parametrize("version", VERSIONS)
async def test_over_http_before_programs(version: str, lab: Lab) -> None:
    directly = await _directly_stdio()
    async with lab.serving(*PROGRAMS) as address, speaking_http(version, address + "/mcp") as client:
        assert await _differing(client, directly, without=_NOT_TOLD_APART if client.modern else ()) == {}


@pytest.mark.parametrize("version", VERSIONS[-2:])
async def test_over_http_before_programs_of_another_process(version: str, lab: Lab) -> None:
    directly = await _directly_stdio()
    async with lab.behind_another(*PROGRAMS) as address, speaking_http(version, address + "/mcp") as client:
        assert await _differing(client, directly, without=_NOT_TOLD_APART if client.modern else ()) == {}


@pytest.mark.parametrize("version", VERSIONS)
async def test_over_standard_input_and_output_at_both_ends(version: str, lab: Lab) -> None:
    directly = await _directly_stdio()
    async with speaking_stdio(version, lab.over_stdio(*PROGRAMS)) as client:
        assert await _differing(client, directly) == {}


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_no_version_knows_reaches_the_only_server(version: str, lab: Lab, upstreams: Upstreams) -> None:
    said = {"x": {"y": [None, 1e300]}, "_meta": {"vendor/x": None}}
    async with (
        _all_http(upstreams) as urls,
        lab.serving(*(lab.at(key, url) for key, url in urls.items())) as address,
    ):
        for key in KEYS.values():
            async with speaking_http(version, f"{address}/mcp/only/{key}") as client:
                assert plain(await client.ask("vendor/echo", **said)) == {"said": said, "label": key}


@pytest.mark.parametrize(
    "method",
    ["vendor/echo\r\nx-other: 1", "vendor/echo\n", " vendor/echo", "vendor/echo ", "vendor/\u00e9cho", "vendor/\0", ""],
)
async def test_a_method_that_no_header_can_carry_is_asked_of_no_server(
    method: str, lab: Lab, upstreams: Upstreams
) -> None:
    async with (
        _all_http(upstreams) as urls,
        lab.serving(*(lab.at(key, url) for key, url in urls.items())) as address,
        speaking_http(VERSIONS[0], f"{address}/mcp/only/{KEYS[VERSIONS[-1]]}") as client,
    ):
        with pytest.raises(Wrong, match="Method not found"):
            await client.ask(method)
