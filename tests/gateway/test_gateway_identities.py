"""Servers whose entries declare an integration and versions, at a running gateway."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.gateway.reloads import another
from tests.gateway.shelf import Shelf
from truename.catalog import ServerIdentity
from truename.config import Config, Settings
from truename.errors import LedgerError
from truename.gateway import Gateway, listening
from truename.ledger import Ledger
from truename.migration import plan_identities, record_identities
from truename.trust.pins import PinStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mcp import Client

    from tests.gateway.conftest import Lab, Upstreams

pytestmark = pytest.mark.anyio
SF2 = ServerIdentity(integration="salesforce", version=2, versions={"create_lead": 3})
ID = "dev.truename/canonical_name"


async def shown(client: Client) -> dict[str, str]:
    tools = (await client.list_tools(cache_mode="bypass")).tools
    return {tool.name: (tool.meta or {})[ID] for tool in tools}


async def test_clients_are_shown_the_ids_that_are_declared(lab: Lab, connect: Any, era: str) -> None:
    first, second = lab.normal("salesforce", "create_lead"), lab.normal("sf2", "create_lead", identity=SF2)
    async with lab.serving(first, second) as address, connect(f"{address}/mcp", era) as client:
        assert await shown(client) == {
            "sf_create_lead": "salesforce@1/create_lead@1",
            "sf_create_lead_2": "salesforce@2/create_lead@3",
        }
        answer = await client.call_tool("salesforce@2/create_lead@3", {})
    assert "sf2" in str(answer.content)


async def test_a_version_of_a_tool_that_its_server_does_not_list_is_told(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    said = replace(SF2, versions={"create_lead": 3, "craete_lead": 4})
    async with lab.gateway(lab.normal("sf2", "create_lead", identity=said)):
        pass
    assert "the settings name tools that no server has: [servers.sf2.versions] 'craete_lead'" in caplog.text


async def test_of_two_servers_that_are_one_integration_the_first_has_a_tool_and_the_second_is_told(
    lab: Lab, connect: Any, caplog: pytest.LogCaptureFixture
) -> None:
    servers = (lab.normal("east", "get", identity=SF2), lab.normal("west", "get", "put", identity=SF2))
    async with lab.serving(*servers) as address, connect(f"{address}/mcp", "2026-07-28") as client:
        assert list((await shown(client)).values()) == ["salesforce@2/get@1", "salesforce@2/put@1"]
        answer = await client.call_tool("salesforce@2/get@1", {})
    assert "east" in str(answer.content)
    assert "'east' (get) and 'west' (get) both have the name 'salesforce@2/get@1'" in caplog.text


async def test_a_gateway_whose_ledger_has_other_ids_does_not_start(lab: Lab, tmp_path: Path) -> None:
    config = Config(servers=(lab.normal("sf2", "get"),), settings=Settings(state=str(tmp_path / "ledger")))
    async with Gateway(config):
        pass
    declared = replace(config, servers=(replace(config.servers[0], identity=SF2),))
    with pytest.raises(LedgerError) as caught:
        async with Gateway(declared):
            pass
    assert (caught.value.code, caught.value.wanted) == ("identity_mismatch", "salesforce@2/get@1")


async def test_after_the_rename_old_ids_and_names_reach_the_same_tools(
    lab: Lab, connect: Any, era: str, said: Callable[[Any], str], tmp_path: Path
) -> None:
    servers = (lab.normal("salesforce", "create_lead"), lab.normal("sf2", "create_lead", "get"))
    config = Config(servers=servers, settings=Settings(state=str(tmp_path / "ledger")))
    async with (
        Gateway(config) as gateway,
        listening(gateway) as address,
        connect(f"{address}/mcp", era) as client,
        connect(f"{address}/mcp/only/sf2", era) as lone,
    ):
        before, alone = await shown(client), await shown(lone)
        reached = {text: said(await client.call_tool(text, {})) for text in (*before, *before.values())}

    declared = replace(config, servers=(servers[0], replace(servers[1], identity=SF2)))
    # As `truename rename --ids` does: in the ledger, and for the pins, which are in the same database.
    with closing(Ledger.open(tmp_path / "ledger")) as ledger, PinStore(declared.pins_location()) as pins:
        plan = plan_identities(ledger, declared.identities)
        record_identities(ledger, plan)
        pins.follow((change.recorded, change.declared) for change in plan.changes)
    async with (
        Gateway(declared) as gateway,
        listening(gateway) as address,
        connect(f"{address}/mcp", era) as client,
        connect(f"{address}/mcp/only/sf2", era) as lone,
    ):
        assert set((await shown(client)).values()) == {
            "salesforce@1/create_lead@1",
            "salesforce@2/create_lead@3",
            "salesforce@2/get@1",
        }
        assert {text: said(await client.call_tool(text, {})) for text in reached} == reached
        for text in (*alone, *alone.values()):
            assert not (await lone.call_tool(text, {})).is_error


async def test_a_gateway_that_runs_follows_the_rename_and_refuses_a_declaration_before_it(
    lab: Lab, connect: Any, tmp_path: Path
) -> None:
    server = lab.normal("sf2", "get")
    config = Config(servers=(server,), settings=Settings(state=str(tmp_path / "ledger")))
    async with (
        Gateway(config) as gateway,
        listening(gateway) as address,
        connect(f"{address}/mcp", "2026-07-28") as client,
    ):
        declared = another(gateway, replace(server, identity=SF2))
        with pytest.raises(LedgerError, match="truename rename --ids"):
            await gateway.reload(declared)
        assert await shown(client) == {"get": "sf2@1/get@1"}

        operator = Ledger.open(tmp_path / "ledger")
        record_identities(operator, plan_identities(operator, declared.identities))
        assert not (await client.call_tool("sf2@1/get@1", {})).is_error
        assert list((await shown(client)).values()) == ["salesforce@2/get@1"]
        assert (await gateway.reload(declared)).changed == ("sf2",)
        assert list((await shown(client)).values()) == ["salesforce@2/get@1"]
        assert not (await client.call_tool("get", {})).is_error


async def test_prompts_have_the_ids_that_are_declared_too(lab: Lab, upstreams: Upstreams) -> None:
    shelf = Shelf("docs", prompts=("greet",))
    async with (
        upstreams.serve(shelf.server) as address,
        lab.gateway(lab.at("docs", address, identity=SF2)) as gateway,
    ):
        assert [str(id) for id in gateway.registry.others.prompts] == ["salesforce@2/greet@1"]
