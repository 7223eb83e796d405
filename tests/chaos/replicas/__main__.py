"""`python -m tests.chaos.replicas`: replicas on one database, all of which is tormented, and a checker of the history.

Exit status 0 if every promise was kept (with ``--sabotage``: if the checker found what was put in), 1 if not. The
history and all violations are in `.cache/chaos/replicas`. Needs Linux.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.chaos.replicas.checker import resumed, summary, violations
from tests.chaos.replicas.clients import Clients
from tests.chaos.replicas.faults import BROKEN, FAULTS
from tests.chaos.replicas.history import History
from tests.chaos.replicas.nemesis import Nemesis
from tests.chaos.replicas.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

_FOUND: Final = Path(__file__).parents[3] / ".cache" / "chaos" / "replicas"
_CLIENTS: Final = 10
_WATCHERS: Final = 2
_REPLICAS: Final = {"postgresql": 4, "sqlite": 2}
_SHOWN: Final = 10
_PROGRESS: Final = 10.0


async def _run(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    path = folder / "history.jsonl"
    replicas = options.replicas or _REPLICAS[options.state]
    with History(path) as history:
        world = World(folder, history, state=options.state, replicas=replicas, sabotage=options.sabotage)
        clients = Clients(history, [gateway.port for gateway in world.gateways], options.seed)
        nemesis = Nemesis(world, clients, options.seed, frozenset(options.only))
        async with world.running():
            began = time.monotonic()
            async with asyncio.TaskGroup() as tasks:
                for number in range(options.clients):
                    tasks.create_task(clients.work(number, lambda replica: world.gateways[replica].is_up))
                for number in range(_WATCHERS * replicas):
                    tasks.create_task(clients.watch(number, number % replicas))
                tormenting = asyncio.create_task(nemesis.run())
                await _until_over(history, began, options, tormenting)
                tormenting.cancel()
                with suppress(asyncio.CancelledError):
                    await tormenting
                await _settled(clients, world)
                clients.is_over = True
            seconds = time.monotonic() - began
            clients.close()
            world.is_over = True
            await asyncio.gather(*(gateway.end() for gateway in world.gateways))
            history.flush()
            evidence = await asyncio.to_thread(world.evidence, path)
    found = violations(evidence)
    return {
        "state": options.state,
        "replicas": replicas,
        "seed": options.seed,
        "operations": len(evidence.operations),
        "good": history.count,
        "seconds": round(seconds, 1),
        "names": len(clients.known.ever),
        "kinds": summary(evidence.operations),
        "nemesis": dict(sorted(nemesis.counts.items())),
        "starts": sum(gateway.starts for gateway in world.gateways),
        "resumed": resumed(evidence),
        "load": [round(load, 1) for load in os.getloadavg()],
        "violations": found,
    }


async def _until_over(
    history: History, began: float, options: argparse.Namespace, tormenting: asyncio.Task[None]
) -> None:
    shown = began
    while history.count < options.operations and time.monotonic() - began < options.seconds and not tormenting.done():
        await asyncio.sleep(0.1)
        if time.monotonic() - shown > _PROGRESS:
            shown = time.monotonic()
            _say(f"{shown - began:6.0f} s {history.count:9,} good operations")


async def _settled(clients: Clients, world: World) -> None:
    """List at every replica, and call every name that is listed at two of them."""
    caller = clients.caller()
    for gateway in world.gateways:
        await clients.listed("last", caller, gateway.number)
    for number, name in enumerate(sorted({name for one in clients.known.last.values() for name in one})):
        for replica in (number % len(world.gateways), (number + 1) % len(world.gateways)):
            await clients.called("last", caller, replica, name, clients.nonce())


def _lines(found: dict[str, Any]) -> Iterator[str]:
    good, all_of_them, names = (f"{found[one]:,}" for one in ("good", "operations", "names"))
    yield f"{good} good operations of {all_of_them} in {found['seconds']:g} s, {names} names, seed {found['seed']}"
    yield f"{'':12} {'ok':>9} {'fail':>9} {'info':>9}"
    for what, counts in found["kinds"].items():
        yield f"{what:12} {counts['ok']:9,} {counts['fail']:9,} {counts['info']:9,}"
    yield from (f"{what:28} {count:6,}" for what, count in found["nemesis"].items())
    yield f"calls go on after a death: {found['resumed']}"
    for promise, several in found["violations"].items():
        yield f"{promise:26} {'kept' if not several else f'{len(several):,} VIOLATIONS'}"
        yield from (f"    {one}" for one in several[:_SHOWN])


def main() -> int:
    options = _options()
    with tempfile.TemporaryDirectory(prefix="tn-replicas-", dir="/tmp") as name:
        folder = Path(name)
        # The server runs as another user.
        folder.chmod(0o755)
        found = asyncio.run(_run(folder, options))
        kept = _FOUND / f"{options.sabotage or options.state}-{options.seed}"
        _keep(folder, kept, found)
    _say("\n".join(_lines(found)))
    _say(f"All of it: {kept}")
    broken = BROKEN.get(options.sabotage, found["violations"].keys())
    is_kept = not any(found["violations"][promise] for promise in broken)
    if options.sabotage:
        _say(f"{options.sabotage}: {'NOT FOUND' if is_kept else 'found'}")
        return int(is_kept)
    return int(not is_kept)


def _keep(folder: Path, kept: Path, found: dict[str, Any]) -> None:
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    (kept / "found.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for path in (*folder.glob("*.json*"), *folder.glob("*.log"), *folder.glob("*.journal")):
        shutil.copy(path, kept)
    for log in folder.glob("audit-*"):
        shutil.copytree(log, kept / log.name)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.replicas", description=__doc__)
    parser.add_argument("--operations", type=int, default=101_000, help="end after so many that succeed")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so many seconds at the latest")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--state", choices=_REPLICAS, default="postgresql")
    parser.add_argument("--replicas", type=int, help="default: four on PostgreSQL, two on SQLite")
    parser.add_argument("--clients", type=int, default=_CLIENTS)
    parser.add_argument("--only", nargs="+", default=[], metavar="TORMENT", help="as 'gateway: kill'; to find a cause")
    parser.add_argument("--sabotage", choices=FAULTS, help="put a fault in: the checker has to find it")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
