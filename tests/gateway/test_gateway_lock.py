"""A gateway under a lock: what was reviewed is trusted at the first start, and nothing else is taken for it."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.gateway.reloads import another
from tests.gateway.servers.fake import tool
from tests.support.gateway_trust import PAY, READ, REWORDED, Turning, texts, until
from truename import Catalog
from truename.config.trust import Trust
from truename.errors import ConfigError
from truename.migration import Lock
from truename.trust import PinStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from mcp import Client

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio
TURN = tool("turn")


def lock(folder: Path, *definitions: dict[str, Any], server: str = "fs") -> str:
    """Write the lock as people have reviewed it, and return its path."""
    path = folder / "truename.lock"
    path.write_text(Lock.of(Catalog.from_mcp({server: [TURN, *definitions]})).text())
    return str(path)


@asynccontextmanager
async def client_of(
    lab: Lab, era: str, connect: Callable[..., Any], server: Turning, **trust: Any
) -> AsyncIterator[Client]:
    said = Trust(pins=str(lab.folder / "pins"), lock=str(lab.folder / "truename.lock"), **trust)
    running = lab.serving(server.config(lab), trust=said, style="prefixed")
    async with running as address, connect(f"{address}/mcp", era) as client:
        yield client


@pytest.fixture
def reviewed(lab: Lab, era: str, connect: Callable[..., Any], tmp_path: Path) -> tuple[Callable[..., Any], Turning]:
    fs = Turning(tmp_path, "fs")
    fs.says(READ, {**PAY, "name": "sign"})
    return partial(client_of, lab, era, connect, fs), fs


async def test_at_the_first_start_only_what_was_reviewed_is_shown(
    lab: Lab, reviewed: tuple[Callable[..., Any], Turning]
) -> None:
    served, _ = reviewed
    lock(lab.folder, READ)
    async with served(first="review", drift="quarantine") as client:
        assert await texts(client) == {"fs_read": READ["description"]}
        refused = await client.call_tool("fs_sign", {})
    assert refused.meta["dev.truename/error"] == "quarantined"
    with PinStore(lab.folder / "pins") as book:
        assert {key: pin.by for key, pin in book.pins().items()} == {
            "fs@1/turn@1": "truename.lock",
            "fs@1/read@1": "truename.lock",
            # That it has no instructions, of which a lock says nothing.
            "server:fs": "",
        }


async def test_what_differs_from_the_lock_at_the_first_start_has_drifted(
    lab: Lab, reviewed: tuple[Callable[..., Any], Turning]
) -> None:
    served, _ = reviewed
    lock(lab.folder, REWORDED)
    async with served(drift="quarantine") as client:
        # What the lock does not know is new, and trusted as it comes.
        assert await texts(client) == {"fs_sign": PAY["description"]}


async def test_a_lock_that_is_written_while_the_gateway_runs_counts(
    lab: Lab, reviewed: tuple[Callable[..., Any], Turning]
) -> None:
    served, fs = reviewed
    lock(lab.folder, READ)
    async with served(drift="block") as client:
        fs.says(REWORDED)
        await client.call_tool("fs_turn", {})
        await until(client, {})
        lock(lab.folder, REWORDED)
        await until(client, {"fs_read": REWORDED["description"]})


async def test_a_gateway_with_no_lock_where_one_is_named_does_not_start(lab: Lab, tmp_path: Path) -> None:
    trust = Trust(lock=str(tmp_path / "truename.lock"))
    with pytest.raises(ConfigError, match=r"truename\.lock: the lock does not exist"):
        async with lab.gateway(lab.normal("w", "get"), trust=trust):
            pass


async def test_another_configuration_with_a_broken_lock_is_refused_and_changes_nothing(
    lab: Lab, tmp_path: Path
) -> None:
    path = tmp_path / "truename.lock"
    path.write_text("<<<<<<< ours\n")
    async with lab.gateway(lab.normal("w", "get")) as gateway:
        with pytest.raises(ConfigError, match="merge conflict"):
            await gateway.reload(another(gateway, trust=Trust(lock=str(path), drift="block"), max_tools=7))
        assert gateway.config.settings.max_tools != 7
        assert gateway.registry.settings.trust.drift == "warn"
        path.write_text(Lock().text())
        assert (await gateway.reload(another(gateway, trust=Trust(lock=str(path))))).settings == ("trust",)


async def test_a_lock_without_servers_pins_nothing_and_that_is_told(
    lab: Lab, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = lock(tmp_path, READ, server="w")
    (tmp_path / "truename.lock").write_text((tmp_path / "truename.lock").read_text().replace('server = "w", ', ""))
    with caplog.at_level(logging.WARNING, "truename.gateway"):
        async with lab.gateway(lab.normal("w", "read"), trust=Trust(lock=path, drift="block")) as gateway:
            assert list(gateway.table().values()) == ["read"]
    assert "2 tools of the lock belong to no server and pin nothing" in caplog.text
