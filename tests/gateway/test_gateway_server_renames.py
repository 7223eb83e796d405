"""Servers that rename, over HTTP: what clients see under the old name, and what follows a decision."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.gateway.office import Office
from tests.gateway.renaming_server import CLEAN, DENY, OTHER_SHAPE, READ, WIPE, id_of
from tests.support.gateway_trust import Turning
from truename.ledger import open_ledger
from truename.policy import read_policy
from truename.trust.rename_decisions import RenameDecisions
from truename.trust.renames import RenameStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from mcp import Client

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio


def stays(answer: Any) -> str:
    return str(answer.content[0].text)


class Room:
    """A gateway with its state in a file, its server `fs` as a process, and the operator."""

    def __init__(self, lab: Lab, folder: Path, connect: Callable[..., Any], **settings: Any) -> None:
        self.office = Office(folder)
        self.fs = Turning(folder, "fs")
        self._lab = lab
        self._connect = connect
        self._settings = settings

    @asynccontextmanager
    async def client(self, era: str = "legacy") -> AsyncIterator[Client]:
        running = self._lab.serving(
            self.fs.config(self._lab), state=self.office.state, style="on-conflict", **self._settings
        )
        async with running as address, self._connect(f"{address}/mcp", era) as client:
            yield client

    async def turns(self, client: Client, *tools: dict[str, Any]) -> None:
        self.fs.says(*tools)
        assert not (await client.call_tool("turn", {})).is_error

    @asynccontextmanager
    async def deciding(self) -> AsyncIterator[RenameDecisions]:
        ledger = open_ledger(self.office.place)
        with RenameStore(self.office.place) as book:
            yield RenameDecisions(book, ledger)
        ledger.close()


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools if tool.name != "turn"]


async def becomes(client: Client, *wanted: str) -> None:
    with anyio.fail_after(20):
        while set(await names(client)) != {*wanted}:
            await anyio.sleep(0.02)


@pytest.fixture
def room(lab: Lab, tmp_path: Path, connect: Callable[..., Any]) -> Callable[..., Room]:
    return lambda **settings: Room(lab, tmp_path, connect, **settings)


async def test_an_old_name_says_what_it_probably_became_and_leads_there_once_accepted(
    room: Callable[..., Room], era: str
) -> None:
    here = room()
    here.fs.says(READ, WIPE)
    async with here.client(era) as client:
        await becomes(client, "read", "wipe")
        await here.turns(client, {**READ, "name": "page"}, WIPE)
        await becomes(client, "page", "wipe")
        answer = await client.call_tool("read", {"page": 1})
        assert answer.is_error
        assert answer.meta is not None
        assert answer.meta["dev.truename/error"] == "unknown_tool"
        assert stays(answer).startswith("'read' was probably renamed to 'page' by its server; nothing was run.")
        async with here.deciding() as decisions:
            assert decisions.accept(id_of("page"), id_of("read"), by="ann", until="2999-01-01") is not None
        await becomes(client, "read", "page", "wipe")
        again = await client.call_tool("read", {"page": 1})
        assert (again.is_error, "page" in stays(again)) == (False, True)
        # The old one comes back under its name: that name means the new one, and whatever comes gets another.
        await here.turns(client, READ, {**READ, "name": "page"}, WIPE)
        assert "page" in stays(await client.call_tool("read", {"page": 1}))


async def test_a_server_that_renames_while_no_gateway_runs_does_not_get_rid_of_a_denial(
    room: Callable[..., Room],
) -> None:
    here = room(policy=read_policy(DENY["by id"]))
    here.fs.says(READ, WIPE)
    async with here.client() as client:
        await becomes(client, "read")
    here.fs.says(READ)
    async with here.client() as client:
        await becomes(client, "read")
    here.fs.says(READ, OTHER_SHAPE)
    for _ in range(2):
        async with here.client() as client:
            await becomes(client, "read")
            assert (await client.call_tool("clean", {})).is_error
    async with here.deciding() as decisions:
        assert decisions.reject(id_of("clean"), by="ann") is not None
    async with here.client() as client:
        await becomes(client, "read", "clean")
        assert not (await client.call_tool("clean", {})).is_error


async def test_an_approval_stays_with_the_tool_that_it_was_given_for(room: Callable[..., Room]) -> None:
    policy = {"rules": [{"outcome": "ask", "tools": ["fs/read"]}]}
    here = room(policy=read_policy(policy))
    here.fs.says(READ, WIPE)
    async with here.client() as client:
        await client.call_tool("read", {"page": 1})
        here.office.decides(scope="always")
        assert not (await client.call_tool("read", {"page": 2})).is_error
        await here.turns(client, {**READ, "name": "page"}, WIPE)
        await becomes(client, "page", "wipe")
        async with here.deciding() as decisions:
            assert decisions.accept(id_of("page"), id_of("read"), by="ann", until="2999-01-01") is not None
        await becomes(client, "page", "wipe", "read")
        for name in ("page", "read"):
            answer = await client.call_tool(name, {"page": 3})
            assert answer.meta is not None
            assert answer.meta["dev.truename/error"] == "approval_required"


@pytest.mark.parametrize("page", [{**READ, "name": "page"}, {**OTHER_SHAPE, "name": "page"}], ids=["equal", "another"])
async def test_no_approval_moves_to_a_new_tool_whatever_is_decided_and_taken_back(
    room: Callable[..., Room], page: dict[str, Any]
) -> None:
    here = room(policy=read_policy({"rules": [{"outcome": "ask", "tools": ["fs/read", "fs/page"]}]}))
    here.fs.says(READ, WIPE)

    async def is_asked(name: str) -> bool:
        answer = await client.call_tool(name, {})
        return answer.meta is not None and answer.meta["dev.truename/error"] == "approval_required"

    async with here.client() as client:
        await client.call_tool("read", {})
        here.office.decides(scope="always")
        assert not (await client.call_tool("read", {})).is_error
        await here.turns(client, page, WIPE)
        await becomes(client, "page", "wipe")
        assert await is_asked("page")
        async with here.deciding() as decisions:
            for _ in range(2):
                assert decisions.accept(id_of("page"), id_of("read"), by="ann", until="2999-01-01") is not None
                await becomes(client, "page", "wipe", "read")
                assert [await is_asked(name) for name in ("page", "read")] == [True, True]
                assert decisions.undo(id_of("page")) is not None
                await becomes(client, "page", "wipe")
                assert await is_asked("page")
        # The tool for which it was given comes back with its definition, and has it still.
        await here.turns(client, READ, WIPE)
        await becomes(client, "read", "wipe")
        assert not (await client.call_tool("read", {})).is_error


async def test_a_rejection_by_a_person_goes_with_a_tool_that_may_be_the_old_one(room: Callable[..., Room]) -> None:
    here = room(policy=read_policy({"rules": [{"outcome": "ask", "tools": ["fs/wipe"]}]}))
    here.fs.says(READ, WIPE)
    async with here.client() as client:
        await client.call_tool("wipe", {"path": "x"})
        here.office.decides(approved=False, scope="always")
        await here.turns(client, READ, CLEAN)
        await becomes(client, "read", "clean")
        answer = await client.call_tool("clean", {"path": "y"})
        assert answer.meta is not None
        assert answer.meta["dev.truename/error"] == "unsupported"


async def accepts(room: Room, old: str, new: str) -> None:
    async with room.deciding() as decisions:
        assert decisions.accept(id_of(new), id_of(old), by="ann", until="") is not None


async def redirects(room: Room, old: str, new: str) -> None:
    async with room.deciding() as decisions:
        decisions.ledger.redirect(str(id_of(old)), id_of(new))


ORDERS = {"the operator first": (redirects, accepts), "the server first": (accepts, redirects)}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS.keys())
async def test_no_approval_passes_a_rename_by_the_server_on_its_way_through_redirects(
    lab: Lab, tmp_path: Path, connect: Callable[..., Any], order: Any
) -> None:
    policy = read_policy({"rules": [{"outcome": "ask", "tools": ["fs/*"], "except": ["fs/turn"]}]})
    room = Room(lab, tmp_path, connect, policy=policy)
    room.fs.says(READ, WIPE)
    async with room.client() as client:
        await client.call_tool("read", {})
        room.office.decides(scope="always")
        assert not (await client.call_tool("read", {})).is_error
        for old, new, decide in (("read", "page", order[0]), ("page", "leaf", order[1])):
            await room.turns(client, {**READ, "name": new}, WIPE)
            await becomes(client, new, "wipe")
            await decide(room, old, new)
        await leads(client, "read", "leaf")
        answer = await client.call_tool("leaf", {})
        assert answer.meta is not None
        assert answer.meta["dev.truename/error"] == "approval_required"


async def leads(client: Client, old: str, new: str) -> None:
    """Wait until an old name leads to a tool: then all decisions were taken in."""
    with anyio.fail_after(20):
        while str(id_of(new)) not in str((await client.call_tool(old, {})).content):
            await anyio.sleep(0.02)
