"""Thirty real servers behind one gateway: legal names for every client, and calls whose answers are known.

`make live SHORT=1` runs the ten that install quickly. A server that cannot be had, or does not start, is told by name
and reason, and the test fails after all that can be seen of the others has been.
"""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio
import pytest
from mcp import Client

from tests.live import registries
from tests.live.crowd import ALL, TEN, Crowd, Member, gathered, laid_out
from tests.live.journeys import ERAS, STARTUP, called
from tests.live.registries import PyPI
from truename import dialects
from truename.config import Config, Settings
from truename.gateway import Gateway, listening
from truename.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from pathlib import Path

    from truename.dialects import Dialect
    from truename.identity import ToolId
    from truename.naming import NameTable

CALLERS: Final = ("claude-code", "cursor", "openai", "gemini-cli", "native")


@dataclass(frozen=True, slots=True)
class Street:
    """A running gateway in front of a crowd."""

    crowd: Crowd
    gateway: Gateway
    address: str
    work: Path

    def absent(self) -> dict[str, str]:
        """Return the servers that give no tools, and why."""
        states = self.gateway.status().servers
        return {**self.crowd.missing, **{one.key: str(one.error) for one in states if one.state != "ready"}}

    def present(self) -> list[Member]:
        absent = self.absent()
        return [member for member in self.crowd.members if member.key not in absent]

    def id_of(self, server: str, tool: str) -> ToolId:
        return next(
            id for id, one in self.gateway.catalog.items() if (one.origin.server, one.origin.name) == (server, tool)
        )

    async def listed(self, client: str, era: str) -> list[str]:
        """Return the names that a client is shown, page by page."""
        names: list[str] = []
        cursor: str | None = None
        async with Client(f"{self.address}/mcp/for/{client}", mode=era) as session:
            while True:
                page = await session.list_tools(cursor=cursor)
                names += [tool.name for tool in page.tools]
                cursor = page.next_cursor
                if cursor is None:
                    return names


@asynccontextmanager
async def street(wanted: Iterable[Member], work: Path) -> AsyncIterator[Street]:
    crowd = gathered(wanted, laid_out(work))
    settings = Settings(startup_timeout=STARTUP, state="memory", tool_search="off")
    config = Config(servers=crowd.entries, settings=settings)
    async with Gateway(config, ledger=Ledger.memory()) as gateway, listening(gateway) as address:
        await gateway.settle()
        yield Street(crowd, gateway, address, work)


def wrong_with(table: NameTable, dialect: Dialect) -> list[str]:
    """Say what a client cannot say, drops, merges or refuses."""
    server, names = table.server_name, list(table.values())
    seen = dialect.simulate(server, names)
    illegal = [f"{dialect.name}: {name!r}: {why}" for name in names if (why := dialect.check(name, server))]
    lost = [f"{dialect.name}: {name!r} is lost" for name in (*seen.dropped, *seen.refused)]
    merged = [f"{dialect.name}: {shown!r} is {which}" for shown, which in seen.merged.items()]
    return illegal + lost + merged


async def check_counts(here: Street) -> None:
    """All tools that each server's version has are there, also those that a server adds when it has been greeted."""
    wanted = {one.key: one.tools for one in here.present()}
    found: dict[str, int] = {}
    with anyio.move_on_after(STARTUP):
        while found != wanted:
            await anyio.sleep(0.05)
            counted = Counter(tool.origin.server for tool in here.gateway.catalog.values())
            found = {key: counted[key] for key in wanted}

    assert found == wanted


async def check_names(here: Street) -> None:
    """Each tool has one name, legal in each dialect and told from all others by it; that is what clients are shown.

    Clients that are shown the same names have them listed once in each era.
    """
    shown: set[tuple[str, ...]] = set()
    for dialect in dialects.table():
        table = here.gateway.table(f"/mcp/for/{dialect.name}")

        assert set(table) == set(here.gateway.catalog)
        assert wrong_with(table, dialect) == []

        if dialect.kind != "client" or tuple(table.values()) in shown:
            continue
        shown.add(tuple(table.values()))
        for era in ERAS:
            names = await here.listed(dialect.name, era)

            assert len(names) == len(table), (dialect.name, era)
            assert set(names) == set(table.values()), (dialect.name, era)


async def check_calls(here: Street) -> int:
    """Every call that works without a network is answered, by every client's own name, in both eras."""
    right = 0
    for client in CALLERS:
        table = here.gateway.table(f"/mcp/for/{client}")
        for era in ERAS:
            async with Client(f"{here.address}/mcp/for/{client}", mode=era) as session:
                for member in here.present():
                    if member.probe is None:
                        continue
                    name = table[here.id_of(member.key, member.probe.tool)]

                    assert member.probe.answer in await called(session, name, member.probe, here.work), name

                    right += 1
    return right


async def walk(wanted: tuple[Member, ...], work: Path) -> str:
    async with street(wanted, work) as here:
        await check_counts(here)
        await check_names(here)
        right = await check_calls(here)
        absent = here.absent()
        told = f"{len(here.present())} of {len(wanted)} servers, {len(here.gateway.catalog)} tools, {right} calls"
        told += "".join(f"\n  not there: {key}: {reason}" for key, reason in absent.items())

        assert not absent, told

        return told


def calls_of(members: Iterable[Member]) -> int:
    return sum(member.probe is not None for member in members) * len(CALLERS) * len(ERAS)


def test_there_are_thirty_packages_and_ten_of_them_for_the_short_form() -> None:
    assert len({member.source for member in ALL}) >= 30
    assert len({member.source for member in TEN}) == 10
    assert len({member.key for member in ALL}) == len(ALL)


def test_a_server_that_cannot_be_had_is_told_by_name_and_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registries, "HOME", tmp_path / "installed")
    gone = Member("gone", PyPI(("no requirement at all",), "gone"), 1)

    with pytest.raises(AssertionError, match=r"0 of 1 servers(?s:.)*not there: gone: .*no requirement"):
        anyio.run(walk, (gone,), tmp_path)


@pytest.mark.live
def test_ten_real_servers_have_legal_names_for_every_client_and_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = anyio.run(walk, TEN, tmp_path)
    with capsys.disabled():
        sys.stdout.write(f"\n{told}\n")

    assert f"{calls_of(TEN)} calls" in told


@pytest.mark.live
def test_thirty_real_servers_have_legal_names_for_every_client_and_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = anyio.run(walk, ALL, tmp_path)
    with capsys.disabled():
        sys.stdout.write(f"\n{told}\n")

    assert f"{calls_of(ALL)} calls" in told
