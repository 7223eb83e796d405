"""Addresses of several servers: these alone are there, under the names that they have among all."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.gateway_memory import in_memory
from truename.config import Config, Settings
from truename.config.addresses import path_of, servers_in
from truename.gateway import Gateway, UnknownView
from truename.gateway.views.view import Asked, read_path
from truename.ledger import Ledger
from truename.policy.principal import LOCAL, Principal
from truename.policy.profiles import Profile, Profiles

if TYPE_CHECKING:
    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio

EVERYBODYS = Profiles({"all": Profile(servers=("files", "clock"), everyone=True)})


def servers(lab: Lab) -> tuple[Any, ...]:
    return lab.normal("files", "read", "write"), lab.normal("bank", "read", "pay"), lab.normal("clock", "now")


def names(gateway: Gateway, path: str, principal: Principal = LOCAL) -> list[str]:
    spec = gateway.endpoint(path, principal=principal)._spec
    return [str(tool["name"]) for tool in gateway.registry.view(spec).tools]


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/mcp/servers/files,bank", ["files_read", "files_write", "bank_read", "bank_pay"]),
        ("/mcp/servers/clock", ["clock_now"]),
        ("/mcp/for/cursor/servers/bank,clock", ["bank_read", "bank_pay", "clock_now"]),
        ("/mcp/servers/clock,gone", ["clock_now"]),
        ("/mcp/servers/bank,clock/", ["bank_read", "bank_pay", "clock_now"]),
        ("/mcp/servers/bank, clock", ["bank_read", "bank_pay", "clock_now"]),
    ],
)
async def test_it_shows_its_servers_under_the_names_that_all_have(lab: Lab, path: str, shown: list[str]) -> None:
    async with lab.gateway(*servers(lab)) as gateway:
        assert names(gateway, path) == shown
        assert set(shown) < {*gateway.table().values()}


async def test_a_tool_of_another_server_is_not_there(lab: Lab, connect: Any, said: Any) -> None:
    async with lab.gateway(*servers(lab)) as gateway:
        endpoint = gateway.endpoint("/mcp/servers/files,clock")
        async with connect(in_memory(endpoint), "legacy") as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == [
                "files_read",
                "files_write",
                "clock_now",
            ]
            for name in ("bank_pay", "bank/pay", "bank@1/pay@1", "pay"):
                refused = await client.call_tool(name, {})
                assert refused.is_error
                assert "bank_pay" not in said(refused).replace(name, "")
            assert not (await client.call_tool("files_read", {})).is_error


@pytest.mark.parametrize("name", ["get.file", "one:get.file", "one_get.file", "GET.FILE", "getfile"])
async def test_a_name_that_means_a_tool_of_another_server_means_nothing(lab: Lab, connect: Any, name: str) -> None:
    both = lab.normal("one", "get.file"), lab.normal("two", "get_file")
    async with (
        lab.gateway(*both) as gateway,
        connect(in_memory(gateway.endpoint("/mcp/servers/two")), "legacy") as client,
    ):
        assert (await client.call_tool(name, {})).is_error
        assert not (await client.call_tool("two_get_file", {})).is_error
        assert not (await client.call_tool("two/get_file", {})).is_error


async def test_a_server_that_is_none_of_the_gateways_is_told_where_no_other_is_asked_for(lab: Lab) -> None:
    async with lab.gateway(*servers(lab)) as gateway:
        with pytest.raises(UnknownView, match=r"Unknown server 'clok'\. Did you mean 'clock'"):
            gateway.endpoint("/mcp/servers/clok")


async def test_what_profiles_hide_stays_hidden(lab: Lab) -> None:
    async with lab.gateway(*servers(lab), profiles=EVERYBODYS) as gateway:
        assert names(gateway, "/mcp/servers/bank,clock") == ["clock_now"]
        with pytest.raises(UnknownView):
            gateway.endpoint("/mcp/servers/bank")


async def test_a_search_finds_tools_of_its_servers_only(lab: Lab, connect: Any) -> None:
    async with lab.gateway(*servers(lab)) as gateway:
        endpoint = gateway.endpoint("/mcp/search/servers/files,clock")
        async with connect(in_memory(endpoint), "legacy") as client:
            found = await client.call_tool("search_tools", {"query": "read"})
            assert [one["name"] for one in found.structured_content["tools"]] == ["files_read"]


async def test_a_server_that_is_added_comes_to_the_address_that_asked_for_it(lab: Lab) -> None:
    files, bank, clock = servers(lab)
    config = Config(servers=(files, clock), settings=Settings(style="prefixed"))
    async with Gateway(config, ledger=Ledger.memory()) as gateway:
        endpoint = gateway.endpoint("/mcp/servers/bank,clock")
        assert names(gateway, "/mcp/servers/bank,clock") == ["clock_now"]
        await gateway.reload(replace(config, servers=(files, clock, bank)))
        await gateway.settle()
        assert names(gateway, "/mcp/servers/bank,clock") == ["clock_now", "bank_read", "bank_pay"]
        assert gateway.endpoint("/mcp/servers/clock,bank") is endpoint


async def test_over_stdio_the_others_are_not_started_and_names_stay_those_of_all(lab: Lab) -> None:
    config = Config(servers=servers(lab), settings=Settings())
    ledger = Ledger.memory()

    async with Gateway(config, on_event=lab.observe, servers=("clock",), ledger=ledger) as gateway:
        assert {event.server for event in lab.events} == {"clock"}
        assert list(gateway.table("/mcp/servers/clock").values()) == ["clock_now"]
    async with Gateway(config, ledger=ledger) as gateway:
        assert names(gateway, "/mcp/servers/clock") == ["clock_now"]


async def test_every_address_has_a_server_name_of_its_own(lab: Lab, connect: Any) -> None:
    """Some clients take servers of one name and version for one, and VS Code puts the title in front of tools."""
    paths = ["/mcp", "/mcp/only/files", "/mcp/for/cursor/only/files", "/mcp/servers/files,bank", "/mcp/search"]
    told = []
    async with lab.gateway(*servers(lab), server_name="tn") as gateway:
        for path in paths:
            async with connect(in_memory(gateway.endpoint(path)), "legacy") as client:
                told.append((client.server_info.name, client.server_info.title))
    assert told == [
        ("tn", "tn"),
        ("tn/only/files", "files"),
        ("tn/for/cursor/only/files", "files"),
        ("tn/servers/bank,files", "tn"),
        ("tn/search", "tn"),
    ]


@given(keys=st.sets(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1))
@example(keys={"a,b", "a", "%2C", "b/c", "/", "servers"})
def test_every_key_is_found_again_in_the_address_that_was_made_of_it(keys: set[str]) -> None:
    path = path_of(servers=keys)

    # A web server unescapes a path once before it is read.
    assert read_path(unquote(path), keys) == Asked(servers=tuple(sorted(keys)))
    assert set(servers_in(f"http://127.0.0.1:1{path}") or ()) == keys
