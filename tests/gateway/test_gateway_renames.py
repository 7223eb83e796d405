"""Names that moved, at a running gateway: old names stay listed for a time, broken ones are told, versions travel."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from truename.config import Config, Settings
from truename.gateway import Gateway, listening
from truename.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mcp import Client

    from tests.gateway.conftest import Lab, Raw

pytestmark = pytest.mark.anyio
PREFIX = "dev.truename/"
UNTIL = "2027-02-01"


class Calendar:
    """A day that a test turns over."""

    def __init__(self) -> None:
        self.day = date(2027, 2, 1)

    def __call__(self) -> date:
        return self.day


async def names_of(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools]


def ledger_after(path: Path, *moves: tuple[str, str]) -> Ledger:
    """Return a ledger on which an operator entered redirects that are listed until the calendar's first day."""
    ledger = Ledger.open(path)
    for old, new in moves:
        ledger.redirect(old, new, until=UNTIL)
    return ledger


async def test_an_old_name_is_listed_and_called_as_the_tool_that_it_is_now(
    lab: Lab, connect: Any, era: str, said: Callable[[Any], str], tmp_path: Path
) -> None:
    servers = (lab.normal("files", "first", "search", "last"),)
    ledger = Ledger.open(tmp_path / "ledger")
    async with Gateway(Config(servers=servers), ledger=ledger) as before:
        assert list(before.table().values()) == ["first", "search", "last"]
    ledger.redirect("files/search", "files/find_all", until=UNTIL)
    renamed = (lab.normal("files", "first", "find_all", "last"),)

    async with (
        Gateway(Config(servers=renamed), ledger=ledger, today=Calendar()) as gateway,
        listening(gateway) as address,
        connect(address + "/mcp", era) as client,
    ):
        tools = (await client.list_tools()).tools
        answer = await client.call_tool("search", {"a": 1})

    assert [tool.name for tool in tools] == ["first", "search", "last", "find_all"]
    assert tools[1].description.startswith("Renamed to 'find_all'; this name is listed until 2027-02-01. ")
    assert tools[1].input_schema == tools[3].input_schema
    assert tools[1].meta[f"{PREFIX}renamed_to"] == "find_all"
    assert tools[1].meta[f"{PREFIX}canonical_name"] == tools[3].meta[f"{PREFIX}canonical_name"]
    assert not answer.is_error
    assert "find_all" in said(answer)
    assert list(gateway.table().values()) == ["first", "last", "find_all"]


async def test_on_the_day_after_the_old_name_leaves_the_list_and_clients_are_told(
    lab: Lab, connect: Any, tmp_path: Path
) -> None:
    calendar, told = Calendar(), anyio.Event()
    ledger = ledger_after(tmp_path / "ledger", ("seek", "files/find"))

    async def on_message(message: Any) -> None:
        if type(message).__name__ == "ToolListChangedNotification":
            told.set()

    async with (
        Gateway(Config(servers=(lab.normal("files", "find"),)), ledger=ledger, today=calendar) as gateway,
        listening(gateway) as address,
        connect(address + "/mcp", "legacy", message_handler=on_message) as old,
        connect(address + "/mcp", "2026-07-28") as new,
        new.listen(tools_list_changed=True) as changes,
    ):
        assert await names_of(old) == await names_of(new) == ["find", "seek"]
        calendar.day = date(2027, 2, 2)
        with anyio.fail_after(15):
            await anext(changes)
            await told.wait()
        assert await names_of(old) == await names_of(new) == ["find"]
        assert not (await new.call_tool("seek", {})).is_error


async def test_a_rename_while_the_gateway_runs_is_taken_over(lab: Lab, connect: Any, era: str, tmp_path: Path) -> None:
    settings = Settings(state=str(tmp_path / "ledger"))
    config = Config(servers=(lab.normal("files", "find"),), settings=settings)
    async with (
        Gateway(config, today=Calendar()) as gateway,
        listening(gateway) as address,
        connect(address + "/mcp", era) as client,
        connect(address + "/mcp/only/files", era) as lone,
    ):
        assert await names_of(client) == await names_of(lone) == ["find"]
        operator = Ledger.open(tmp_path / "ledger")
        with operator.transaction():
            for scope in operator.scopes:
                operator.scoped(scope).redirect("seek", "files/find", until=UNTIL)
        operator.scoped("only/files").break_name("look", "find", protocol="0.3")

        assert await names_of(client) == await names_of(lone) == ["find", "seek"]
        elsewhere = await client.call_tool("look", {})
        broken = await lone.call_tool("look", {})
    assert elsewhere.content[0].text.startswith("Tool 'look' does not exist; nothing was run. ")
    assert broken.is_error
    assert broken.content[0].text == (
        "Tool 'look' does not exist since protocol 0.3; nothing was run. It is 'find' now. Call it exactly."
    )
    assert broken.meta[f"{PREFIX}error"] == "unknown_tool"


