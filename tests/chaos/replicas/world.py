"""What a run is made of: a database, upstream servers, gateways that are replicas, and an operator."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg

from tests.chaos.replicas.checker import Evidence, Ran
from tests.chaos.replicas.clock import Clock, compiled
from tests.chaos.replicas.history import read_history
from tests.support.postgresql_server import PostgresqlServer
from tests.support.postgresql_wire import Wire
from tests.support.state_places import new_directory

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator, Iterator

    from tests.chaos.replicas.history import History

__all__ = ["ALWAYS", "QUARANTINED", "SERVERS", "Gateway", "Operator", "Servers", "World"]

_ROOT: Final = Path(__file__).parents[3]
_KEY: Final = base64.b64encode(os.urandom(32)).decode()
_SCOPE: Final = "chaos"
ALWAYS: Final = ("steady", "vault")
"""The servers that no nemesis touches."""
SERVERS: Final = ("alpha", "beta", "gamma", "delta")
QUARANTINED: Final = "delta"
"""Changed definitions of this server are not shown before the operator accepts them."""
_START: Final = 60.0
_LOOK: Final = 0.05


class World:
    """Everything that is started ends with `running`."""

    def __init__(self, folder: Path, history: History, *, state: str, replicas: int, sabotage: str | None) -> None:
        self.folder = folder
        self.history = history
        self.library = compiled(folder)
        self.server: PostgresqlServer | None = None
        self.server_clock = Clock(folder, "server", self.library)
        self.servers = Servers(folder)
        self.operator = Operator(self, sabotage)
        self.gateways = [Gateway(self, number, sabotage) for number in range(replicas)]
        self._state = state
        self.is_over = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            if self._state == "postgresql":
                directory = new_directory()
                self.server = PostgresqlServer(directory / "server")
                self.server.environment = self.server_clock.environment
                stack.callback(directory.rmdir)
                stack.callback(self.server.remove)
                await asyncio.to_thread(self._start_server)
            stack.push_async_callback(self.servers.stop)
            await self.servers.start()
            stack.push_async_callback(self.operator.stop)
            self.operator.configure()
            await self.operator.start()
            for gateway in self.gateways:
                stack.push_async_callback(gateway.end)
                gateway.configure(self.gateways_begin_with())
            await asyncio.gather(*(gateway.start() for gateway in self.gateways))
            yield

    def gateways_begin_with(self) -> tuple[str, ...]:
        return (*ALWAYS, *SERVERS)

    def _start_server(self) -> None:
        assert self.server is not None
        self.server.create()
        self.server.start()

    def state(self, wire: Wire | None = None) -> str:
        """Return where the state is: over a wire of its own, for who has one."""
        if self.server is None:
            return str(self.folder / "state.db")
        return f"{self.server.url}&scope={_SCOPE}" if wire is None else wire.url(_SCOPE)

    def configuration(self, wire: Wire | None, audit: Path, servers: tuple[str, ...], number: int = -1) -> str:
        """Return a configuration with these servers, in this order, for a gateway with a number."""
        own = {"headers": {"x-gateway": str(number)}} if number >= 0 else {}
        entries = {
            key: {"type": "http", "url": f"http://127.0.0.1:{self.servers.ports[key]}/mcp", "timeout": 4, **own}
            for key in servers
        }
        rules = ("near_name", "shadowed_tool", "confusable_name")
        settings = {
            "state": self.state(wire),
            "style": "on-conflict",
            "aliases": {},
            "breaker_seconds": 1,
            "audit": {"path": str(audit), "required": True},
            "policy": {"rules": [{"name": "look first", "outcome": "ask", "tools": ["vault/danger"]}]},
            "approvals": {"ask": "operator", "max_pending": 100_000},
            "trust": {"rules": dict.fromkeys(rules, "warn"), "servers": {QUARANTINED: {"drift": "quarantine"}}},
        }
        return json.dumps({"mcpServers": entries, "truename": settings})

    def evidence(self, history: Path) -> Evidence:
        """Return all that is known after the run; the database runs, and nobody else does."""
        tables = {name: self._rows(f"SELECT {columns} FROM {name}") for name, columns in _TABLES.items()}
        events = [json.loads(body) for (body,) in tables["ledger_event"]]
        audited, decided = _audited(self._logs())
        with history.open(encoding="utf-8") as lines:
            return Evidence(
                operations=tuple(read_history(lines)),
                ran=tuple(Ran(**json.loads(line)) for line in self.servers.journal.read_text().splitlines()),
                claims=frozenset((one["name"], one["id"]) for one in events if one["event"] == "claim"),
                holders={name: (first, present) for name, first, present in tables["ledger_holder"]},
                pins=dict(tables["pin"]),
                audited=audited,
                decided=decided,
                damaged=tuple(self._damaged()),
                quarantined=QUARANTINED,
            )

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        if self.server is None:
            with closing(sqlite3.connect(self.state())) as data:
                return data.execute(query).fetchall()
        with psycopg.connect(self.server.url, autocommit=True) as connection:
            connection.execute(f"SET search_path = truename_{_SCOPE}".encode())
            return connection.execute(query.encode()).fetchall()

    def _logs(self) -> list[Path]:
        return [self.operator.audit, *(gateway.audit for gateway in self.gateways)]

    def _damaged(self) -> Iterator[str]:
        programs: list[Operator | Gateway] = [self.operator, *self.gateways]
        for one in programs:
            if not one.audit.exists():
                continue
            # The wires to the database are closed by now.
            document = json.loads(one.config.read_text("utf-8"))
            document["truename"]["state"] = self.state()
            direct = one.config.with_suffix(".verified.json")
            direct.write_text(json.dumps(document), encoding="utf-8")
            words = [sys.executable, "-m", "truename", "audit", "verify", str(direct)]
            done = subprocess.run(words, env=one.environment, capture_output=True, text=True, check=False)
            if done.returncode:
                yield f"{one.config.name}: the audit log is damaged: {(done.stdout + done.stderr)[-500:]}"


_TABLES: Final = {"ledger_event": "body", "ledger_holder": "fold, first, present", "pin": "key, digest"}


def _audited(logs: list[Path]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the calls that audit logs announce, and the decisions that they have."""
    calls: set[str] = set()
    decided: set[str] = set()
    for path in (file for log in logs for file in sorted(log.rglob("*.jsonl"))):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            with suppress(ValueError):
                record = json.loads(line)
                if record.get("kind") == "begin" and "call" in record:
                    calls.add(str(record["call"]).removeprefix("request-").rpartition(".")[0])
                if record.get("kind") in {"approval", "definition"} and record.get("by"):
                    decided |= {str(record[key]) for key in ("request", "digest") if key in record}
    return frozenset(calls), frozenset(decided)


