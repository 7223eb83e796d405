"""`python -m tests.chaos.soak [--short]`: what a gateway holds after much of the same, and held after a tenth of it.

Lists that change, sessions that end or are left open, servers that are restarted: no tasks, file descriptors or objects
may be left by each, and memory may not grow by a tenth. Exit status 1 if something did. Needs Linux: /proc.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.gateway_cost.load import Load
from tests.gateway.servers.fake import tool
from truename.config import Config, ServerConfig, Settings
from truename.gateway import Gateway, listening
from truename.gateway.upstream_errors import UpstreamError

_ROOT: Final = Path(__file__).parents[2]
_TIMES: Final = {"lists": 10_000, "sessions": 1_000, "left open": 1_000, "restarts": 1_000}
_GROWTH: Final = 1.10
_LEFT_OPEN: Final = 2.0
_SETS: Final = 50
_SETTLE: Final = 30.0
_AT_ONCE: Final = 100
_FILES: Final = Path("/proc/self/fd")

Round = Callable[[int], Awaitable[None]]


@dataclass(frozen=True)
class Held:
    """What this process holds."""

    bytes: int
    objects: int
    tasks: int
    files: int

    @classmethod
    def now(cls) -> Held:
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return cls(pages * 4096, len(gc.get_objects()), len(asyncio.all_tasks()), len(list(_FILES.iterdir())))

    def __str__(self) -> str:
        return f"{self.bytes / 2**20:6.1f} MB {self.objects:8,} objects {self.tasks:4} tasks {self.files:4} files"

    def grown(self, before: Held) -> list[str]:
        """Return what there is more of than before, beyond what is allowed."""
        found = [name for name in ("tasks", "files") if getattr(self, name) > getattr(before, name)]
        return found + [name for name in ("bytes", "objects") if getattr(self, name) > _GROWTH * getattr(before, name)]


class Soak:
    """A gateway in this process before one server, and the ways to trouble it."""

    def __init__(self, gateway: Gateway, port: int) -> None:
        self._gateway = gateway
        self._port = port
        self._lists = [tuple(tool(f"tool_{one:05d}") for one in range(2 + number)) for number in range(_SETS)]
        self.multi_round: dict[str, Round] = {
            "lists": self._another_list,
            "sessions": self._session,
            "left open": self._session_left,
            "restarts": self._restart,
        }

    async def _another_list(self, number: int) -> None:
        upstream, endpoint = self._gateway.registry.pool["one"], self._gateway.endpoint()
        upstream.tools = self._lists[number % _SETS]
        self._gateway.registry.rebuild()
        await endpoint.notify(self._gateway.registry.changes(), self._gateway.registry.other_changes())

    async def _session(self, _: int) -> None:
        load = Load(self._port, "/mcp", "2025-11-25", 1)
        await (await load.open()).end()

    async def _session_left(self, number: int) -> None:
        if number % _AT_ONCE == 0:
            # No more at a time than in the first tenth: memory that was once needed at a time is kept for the next.
            await asyncio.sleep(2 * _LEFT_OPEN)
        load = Load(self._port, "/mcp", "2025-11-25", 1)
        await load.open()
        for one in load._made:
            one.close()

    async def _restart(self, _: int) -> None:
        upstream = self._gateway.registry.pool["one"]
        for name in ("die", "tool_00000"):
            try:
                await upstream.request("tools/call", {"name": name}, capabilities={}, on_progress=None)
            except UpstreamError as error:
                if name != "die":
                    _say(f"      {error}")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def _settled(before: Held | None) -> Held:
    """Return what is held once it is no more than before, or has had its time: sessions that were left have to end."""
    until = time.monotonic() + _SETTLE
    while True:
        await asyncio.sleep(_LEFT_OPEN)
        found = Held.now()
        if before is None or not found.grown(before) or time.monotonic() > until:
            return found


async def _soaked(soak: Soak, what: str, times: int) -> list[str]:
    for number in range(times // 10):
        await soak.multi_round[what](number)
    await asyncio.sleep(2 * _LEFT_OPEN)
    before = await _settled(None)
    _say(f"{what:10} {times // 10:6,} times {before}")
    for number in range(times // 10, times):
        await soak.multi_round[what](number)
    after = await _settled(before)
    _say(f"{what:10} {times:6,} times {after}")
    return [f"{what}: more {name} after {times:,} than after {times // 10:,}" for name in after.grown(before)]


async def _run(share: int, wanted: list[str]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        env = {"PYTHONPATH": str(_ROOT)}
        args = ("-m", "tests.gateway.servers.normal", "one", "die", *(f"tool_{one:05d}" for one in range(_SETS)))
        server = ServerConfig(key="one", command=sys.executable, args=args, env=env)
        settings: dict[str, Any] = {"session_timeout": _LEFT_OPEN, "state": str(Path(folder) / "ledger")}
        config = Config(servers=(server,), settings=Settings(**settings))
        async with Gateway(config) as gateway, listening(gateway) as address:
            soak = Soak(gateway, int(address.rpartition(":")[2]))
            found: list[str] = []
            for what in wanted or list(_TIMES):
                found += await _soaked(soak, what, _TIMES[what] // share)
            return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.soak", description=__doc__)
    parser.add_argument("--short", action="store_true", help="a twentieth: to see that it works")
    parser.add_argument("wanted", nargs="*", choices=[*_TIMES, []], help="only these")
    options = parser.parse_args()
    # What is told of each restart is known.
    logging.getLogger("truename").setLevel(logging.ERROR)
    found = asyncio.run(_run(20 if options.short else 1, options.wanted))
    _say("\n".join(found) or "Nothing grew.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