async def test_a_server_that_changes_a_name_gives_the_new_tool_the_old_one(lab: Lab, tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger")
    async with Gateway(Config(servers=(lab.normal("kenny", "powershell.exec", "x"),)), ledger=ledger) as before:
        assert list(before.table().values()) == ["powershell_exec", "x"]
    ledger.redirect("kenny/powershell.exec", "kenny/powershell_exec", until=UNTIL)

    async with Gateway(Config(servers=(lab.normal("kenny", "powershell_exec", "x"),)), ledger=ledger) as after:
        assert sorted(after.table().values()) == ["powershell_exec", "x"]


@pytest.mark.parametrize(
    "era_and_path", [("legacy", "/mcp"), ("2026-07-28", "/mcp"), ("2026-07-28", "/mcp/only/files")]
)
async def test_versions_travel_with_lists_and_calls(lab: Lab, connect: Any, era_and_path: tuple[str, str]) -> None:
    era, path = era_and_path
    async with (
        lab.serving(lab.normal("files", "find"), protocol="0.3") as address,
        connect(address + path, era) as client,
    ):
        listed = await client.list_tools()
        called = await client.call_tool("find", {})
        wrong = await client.call_tool("fnid", {})

    digest = listed.meta[f"{PREFIX}catalog"]
    assert digest.startswith("sha256:")
    for result in (listed, called, wrong):
        assert (result.meta[f"{PREFIX}catalog"], result.meta[f"{PREFIX}protocol"]) == (digest, "0.3")


async def test_without_a_protocol_a_list_has_the_digest_and_calls_are_as_they_were(
    lab: Lab, raw: Callable[[str], Any]
) -> None:
    async with lab.serving(lab.normal("files", "find")) as address, raw(address) as http:
        listed = await http.result("tools/list", {})
        said = {f"{PREFIX}protocol": "0.2"}
        called = await http.result("tools/call", {"name": "find", "arguments": {}, "_meta": said})

    assert f"{PREFIX}catalog" in listed["_meta"]
    assert f"{PREFIX}protocol" not in listed["_meta"]
    assert not [key for key in called["_meta"] if key.startswith(PREFIX)]
    # What a client said of the gateway's versions is no word to a server.
    assert not [key for key in called["structuredContent"]["params"].get("_meta", {}) if key.startswith(PREFIX)]


@pytest.mark.parametrize(
    ("name", "peer", "text"),
    [
        ("powershell_exec", "0.3", None),
        ("powershell_exec", "v0.3.0", None),
        ("powershell_exec", "0.2", None),
        ("kenny@1/powershell_exec@1", "0.2", None),
        ("kenny_powershell_exec", "0.3", None),
        (
            "kenny_powershell_exec",
            "0.2",
            "does not exist in protocol 0.3 (the call is of 0.2); nothing was run. It is 'powershell_exec' now.",
        ),
        (
            "powershell.exec",
            "0.2",
            "in protocol 0.3 (the call is of 0.2); nothing was run. It is 'powershell_exec' now.",
        ),
        ("powershell.exec", "0.3", "since protocol 0.3; nothing was run. It is 'powershell_exec' now."),
        ("powershell.exec", "x" * 90, "in protocol 0.3 (the call is of xxxxx"),
        ("entirely_else", "0.10", "nothing was run. List the tools and call one of them exactly."),
    ],
)
async def test_a_call_of_another_version_is_told_both(
    lab: Lab, raw: Callable[[str], Any], tmp_path: Path, *, name: str, peer: str, text: str | None
) -> None:
    ledger = Ledger.open(tmp_path / "ledger")
    ledger.break_name("powershell.exec", "powershell_exec", protocol="0.3")
    async with (
        lab.gateway(lab.normal("kenny", "powershell_exec", "fs_list"), ledger=ledger, protocol="0.3") as gateway,
        listening(gateway) as address,
        raw(address) as http,
    ):
        http_client: Raw = http
        said = {f"{PREFIX}protocol": peer}
        answer = await http_client.result("tools/call", {"name": name, "arguments": {}, "_meta": said})

    assert answer.get("isError", False) is (text is not None)
    if text is not None:
        assert text in answer["content"][0]["text"]
        assert answer["_meta"][f"{PREFIX}error"] == "unknown_tool"


async def test_over_stdio_versions_travel_too(lab: Lab, connect: Any, era: str) -> None:
    target = lab.over_stdio(lab.normal("kenny", "powershell_exec"), protocol="0.3")
    async with connect(target, era) as client:
        listed = await client.list_tools()
        said = {f"{PREFIX}protocol": "0.2"}
        wrong = await client.call_tool("kenny.powershell.exec", {}, meta=said)

    assert listed.meta[f"{PREFIX}protocol"] == "0.3"
    assert wrong.is_error
    assert "in protocol 0.3 (the call is of 0.2)" in wrong.content[0].text