class Servers:
    """The upstream servers: processes that nobody kills, whose servers join, leave and change."""

    def __init__(self, folder: Path) -> None:
        self.journal = folder / "servers.journal"
        self.ports: dict[str, int] = {}
        self.tools: dict[str, dict[str, int]] = {}
        # Of each tool, present or not: the number of its last definition.
        self.versions: dict[tuple[str, str], int] = {}
        self._processes: dict[str, Process] = {}
        self._all: list[Process] = []

    async def start(self) -> None:
        for keys in (ALWAYS, SERVERS):
            words = ("-m", "tests.chaos.replicas.upstreams", str(self.journal), *keys)
            process = await _started(*words, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
            self._all.append(process)
            assert process.stdout is not None
            self.ports |= json.loads(await process.stdout.readline())
            self._processes |= dict.fromkeys(keys, process)
        self.change("steady", {"echo": 1})
        self.change("vault", {"danger": 1})

    def change(self, key: str, tools: dict[str, int]) -> None:
        self.tools[key] = tools
        self._tell(server=key, tools=tools)

    def leave(self, key: str) -> None:
        self._tell(server=key, up=False)

    def join(self, key: str) -> None:
        self._tell(server=key, up=True)

    def _tell(self, **command: object) -> None:
        stdin = self._processes[str(command["server"])].stdin
        assert stdin is not None
        stdin.write((json.dumps(command) + "\n").encode())

    async def stop(self) -> None:
        for process in self._all:
            await _killed(process)


class Gateway:
    """One replica: a process of `truename serve`, with a configuration, a state directory and an audit log of its own.

    It starts again on the same port, as by a supervisor.
    """

    def __init__(self, world: World, number: int, sabotage: str | None) -> None:
        self.number = number
        self.port = _free_port()
        self.is_up = False
        self.is_stopped = False
        self.clock = Clock(world.folder, f"gateway-{number}", world.library)
        self.config = world.folder / f"gateway-{number}.json"
        self.audit = world.folder / f"audit-{number}"
        self.log = world.folder / f"gateway-{number}.log"
        self.starts = 0
        self.wire: Wire | None = None
        self._world = world
        self._sabotage = sabotage
        self._process: Process | None = None
        self._down = self._stopped = 0

    @property
    def environment(self) -> dict[str, str]:
        home = self._world.folder / f"home-{self.number}"
        return {**_environment(), "XDG_STATE_HOME": str(home), **self.clock.environment}

    def configure(self, servers: tuple[str, ...]) -> None:
        """Write a configuration with these servers; a gateway that runs takes it within a second."""
        if self.wire is None and self._world.server is not None:
            self.wire = Wire(self._world.server)
        _write(self.config, self._world.configuration(self.wire, self.audit, servers, self.number))

    async def start(self) -> None:
        """Start it, and wait until it answers; again while it ends at once, as without its database."""
        if not self._down:
            self._down = self._world.history.invoke("nemesis", "down", self.number)
        while not self._world.is_over:
            if self._process is not None:
                # Whoever began to start it was cancelled meanwhile.
                await _killed(self._process)
            self.starts += 1
            fault = ("--fault", self._sabotage) if self._sabotage else ()
            program = ("-m", "tests.chaos.replicas.faults", *fault) if fault else ("-m", "truename")
            words = (*program, "serve", str(self.config), "--http", f"127.0.0.1:{self.port}")
            with self.log.open("ab") as log:
                self._process = await _started(*words, env=self.environment, stdout=log, stderr=log)
            if await self._has_started():
                self._world.history.end(self._down, "ok")
                self.is_up, self._down = True, 0
                return
            await asyncio.sleep(0.2)

    async def _has_started(self) -> bool:
        until = time.monotonic() + _START
        assert self._process is not None
        while self._process.returncode is None and time.monotonic() < until:
            with suppress(OSError, EOFError, TimeoutError):
                async with asyncio.timeout(2):
                    reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                    writer.write(b"GET /readyz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
                    answer = await reader.read()
                    writer.close()
                    if b" 200 " in answer[:20]:
                        return True
            await asyncio.sleep(_LOOK)
        await _killed(self._process)
        return False

    def _goes_down(self) -> None:
        self.is_up = False
        if not self._down:
            self._down = self._world.history.invoke("nemesis", "down", self.number)

    async def kill(self) -> None:
        """End it by SIGKILL."""
        assert self._process is not None
        self._goes_down()
        number = self._world.history.invoke("nemesis", "kill", self.number)
        await _killed(self._process)
        self._world.history.end(number, "ok")

    def stop(self) -> None:
        """Stop it by SIGSTOP."""
        self._goes_down()
        self._stopped = self._world.history.invoke("nemesis", "stop", self.number)
        self.is_stopped = True
        self._signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Have it go on after `stop`."""
        self._signal(signal.SIGCONT)
        self._world.history.end(self._stopped, "ok")
        self._world.history.end(self._down, "ok")
        self._down = 0
        self.is_up, self.is_stopped = True, False

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        with suppress(ProcessLookupError):
            self._process.send_signal(number)

    @property
    def has_ended(self) -> bool:
        """Whether the process ended by itself."""
        return self.is_up and self._process is not None and self._process.returncode is not None

    async def end(self) -> None:
        """End it as an operator does, and let its audit log be written."""
        process = self._process
        if process is not None and process.returncode is None:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), 20)
            except TimeoutError:
                await _killed(process)
        if self.wire is not None:
            self.wire.__exit__()


class Operator:
    """A process that runs commands of Truename."""

    def __init__(self, world: World, sabotage: str | None) -> None:
        self.config = world.folder / "operator.json"
        self.audit = world.folder / "audit-operator"
        self.environment = {**_environment(), "XDG_STATE_HOME": str(world.folder / "home-operator")}
        self._world = world
        self._sabotage = sabotage
        self._process: Process | None = None
        self._lock = asyncio.Lock()

    def configure(self) -> None:
        _write(self.config, self._world.configuration(None, self.audit, (*ALWAYS, *SERVERS)))

    async def start(self) -> None:
        words = ("-m", "tests.chaos.replicas.operator", *filter(None, [self._sabotage]))
        pipe = asyncio.subprocess.PIPE
        self._process = await _started(*words, env=self.environment, stdin=pipe, stdout=pipe)

    async def run(self, *words: str) -> tuple[int, str]:
        """Run a command; return its exit status, and what it printed."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        async with self._lock:
            process.stdin.write((json.dumps(words) + "\n").encode())
            status, said = json.loads(await process.stdout.readline())
        return status, said

    async def stop(self) -> None:
        if self._process is not None:
            await _killed(self._process)


def _environment() -> dict[str, str]:
    # All machines of one state have the key of its secrets.
    paths = os.pathsep.join((str(_ROOT), str(_ROOT / "src")))
    return {**os.environ, "PYTHONPATH": paths, "TRUENAME_VAULT_KEY": _KEY}


async def _started(*words: str, env: dict[str, str] | None = None, **pipes: Any) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, *words, env=env or _environment(), cwd=_ROOT, limit=16 * 1024 * 1024, **pipes
    )


async def _killed(process: Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _write(path: Path, text: str) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
