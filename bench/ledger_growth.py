"""`python -m bench.ledger_growth [--events N ...] [--state URL] [--json]`: what a ledger costs as it grows.

It fills ledgers of 1,000, 100,000 and 1,000,000 events, and measures on each: to open it, to record one new name, to
look up names that are not in memory, and the size of the file. It fails on no time. With the URL of an empty PostgreSQL
database, each ledger is a scope of it, and no size is measured.
"""

from __future__ import annotations

import argparse
import json
import platform
import sqlite3
import statistics
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Final

from truename import ToolId
from truename.identity import fold
from truename.ledger import Bind, Claim, Event, open_ledger
from truename.storage import StateLocation

_SIZES: Final = (1_000, 100_000, 1_000_000)
_BATCH: Final = 5_000
_REPEATS: Final = 21
_PER_SERVER: Final = 10_000


def _events(start: int, count: int) -> list[Event]:
    """Return claims and bindings of tools; half of the events each."""
    found: list[Event] = []
    for number in range(start // 2, (start + count) // 2):
        server = f"server{number // _PER_SERVER}"
        id = ToolId.parse(f"{server}/tool_{number}")
        found.append(Bind(server=server, name=f"tool_{number}", id=id))
        found.append(Claim(name=f"{server}_tool_{number}", id=id, table="universal", server=server))
    return found


def _fill(place: StateLocation, size: int) -> float:
    began = time.perf_counter()
    ledger = open_ledger(place, max_claims=size + _PER_SERVER)
    for start in range(0, size, _BATCH):
        ledger.record(_events(start, min(_BATCH, size - start)))
        print(f"\r{size:>9,} events: {start + _BATCH:>9,} recorded", end="", file=sys.stderr, flush=True)
    ledger.close()
    print(file=sys.stderr)
    return time.perf_counter() - began


def _measure(place: StateLocation, size: int) -> dict[str, float]:
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
    parser.add_argument("--state", help="the URL of an empty PostgreSQL database; default: files")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    words = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for size in words.events:
            address = f"{words.state}{'&' if '?' in words.state else '?'}scope=bench_{size}" if words.state else None
            place = StateLocation.of(address or Path(folder) / f"{size}.db")
            filled = _fill(place, size)
            found.append({**_measure(place, size), "fill_s": filled})
    if words.json:
        print(json.dumps({"versions": _versions(), "ledgers": found}, indent=1))
        return 0
    print(", ".join(f"{name} {version}" for name, version in _versions().items()))
    print(f"{'events':>10} {'open ms':>9} {'record ms':>10} {'lookup us':>10} {'file MiB':>9} {'fill s':>8}")
    for row in found:
        print(
            f"{row['events']:>10,} {row['open_ms']:>9.2f} {row['record_ms']:>10.2f} {row['lookup_us']:>10.1f}"
            f" {row['file_mib']:>9.1f} {row['fill_s']:>8.1f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
