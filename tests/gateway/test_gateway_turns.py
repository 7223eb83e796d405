"""While one server's list is admitted: the others' calls go on, nothing is lost, and lists are shown in their order."""

from __future__ import annotations

import threading
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client

from tests.gateway.staged import SPEC, Staged
from tests.support.gateway_memory import in_memory
from truename import Ledger
from truename.config import ServerConfig, Settings
from truename.config.trust import Trust
from truename.gateway.endpoint.endpoint import Endpoint
from truename.gateway.registry import Registry
from truename.gateway.views.view import Asked, ViewSpec
from truename.policy import Context
from truename.trust import PinStore
from truename.trust.quarantine import pin_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.anyio

AT = "2026-11-23T00:00:00+00:00"
REGION = {"type": "object", "properties": {"region": {"type": "string"}}}
SAYS = "Pushes commits."


def tool(name: str, text: str = SAYS) -> dict[str, Any]:
    return {"name": name, "description": text, "inputSchema": REGION}


class Answering(Staged):
    """A server that runs a call when it may be sent."""

    isolation = second = holding = None

    async def awake(self) -> None:
        pass

    async def request(self, *_: Any, before: Any, **__: Any) -> dict[str, Any]:
        await before(self)
        self.calls += 1
        return {"content": [], "_meta": {"dev.truename/error": "ran"}}


class Turnstile:
    """The clock of a book of pins: whoever writes down in a thread what is new waits here while it is closed."""

    def __init__(self) -> None:
        self.reached = anyio.Event()
        self._open = threading.Event()
        self._open.set()

    def close(self) -> None:
        self.reached = anyio.Event()
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    def __call__(self) -> str:
        if threading.current_thread() is not threading.main_thread() and not self._open.is_set():
            anyio.from_thread.run_sync(self.reached.set)
            assert self._open.wait(60)
        return AT


class Row:
    """Two servers behind a gateway, of which one, `big`, lists what takes long to be admitted."""

    def __init__(self, book: Path | None = None, **more: Any) -> None:
        known = Settings(**more)
        self.gate = Turnstile()
        self.book = PinStore(book, now=self.gate)
        self.big = Answering(ServerConfig(key="big", command="true"), known)
        self.small = Answering(ServerConfig(key="small", command="true"), known)
        self.big.follower, self.small.follower = (SimpleNamespace(on_update=None, level=None) for _ in range(2))
        self.pool = {"big": self.big, "small": self.small}
        self.registry = Registry(self.pool, Ledger.memory(), known, pins=self.book)  # type: ignore[arg-type]
        self.endpoint = Endpoint(self.registry, SPEC, lambda _: SPEC, Asked())
        self.lists(self.big, tool("push"), tool("pull"))
        self.lists(self.small, tool("read"))

    def lists(self, server: Staged, *tools: dict[str, Any]) -> None:
        server.takes(tools, server.lists)

    @property
    def shown(self) -> list[str]:
        return sorted(self.registry.view(SPEC).table.values())

    @asynccontextmanager
    async def renewing(self, *tools: dict[str, Any]) -> AsyncIterator[None]:
        """Have `big` list these, and their admission wait in its midst until the block ends."""
        self.gate.close()
        self.lists(self.big, *tools)
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self.registry.renew)
                try:
                    await self.gate.reached.wait()
                    yield
                finally:
                    self.gate.open()


async def begun(row: Row) -> Row:
    await row.registry.begin()
    assert row.shown == ["big_pull", "big_push", "small_read"]
    row.registry.changes()
    return row


async def called(row: Row, name: str) -> str:
    async with Client(in_memory(row.endpoint), mode="2026-07-28") as client:
        result = await client.call_tool(name, {})
        assert result.meta is not None
        return str(result.meta["dev.truename/error"])


async def test_calls_and_lists_go_on_by_the_old_table_while_a_list_is_admitted() -> None:
    row = await begun(Row())
    async with row.renewing(*map(dict, row.big.tools or ()), tool("merge")):
        assert await called(row, "small_read") == "ran"
        assert await called(row, "big_push") == "ran"
        assert await called(row, "big_merge") == "unknown_tool"
        async with Client(in_memory(row.endpoint)) as client:
            listed = await client.list_tools()
            assert sorted(one.name for one in listed.tools) == ["big_pull", "big_push", "small_read"]
    assert (row.big.calls, row.small.calls) == (1, 1)
    assert row.shown == ["big_merge", "big_pull", "big_push", "small_read"]


