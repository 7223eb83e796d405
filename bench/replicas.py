"""`python -m bench.replicas [--state URL] [--calls N] [--kills N] [--json]`: what sessions cost behind a round robin.

It starts three real gateways on one state (a new file unless a URL is given) and measures with sessions of 2025-11-25:
how many of their requests behind a round robin are answered by the gateway that has the session, not found, or fail;
the processor time of all gateways for a call that is asked of the owner and of another gateway; and the time from the
owner's SIGKILL to the first good answer of its session. It fails on no time.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import anyio
import httpx2

from tests.gateway.streams import Reader
from tests.support.replicas import ROOT, Replicas, balancer
from truename.storage import StateLocation

_VERSION: Final = "2025-11-25"
_SESSIONS: Final = 20
_COUNT: Final = 3
_ROUNDS: Final = 5


async def _call(client: Reader, url: str, text: str) -> httpx2.Response:
    params = {"name": "note", "arguments": {"text": text}}
    body = {"jsonrpc": "2.0", "id": text, "method": "tools/call", "params": params}
    return await client.http.post(url, json=body, headers=client.headers)


def _ran_at(response: httpx2.Response) -> int | None:
    """Return the process id of the gateway that ran a call; None if none did."""
    found = re.search(r" by (\d+)", response.text)
    return None if found is None else int(found[1])


def _processor_time(replicas: Replicas) -> float:
    """Return the processor time that all gateways took so far, in seconds."""
    ticks = 0
    for number in range(_COUNT):
        fields = Path(f"/proc/{replicas.pid(number)}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


async def _behind_balancer(replicas: Replicas, http: httpx2.AsyncClient, calls: int) -> dict[str, int]:
    counts = {"by one gateway": 0, "by others too": 0, "not found": 0, "failed": 0}
    async with balancer(replicas) as address:
        for session in range(_SESSIONS):
            client, owners = Reader(http, f"{address}/mcp", _VERSION), set[int]()
            await client.open()
            for number in range(calls // _SESSIONS):
                response = await _call(client, client.url, f"{session}-{number}")
                ran = _ran_at(response)
                owners |= set() if ran is None else {ran}
                key = "by one gateway" if len(owners) == 1 else "by others too"
                counts["not found" if response.status_code == 404 else key if ran is not None else "failed"] += 1
    return counts


async def _cost(replicas: Replicas, http: httpx2.AsyncClient, calls: int) -> dict[str, float]:
    """Return the processor time of a call, in microseconds, at the owner and through another; in turns."""
    client = Reader(http, f"{replicas.address(0)}/mcp", _VERSION)
    await client.open()
    found: dict[str, list[float]] = {"owner": [], "another": []}
    for _ in range(_ROUNDS):
        for name, number in (("owner", 0), ("another", 1)):
            idle_from, idle = time.monotonic(), _processor_time(replicas)
            await anyio.sleep(1)
            idle = (_processor_time(replicas) - idle) / (time.monotonic() - idle_from)
            began, before = time.monotonic(), _processor_time(replicas)
            for call in range(calls):
                assert _ran_at(await _call(client, f"{replicas.address(number)}/mcp", f"{name}-{call}"))
            used = _processor_time(replicas) - before - idle * (time.monotonic() - began)
            found[name].append(used / calls * 1e6)
    return {name: statistics.median(values) for name, values in found.items()}


async def _take_overs(replicas: Replicas, http: httpx2.AsyncClient, kills: int) -> list[float]:
    """Return the seconds from the SIGKILL of an owner to the first good answer of its session, for each kill."""
    found = []
    for kill in range(kills):
        client = Reader(http, f"{replicas.address(0)}/mcp", _VERSION)
        await client.open()
        await _call(client, client.url, "before")
        replicas.kill(0)
        began = time.monotonic()
        while _ran_at(await _call(client, f"{replicas.address(1 + kill % 2)}/mcp", "after")) is None:
            pass
        found.append(time.monotonic() - began)
        replicas.restart_dead()
    return found


async def _measured(place: StateLocation, calls: int, kills: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        server = {
            "command": sys.executable,
            "args": ["-m", "tests.gateway.servers.replicated", f"{folder}/notes"],
            "env": {"PYTHONPATH": str(ROOT)},
        }
        replicas = Replicas(Path(folder), place, {"r": server}, _COUNT)
        try:
            replicas.start()
            async with httpx2.AsyncClient(timeout=30) as http:
                return {
                    "behind a round robin": await _behind_balancer(replicas, http, calls),
                    "processor time of a call (µs)": await _cost(replicas, http, calls),
                    "seconds from SIGKILL to an answer": await _take_overs(replicas, http, kills),
                }
        finally:
            replicas.end()


def main() -> None:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", default=None)
    parser.add_argument("--calls", type=int, default=400)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = StateLocation.of(options.state or f"{folder}/state.db")
        found = anyio.run(_measured, place, options.calls, options.kills)
    if options.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name}: {value}")


if __name__ == "__main__":
    main()
