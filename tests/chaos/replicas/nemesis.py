"""The nemesis: it kills, stops, cuts off, restarts, moves clocks, and has servers join, leave and change."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import psycopg

from tests.chaos.replicas.checker import STALE
from tests.chaos.replicas.clients import direct_call
from tests.chaos.replicas.world import ALWAYS, QUARANTINED, SERVERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.chaos.replicas.clients import Caller, Clients
    from tests.chaos.replicas.world import Gateway, World

__all__ = ["Nemesis"]

# Longer than the server leaves a transaction to who is stopped in it.
_LONG_STOP: Final = 22.0
# Seconds between two torments of one kind, and of the database: the others have to have it for most of the time.
_BETWEEN: Final = (1.0, 6.0)
_BETWEEN_OUTAGES: Final = (3.0, 12.0)
_AT_ONCE: Final = ("kill", "kill", "cut", "move clock")
_FOR_A_WHILE: Final = ("stop", "stop", "stop", "stop", "silence", "silence", "long stop")
_MOST_TOOLS: Final = 8
_CLOCKS: Final = (-600, -30, 0, 30, 600)
_SPELLINGS: Final = ("get_item_{}", "getItem{}", "get-item-{}", "Lead_{}", "lead-{}", "lead.{}", "send_{}", "Send.{}")


class Nemesis:
    """What goes wrong in a run; ``counts`` has how often."""

    def __init__(self, world: World, clients: Clients, seed: int, only: frozenset[str] = frozenset()) -> None:
        self.counts: dict[str, int] = {}
        self._world = world
        self._clients = clients
        self._random = random.Random(f"nemesis {seed}")
        self._base = 0
        self._only = only

    async def run(self) -> None:
        """Let everything go wrong, until cancelled; then nothing is left stopped or away."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for loop in (self._churn, self._configure, self._approve, self._watch_machine, self._restart):
                    tasks.create_task(loop())
                tasks.create_task(self._torment_gateways(_AT_ONCE, _BETWEEN))
                tasks.create_task(self._torment_gateways(_FOR_A_WHILE, _BETWEEN_OUTAGES))
                if self._world.server is not None:
                    tasks.create_task(self._torment_database())
        finally:
            await asyncio.shield(self._mend())

    async def _mend(self) -> None:
        world = self._world
        for clock in (world.server_clock, *(gateway.clock for gateway in world.gateways)):
            clock.move(0)
        for gateway in world.gateways:
            if gateway.is_stopped:
                gateway.wake()
            if gateway.wire is not None and gateway.wire.is_silent:
                gateway.wire.is_silent = False
                gateway.wire.cut_all()
        if world.server is not None:
            await self._start_database()
        await asyncio.gather(*(gateway.start() for gateway in world.gateways if not gateway.is_up))

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1
        self._world.history.end(self._world.history.invoke("nemesis", "torment", kind=what), "ok")

    async def _pause(self, shortest: float, longest: float) -> None:
        await asyncio.sleep(self._random.uniform(shortest, longest))

    # Gateways

    def _victims(self) -> list[Gateway]:
        up = [gateway for gateway in self._world.gateways if gateway.is_up]
        # One is always left.
        return up if len(up) > 1 else []

    async def _torment_gateways(self, kinds: tuple[str, ...], between: tuple[float, float]) -> None:
        while True:
            await self._pause(*between)
            if not (victims := self._victims()):
                continue
            gateway = self._random.choice(victims)
            impossible = set() if gateway.clock.can_move else {"move clock"}
            if gateway.wire is None:
                impossible |= {"cut", "silence"}
            if (kind := self._drawn("gateway", [one for one in kinds if one not in impossible])) is not None:
                await self._torment_gateway(gateway, kind)

    def _drawn(self, whom: str, kinds: list[str]) -> str | None:
        """Draw one of these torments; None if none of them is wanted."""
        kinds = [kind for kind in kinds if not self._only or f"{whom}: {kind}" in self._only]
        if not kinds:
            return None
        kind = self._random.choice(kinds)
        self._count(f"{whom}: {kind}")
        return kind

    async def _torment_gateway(self, gateway: Gateway, kind: str) -> None:
        match kind:
            case "kill":
                await gateway.kill()
                await self._pause(0.1, 2.0)
                await gateway.start()
            case "stop" | "long stop":
                gateway.stop()
                await asyncio.sleep(self._random.uniform(0.2, 6.0) if kind == "stop" else _LONG_STOP)
                gateway.wake()
            case "move clock":
                gateway.clock.move(self._random.choice(_CLOCKS))
            case "cut":
                assert gateway.wire is not None
                gateway.wire.cut_all()
            case "silence":
                assert gateway.wire is not None
                # Calls that a policy decides on may need the database.
                history = self._world.history
                numbers = [history.invoke("nemesis", what, gateway.number) for what in ("down", "silence")]
                gateway.wire.is_silent = True
                await self._pause(1.0, 8.0)
                gateway.wire.cut_all()
                gateway.wire.is_silent = False
                for number in numbers:
                    history.end(number, "ok")

    async def _restart(self) -> None:
        """Start gateways that ended by themselves, as a supervisor does."""
        while True:
            await asyncio.sleep(0.2)
            for gateway in self._world.gateways:
                if gateway.has_ended:
                    self._count("gateway ended by itself")
                    gateway.is_up = False
                    await gateway.start()

    # The database

    async def _torment_database(self) -> None:
        server = self._world.server
        assert server is not None
        kinds = ["restart", "kill", "crash", "terminate", "terminate", "stop"]
        if self._world.server_clock.can_move:
            kinds.append("move clock")
        while True:
            await self._pause(*_BETWEEN_OUTAGES)
            match self._drawn("database", kinds):
                case "restart" | "kill" | "crash" as kind:
                    how = {"restart": signal.SIGINT, "kill": signal.SIGKILL, "crash": signal.SIGQUIT}[kind]
                    with self._away():
                        await asyncio.to_thread(server.stop, how)
                        await self._pause(0.0, 3.0)
                        await self._start_database()
                case "terminate":
                    with suppress(psycopg.Error):
                        await asyncio.to_thread(self._terminate)
                case "stop":
                    # All of its processes: a machine that is suspended.
                    with self._away():
                        await self._suspend(self._random.uniform(0.5, 4.0))
                case "move clock":
                    self._world.server_clock.move(self._random.choice(_CLOCKS))

    @contextmanager
    def _away(self) -> Iterator[None]:
        number = self._world.history.invoke("nemesis", "away")
        yield
        self._world.history.end(number, "ok")

    def _terminate(self) -> None:
        assert self._world.server is not None
        with psycopg.connect(self._world.server.url, autocommit=True, connect_timeout=2) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name LIKE 'truename%' AND random() < 0.7"
            )

    async def _suspend(self, seconds: float) -> None:
        assert self._world.server is not None
        pids = await asyncio.to_thread(self._world.server.pids)
        _signal_all(pids, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            _signal_all(pids, signal.SIGCONT)

    async def _start_database(self) -> None:
        server = self._world.server
        assert server is not None
        while True:
            try:
                await asyncio.to_thread(server.start)
            except (AssertionError, psycopg.Error):
                # Processes of the one that was killed are still there.
                if server.answers():
                    return
                await asyncio.sleep(0.2)
            else:
                return

    # Servers

    async def _churn(self) -> None:
        kinds = (*("tools",) * 8, *("definitions",) * 2, "leave")
        for key in SERVERS:
            self._new_tools(key)
        while True:
            await self._pause(0.1, 0.7)
            key = self._random.choice(SERVERS)
            match self._random.choice(kinds):
                case "tools":
                    self._count("list changed")
                    self._new_tools(key)
                case "definitions":
                    self._count("definition changed")
                    self._new_definition(key)
                case "leave":
                    self._count("server left and joined")
                    self._world.servers.leave(key)
                    await self._pause(0.1, 1.0)
                    self._world.servers.join(key)

    def _new_tools(self, key: str) -> None:
        """Have a server rename some tools, drop some and add some: all want the same names."""
        servers, choose = self._world.servers, self._random
        tools = dict(servers.tools.get(key, {}))
        for name in choose.sample(sorted(tools), min(len(tools), choose.randint(0, 4))):
            del tools[name]
        self._base += choose.random() < 0.5
        while len(tools) < _MOST_TOOLS and choose.random() < 0.8:
            name = choose.choice(_SPELLINGS).format(max(0, self._base - choose.randrange(6)))
            # What comes back has the definition that it had.
            tools.setdefault(name, servers.versions.setdefault((key, name), 1))
        servers.change(key, tools)

    def _new_definition(self, key: str) -> None:
        servers = self._world.servers
        if tools := dict(servers.tools.get(key, {})):
            name = self._random.choice(sorted(tools))
            tools[name] = servers.versions[key, name] = servers.versions[key, name] + 1
            servers.change(key, tools)

    async def _configure(self) -> None:
        """Have each gateway take other configurations, one after the other, each in an order of its own."""
        while True:
            await self._pause(*_BETWEEN)
            if self._drawn("servers", ["configuration"]) is None:
                continue
            keys = [key for key in SERVERS if self._random.random() < 0.8]
            for gateway in self._world.gateways:
                self._random.shuffle(keys)
                gateway.configure((*ALWAYS, *keys))
                await self._pause(0.0, 0.5)

    # Decisions

    async def _approve(self) -> None:
        """Make calls that need an approval, give it, and make them again elsewhere; accept changed definitions."""
        world, clients = self._world, self._clients
        caller = clients.caller()
        while True:
            await self._pause(0.05, 0.3)
            if self._random.random() < 0.3:
                await self._accept()
                continue
            up = [gateway.number for gateway in world.gateways if gateway.is_up]
            if not up or not clients.known.guarded:
                continue
            name, nonce = clients.known.guarded, clients.nonce()
            for _ in range(3):
                replica = self._random.choice(up)
                answer = await clients.called("guarded", caller, replica, name, nonce, needs_approval=True)
                if answer.code == "approval_required":
                    break
            if answer.code != "approval_required" or not await self._granted(answer.result, nonce):
                continue
            if self._random.random() < 0.3:
                # At two at once: one of them runs it.
                await asyncio.gather(*(self._repeated(clients.caller(), name, nonce) for _ in range(2)))
            else:
                await self._repeated(caller, name, nonce)

    async def _repeated(self, caller: Caller, name: str, nonce: str) -> None:
        """Make a call that was approved, at any replica, until every replica has to know of the approval."""
        until = time.monotonic() + STALE + 1
        while True:
            up = [gateway.number for gateway in self._world.gateways if gateway.is_up]
            answer = await self._clients.called(
                "guarded", caller, self._random.choice(up or [0]), name, nonce, needs_approval=True
            )
            if answer.code != "approval_required" or time.monotonic() > until:
                return
            await asyncio.sleep(0.5)

    async def _granted(self, result: dict[str, object], nonce: str) -> bool:
        meta = result["_meta"]
        assert isinstance(meta, dict)
        key = str(meta["dev.truename/approval"])
        number = self._world.history.invoke("operator", "grant", nonce=nonce, key=key)
        status, said = await self._world.operator.run(
            "approvals", "grant", key, "--config", str(self._world.operator.config), "--json"
        )
        self._world.history.end(number, "ok" if status == 0 else "info", said="" if status == 0 else said[:300])
        return status == 0

    async def _accept(self) -> None:
        """Accept one definition that is pending."""
        world, config = self._world, str(self._world.operator.config)
        _, said = await world.operator.run("pins", "list", config, "--waiting", "--json")
        try:
            waiting = json.loads(said)["pins"]
        except (ValueError, KeyError):
            return
        waiting = [one for one in waiting if one["server"] == QUARANTINED]
        if not waiting:
            return
        one = self._random.choice(waiting)
        version = world.servers.versions.get((QUARANTINED, one["name"]), 0)
        asked = {"tool": one["tool"], "digest": one["digest"], "version": version}
        number = world.history.invoke("operator", "accept", **asked)
        words = ("pins", "accept", one["tool"], "--digest", one["digest"], "--config", config, "--json")
        status, said = await world.operator.run(*words)
        world.history.end(number, "ok" if status == 0 else "info", said="" if status == 0 else said[:300])

    async def _watch_machine(self) -> None:
        """Ask the steady server beside the gateways, again and again."""
        while True:
            number = self._world.history.invoke("machine", "direct")
            await direct_call(self._world.servers.ports["steady"], f"direct-{number}")
            self._world.history.end(number, "ok")
            await asyncio.sleep(0.1)


def _signal_all(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
