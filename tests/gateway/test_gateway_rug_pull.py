"""A rug pull: a decision is for the definition that was decided on, whatever is shown and whatever drift says."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.gateway.office import Office, User
from tests.support.gateway_trust import READ, REWORDED, Turning
from truename.config.trust import Trust
from truename.policy import Approvals, read_policy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from mcp import Client

    from tests.gateway.conftest import Lab

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

# Turning is free, all else is asked about.
POLICY = read_policy({"default": "ask", "rules": [{"outcome": "allow", "tools": ["fs/turn"]}]})
FREE = read_policy({"default": "allow", "rules": [{"outcome": "ask", "tools": ["fs/other"]}]})
OPEN_WORLD = [{"outcome": "deny", "tools": ["fs/read"], "annotations": {"openWorldHint": True}}]
MODES: dict[str, dict[str, Any]] = {
    "warn": {"drift": "warn"},
    "quarantine": {"drift": "quarantine"},
    "quarantine, hidden": {"drift": "quarantine", "quarantine": "hidden"},
    "block": {"drift": "block"},
}
# Where what the server offers now is not called at all.
KEPT_BACK = {"quarantine, hidden", "block"}
MODE = pytest.mark.parametrize("mode", MODES)


class Room:
    """A gateway, its server `fs`, the operator, and a client at it."""

    def __init__(self, lab: Lab, folder: Path, connect: Callable[..., Any], mode: str, policy: Any = POLICY) -> None:
        self.office = Office(folder)
        self.fs = Turning(folder, "fs")
        self._lab = lab
        self._connect = connect
        self._more: dict[str, Any] = {"trust": Trust(pins=str(folder / "pins"), **MODES[mode]), "policy": policy}

    @asynccontextmanager
    async def client(self, *words: str, era: str = "legacy", **server: Any) -> AsyncIterator[Client]:
        entry = self.fs.config(self._lab)
        running = self._lab.serving(entry, state=self.office.state, style="on-conflict", **self._more, **server)
        user: dict[str, Any] = {"elicitation_callback": User(*words).elicited} if words else {}
        async with running as address, self._connect(f"{address}/mcp", era, **user) as client:
            yield client

    async def turns(self, client: Client, *tools: dict[str, Any]) -> None:
        """Have the server list something else from now on: it announces that before it answers."""
        self.fs.says(*tools)
        assert not (await client.call_tool("turn", {})).is_error


async def code(client: Client, path: str = "x") -> str:
    result = await client.call_tool("read", {"path": path})
    return str((result.meta or {}).get("dev.truename/error", "ran" if not result.is_error else "error"))


async def runs_again(client: Client) -> None:
    """Wait for a call to run: the way back is taken when the list has come, and nothing depends on when."""
    with anyio.fail_after(30):
        while await code(client) != "ran":
            await anyio.sleep(0.02)


def refused(mode: str) -> str:
    return "quarantined" if mode in KEPT_BACK else "approval_required"


@pytest.fixture
def room(lab: Lab, tmp_path: Path, connect: Callable[..., Any]) -> Callable[..., Room]:
    def made(mode: str, **more: Any) -> Room:
        found = Room(lab, tmp_path, connect, mode, **more)
        found.fs.says(READ)
        return found

    return made


@MODE
@pytest.mark.parametrize("word", ["always allow", "allow with these arguments", "allow for this session"])
async def test_a_decision_is_suspended_at_once_when_the_definition_changes_and_counts_again_when_it_is_back(
    room: Callable[..., Room], mode: str, word: str
) -> None:
    here = room(mode)
    async with here.client(word) as client:
        assert [await code(client), await code(client)] == ["ran", "ran"]
        await here.turns(client, REWORDED)
        assert await code(client) == refused(mode)
        await here.turns(client, READ)
        await runs_again(client)


@MODE
async def test_a_decision_does_not_outlive_a_change_over_a_restart(room: Callable[..., Room], mode: str) -> None:
    here = room(mode)
    async with here.client("always allow") as client:
        assert await code(client) == "ran"
    here.fs.says(REWORDED)
    async with here.client() as client:
        assert await code(client) == refused(mode)
    here.fs.says(READ)
    async with here.client() as client:
        assert await code(client) == "ran"


@MODE
async def test_a_yes_to_one_call_that_comes_after_the_change_runs_nothing(room: Callable[..., Room], mode: str) -> None:
    here = room(mode)
    async with here.client() as client:
        assert await code(client) == "approval_required"
        await here.turns(client, REWORDED)
        here.office.decides()
        assert await code(client) == refused(mode)
        await here.turns(client, READ)
        await runs_again(client)
        assert await code(client) == "approval_required"


@MODE
async def test_a_request_that_waits_is_for_the_definition_that_was_asked_about(
    room: Callable[..., Room], mode: str
) -> None:
    here = room(mode)
    async with here.client() as client:
        await here.turns(client, REWORDED)
        assert await code(client) == refused(mode)
        if mode in KEPT_BACK:
            assert here.office.waiting() == []
            return
        # Of a change that was just announced nobody is asked: the definition is read anew first.
        while not here.office.waiting():
            assert await code(client) == refused(mode)
        (waiting,) = here.office.waiting()
        here.office.decides(scope="always")
        assert await code(client) == "ran"
        await here.turns(client, READ)
        assert await code(client) == "approval_required"
    (grant,) = Approvals.open(here.office.place).grants()
    assert grant.subject.digest == waiting.subject.digest


@MODE
async def test_a_tool_that_nobody_decided_on_goes_by_drift_alone(room: Callable[..., Room], mode: str) -> None:
    here = room(mode, policy=FREE)
    async with here.client() as client:
        assert await code(client) == "ran"
        await here.turns(client, REWORDED, {**READ, "name": "seen"})
        listed = {tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools}
        while "seen" not in listed:
            listed = {tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools}
        assert await code(client) == ("quarantined" if mode in KEPT_BACK else "ran")


@MODE
async def test_a_server_that_rests_is_judged_by_what_it_lists_when_it_is_back(
    room: Callable[..., Room], mode: str
) -> None:
    here = room(mode)
    async with here.client("always allow", start="lazy") as client:
        assert await code(client) == "ran"
    here.fs.says(REWORDED)
    # Its lists are known from before: it is started by the call itself.
    async with here.client(start="lazy") as client:
        assert await code(client) == refused(mode)


async def test_a_rule_about_annotations_judges_what_is_shown_and_what_the_server_gives_now(
    lab: Lab, tmp_path: Path, connect: Callable[..., Any]
) -> None:
    closed = {**READ, "annotations": {"readOnlyHint": True, "openWorldHint": False}}
    here = Room(lab, tmp_path, connect, "quarantine", read_policy({"default": "allow", "rules": OPEN_WORLD}))
    here.fs.says(closed)
    async with here.client() as client:
        assert await code(client) == "ran"
    here.fs.says({**closed, "annotations": {"readOnlyHint": True}})
    async with here.client() as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {"turn"}
        assert await code(client) == "unknown_tool"
