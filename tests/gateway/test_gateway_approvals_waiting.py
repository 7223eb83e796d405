"""Calls that wait for a person: how many, how long, for whom, and what becomes of them when a file is damaged."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import pytest

from tests.gateway.office import ASK, Office, User, gateway, ran
from tests.shared import ROOT
from truename.errors import LedgerError
from truename.gateway import listening
from truename.gateway.trust.decisions import Decisions
from truename.policy import read_policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.conftest import Lab

pytestmark = [pytest.mark.slow, pytest.mark.anyio]


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


async def test_a_call_waits_for_the_operator_as_long_as_is_set(
    lab: Lab, connect: Callable[..., Any], era: str, office: Office
) -> None:
    async with (
        gateway(lab, office, ask="operator", wait=30.0) as address,
        connect(address, era) as client,
        anyio.create_task_group() as calls,
    ):
        heard: list[bool] = []

        async def call() -> None:
            heard.append(await ran(client, text="x"))

        calls.start_soon(call)
        await office.sees(1)
        office.decides()
        with anyio.fail_after(5):
            while not heard:
                await anyio.sleep(0.02)
        assert heard == [True]


async def test_of_two_calls_at_once_one_has_the_one_word(
    lab: Lab, connect: Callable[..., Any], era: str, office: Office
) -> None:
    async with gateway(lab, office, ask="operator") as address, connect(address, era) as client:
        assert not await ran(client, text="x")
        office.decides()
        heard: list[bool] = []

        async def call() -> None:
            heard.append(await ran(client, text="x"))

        async with anyio.create_task_group() as calls:
            for _ in range(5):
                calls.start_soon(call)
        assert sorted(heard) == [False] * 4 + [True]


async def test_so_many_calls_of_one_caller_wait_and_no_more(
    lab: Lab, connect: Callable[..., Any], era: str, office: Office
) -> None:
    async with gateway(lab, office, max_pending=2) as address, connect(address, era) as client:
        for text in ("a", "b", "c"):
            assert not await ran(client, text=text)
        result = await client.call_tool("write", {"text": "d"})
        assert "as many calls as allowed" in result.content[0].text
        assert len(office.waiting()) == 2
        # One that waits is not one more.
        assert "truename approvals grant" in (await client.call_tool("write", {"text": "a"})).content[0].text


async def test_a_state_that_can_not_be_read_stops_the_gateway(lab: Lab, office: Office) -> None:
    office.path.write_text("nothing of the kind " * 50)
    with pytest.raises(ExceptionGroup) as caught:
        async with anyio.create_task_group(), gateway(lab, office):
            pass
    assert caught.group_contains(LedgerError)


async def test_decisions_that_are_damaged_later_have_all_calls_refused(
    lab: Lab, connect: Callable[..., Any], era: str, office: Office
) -> None:
    async with gateway(lab, office) as address, connect(address, era) as client:
        assert not await ran(client, text="x")
        office.decides(scope="always")
        assert await ran(client, text="x")
        with closing(sqlite3.connect(office.path)) as data, data:
            data.execute("UPDATE approval_grant SET tool = 'nothing of the kind'")
            data.execute("UPDATE part SET revision = revision + 1")
        result = await client.call_tool("write", {"text": "x"})
        assert "cannot be read or written now" in result.content[0].text
        assert str(lab.folder) not in result.content[0].text


async def test_an_approval_ends_when_its_time_is_over(
    lab: Lab, connect: Callable[..., Any], era: str, office: Office
) -> None:
    async with gateway(lab, office) as address, connect(address, era) as client:
        assert not await ran(client, text="x")
        office.decides(scope="always", grant_lasts=-1.0)
        assert not await ran(client, text="x")


async def test_a_client_that_refuses_to_be_asked_has_decided_nothing(
    lab: Lab, connect: Callable[..., Any], office: Office
) -> None:
    async def refusing(_: object, params: Any) -> types.ErrorData:
        return types.ErrorData(code=-32000, message="no forms here")

    async with (
        gateway(lab, office) as address,
        connect(address, "legacy", elicitation_callback=refusing) as client,
    ):
        assert not await ran(client, text="x")
    assert len(office.waiting()) == 1


async def test_another_configuration_keeps_what_was_decided_and_what_waits(
    lab: Lab, connect: Callable[..., Any], office: Office
) -> None:
    async with (
        lab.gateway(lab.normal("fs", "write"), policy=ASK, approvals=office.settings(), state=office.state) as running,
        listening(running) as address,
        connect(address + "/mcp", "2026-07-28") as client,
    ):
        assert not await ran(client, text="x")
        config = running.config
        policy = read_policy({"default": "ask"})
        settings = replace(
            config.settings, approvals=office.settings(ask="operator"), state=office.state, policy=policy
        )
        await running.reload(replace(config, settings=settings))
        office.decides()
        assert await ran(client, text="x")
        elsewhere = replace(settings, state=str(lab.folder / "other.db"))
        with pytest.raises(Exception, match="state: it cannot change"):
            await running.reload(replace(config, settings=elsewhere))


async def test_of_calls_that_are_the_same_one_is_asked_about_at_a_time(
    lab: Lab, connect: Callable[..., Any], office: Office
) -> None:
    user = User("allow with these arguments")
    heard: list[bool] = []
    async with (
        gateway(lab, office) as address,
        connect(address, "legacy", elicitation_callback=user.elicited) as client,
    ):

        async def call() -> None:
            heard.append(await ran(client, text="x"))

        async with anyio.create_task_group() as calls:
            for _ in range(4):
                calls.start_soon(call)
    assert heard == [True] * 4
    assert len(user.asked) == 1


async def test_a_call_that_looked_before_the_same_one_was_allowed_is_not_asked_about(
    lab: Lab, connect: Callable[..., Any], office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    user, settled, looks = User("allow with these arguments"), anyio.Event(), 0
    allowed, settle = Decisions.allowed, Decisions.settle

    async def look(self: Any, *words: Any) -> Any:
        nonlocal looks
        found, looks = await allowed(self, *words), looks + 1
        if looks == 1:
            await settled.wait()
        return found

    async def settle_then(self: Any, *words: Any) -> None:
        await settle(self, *words)
        settled.set()

    monkeypatch.setattr(Decisions, "allowed", look)
    monkeypatch.setattr(Decisions, "settle", settle_then)
    async with (
        gateway(lab, office) as address,
        connect(address, "legacy", elicitation_callback=user.elicited) as client,
        anyio.create_task_group() as calls,
    ):
        for _ in range(2):
            calls.start_soon(partial(ran, client, text="x"))
    assert len(user.asked) == 1


async def test_a_question_that_nobody_answers_keeps_the_same_call_of_another_session_not_waiting(
    lab: Lab, connect: Callable[..., Any], office: Office
) -> None:
    is_asked = anyio.Event()

    async def absent(_: object, params: Any) -> types.ElicitResult:
        is_asked.set()
        await anyio.sleep_forever()
        raise AssertionError

    user = User("allow once")
    async with (
        gateway(lab, office) as address,
        connect(address, "legacy", elicitation_callback=absent) as gone,
        connect(address, "legacy", elicitation_callback=user.elicited) as client,
        anyio.create_task_group() as calls,
    ):
        calls.start_soon(partial(ran, gone, text="x"))
        await is_asked.wait()
        with anyio.fail_after(10):
            assert await ran(client, text="x")
        assert len(user.asked) == 1
        calls.cancel_scope.cancel()


async def test_a_form_that_nobody_answers_decides_nothing(
    lab: Lab, connect: Callable[..., Any], office: Office
) -> None:
    async def absent(_: object, params: Any) -> types.ElicitResult:
        await anyio.sleep_forever()
        raise AssertionError

    async with (
        gateway(lab, office, answer_timeout=0.2) as address,
        connect(address, "legacy", elicitation_callback=absent) as client,
    ):
        assert not await ran(client, text="x")
        assert len(office.waiting()) == 1


async def test_a_call_that_waits_is_answered_as_soon_as_it_is_denied(
    lab: Lab, connect: Callable[..., Any], era: str, office: Office
) -> None:
    heard: list[str] = []
    async with (
        gateway(lab, office, wait=60.0) as address,
        connect(address, era) as client,
        anyio.create_task_group() as calls,
    ):

        async def call() -> None:
            heard.append((await client.call_tool("write", {"text": "x"})).content[0].text)

        calls.start_soon(call)
        await office.sees(1)
        office.decides(approved=False, scope="always", message="never")
        with anyio.fail_after(5):
            while not heard:
                await anyio.sleep(0.02)
    assert "never" in heard[0]


async def test_a_gateway_and_a_command_line_are_two_programs(
    lab: Lab, connect: Callable[..., Any], era: str, office: Office
) -> None:
    settings = {"policy": {"default": "ask"}, "state": office.state, "approvals": {"ask": "operator"}}

    async def command(*words: str) -> dict[str, Any]:
        program = str(Path(sys.executable).with_name("truename"))
        where = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        said = [program, "approvals", *words, "--json", "--config", str(lab.folder / "mcp.json")]
        done = await anyio.run_process(said, env=where, check=False)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    async with connect(lab.over_stdio(lab.normal("fs", "write"), **settings), era) as client:
        result = await client.call_tool("write", {"text": "x"})
        assert result.meta is not None
        key = result.meta["dev.truename/approval"]
        assert (await command("show", key))["arguments"] == 'text: "x"'
        granted = await command("grant", key, "--scope", "always")
        assert await ran(client, text="y")
        await command("revoke", granted["granted"]["key"])
        assert not await ran(client, text="y")
