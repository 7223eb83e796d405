"""What the tests of another configuration share: how it is made, and what shows that it counts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from truename.config import Config, ServerConfig
    from truename.gateway import Gateway


def another(gateway: Gateway, *servers: ServerConfig, **settings: Any) -> Config:
    """The gateway's configuration with these servers, if any are given, and settings."""
    now = gateway.config
    return replace(now, servers=servers or now.servers, settings=replace(now.settings, **settings))


def names(gateway: Gateway, path: str | None = None) -> list[str]:
    return sorted(gateway.table(path).values())


def pids(journal: Path) -> list[int]:
    return [int(line.split()[1]) for line in journal.read_text().splitlines()]


async def until(found: Callable[[], bool]) -> None:
    with anyio.fail_after(15):
        while not found():
            await anyio.sleep(0.02)
