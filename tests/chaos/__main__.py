"""`python -m tests.chaos`: calls from twenty clients while their servers are killed, frozen, slowed and cut off.

Exit status 0 if every call ended well and nothing leaked (with ``--sabotage``: if the checker found what was put in),
1 if not. Needs Linux: what leaks is read from /proc.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.chaos.check import faults_in, late, leaks
from tests.chaos.clients import CLIENTS, all_called, asking
from tests.chaos.gateway import SABOTAGES
from tests.chaos.world import STEADY, World

if TYPE_CHECKING:
    from tests.chaos.check import Call
    from tests.chaos.world import Ask

_CALLS: Final = 10_000
_WARM: Final = 400
_SHOWN: Final = 20
_SETTLE: Final = 20.0
_FOUND: Final = Path(__file__).parents[2] / ".cache" / "chaos"
_LONG: Final = frozenset({"log", "late", "each_return", "faults"})
# What the checker says of each fault that is put in: any other finding does not count.
_SAID: Final = {"twice": "was run 2 times", "elsewhere": "was run by", "leak": "leaked: tasks"}


async def _counts_settled(world: World, ask: Ask, before: dict[str, int]) -> dict[str, int]:
    """Return the counts once they are what they were; idle connections take a few seconds to close."""
    until = time.monotonic() + _SETTLE
    while leaks(before, found := await _counts(world, ask)) and time.monotonic() < until:
        await asyncio.sleep(0.5)
    return found


async def _quiet(world: World, ask: Ask) -> dict[str, int]:
    """Return the least counts of some seconds without other calls."""
    found = await world.counts()
    for _ in range(8):
        await asyncio.sleep(1)
        found = {what: min(count, found[what]) for what, count in (await _counts(world, ask)).items()}
    return found


async def _counts(world: World, ask: Ask) -> dict[str, int]:
    # A pool of connections closes those that are idle too long when it is used.
    await ask("remote")
    return await world.counts()


async def _run(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    world = World(folder, options.seed, options.sabotage)
    asked: list[Call] = []

    async with world.running(), asking(world.address, asked) as ask:
        calls = await all_called(world.address, _WARM, "warm")
        before = await _quiet(world, ask)
        began = time.monotonic()
        tormenting = asyncio.create_task(world.torment(ask))
        calls += await all_called(world.address, options.calls, "chaos")
        tormenting.cancel()
        await asyncio.gather(tormenting, return_exceptions=True)
        seconds = time.monotonic() - began
        after = await _counts_settled(world, ask, before)
    calls += asked
    faults = faults_in(calls, world.ran(), steady=STEADY) + late(world.returns) + world.left_over()
    faults += [f"leaked: {leak}" for leak in leaks(before, after)]
    return {
        "calls": len(calls),
        "clients": CLIENTS,
        "seconds": round(seconds, 1),
        "answered": sum(call.is_answered for call in calls),
        "errors": dict(Counter(call.code for call in calls if call.code)),
        "torments": world.torments,
        "returns": _summary([one.seconds for one in world.returns if one.seconds is not None]),
        "restarts": _summary([one.restart for one in world.returns if one.restart]),
        # Of the server that nobody torments: what the machine itself takes.
        "steady": _summary([call.seconds for call in calls if call.server == STEADY]),
        "load": [round(load, 1) for load in os.getloadavg()],
        "before": before,
        "after": after,
        "log": (folder / "gateway.log").read_text(encoding="utf-8")[-200_000:] if faults else "",
        "late": [{**asdict(one), "gateway": world.traced(one)} for one in world.returns if one.is_late],
        "each_return": [asdict(one) for one in world.returns],
        "faults": faults,
    }


def _summary(waits: list[float]) -> dict[str, float]:
    """Return how many there were, and how long they took, in seconds."""
    if not waits:
        return {}
    waits = sorted(waits)
    part = {"median": waits[len(waits) // 2], "p99": waits[len(waits) * 99 // 100], "longest": waits[-1]}
    return {"count": len(waits), **{name: round(seconds, 2) for name, seconds in part.items()}}


def main() -> int:
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(_run(Path(folder), options))
    faults = found["faults"]
    path = _written(found, options)
    short = {what: value for what, value in found.items() if what not in _LONG}
    shown = {**short, "late": len(found["late"]), "faults": faults[:_SHOWN], "faults_found": len(faults)}
    sys.stdout.write(json.dumps({**shown, "all": str(path)}, indent=2) + "\n")
    if options.sabotage:
        is_found = any(_SAID[options.sabotage] in fault for fault in faults)
        sys.stdout.write(f"{options.sabotage}: {'found' if is_found else 'NOT FOUND'}\n")
        return 0 if is_found else 1
    return 1 if faults else 0


def _written(found: dict[str, Any], options: argparse.Namespace) -> Path:
    """Write all that was found, with what the gateway did around each late return; return where."""
    path = _FOUND / f"{options.sabotage or 'chaos'}-{options.calls}-{options.seed}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return path


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--calls", type=int, default=_CALLS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sabotage", choices=SABOTAGES, help="put a fault in: the checker has to find it")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
