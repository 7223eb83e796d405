"""`python -m bench.catalog_changes [CASE ...] [--json]`: what one server's new list costs beside thousands of tools.

The registry of a gateway is made over servers that are only lists, without connections: all that is measured follows a
list. CPU is that of the process, in all threads; a stall is by how much a task in the event loop wakes late. It fails
on no time.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from bench.loop_stalls import Probe
from truename.config import ServerConfig, Settings
from truename.errors import UnknownTool
from truename.gateway.registry import Registry
from truename.gateway.upstream.following import Follower
from truename.gateway.upstream.known import KnownServer
from truename.gateway.views.choice import UNIVERSAL
from truename.ledger import open_ledger
from truename.naming import project, resolve
from truename.policy import Context
from truename.trust import PinStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from truename.gateway.upstream.upstream import Upstream

Definition = dict[str, Any]
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_VERBS: Final = ("get", "list", "create", "update", "delete", "search", "send", "archive", "export", "import")
_NOUNS: Final = ("issue", "page", "invoice", "message", "contact", "branch", "file", "report", "event", "ticket")
_CHANGES: Final = 8


class ListOnly:
    """A server that is a list: what the registry asks of a connection, and no connection."""

    def __init__(self, key: str, tools: list[Definition]) -> None:
        self.key = key
        self.config = ServerConfig(key=key, command="none")
        self.tools = tuple(tools)
        self.follower = Follower(key, lambda: None)

    @property
    def standing(self) -> KnownServer:
        """The list as it is now."""
        return KnownServer(self.config, self.tools)


def _synthetic(tools: int, servers: int) -> dict[str, list[Definition]]:
    each = -(-tools // servers)
    return {
        f"{_NOUNS[number % 10]} desk {number:03}": [_tool(number, place) for place in range(each)]
        for number in range(servers)
    }


def _tool(server: int, place: int) -> Definition:
    verb, noun = _VERBS[place % 10], _NOUNS[place // 10 % 10]
    name = f"{verb}_{noun}" + (f"_{place // 100}" if place >= 100 else "")
    properties = {
        f"{noun}_id": {"type": "string", "description": f"Which {noun} of desk {server} is meant."},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100},
    }
    return {
        "name": name,
        "description": f"{verb.title()} the {noun} numbered {place} in desk {server}, and say what was found there.",
        "inputSchema": {"type": "object", "properties": properties, "required": [f"{noun}_id"]},
    }


def _real(tools: int) -> dict[str, list[Definition]]:
    folder = Path(os.environ.get("TRUENAME_SHARED", "../shared"))
    with gzip.open(folder / "corpus" / "open.jsonl.gz", "rt") as lines:
        servers = [json.loads(line) for line in lines]
    found: dict[str, list[Definition]] = {}
    left = tools
    for turn in count(1):
        for server in servers:
            if left <= 0:
                return found
            listed = list({one["name"]: one for one in islice(server["tools"], left)}.values())
            found[server["server"] + (f" {turn}" if turn > 1 else "")] = listed
            left -= len(listed)
    raise AssertionError


class Clock:
    """What a block costs: CPU and wall seconds, and the longest time that nothing else ran in the loop."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self.rows: list[dict[str, float]] = []

    async def of(self, work: Callable[[], Awaitable[object]]) -> dict[str, float]:
        """Run something, and return what it cost."""
        await self._probe.taken()
        cpu, wall = time.process_time(), time.perf_counter()
        await work()
        found = {
            "cpu_ms": round(1e3 * (time.process_time() - cpu), 1),
            "wall_ms": round(1e3 * (time.perf_counter() - wall), 1),
        }
        stalls = await self._probe.taken()
        return {**found, "stall_ms": stalls["longest_ms"]}


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * _PAGE / 1e6, 1)


async def _shown(registry: Registry) -> None:
    """Answer tools/list for somebody, as an endpoint does."""
    context = Context()
    await registry.prepare(UNIVERSAL, context)
    view = registry.tool_search.listed(registry.access.limited(registry.view(UNIVERSAL), context))
    view.page_json(None)


