"""A gateway that clients reach while its servers are starting: they connect at once, and wait for what lists have."""

from __future__ import annotations

import sqlite3
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from truename.config import Config, Settings
from truename.errors import NoLegalName
from truename.gateway import Gateway, listening, registry
from truename.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from tests.gateway.conftest import Lab

pytestmark = [pytest.mark.slow, pytest.mark.anyio]
PATIENCE = 30.0
WORDS = "Be brief."


@asynccontextmanager
async def early(lab: Lab, gate: Path, *words: str, wait: float | None = None, **settings: Any) -> AsyncIterator[str]:
    """Give the address of a gateway whose server 'late' starts when the gate is there."""
    servers = lab.normal("w", "get"), lab.script("late", "late", str(gate), *words)
    config = Config(servers=servers, settings=Settings(startup_timeout=PATIENCE, **settings))
    async with (
        Gateway(config, on_event=lab.observe, wait=wait, is_early=True) as gateway,
        listening(gateway) as address,
    ):
        yield address


async def introduction(address: str, era: str, connect: Callable[..., Any], raw: Callable[[str], Any]) -> Any:
    """Return the instructions that a client gets when it connects."""
    if era == "legacy":
        async with connect(address + "/mcp", era) as client:
            return client.session.instructions
    async with raw(address) as http:
        return (await http.result("server/discover", {})).get("instructions")


async def test_a_client_connects_before_servers_have_started_and_waits_for_its_list(
    lab: Lab, era: str, connect: Callable[..., Any]
) -> None:
    gate = lab.folder / "gate"
    listed: list[str] = []
    async with early(lab, gate) as address, connect(address + "/mcp", era) as client:

        async def list_tools() -> None:
            listed.extend(tool.name for tool in (await client.list_tools()).tools)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(list_tools)
            await lab.saw("ready", "w")
            assert not listed
            gate.touch()
    assert listed == ["w_get", "late_arrive"]


async def test_a_call_waits_for_the_server_that_is_starting(
    lab: Lab, era: str, connect: Callable[..., Any], said: Callable[[Any], str]
) -> None:
    gate = lab.folder / "gate"
    answers: list[str] = []
    async with early(lab, gate) as address, connect(address + "/mcp", era) as client:

        async def call() -> None:
            answers.append(said(await client.call_tool("late_arrive", {})))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await lab.saw("ready", "w")
            assert not answers
            gate.touch()
    assert answers == ["late:arrive"]


async def test_lists_wait_no_longer_than_they_may(lab: Lab, era: str, connect: Callable[..., Any]) -> None:
    gate = lab.folder / "never"
    async with early(lab, gate, wait=0.0) as address, connect(address + "/mcp", era) as client:
        await lab.saw("ready", "w")
        assert "late_arrive" not in {tool.name for tool in (await client.list_tools()).tools}


async def test_servers_that_join_in_time_are_no_news(lab: Lab, connect: Callable[..., Any]) -> None:
    gate, heard = lab.folder / "gate", list[str]()

    async def hear(message: Any) -> None:
        heard.append(getattr(message, "method", ""))

    async with early(lab, gate) as address, connect(address + "/mcp", "legacy", message_handler=hear) as client:
        await lab.saw("ready", "w")
        gate.touch()
        await client.list_tools()
        await client.call_tool("w_get", {})
    assert not [method for method in heard if method.endswith("list_changed")]


async def test_instructions_are_waited_for_where_a_server_gave_some_when_it_last_ran(
    lab: Lab, era: str, connect: Callable[..., Any], raw: Callable[[str], Any]
) -> None:
    gate, state = lab.folder / "gate", str(lab.folder / "state.db")
    async with early(lab, gate, WORDS, state=state) as address:
        assert await introduction(address, era, connect, raw) is None
        gate.touch()
        await lab.saw("ready", "late")
    gate.unlink()
    found: list[Any] = []
    async with early(lab, gate, WORDS, state=state) as address:

        async def connect_again() -> None:
            found.append(await introduction(address, era, connect, raw))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connect_again)
            await lab.saw("ready", "w", times=2)
            assert not found
            gate.touch()
    assert found == [f"## late\n\n{WORDS}"]