async def test_changes_are_told_when_they_are_shown() -> None:
    row = await begun(Row())
    async with row.renewing(tool("push"), tool("merge")):
        assert not row.registry.changes()
    assert SPEC in row.registry.changes()


async def test_a_view_that_is_asked_for_first_meanwhile_is_made_and_told_of() -> None:
    row = await begun(Row())
    other = ViewSpec("openai", client="openai")
    async with row.renewing(tool("push"), tool("merge")):
        await row.registry.prepare(other, Context())
        assert row.registry.is_ready(other, Context())
        assert sorted(row.registry.view(other).table.values()) == ["big_pull", "big_push", "small_read"]
    assert {SPEC, other} <= row.registry.changes()
    assert sorted(row.registry.view(other).table.values()) == ["big_merge", "big_push", "small_read"]


async def test_what_is_listed_meanwhile_is_admitted_afterwards() -> None:
    row = await begun(Row())
    async with row.renewing(tool("push"), tool("merge")), anyio.create_task_group() as tasks:
        row.lists(row.big, tool("push"), tool("rebase"))
        row.lists(row.small, tool("read"), tool("write"))
        for _ in range(3):
            tasks.start_soon(row.registry.renew)
        await anyio.lowlevel.checkpoint()
        assert row.shown == ["big_pull", "big_push", "small_read"]
        row.gate.open()
    assert row.shown == ["big_push", "big_rebase", "small_read", "small_write"]


async def test_what_is_shown_already_is_not_made_anew() -> None:
    row = await begun(Row())
    before = row.registry.catalog
    await row.registry.renew()
    assert row.registry.catalog is before
    row.lists(row.big, tool("push"))
    await row.registry.renew()
    assert row.shown == ["big_push", "small_read"]


async def test_what_was_made_at_once_is_not_replaced_by_what_was_begun_before() -> None:
    row = await begun(Row())
    async with row.renewing(tool("push"), tool("merge")):
        row.lists(row.big, tool("push"), tool("rebase"))
        row.registry.rebuild()
        assert row.shown == ["big_push", "big_rebase", "small_read"]
        row.registry.catch_up()
    assert row.shown == ["big_push", "big_rebase", "small_read"]


async def test_other_settings_wait_for_their_turn_and_count_from_one_moment_on() -> None:
    row = await begun(Row())
    settings, swapped = replace(row.registry.settings, style="on-conflict", names_in_texts=False), list[list[str]]()
    only = [row.big.config]

    def swap() -> None:
        del row.pool["small"]
        swapped.append(sorted(map(str, row.registry.catalog)))

    async with row.renewing(tool("push"), tool("merge")), anyio.create_task_group() as tasks:
        tasks.start_soon(row.registry.reload, replace(settings, style=None), only, swap)
        await anyio.lowlevel.checkpoint()
        assert row.registry.settings.names_in_texts
        assert row.shown == ["big_pull", "big_push", "small_read"]
        row.gate.open()
    # The list that was under way was shown before.
    assert swapped == [["big@1/merge@1", "big@1/push@1", "small@1/read@1"]]
    assert not row.registry.settings.names_in_texts
    assert row.shown == ["big_merge", "big_push"]


async def test_settings_that_can_not_be_change_nothing() -> None:
    row = await begun(Row())
    before, swapped = row.registry.settings, list[None]()
    with pytest.raises(RuntimeError, match="on purpose"):
        await row.registry.reload(replace(before, names_in_texts=False), _broken(), lambda: swapped.append(None))
    assert row.registry.settings is before
    assert not swapped
    assert row.shown == ["big_pull", "big_push", "small_read"]


def _broken() -> Any:
    raise_ = RuntimeError("broken on purpose")

    def each() -> Any:
        yield row_config
        raise raise_

    row_config = ServerConfig(key="big", command="true")
    return each()


