"""Real servers behind the real gateway, called by the SDK's client in both eras, over HTTP and stdio.

The short form (two servers) is part of `make test`; the rest is `make live`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from mcp import Client

from tests.live.journeys import (
    ERAS,
    STARTUP,
    called,
    gateway_command,
    id_of,
    real_gateway,
    spellings,
    workshop,
)
from tests.live.real_servers import SHORT, RealServer, full
from truename.gateway import listening
from truename.naming import project

if TYPE_CHECKING:
    from pathlib import Path

CLIENTS = ("claude-code", "cursor", "openai", "gemini-cli", "native")


async def over_http(servers: tuple[RealServer, ...], work: Path) -> int:
    """Call every probe by every spelling, on every kind of address, in both eras; return how many calls were right."""
    right = 0
    async with real_gateway(servers, work) as gateway, listening(gateway) as address:
        universal = gateway.table()
        gateway.registry.ledger.redirect("yesterdays_name", id_of(gateway, servers[0]))
        for era in ERAS:
            for path in ("/mcp", *(f"/mcp/for/{client}" for client in CLIENTS)):
                table = gateway.table(path)
                async with Client(f"{address}{path}", mode=era) as client:
                    listed = {tool.name for tool in (await client.list_tools()).tools}

                    assert set(table.values()) == listed

                    for server in servers:
                        for name in spellings(id_of(gateway, server), table, universal):
                            assert server.probe.answer in await called(client, name, server.probe, work), name
                            right += 1
                    assert servers[0].probe.answer in await called(client, "yesterdays_name", servers[0].probe, work)
            for server in servers:
                async with Client(f"{address}/mcp/only/{server.key}", mode=era) as client:
                    listed = {tool.name for tool in (await client.list_tools()).tools}

                    assert server.probe.tool in listed

                    for name in (server.probe.tool, *spellings(id_of(gateway, server), universal)):
                        assert server.probe.answer in await called(client, name, server.probe, work), name
                        right += 1
    return right


def has_joined(server: RealServer, servers: tuple[RealServer, ...], listed: set[str]) -> bool:
    """Say whether as many names lead to such a tool as servers have it whose keys begin so (git, git-two)."""
    alike = [one for one in servers if one.key.startswith(server.key) and one.probe.tool == server.probe.tool]
    named = [name for name in listed if name.startswith(server.key.replace("-", "_")) and server.probe.tool in name]
    return len(named) >= len(alike)


async def all_listed(client: Client, servers: tuple[RealServer, ...]) -> set[str]:
    """Return the names as soon as every server has joined: on a busy machine the slow ones come after the start."""
    with anyio.fail_after(STARTUP):
        while True:
            listed = {tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools}
            if all(has_joined(server, servers, listed) for server in servers):
                return listed
            await anyio.sleep(0.2)


async def over_stdio(servers: tuple[RealServer, ...], work: Path) -> int:
    right = 0
    for era in ERAS:
        async with Client(gateway_command(servers, work), mode=era) as client:
            listed = await all_listed(client, servers)
            for server in servers:
                answers = [name for name in listed if server.probe.tool in name]
                names = [name for name in answers if name.startswith(server.key.replace("-", "_"))] or answers
                # Another server's key may begin with this one's.
                for name in (min(names, key=len), f"{server.key}/{server.probe.tool}"):
                    assert server.probe.answer in await called(client, name, server.probe, work), name
                    right += 1
    return right


def test_short_two_real_servers_answer_by_every_name_over_http(tmp_path: Path) -> None:
    right = anyio.run(over_http, SHORT, workshop(tmp_path))

    assert right >= 100


def test_short_two_real_servers_answer_over_stdio(tmp_path: Path) -> None:
    assert anyio.run(over_stdio, SHORT, workshop(tmp_path)) == 8


@pytest.mark.live
def test_all_real_servers_answer_by_every_name_over_http(tmp_path: Path) -> None:
    servers = full()

    assert len(servers) >= 5
    assert anyio.run(over_http, servers, workshop(tmp_path)) >= 60 * len(servers)


@pytest.mark.live
def test_all_real_servers_answer_over_stdio(tmp_path: Path) -> None:
    servers = full()

    assert anyio.run(over_stdio, servers, workshop(tmp_path)) == 4 * len(servers)


async def restarted(servers: tuple[RealServer, ...], work: Path) -> None:
    """Two runs on one ledger: the names are the same, and those of a server that left are answered as absent."""
    async with real_gateway(servers, work) as gateway:
        first = dict(gateway.table())
        ledger = gateway.registry.ledger
        left = gateway.catalog.only(servers[0].key)
        again = project(left, "universal", ledger=ledger)

        assert {id: first[id] for id in again} == dict(again)


@pytest.mark.live
def test_names_stay_when_servers_leave(tmp_path: Path) -> None:
    anyio.run(restarted, full(), workshop(tmp_path))
