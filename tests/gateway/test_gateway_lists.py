"""What clients see: names in fixed order, definitions unchanged, and word of every change."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp_types import Implementation

from truename.config import Config, Settings
from truename.errors import LedgerError, NoLegalName
from truename.gateway import Gateway, listening
from truename.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mcp import Client

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio
PREFIX = "dev.truename/"


async def _names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools]


async def _until(client: Client, wanted: Callable[[list[str]], bool]) -> list[str]:
    with anyio.fail_after(15):
        while not wanted(names := await _names(client)):
            await anyio.sleep(0.02)
    return names


async def test_definitions_pass_unchanged_but_for_the_names(lab: Lab, raw: Callable[[str], Any]) -> None:
    async with lab.serving(lab.script("odd", "odd")) as address, raw(address) as http:
        tools = (await http.result("tools/list", {}))["tools"]
    by_id = {tool["canonical_name"]: tool for tool in tools}
    plain = by_id["odd@1/plain@1"]
    assert plain == {
        "name": "plain",
        "openai_name": "plain",
        "canonical_name": "odd@1/plain@1",
        "description": "Does plain.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
        "title": "Plain",
        "annotations": {"readOnlyHint": True, "x-mine": None},
        "outputSchema": {"type": "object", "properties": {"a": {"type": "integer", "default": None}}},
        "icons": [{"src": "data:,", "vendor": 1}],
        "execution": {"taskSupport": "optional"},
        "vendorField": {"deep": [None, {"z": 1, "a": 2}]},
        "_meta": {
            "anthropic/alwaysLoad": True,
            "vendor/x": None,
            f"{PREFIX}openai_name": "plain",
            f"{PREFIX}canonical_name": "odd@1/plain@1",
        },
    }
    assert list(json.dumps(plain["vendorField"])) == list('{"deep": [null, {"z": 1, "a": 2}]}')
    # The huge, invisible, empty and untyped names are left out; the others have legal ones.
    assert [tool["name"] for tool in tools][:2] == ["plain", "create_page_v2"]
    assert len(tools) == 3


async def test_a_list_of_the_stateless_era_is_private_and_stamped_with_our_name_only(
    lab: Lab, raw: Callable[[str], Any]
) -> None:
    async with lab.serving(lab.script("m", "modern"), server_name="lab") as address, raw(address) as http:
        listed = await http.result("tools/list", {})
        assert (listed["cacheScope"], listed["ttlMs"], listed["resultType"]) == ("private", 0, "complete")
        called = await http.result("tools/call", {"name": "look"})
        assert called["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "lab"


async def test_each_path_has_its_own_names(lab: Lab, era: str, connect: Callable[..., Any]) -> None:
    servers = lab.normal("Weather", "get_data"), lab.normal("Data-Base", "get_data", "fs.list", "createPage")
    async with lab.serving(*servers) as address:
        for path, expected in [
            ("/mcp", ["weather_get_data", "data_base_get_data", "data_base_fs_list", "data_base_create_page"]),
            ("/mcp/for/native", [
                "weather@1/get_data@1",
                "data-base@1/get_data@1",
                "data-base@1/fs.list@1",
                "data-base@1/createpage@1",
            ]),
            ("/mcp/only/Weather", ["get_data"]),
            ("/mcp/only/Data-Base", ["get_data", "fs_list", "createPage"]),
        ]:  # fmt: skip
            async with connect(address + path, era) as client:
                assert (path, await _names(client)) == (path, expected)


async def test_canonical_names_by_setting_carry_the_universal_ones(
    lab: Lab, era: str, connect: Callable[..., Any]
) -> None:
    server = lab.normal("w", "get")
    async with lab.serving(server, names="canonical") as address, connect(address + "/mcp", era) as client:
        (tool,) = (await client.list_tools()).tools
    assert tool.name == "w@1/get@1"
    assert tool.meta == {f"{PREFIX}openai_name": "get", f"{PREFIX}canonical_name": "w@1/get@1"}


@pytest.mark.parametrize("others", [(), ("plain",)])
async def test_a_declared_name_that_universal_names_can_not_have_is_shown_and_called_under_its_id(
    lab: Lab, connect: Callable[..., Any], era: str, others: tuple[str, ...]
) -> None:
    server = lab.normal("w", "createPage", *others)
    async with (
        lab.serving(server, names="canonical", style="declared") as address,
        connect(address + "/mcp", era) as client,
    ):
        tools = {tool.name: tool.meta[f"{PREFIX}openai_name"] for tool in (await client.list_tools()).tools}
        called = await client.call_tool("w@1/createpage@1", {})
    assert tools == {"w@1/createpage@1": "createPage", **{f"w@1/{name}@1": name for name in others}}
    assert not called.is_error


async def test_detection_follows_the_client_in_the_handshake_eras_only(
    lab: Lab, era: str, connect: Callable[..., Any]
) -> None:
    known, unknown = (Implementation(name=name, version="1") for name in ("cursor-vscode", "my-own-native-client"))
    universal, canonical = ["w_get", "w_set", "v_get"], ["w@1/get@1", "w@1/set@1", "v@1/get@1"]
    async with lab.serving(lab.normal("w", "get", "set"), lab.normal("v", "get"), names="detect") as address:
        async with connect(address + "/mcp", era, client_info=known) as client:
            assert await _names(client) == universal
        async with connect(address + "/mcp", era, client_info=unknown) as client:
            assert await _names(client) == (canonical if era == "legacy" else universal)


async def test_who_sends_the_sdks_default_name_gets_universal_names(
    lab: Lab, era: str, connect: Callable[..., Any]
) -> None:
    server = lab.normal("w", "createPage")
    async with lab.serving(server, names="detect") as address, connect(address + "/mcp", era) as client:
        assert await _names(client) == ["create_page"]


async def test_a_header_may_ask_for_a_dialect(lab: Lab, raw: Callable[[str], Any]) -> None:
    async with lab.serving(lab.normal("w", "fsList")) as address, raw(address) as http:
        for wanted, name in [("native", "w@1/fslist@1"), ("openai", "fsList"), ("universal", "fs_list")]:
            listed = await http.result("tools/list", {}, headers={"x-truename-dialect": wanted})
            assert [tool["name"] for tool in listed["tools"]] == [name]
            called = await http.result("tools/call", {"name": name}, headers={"x-truename-dialect": wanted})
            assert called["content"][0]["text"] == "w:fsList"
        refused = (await http.post("tools/list", {}, headers={"x-truename-dialect": "nonesuch"})).json()
        assert "Unknown client or provider: 'nonesuch'" in refused["error"]["message"]


async def test_changes_are_told_in_both_eras(lab: Lab, connect: Callable[..., Any]) -> None:
    told = anyio.Event()

    async def on_message(message: object) -> None:
        if type(message).__name__ == "ToolListChangedNotification":
            told.set()

    async with (
        lab.serving(lab.script("c", "changing")) as address,
        connect(address + "/mcp", "legacy", message_handler=on_message) as old,
        connect(address + "/mcp", "2026-07-28") as new,
        new.listen(tools_list_changed=True) as changes,
    ):
        before = await _names(old)
        await old.call_tool("grow", {"name": "grown"})
        with anyio.fail_after(15):
            await told.wait()
            await anext(aiter(changes))
        assert await _names(old) == await _names(new) == [*before, "grown"]


async def test_a_client_that_listens_and_listed_elsewhere_is_told_of_a_change(
    lab: Lab, connect: Callable[..., Any]
) -> None:
    servers = lab.script("c", "changing"), lab.normal("w", "look")
    async with (
        lab.serving(*servers) as address,
        connect(address + "/mcp/only/c", "2026-07-28") as listener,
        connect(address + "/mcp", "2026-07-28") as caller,
        listener.listen(tools_list_changed=True) as changes,
    ):
        await caller.call_tool("c_grow", {"name": "grown"})
        with anyio.fail_after(15):
            await anext(aiter(changes))


async def test_changes_of_a_stateless_server_are_followed(lab: Lab, era: str, connect: Callable[..., Any]) -> None:
    async with lab.serving(lab.script("m", "modern")) as address, connect(address + "/mcp", era) as client:
        await client.call_tool("grow", {})
        await lab.saw("changed", "m")
        await _until(client, lambda names: names == ["look", "grow", "grown"])


async def test_a_change_that_is_told_while_the_server_is_greeted_is_followed(
    lab: Lab, era: str, connect: Callable[..., Any]
) -> None:
    async with lab.serving(lab.script("d", "dawdling")) as address, connect(address + "/mcp", era) as client:
        await _until(client, lambda names: names == ["early", "late"])


async def test_no_name_changes_or_is_passed_on_when_tools_come_and_go(
    lab: Lab, era: str, connect: Callable[..., Any], said: Callable[[Any], str]
) -> None:
    servers = lab.script("c", "changing"), lab.normal("w", "look")
    async with lab.serving(*servers) as address, connect(address + "/mcp", era) as client:
        before = await _names(client)
        await client.call_tool("c_grow", {"name": "look"})
        grown = await _until(client, lambda names: len(names) == len(before) + 1)
        assert set(before) < set(grown)
        await client.call_tool("c_shrink", {"name": "look"})
        await _until(client, lambda names: names == before)
        answer = await client.call_tool("c_look", {})
        assert answer.is_error
        assert "is not available now" in said(answer)


async def test_names_and_order_outlive_the_process(lab: Lab, tmp_path: Path) -> None:
    path = tmp_path / "names.ledger"
    w, v = lab.normal("w", "get", "set"), lab.normal("v", "get")
    async with lab.gateway(w, v, ledger=Ledger.open(path)) as gateway:
        first = {str(id): name for id, name in gateway.table().items()}
    async with lab.gateway(v, lab.normal("a", "get"), w, ledger=Ledger.open(path)) as gateway:
        second = {str(id): name for id, name in gateway.table().items()}
    assert list(second.items())[: len(first)] == list(first.items())
    assert second["a@1/get@1"] == "a_get"


async def test_one_server_begins_with_its_own_names_and_keeps_them_when_others_join(lab: Lab) -> None:
    ledger = Ledger.memory()
    async with lab.gateway(lab.normal("w", "get"), ledger=ledger) as gateway:
        assert list(gateway.table().values()) == ["get"]
        assert gateway.status().style == "on-conflict"
    async with lab.gateway(lab.normal("w", "get"), lab.normal("v", "get", "set"), ledger=ledger) as gateway:
        assert dict(gateway.table())[gateway.table().id_of("get")] == "get"
        assert gateway.catalog[gateway.table().id_of("get")].origin.server == "w"
        assert gateway.status().style == "on-conflict"


async def test_a_server_that_fills_its_part_of_the_ledger_disturbs_nobody(lab: Lab) -> None:
    greedy = lab.normal("greedy", *(f"t{number}" for number in range(30)))
    async with lab.gateway(greedy, lab.normal("w", "get"), ledger=Ledger.memory(max_claims=20)) as gateway:
        assert list(gateway.table().values()) == ["w_get"]


async def test_conflicts_are_logged_with_both_servers(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "truename.gateway")
    async with lab.gateway(lab.normal("Weather", "get_data"), lab.normal("Database", "get_data")):
        pass
    assert "the tool name 'get_data' is used by 'Weather' and 'Database'" in caplog.messages


async def test_a_ledger_of_another_style_is_refused_with_the_command_to_run(lab: Lab) -> None:
    ledger = Ledger.memory()
    async with lab.gateway(lab.normal("w", "get"), ledger=ledger):
        pass
    with pytest.raises(LedgerError, match="truename rename --all") as caught:
        async with lab.gateway(lab.normal("w", "get"), ledger=ledger, style="prefixed"):
            pytest.fail("it runs")
    assert caught.value.code == "style_mismatch"


async def test_a_style_that_the_names_cannot_have_is_refused(lab: Lab) -> None:
    with pytest.raises(ExceptionGroup) as caught:
        async with lab.gateway(lab.normal("w", "get"), style="server-prefix"):
            pytest.fail("it runs")
    assert {type(error) for error in caught.value.exceptions} == {NoLegalName}


async def test_what_a_block_raises_passes_as_it_is(lab: Lab) -> None:
    with pytest.raises(ZeroDivisionError):
        async with lab.serving(lab.normal("w", "get")):
            _ = 1 / 0


async def test_definitions_that_clients_would_refuse_are_left_out(lab: Lab, raw: Callable[[str], Any]) -> None:
    async with lab.serving(lab.script("m", "malformed")) as address, raw(address) as http:
        tools = (await http.result("tools/list", {}))["tools"]
    assert [tool["name"] for tool in tools] == ["good", "untold"]


async def test_a_view_that_its_style_cannot_have_says_so(lab: Lab, raw: Callable[[str], Any]) -> None:
    server = lab.normal("w", "get")
    async with lab.serving(server, names="canonical", style="canonical") as address, raw(address) as http:
        (tool,) = (await http.result("tools/list", {}))["tools"]
        assert tool["name"] == "w@1/get@1"
        assert "openai_name" not in tool
        refused = (await http.post("tools/list", {}, path="/mcp/for/openai")).json()
        assert "w@1/get@1 has no legal name for openai in style canonical" in refused["error"]["message"]
        called = await http.result("tools/call", {"name": "get"}, path="/mcp/for/openai")
        assert called["isError"]


async def test_servers_that_are_slow_to_start_join_later(lab: Lab, connect: Callable[..., Any]) -> None:
    gate = lab.folder / "gate"
    servers = lab.normal("w", "get"), lab.script("late", "late", str(gate))
    config = Config(servers=servers, settings=Settings(startup_timeout=30))
    async with Gateway(config, on_event=lab.observe, wait=0.0) as gateway, listening(gateway) as address:
        await lab.saw("ready", "w")
        async with connect(address + "/mcp", "legacy") as client:
            await _until(client, lambda names: names == ["w_get"])
            gate.touch()
            await _until(client, lambda names: names == ["w_get", "late_arrive"])


async def test_a_list_that_is_too_long_for_one_message_comes_in_pages(
    lab: Lab, era: str, connect: Callable[..., Any], raw: Callable[[str], Any]
) -> None:
    names = [f"tool_{number}" for number in range(4_000)]
    async with lab.serving(lab.script("many", "many", "4000"), tool_search="off") as address:
        async with connect(address + "/mcp", era) as client:
            page, listed = await client.list_tools(), list[str]()
            while True:
                listed += (tool.name for tool in page.tools)
                if page.next_cursor is None:
                    break
                page = await client.list_tools(cursor=page.next_cursor)
            assert listed == names
        async with raw(address) as http:
            for cursor in ("page-0 ", "page--1", "page-99", "1", "", "page-٣"):
                answer = (await http.post("tools/list", {"cursor": cursor})).json()
                assert answer["error"]["code"] == -32602
