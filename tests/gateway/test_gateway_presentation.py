"""What the operator says of tools: clients are shown it and calls are judged by it; trust stays with the server's."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from mcp_types import ToolListChangedNotification

from tests.gateway.ears import Ear
from tests.gateway.reloads import another
from tests.support.gateway_trust import READ, Turning
from truename.config import load
from truename.config.trust import Trust
from truename.gateway import Gateway, listening
from truename.policy import CallRule, Policy
from truename.policy.presentation import Presentation

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio
SAID = {
    "w/get_data": {
        "title": "Weather (set_data writes)",
        "description": "Ask before w/set_data, or v@1/tell@1: not w/mode. See https://w/get_data",
        "annotations": {"readOnlyHint": False, "openWorldHint": True},
    }
}
DENY = Policy(rules=[CallRule(name="writes", outcome="deny", annotations={"readOnlyHint": False})], default="allow")


async def _tools(client: Any) -> dict[str, Any]:
    return {tool.name: tool for tool in (await client.list_tools(cache_mode="bypass")).tools}


async def test_a_client_is_shown_the_operators_words_with_the_names_that_it_can_call(
    lab: Lab, connect: Callable[..., Any], era: str
) -> None:
    servers = lab.script("w", "talking", "w"), lab.normal("v", "tell", "mode")
    async with (
        lab.serving(*servers, tools=Presentation(SAID), style="prefixed") as url,
        connect(f"{url}/mcp", era) as client,
        connect(f"{url}/mcp/only/w", era) as alone,
    ):
        shown, own = (await _tools(client))["w_get_data"], (await _tools(alone))["get_data"]

    assert shown.title == "Weather (w_set_data writes)"
    assert shown.description == "Ask before w_set_data, or v_tell: not w_mode. See https://w/get_data"
    assert shown.annotations.model_dump(exclude_none=True, by_alias=True) == {
        "title": "Weather (w_set_data writes)",
        "readOnlyHint": False,
        "openWorldHint": True,
    }
    assert shown.input_schema["properties"]["mode"]["description"] == "As get_data has it."
    # Of a tool that this endpoint does not have, the id stays.
    assert own.description == "Ask before set_data, or v@1/tell@1: not mode. See https://w/get_data"


async def test_what_a_client_may_not_hear_of_is_not_named_for_it(
    lab: Lab, connect: Callable[..., Any], era: str
) -> None:
    deny = Policy(rules=[CallRule(name="no", outcome="deny", tools=("v/tell", "w/set_data"))], default="allow")
    servers = lab.script("w", "talking", "w"), lab.normal("v", "tell")
    async with (
        lab.serving(*servers, tools=Presentation(SAID), style="prefixed", policy=deny) as url,
        connect(f"{url}/mcp", era) as client,
    ):
        shown = (await _tools(client))["w_get_data"]
    assert shown.title == "Weather (set_data writes)"
    assert shown.description == "Ask before w/set_data, or v@1/tell@1: not w_mode. See https://w/get_data"


async def test_what_is_allowed_goes_by_the_operators_word(
    lab: Lab, connect: Callable[..., Any], said: Callable[[Any], str], era: str
) -> None:
    server = lab.script("w", "talking", "w")
    async with (
        lab.gateway(
            server, policy=DENY, tools=Presentation({"w/mode": {"annotations": {"readOnlyHint": True}}})
        ) as one,
        listening(one) as url,
        connect(f"{url}/mcp", era) as client,
    ):
        assert sorted(await _tools(client)) == ["get_data", "mode"]
        assert not (await client.call_tool("mode", {})).is_error

        await one.reload(another(one, tools=Presentation(SAID)))
        assert sorted(await _tools(client)) == []
        refused = await client.call_tool("get_data", {})
    assert refused.meta["dev.truename/error"] == "unknown_tool"
    assert "does not exist" in said(refused)


async def test_another_configuration_changes_what_is_shown_and_clients_are_told(
    lab: Lab, connect: Callable[..., Any]
) -> None:
    ear = Ear()
    async with (
        lab.gateway(lab.normal("w", "get", "put")) as gateway,
        listening(gateway) as url,
        connect(f"{url}/mcp", "legacy", message_handler=ear) as client,
    ):
        before, names = await _tools(client), dict(gateway.table())
        changed = await gateway.reload(another(gateway, tools=Presentation({"w/get": {"description": "Mine."}})))
        await ear.hears(ToolListChangedNotification)
        after = await _tools(client)

        assert changed.settings == ("tools",)
        assert (after["get"].description, after["put"]) == ("Mine.", before["put"])
        assert dict(gateway.table()) == names
        await gateway.reload(another(gateway, tools=Presentation()))
        await ear.hears(ToolListChangedNotification, times=2)
        assert await _tools(client) == before


@pytest.mark.parametrize(
    ("said_again", "own", "runs"), [(True, (), 2), (None, ("once",), 2), (False, ("once",), 1), (None, (), 1)]
)
async def test_whether_a_call_is_sent_again_is_the_operators_word(
    lab: Lab, connect: Callable[..., Any], said_again: bool | None, own: tuple[str, ...], runs: int
) -> None:
    journal = lab.folder / "journal"
    hint = {} if said_again is None else {"j/o*": {"annotations": {"idempotentHint": said_again}}}
    server = lab.script("j", "journal", str(journal), "once", idempotent=own)
    async with (
        lab.serving(server, tools=Presentation(hint)) as url,
        connect(f"{url}/mcp", "2026-07-28") as client,
    ):
        assert (await client.call_tool("once", {})).is_error is (runs == 1)
    assert journal.read_text().count("once") == runs


async def test_tools_are_found_by_the_words_that_are_shown(
    lab: Lab, connect: Callable[..., Any], said: Callable[[Any], str]
) -> None:
    told = Presentation({"w/get": {"description": "Fetches the barometer."}})
    async with (
        lab.serving(lab.normal("w", "get", "put"), tools=told, tool_search="on") as url,
        connect(f"{url}/mcp", "2026-07-28") as client,
    ):
        found = said(await client.call_tool("search_tools", {"query": "barometer"}))
    assert found.startswith("get: Fetches the barometer.")


async def test_trust_is_about_the_servers_own_words(
    lab: Lab, connect: Callable[..., Any], tmp_path: Path, era: str
) -> None:
    fs, pins = Turning(tmp_path, "fs"), str(tmp_path / "pins")
    fs.says(READ)
    trust = Trust(pins=pins, drift="block")
    async with lab.serving(fs.config(lab), trust=trust, style="prefixed"):
        pass
    told = {"fs/read": {"description": "Mine.", "annotations": {"readOnlyHint": True}}}
    async with (
        lab.serving(fs.config(lab), trust=trust, tools=Presentation(told), style="prefixed") as url,
        connect(f"{url}/mcp", era) as client,
    ):
        # What is said of a tool is no drift of it.
        assert (await _tools(client))["fs_read"].description == "Mine."
    fs.says({**READ, "description": "Read it all."})
    async with (
        lab.serving(fs.config(lab), trust=trust, tools=Presentation(told), style="prefixed") as url,
        connect(f"{url}/mcp", era) as client,
    ):
        # And the server's drift is seen behind it.
        assert "fs_read" not in await _tools(client)


async def test_words_about_no_tool_are_told_once_all_servers_are_there(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    told = Presentation({"w/get": {"title": "Get"}, "w/gte": {"title": "Get"}, "v/*": {"title": "V"}})
    with caplog.at_level(logging.WARNING, "truename.gateway"):
        async with lab.gateway(lab.normal("w", "get"), tools=told):
            pass
        assert "the settings name tools that no server has: [tools] 'w/gte', [tools] 'v/*'" in caplog.text
        caplog.clear()
        async with lab.gateway(lab.normal("w", "get"), lab.script("v", "dying"), tools=told):
            pass
    assert "no server has" not in caplog.text


async def test_a_gateway_of_one_server_alone_says_nothing_of_words_about_others(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    path = lab.config_file(lab.normal("w", "get"), lab.normal("v", "get"), tools={"v/get": {"title": "V"}})
    with caplog.at_level(logging.WARNING, "truename.gateway"):
        async with Gateway(load(path), only="w") as gateway:
            assert list(gateway.table().values()) == ["get"]
    assert "no server has" not in caplog.text