async def test_who_is_stopped_in_the_middle_leaves_all_as_it_was() -> None:
    row = await begun(Row())
    row.gate.close()
    row.lists(row.big, tool("push"), tool("merge"))
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(row.registry.renew)
            await row.gate.reached.wait()
            tasks.cancel_scope.cancel()
            row.gate.open()
    assert row.shown == ["big_pull", "big_push", "small_read"]
    # Nothing is locked, or half done.
    await row.registry.renew()
    assert row.shown == ["big_merge", "big_push", "small_read"]


@pytest.mark.parametrize("drift", ["quarantine", "block"])
async def test_a_call_is_held_against_the_definition_that_the_server_gives_now(drift: Any) -> None:
    row = await begun(Row(trust=Trust(drift=drift)))
    found: list[str] = []

    async def call() -> None:
        found.append(await called(row, "big_push"))

    other = {**tool("push"), "inputSchema": {**REGION, "required": ["region"]}}
    async with row.renewing(other, tool("pull")), anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        assert await called(row, "small_read") == "ran"
        assert not found
        row.gate.open()
    assert found == ["quarantined"]
    assert row.big.calls == 0


async def test_a_word_that_somebody_says_meanwhile_counts_for_the_next_call(tmp_path: Path) -> None:
    path = tmp_path / "pins"
    row = await begun(Row(path))
    read = next(one for one in row.registry.catalog.values() if one.origin.name == "read")
    found: list[str] = []

    async def call() -> None:
        found.append(await called(row, "small_read"))

    async with row.renewing(tool("push"), tool("merge")), anyio.create_task_group() as tasks:
        await call()
        with PinStore(path, now=lambda: AT) as operators:
            operators.forget([str(read.id)])
            operators.note([pin_of(read, read.digest)], "rejected", by="ann")
        tasks.start_soon(call)
        # It waits for its turn: whoever comes when nobody is under way shares a look at the file with others.
        await anyio.wait_all_tasks_blocked()
        assert row.small.calls == 1
        row.gate.open()
    assert found == ["ran", "quarantined"]
    assert row.small.calls == 1


async def test_a_list_that_can_not_be_made_leaves_the_next_one_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    row = await begun(Row())
    row.lists(row.big, tool("push"), tool("merge"))

    def broken(*_: object) -> None:
        raise RuntimeError("broken on purpose")

    with monkeypatch.context() as patch:
        patch.setattr(row.book, "trust", broken)
        await row.registry.renew()
    assert row.shown == ["big_pull", "big_push", "small_read"]
    await row.registry.renew()
    assert row.shown == ["big_merge", "big_push", "small_read"]


STEPS = st.lists(st.sampled_from(["list", "close", "open", "renew", "rebuild", "reload", "call"]), max_size=14)


@given(steps=STEPS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_lists_are_shown_in_their_order_and_the_last_is_never_lost(steps: list[str]) -> None:
    """A model: whatever is under way, what is shown is one whole list of the server, never an older one than before."""
    anyio.run(_in_order, steps)


async def _in_order(steps: list[str]) -> None:
    row = Row()
    versions = 0
    row.lists(row.big, tool("push", "Version 0."), tool("v0"))
    await row.registry.begin()
    seen = 0

    def look() -> int:
        own = {one.origin.name: one for one in row.registry.catalog.values() if one.origin.server == "big"}
        now = int(str(own["push"].current["description"]).removeprefix("Version ").rstrip("."))
        assert own.keys() == {"push", f"v{now}"}
        assert seen <= now <= versions
        return now

    async def reload() -> None:
        await row.registry.reload(row.registry.settings, [row.big.config, row.small.config], lambda: None)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            try:
                for step in steps:
                    match step:
                        case "list":
                            versions += 1
                            row.lists(row.big, tool("push", f"Version {versions}."), tool(f"v{versions}"))
                        case "close":
                            row.gate.close()
                        case "open":
                            row.gate.open()
                        case "renew":
                            tasks.start_soon(row.registry.renew)
                        case "reload":
                            tasks.start_soon(reload)
                        case "rebuild":
                            row.registry.rebuild()
                        case _:
                            assert await called(row, "small_read") == "ran"
                    await anyio.lowlevel.checkpoint()
                    seen = look()
            finally:
                row.gate.open()
        await row.registry.renew()
    assert look() == versions
