"""Calls of known names go on while another gateway is stopped in a change, and while the database is silent."""

from __future__ import annotations

import secrets
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager, closing, contextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp import Client

from tests.gateway.staged import Stage
from tests.shared import ROOT
from tests.support.gateway_memory import in_memory
from tests.support.postgresql_wire import Wire
from tests.support.state_places import new_place, shared_server
from truename.config import Config, Settings
from truename.gateway import Gateway
from truename.ledger import open_ledger
from truename.storage import StateLocation, postgresql, postgresql_link
from truename.storage.postgresql_link import unlink

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

pytestmark = pytest.mark.anyio

READ: dict[str, Any] = {"name": "read", "inputSchema": {"type": "object"}}
WRITE: dict[str, Any] = {"name": "write", "inputSchema": {"type": "object"}}
_HOLDER = """
import os, signal, sys
from truename.ledger import open_ledger
from truename.storage import StateLocation
with open_ledger(StateLocation.of(sys.argv[1])).transaction():
    print("held", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
"""
# What is promised is two seconds; the machine takes some time too.
_SOON = 2.5


@contextmanager
def stopped_in_a_change(place: StateLocation) -> Iterator[subprocess.Popen[str]]:
    """Have another process lock the ledger, and be stopped then."""
    words = [sys.executable, "-c", _HOLDER, f"{place.url}&scope={place.scope}"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=ROOT) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        try:
            yield holder
        finally:
            holder.send_signal(signal.SIGKILL)


class Bench:
    """A client of a staged server, with the state somewhere."""

    def __init__(self, stage: Stage, client: Client) -> None:
        self.stage = stage
        self.client = client
        self.longest = 0.0

    async def code(self, name: str) -> str:
        """Call a tool; return the code of what came of it. The staged server answers no call (upstream_unavailable)."""
        began = time.monotonic()
        result = await self.client.call_tool(name, {})
        self.longest = max(self.longest, time.monotonic() - began)
        assert result.meta is not None
        return str(result.meta["dev.truename/error"])

    async def names(self) -> set[str]:
        began = time.monotonic()
        listed = await self.client.list_tools(cache_mode="bypass")
        self.longest = max(self.longest, time.monotonic() - began)
        return {tool.name for tool in listed.tools}


@contextmanager
def staged(place: StateLocation) -> Iterator[Stage]:
    with closing(open_ledger(place)) as ledger:
        yield Stage(Settings(), ledger=ledger)


@asynccontextmanager
async def benched(stage: Stage) -> AsyncIterator[Bench]:
    stage.lists(READ)
    async with Client(in_memory(stage.endpoint), mode="legacy") as client:
        bench = Bench(stage, client)
        assert await bench.code("read") == "upstream_unavailable"
        yield bench
        await stage.registry.end()


async def test_calls_of_known_names_go_on_while_a_gateway_is_stopped_in_the_middle_of_a_change() -> None:
    with new_place() as place, staged(place) as stage:
        async with benched(stage) as bench:
            with stopped_in_a_change(place):
                stage.lists(READ, WRITE)
                assert await bench.names() == {"read"}
                for _ in range(3):
                    assert await bench.code("read") == "upstream_unavailable"
                assert await bench.code("write") == "busy"
                assert stage.fs.calls == 4
                assert bench.longest < _SOON
            with anyio.fail_after(10):
                while await bench.names() != {"read", "write"}:
                    await anyio.sleep(0.05)
            assert await bench.code("write") == "upstream_unavailable"


async def test_calls_of_known_names_go_on_while_the_database_is_silent_and_no_other_name_is_guessed() -> None:
    with Wire(shared_server()) as wire:
        place = StateLocation.of(wire.url(f"t{secrets.token_hex(8)}"))
        with staged(place) as stage:
            async with benched(stage) as bench:
                assert await bench.code("fs__read") == "upstream_unavailable"
                wire.is_silent = True
                stage.lists(READ, WRITE)
                assert await bench.names() == {"read"}
                for _ in range(3):
                    assert await bench.code("read") == "upstream_unavailable"
                # Another gateway may have shown these for another tool.
                assert [await bench.code(name) for name in ("write", "fs__read")] == ["busy", "busy"]
                assert bench.longest < _SOON
                wire.is_silent = False
                wire.cut_all()
                with anyio.fail_after(20):
                    while await bench.names() != {"read", "write"}:
                        await anyio.sleep(0.05)
                assert await bench.code("fs__read") == "upstream_unavailable"
        while unlink(place):
            pass


async def test_a_gateway_that_starts_waits_for_a_slow_database(monkeypatch: pytest.MonkeyPatch) -> None:
    # A thread that runs an event loop would not wait at all.
    monkeypatch.setattr(postgresql_link, "ANSWER_IN_LOOP", 0.0)
    monkeypatch.setattr(postgresql, "ANSWER_IN_LOOP", 0.0)
    with new_place() as place:
        async with Gateway(Config(settings=Settings(state=f"{place.url}&scope={place.scope}"))) as gateway:
            assert gateway.status().servers == ()
