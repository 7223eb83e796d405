"""`python -m bench.ledger_growth [--events N ...] [--names N] [--tools N] [--pins] [--state URL] [--json]`: what grows.

It fills ledgers of 0, 1,000, 100,000 and 1,000,000 events, and measures on each: to open it, to record one new name, to
look up names that are not in memory, to start a gateway before one server (until its 50 tools have names, and one
unknown name was looked up; wall clock,
processor time, and the most memory of the process), and the size of the file. ``--tools`` is another number of tools,
and before the first list of more than 200 all is made ready by which they are called; with ``--pins`` each tool on
record has a pin. Then it records 100,000 new names in an
empty ledger, alone and with their identities, by wall clock and in processor time of this process. It fails on no time.
With the URL of an empty PostgreSQL database, each ledger is a scope of it, and no size is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import platform
import resource
import secrets
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from truename import ToolId, resolve
from truename.catalog import BUILT_IN_ALIASES
from truename.config import Config, ServerConfig, Settings
from truename.errors import UnknownTool
from truename.gateway import Gateway
from truename.identity import fold
from truename.ledger import Bind, Claim, Event, LedgerSettings, open_ledger
from truename.storage import StateLocation
from truename.trust import PinnedTool, PinStore
from truename.trust.pins import digest_of

_SIZES: Final = (0, 1_000, 100_000, 1_000_000)
_NAMES: Final = 100_000
_STARTS: Final = 5
_TOOLS: Final = 50
_BATCH: Final = 5_000
_REPEATS: Final = 21
_PER_SERVER: Final = 10_000
# Lists of more tools are made ready before they are shown (`truename.gateway.shown`).
_MOST_UNREADY: Final = 200


def _events(start: int, count: int) -> list[Event]:
    """Return claims and bindings of tools; half of the events each."""
    found: list[Event] = []
    for number in range(start // 2, (start + count) // 2):
        server = f"server{number // _PER_SERVER}"
        id = ToolId.parse(f"{server}/tool_{number}")
        found.append(Bind(server=server, name=f"tool_{number}", id=id))
        found.append(Claim(name=f"{server}_tool_{number}", id=id, table="universal", server=server))
    return found


def _pins(start: int, count: int) -> list[PinnedTool]:
    """Return the pins of the tools of `_events`."""
    found = []
    for event in _events(start, count)[::2]:
        assert isinstance(event, Bind)
        content = {
            "name": event.name,
            "description": f"Does what {event.name} is for, as its server says.",
            "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        }
        digest = digest_of(content)
        found.append(
            PinnedTool(id=event.id, server=event.server, name=event.name, digest=digest, content=content, at="")
        )
    return found


def _fill(place: StateLocation, size: int, *, has_pins: bool) -> float:
    began = time.perf_counter()
    ledger = open_ledger(place, max_claims=size + _PER_SERVER)
    if size:
        # The settings of the gateway that is started: under others it would not look at the names.
        ledger.restyle(LedgerSettings(style="prefixed", server_name="truename", aliases=dict(BUILT_IN_ALIASES)))
    for start in range(0, size, _BATCH):
        ledger.record(_events(start, min(_BATCH, size - start)))
        print(f"\r{size:>9,} events: {start + _BATCH:>9,} recorded", end="", file=sys.stderr, flush=True)
    ledger.close()
    if has_pins:
        with PinStore(place) as book:
            for start in range(0, size, _BATCH):
                book.trust(_pins(start, min(_BATCH, size - start)), by="bench")
    print(file=sys.stderr)
    return time.perf_counter() - began


def _record(place: StateLocation, count: int, *, has_identities: bool) -> dict[str, float]:
    """Record new names as a gateway does, which collects no garbage meanwhile."""
    events = [one for one in _events(0, 2 * count) if has_identities or isinstance(one, Claim)]
    batch = _BATCH * 2 if has_identities else _BATCH
    ledger = open_ledger(place, max_claims=count)
    gc.collect()
    gc.disable()
    began, spent = time.perf_counter(), time.process_time()
    for start in range(0, len(events), batch):
        ledger.record(events[start : start + batch])
    found = {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - spent}
    gc.enable()
    ledger.close()
    return {"names": count, "identities": count if has_identities else 0, **found}


def _started(place: StateLocation, tools: int) -> dict[str, float]:
    """Measure a process that starts a gateway, gives its tools names, and ends: wall clock, processor time, memory."""
    command = [sys.executable, "-m", "bench.ledger_growth", "--tools", str(tools), "--start", str(place.address)]
    taken, spent, memory = [], [], []
    for _ in range(_STARTS):
        began = time.perf_counter()
        told = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        taken.append(time.perf_counter() - began)
        spent.append(told["cpu_seconds"])
        memory.append(told["mib"])
    median = statistics.median
    return {"start_s": median(taken), "start_cpu_s": median(spent), "start_mib": median(memory)}


async def _start(state: str, tools: int) -> None:
    server = ServerConfig(key="started", command=sys.executable, args=("-m", "bench.gateway_cost.upstream", str(tools)))
    async with Gateway(Config(servers=(server,), settings=Settings(state=state, style="prefixed"))) as gateway:
        await gateway.settle()
        table = gateway.table()
        if len(table) != tools:
            raise SystemExit(f"{len(table)} tools have names")
        if tools > _MOST_UNREADY:
            table.spellings.prepare()
        with suppress(UnknownTool):
            resolve("no_such_tool", table)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(json.dumps({"cpu_seconds": time.process_time(), "mib": memory}))


def _measure(place: StateLocation, size: int, tools: int) -> dict[str, float]:
    opened, recorded, looked = [], [], []
    for repeat in range(_REPEATS):
        began = time.perf_counter()
        ledger = open_ledger(place)
        opened.append(time.perf_counter() - began)
        name = f"new_{repeat}"
        began = time.perf_counter()
        ledger.record([Claim(name=name, id=ToolId.parse(f"new/{name}"), table="universal", server="new")])
        recorded.append(time.perf_counter() - began)
        names = [f"server{number // _PER_SERVER}_tool_{number}" for number in range(0, size // 2, max(1, size // 200))]
        began = time.perf_counter()
        for one in names:
            ledger.holder(fold(one))
        looked.append((time.perf_counter() - began) / max(1, len(names)))
        ledger.close()
    return {
        "events": size,
        "open_ms": statistics.median(opened) * 1e3,
        "record_ms": statistics.median(recorded) * 1e3,
        "lookup_us": statistics.median(looked) * 1e6,
        **_started(place, tools),
        "file_mib": 0.0 if place.path is None else place.path.stat().st_size / 2**20,
    }


def _versions() -> dict[str, str]:
    with closing(sqlite3.connect(":memory:")) as data:
        (engine,) = data.execute("SELECT sqlite_version()").fetchone()
    return {"python": platform.python_version(), "sqlite": engine, "machine": platform.machine()}


def main() -> int:
    """Print one line for each size."""
    parser = argparse.ArgumentParser(prog="python -m bench.ledger_growth", description=__doc__)
    parser.add_argument("--events", type=int, nargs="+", default=_SIZES, help="the sizes of the ledgers")
    parser.add_argument("--names", type=int, default=_NAMES, help="how many new names are recorded at last")
    parser.add_argument("--state", help="the URL of an empty PostgreSQL database; default: files")
    parser.add_argument("--tools", type=int, default=_TOOLS, help="how many tools the server of a start has")
    parser.add_argument("--pins", action="store_true", help="each tool on record has a pin")
    parser.add_argument("--start", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    words = parser.parse_args()
    if words.start:
        asyncio.run(_start(words.start, words.tools))
        return 0
    with tempfile.TemporaryDirectory() as folder:

        def place(name: str) -> StateLocation:
            if not words.state:
                return StateLocation(Path(folder) / f"{name}.db")
            joint = "&" if "?" in words.state else "?"
            return StateLocation.of(f"{words.state}{joint}scope=bench_{name}_{secrets.token_hex(3)}")

        ledgers = []
        for size in words.events:
            where = place(str(size))
            filled = _fill(where, size, has_pins=words.pins)
            ledgers.append({**_measure(where, size, words.tools), "fill_s": filled})
        recorded = [_record(place(f"new{has}"), words.names, has_identities=bool(has)) for has in (0, 1)]
    if words.json:
        print(json.dumps({"versions": _versions(), "ledgers": ledgers, "recorded": recorded}, indent=1))
        return 0
    print(", ".join(f"{name} {version}" for name, version in _versions().items()))
    heads = ("events", "open ms", "record ms", "lookup us", "start s", "CPU s", "MiB", "file MiB", "fill s")
    print(" ".join(f"{head:>10}" for head in heads))
    for row in ledgers:
        print(
            f"{row['events']:>10,} {row['open_ms']:>10.2f} {row['record_ms']:>10.2f} {row['lookup_us']:>10.1f}"
            f" {row['start_s']:>10.2f} {row['start_cpu_s']:>10.2f} {row['start_mib']:>10.0f}"
            f" {row['file_mib']:>10.1f} {row['fill_s']:>10.1f}"
        )
    for row in recorded:
        print(
            f"{row['names']:,} new names and {row['identities']:,} identities: {row['seconds']:.1f} s,"
            f" {row['cpu_seconds']:.1f} s of processor time"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