async def _renewed(registry: Registry) -> None:
    await registry.renew()
    registry.changes()
    await _shown(registry)


@contextmanager
def _registry(lists: dict[str, list[Definition]], *, stored: bool) -> Iterator[tuple[Registry, dict[str, ListOnly]]]:
    pool = {key: ListOnly(key, tools) for key, tools in lists.items()}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "state.db" if stored else None
        ledger = open_ledger(file, max_claims=10_000_000)
        settings = Settings(state="memory", max_tools=1_000_000, tool_search="off", max_claims=10_000_000)
        with PinStore(file) as pins:
            yield Registry(cast("dict[str, Upstream]", pool), ledger, settings, pins=pins), pool
            ledger.close()


async def _measured(lists: dict[str, list[Definition]], *, stored: bool = True) -> dict[str, Any]:
    before = _resident()
    probe = Probe()
    watching = asyncio.create_task(probe.watch())
    clock = Clock(probe)
    with _registry(lists, stored=stored) as (registry, pool):
        found: dict[str, Any] = {"servers": len(pool)}

        async def begin() -> None:
            await registry.begin()
            await _shown(registry)

        found["ready"] = await clock.of(begin)
        found["tools"] = len(registry.catalog)
        found["rss_mb"], found["rss_before_mb"] = _resident(), before
        one = list(pool.values())[len(pool) // 2]
        number = count(1)

        def other_words() -> None:
            first, *rest = one.tools
            one.tools = ({**first, "description": f"{first['description']} ({next(number)})"}, *rest)

        def one_more() -> None:
            one.tools = (*one.tools, {**one.tools[-1], "name": f"look_again_{next(number)}"})

        def one_less() -> None:
            one.tools = one.tools[:-1]

        for name, change in (("words", other_words), ("joins", one_more), ("leaves", one_less)):
            rows = []
            for _ in range(_CHANGES):
                change()
                rows.append(await clock.of(lambda: _renewed(registry)))
            found[name] = {key: sorted(row[key] for row in rows)[len(rows) // 2] for key in rows[0]}
            found[name]["stall_ms"] = max(row["stall_ms"] for row in rows)
        found["rss_after_mb"] = _resident()
        found |= _names(registry)
    watching.cancel()
    return found


def _names(registry: Registry) -> dict[str, float]:
    """Return microseconds a tool of `project`, without a ledger and with what is on record, and an unknown name's."""
    catalog, found = registry.catalog, {}
    for name, ledger in (("project_us", None), ("project_held_us", registry.ledger)):
        began = time.process_time()
        table = project(catalog, "universal", style=registry.style, ledger=ledger)
        found[name] = round(1e6 * (time.process_time() - began) / len(catalog), 2)
    names = list(table.values())
    times = []
    for text in ("", *(f"{name[:-2]}x{name[-1:]}y" for name in names[:: len(names) // 40 or 1])):
        began = time.process_time()
        try:
            resolve(text or "nothing_like_it", table)
        except UnknownTool:
            times.append(time.process_time() - began)
    found["unknown_first_ms"] = round(1e3 * times[0], 2)
    found["unknown_ms"] = round(1e3 * sorted(times[1:])[len(times) // 2], 3)
    return found


CASES: Final[dict[str, Callable[[], dict[str, list[Definition]]]]] = {
    "10,000 tools of 300 servers": lambda: _synthetic(10_000, 300),
    "9,000 real tools": lambda: _real(9_000),
    "100,000 tools of 3,000 servers": lambda: _synthetic(100_000, 3_000),
}


def main() -> None:
    """Run the cases, each in a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m bench.catalog_changes")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of: {'; '.join(CASES)} (a part is enough)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(asyncio.run(_measured(CASES[options.one]()))))
        return
    found: dict[str, Any] = {}
    for case in CASES:
        if not options.cases or any(part in case for part in options.cases):
            command = [sys.executable, "-m", "bench.catalog_changes", "--one", case]
            found[case] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            if not options.json:
                rows = "\n".join(f"  {key}: {value}" for key, value in found[case].items())
                print(f"{case}\n{rows}", flush=True)
    if options.json:
        print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
