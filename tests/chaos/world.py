"""What a run of chaos is made of: upstreams, the gateway before them, and those who torment them."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import signal
import sys
import time
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.chaos.check import Return
from tests.chaos.direct import answers_at, answers_http, began, door_of, until_back
from tests.chaos.journal import Entry, Journal
from tests.chaos.proxy import FaultProxy

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator, Awaitable, Callable

    from tests.chaos.check import Call

    Ask = Callable[[str], Awaitable[Call]]

__all__ = ["SERVERS", "STEADY", "World"]

ROOT: Final = Path(__file__).parents[2]
STEADY: Final = "steady"
SERVERS: Final = (STEADY, "mortal", "frozen", "shifting", "loud", "remote")
_FROZEN: Final = 1.5
_SLOWED: Final = 0.5
_GONE: Final = 1.0
_GIVE_UP: Final = 10.0
_LOOK: Final = 0.02
_BETWEEN: Final = 0.1
_PAUSES: Final = (0.5, 2.5)
_PATIENCE: Final = 20.0
# The frozen server's calls end by their timeout.
_TIMEOUTS: Final = {"frozen": 0.5}


class World:
    """Everything that is started ends with `running`."""

    def __init__(self, folder: Path, seed: int, sabotage: str | None) -> None:
        self.folder = folder
        self.address = ""
        self.returns: list[Return] = []
        self.torments: dict[str, int] = {}
        self._untouched: list[Call] = []
        self._random = random.Random(seed)
        self._sabotage = sabotage
        self._proxy = FaultProxy(0)
        self._remote: Process | None = None
        self._gateway: Process | None = None

    @property
    def _trace(self) -> Path:
        return self.folder / "gateway.trace"

    def traced(self, one: Return) -> list[dict[str, object]]:
        """Return what the gateway did with a server around its return."""
        until = one.at + (one.seconds or _GIVE_UP) + 1
        steps = map(json.loads, self._trace.read_text(encoding="utf-8").splitlines())
        return [step for step in steps if step["server"] == one.server and one.at - 4 <= step["at"] <= until]

    def journal(self, key: str) -> Journal:
        return Journal(self.folder / f"{key}.journal", key)

    def ran(self) -> list[Entry]:
        return [entry for key in SERVERS for entry in self.journal(key).entries()]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            await self._start_remote()
            stack.push_async_callback(self._stop_remote)
            await stack.enter_async_context(self._proxy.running())
            config = self._configure()
            words = ["-m", "tests.chaos.gateway", str(config), str(self._trace), *filter(None, [self._sabotage])]
            log = stack.enter_context((self.folder / "gateway.log").open("w", encoding="utf-8"))
            self._gateway = await _started(*words, stdin=asyncio.subprocess.PIPE, stderr=log)
            stack.push_async_callback(self._stop_gateway)
            self.address = await _line(self._gateway)
            if not self.address:
                raise RuntimeError((self.folder / "gateway.log").read_text(encoding="utf-8")[-2000:])
            yield

    def _configure(self) -> Path:
        entries: dict[str, object] = {
            key: {
                "command": sys.executable,
                "args": ["-m", "tests.chaos.server", key, str(self.folder / f"{key}.journal")],
                "env": {"PYTHONPATH": str(ROOT)},
                "timeout": _TIMEOUTS.get(key, 10.0),
            }
            for key in SERVERS
            if key != "remote"
        }
        entries["remote"] = {"type": "http", "url": f"http://127.0.0.1:{self._proxy.port}/mcp", "timeout": 5}
        settings = {"state": "memory", "style": "prefixed", "max_result": 200_000}
        path = self.folder / "mcp.json"
        path.write_text(json.dumps({"mcpServers": entries, "truename": settings}), encoding="utf-8")
        return path

    async def counts(self) -> dict[str, int]:
        """Ask the gateway how many tasks, threads, file descriptors and processes it has."""
        gateway = self._gateway
        assert gateway is not None
        assert gateway.stdin is not None
        gateway.stdin.write(b"\n")
        found: dict[str, int] = json.loads(await _line(gateway))
        return found

    async def torment(self, ask: Ask) -> None:
        """Torment all servers but one, until cancelled; ``ask`` calls a server to see whether calls go on."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch_untouched(ask))
            for key, torments in self._torments().items():
                tasks.create_task(self._torment(key, torments, ask))

    async def _watch_untouched(self, ask: Ask) -> None:
        """Call the server that nobody torments, again and again: what that takes, the machine takes."""
        while True:
            self._untouched.append(await ask(STEADY))
            await asyncio.sleep(_BETWEEN)

    def _control(self, since: float) -> float:
        until = time.monotonic()
        ended = (one for one in reversed(self._untouched))
        meanwhile = itertools.takewhile(lambda one: one.at + one.seconds >= since, ended)
        return max((one.seconds for one in meanwhile if one.at <= until), default=0.0)

    def _torments(self) -> dict[str, dict[str, Callable[[], Awaitable[float]]]]:
        return {
            "mortal": {"killed": lambda: self._kill("mortal")},
            "frozen": {"frozen": self._freeze},
            "shifting": {"restarted with other tools": lambda: self._kill("shifting")},
            "remote": {
                "connections reset": self._reset,
                "slowed": self._slow,
                "refusing": self._refuse,
                "killed and started anew": self._replace,
            },
        }

    async def _torment(self, key: str, torments: dict[str, Callable[[], Awaitable[float]]], ask: Ask) -> None:
        while True:
            for name, torment in torments.items():
                await asyncio.sleep(self._random.uniform(*_PAUSES))
                restart = await torment()
                at = await until_back(lambda: self._answers(key))
                self.torments[name] = self.torments.get(name, 0) + 1
                seconds = await self._until_answered(key, at, ask)
                control = self._control(at - restart)
                self.returns.append(
                    Return(server=key, torment=name, at=at, seconds=seconds, restart=restart, control=control)
                )

    async def _answers(self, key: str) -> bool:
        if key == "remote":
            return await answers_http(self._proxy.port)
        return await answers_at(door_of(self.folder / f"{key}.journal"))

    @staticmethod
    async def _until_answered(key: str, since: float, ask: Ask) -> float | None:
        while time.monotonic() < since + _GIVE_UP:
            if (await ask(key)).is_answered:
                return time.monotonic() - since
            await asyncio.sleep(_LOOK)
        return None

    async def _kill(self, key: str) -> float:
        """Kill a program that the gateway runs; return how long the gateway took to start it anew."""
        starts, at = self.journal(key).starts(), time.monotonic()
        with suppress(ProcessLookupError):
            os.kill(starts[-1].pid, signal.SIGKILL)
        while len(found := self.journal(key).starts()) == len(starts):
            await asyncio.sleep(_LOOK)
        return max(0.0, began(found[-1].pid) - at)

    async def _freeze(self) -> float:
        pid = self.journal("frozen").starts()[-1].pid
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            try:
                await asyncio.sleep(_FROZEN)
            finally:
                os.kill(pid, signal.SIGCONT)
        return 0.0

    async def _reset(self) -> float:
        self._proxy.reset()
        return 0.0

    async def _slow(self) -> float:
        self._proxy.delay = 0.05
        await asyncio.sleep(_SLOWED)
        self._proxy.delay = 0.0
        return 0.0

    async def _refuse(self) -> float:
        self._proxy.refuses = True
        self._proxy.reset()
        try:
            await asyncio.sleep(_GONE)
        finally:
            self._proxy.refuses = False
        return 0.0

    async def _replace(self) -> float:
        await self._stop_remote()
        await self._start_remote()
        return 0.0

    async def _start_remote(self) -> None:
        words = ("-m", "tests.chaos.remote", "remote", str(self.folder / "remote.journal"))
        with (self.folder / "remote.log").open("a", encoding="utf-8") as log:
            self._remote = await _started(*words, stderr=log)
        self._proxy.target = int(await _line(self._remote))

    async def _stop_remote(self) -> None:
        if self._remote is not None and self._remote.returncode is None:
            self._remote.kill()
            await self._remote.wait()

    async def _stop_gateway(self) -> None:
        gateway = self._gateway
        if gateway is not None and gateway.returncode is None:
            assert gateway.stdin is not None
            gateway.stdin.close()
            try:
                await asyncio.wait_for(gateway.wait(), _PATIENCE)
            except TimeoutError:
                gateway.kill()

    def left_over(self) -> list[str]:
        """Return the upstream programs that still run: for after the gateway's end."""
        started = {entry.pid: entry.server for entry in self.ran() if not entry.tool and entry.server != "remote"}
        return [f"{key} still runs ({pid})" for pid, key in started.items() if _is_alive(pid)]


def _is_alive(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    try:
        return status.read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def _started(*words: str, stdin: int = asyncio.subprocess.DEVNULL, stderr: object = None) -> Process:
    path = os.pathsep.join((str(ROOT), str(ROOT / "src")))
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *words,
        stdin=stdin,
        stdout=asyncio.subprocess.PIPE,
        stderr=stderr,  # type: ignore[arg-type]
        env={**os.environ, "PYTHONPATH": path},
    )


async def _line(program: Process) -> str:
    assert program.stdout is not None
    return (await asyncio.wait_for(program.stdout.readline(), _PATIENCE)).decode().strip()