async def test_instructions_that_are_not_shown_are_not_waited_for(
    lab: Lab, era: str, connect: Callable[..., Any], raw: Callable[[str], Any]
) -> None:
    gate, state = lab.folder / "gate", str(lab.folder / "state.db")
    gate.touch()
    async with early(lab, gate, WORDS, state=state):
        await lab.saw("ready", "late")
    gate.unlink()
    async with early(lab, gate, WORDS, state=state, server_instructions=0) as address:
        assert await introduction(address, era, connect, raw) is None


async def test_all_that_a_starting_server_may_have_is_announced(lab: Lab, connect: Callable[..., Any]) -> None:
    async with early(lab, lab.folder / "never") as address, connect(address + "/mcp", "legacy") as client:
        found = client.session.server_capabilities
        assert found.prompts is not None
        assert found.resources is not None


async def test_no_list_is_answered_before_it_is_made(lab: Lab, raw: Callable[[str], Any]) -> None:
    config = Config(servers=(lab.script("many", "many", "4000"),), settings=Settings(tool_search="off"))
    counts: list[int] = []

    async def list_tools(http: Any) -> None:
        counts.append(len((await http.result("tools/list", {}))["tools"]))

    async with (
        Gateway(config, on_event=lab.observe, is_early=True) as gateway,
        listening(gateway) as address,
        raw(address) as http,
        anyio.create_task_group() as tasks,
    ):
        while not gateway.registry.joined.is_set():
            tasks.start_soon(list_tools, http)
            with anyio.move_on_after(0.02):
                await gateway.joined()
    assert len(counts) > 1
    assert len(set(counts)) == 1
    assert counts[0] > 1_000


async def test_names_are_those_of_a_start_that_waits_whichever_view_is_asked_for_first(
    lab: Lab, raw: Callable[[str], Any]
) -> None:
    path, config = "/mcp/for/claude-code", Config(servers=(lab.normal("files", "read_file", "read-file"),))
    names: list[list[dict[str, str]]] = []
    for is_early in (False, True):
        async with (
            Gateway(config, is_early=is_early, ledger=Ledger.memory()) as gateway,
            listening(gateway) as address,
            raw(address) as http,
        ):
            listed = [(await http.result("tools/list", {}, path=one))["tools"] for one in (path, "/mcp")]
            names.append([{tool["canonical_name"]: tool["name"] for tool in tools} for tools in listed])
    assert names[0] == names[1]
    assert names[0][0]["files@1/read_file@1"] == names[0][1]["files@1/read_file@1"]


async def test_while_the_state_is_locked_requests_are_refused_with_the_reason_and_later_answered(
    lab: Lab, raw: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_LEDGER_PATIENCE", 0.1)
    gate, state = lab.folder / "gate", lab.folder / "state.db"
    async with early(lab, gate, state=str(state)) as address, raw(address) as http:
        with closing(sqlite3.connect(state, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            gate.touch()
            refused = (await http.post("tools/list", {})).json()
            called = await http.result("tools/call", {"name": "late_arrive", "arguments": {}})
            other.execute("ROLLBACK")
        assert "another process is writing" in refused["error"]["message"]
        assert called["isError"]
        assert "another process is writing" in called["content"][0]["text"]
        assert len((await http.result("tools/list", {}))["tools"]) == 2
        called = await http.result("tools/call", {"name": "late_arrive", "arguments": {}})
        assert called["content"][0]["text"] == "late:arrive"


async def test_names_that_cannot_be_end_the_gateway_when_its_servers_have_joined(lab: Lab) -> None:
    gate = lab.folder / "gate"

    async def serve() -> None:
        async with early(lab, gate, style="server-prefix"):
            gate.touch()
            await anyio.sleep_forever()

    with pytest.raises(ExceptionGroup) as caught:
        await serve()
    assert caught.group_contains(NoLegalName)
