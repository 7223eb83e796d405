"""A gateway for one server alone, as a client starts it over stdio: the others are not started."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from truename.config import Config, Settings
from truename.gateway import Gateway, UnknownView
from truename.ledger import Ledger

if TYPE_CHECKING:
    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio


async def test_the_other_servers_are_not_started(lab: Lab) -> None:
    config = Config(servers=(lab.normal("Data/Base x", "get_data"), lab.normal("other", "get_data")))

    async with Gateway(config, on_event=lab.observe, only="Data/Base x") as gateway:
        assert {event.server for event in lab.events} == {"Data/Base x"}
        assert gateway.main == "/mcp/only/Data%2FBase%20x"
        assert list(gateway.table().values()) == ["get_data"]
        assert list(gateway.status().names.values()) == ["get_data"]


@pytest.mark.parametrize("path", ["/mcp", "/mcp/for/openai", "/mcp/only/other"])
async def test_no_other_view_is_there(lab: Lab, path: str) -> None:
    config = Config(servers=(lab.normal("one", "get_data"), lab.normal("other", "get_data")))

    async with Gateway(config, only="one") as gateway:
        with pytest.raises(UnknownView):
            gateway.endpoint(path)


async def test_the_shared_names_are_left_to_the_gateway_of_all(lab: Lab) -> None:
    servers = (lab.normal("weather", "get_data"), lab.normal("database", "get_data"))
    ledger = Ledger.memory()

    async with Gateway(Config(servers=servers, settings=Settings()), ledger=ledger, only="weather"):
        assert ledger.settings is None
    async with Gateway(Config(servers=servers, settings=Settings()), ledger=ledger) as gateway:
        assert list(gateway.table().values()) == ["weather_get_data", "database_get_data"]


async def test_a_known_client_keeps_names_that_others_would_cut(lab: Lab) -> None:
    long = "confluence_page_attachments_and_permissions_create"
    config = Config(servers=(lab.normal("wiki", long, "createPage", "fs.list"),))

    async with Gateway(config, ledger=Ledger.memory()) as gateway:
        mine = gateway.table("/mcp/for/Claude Code/only/wiki")
        everyones = gateway.table("/mcp/only/wiki")

    assert list(mine.values()) == [long, "createPage", "fs_list"]
    assert [name == long for name in everyones.values()] == [False, False, False]
    assert list(everyones.values())[1:] == ["createPage", "fs_list"]
