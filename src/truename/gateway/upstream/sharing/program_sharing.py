"""Share programs among gateway processes: one has the lease of a program and runs it, the others reach it through that.

The lease is a named lease in the state database (`truename.gateway.replicas.registry`). Whoever wants the program asks
for it: nobody else alive having it, it is theirs. When its holder dies or stops, the sessions of the others with the
program break off, and the first of them that asks runs it anew. A message is sent once: calls that ran are lost.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import secrets
import sys
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import anyio

from truename.errors import StoreError, printable
from truename.gateway.background import background
from truename.gateway.protocol.turns import in_thread
from truename.gateway.replicas.client import PeerFailure
from truename.gateway.replicas.registry import LeaseLostError
from truename.gateway.upstream.sharing.lease_gate import LOOK_EVERY, LeaseGate, PauseDetector
from truename.gateway.upstream.sharing.shared_program import SharedProgram
from truename.gateway.upstream.sharing.shared_transport import GONE, SEND, LocalTransport, PeerTransport, RemoteClient
from truename.gateway.upstream.transport import TransportError
from truename.gateway.upstream_errors import UpstreamError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from anyio.abc import TaskGroup

    from truename.config import ServerConfig, Settings
    from truename.gateway.rate_limited_log import RateLimitedLog
    from truename.gateway.replicas.liveness import Replica
    from truename.gateway.replicas.receiving import PeerReply, PeerRequest
    from truename.gateway.replicas.registry import HeldLease
    from truename.gateway.replicas.replicas import Replicas
    from truename.gateway.upstream.negotiating import Handshake
    from truename.gateway.upstream.transport import Transport

__all__ = ["ProgramSharing"]

log: Final = logging.getLogger("truename.gateway")

_OPEN: Final = "program.open"
_PAUSE: Final = 0.1
# Seconds for which the end of this process waits for calls of others in programs that run here.
_DRAIN: Final = 5.0
_OWN_ID: Final = 16


class _Wanted(NamedTuple):
    """A program that somebody wants: the name of its lease, and how it is started."""

    name: str
    server: ServerConfig
    settings: Settings
    news: RateLimitedLog


class ProgramSharing:
    """The programs that this process shares with others, once it is `among` the replicas.

    ``group`` names the processes that are one gateway together, as the workers of one supervisor: they share programs
    whose entry does not say otherwise. None where this process is a gateway by itself.
    """

    def __init__(self, group: str | None = None) -> None:
        self._group = group
        self._replicas: Replicas | None = None
        self._key = b""
        self._tasks: TaskGroup | None = None
        self._joined = anyio.Event()
        self._pauses = PauseDetector()
        self._programs: dict[str, SharedProgram] = {}
        self._starting: dict[str, anyio.Lock] = {}
        # By the id of their connections, with the replica whose they are.
        self._remote: dict[str, tuple[str, SharedProgram, RemoteClient]] = {}

    @property
    def _is_ending(self) -> bool:
        return self._tasks is None

    def shares(self, server: ServerConfig) -> bool:
        """Return whether a server's program is shared."""
        if server.url is not None or server.isolation != "shared":
            return False
        return server.instances == "single" or (server.instances == "gateway" and self._group is not None)

    def is_over(self, server: ServerConfig) -> bool:
        """Return whether a server's program is shared and this process, which was among the replicas, is not any more.

        Nothing is lost by that: the process ends.
        """
        return self._replicas is not None and self._is_ending and self.shares(server)

    @asynccontextmanager
    async def among(self, replicas: Replicas, key: bytes) -> AsyncIterator[None]:
        """Share with these replicas while the block lasts. ``key`` is what all of them have."""
        async with background() as tasks:
            self._replicas, self._key, self._tasks = replicas, key, tasks
            replicas.handle(_OPEN, self._open_for_peer)
            replicas.handle(SEND, self._send_for_peer)
            tasks.start_soon(self._watch)
            self._joined.set()
            try:
                yield
            finally:
                await self.end()

    async def end(self) -> None:
        """Start no program any more, and end those that run here when the calls of others in them are over.

        Do it before this process gives its lease up: others may run the programs from then on.
        """
        self._tasks = None
        with anyio.CancelScope(shield=True):
            await self._end_all()

    def wait_no_longer(self) -> None:
        """Have programs that are wanted while this process is among no replicas fail at once."""
        self._joined.set()

    async def _watch(self) -> None:
        while True:
            await anyio.sleep(LOOK_EVERY)
            self._pauses.look()
            for program in tuple(self._programs.values()):
                program.look()

    async def _end_all(self) -> None:
        with anyio.move_on_after(_DRAIN):
            for _, program, client in tuple(self._remote.values()):
                await program.drained(client)
        for program in tuple(self._programs.values()):
            program.end()
        for program in tuple(self._programs.values()):
            await program.ended.wait()
        # Each gives its lease up then.
        while self._programs:
            await anyio.sleep(0.01)

    @asynccontextmanager
    async def open(
        self, server: ServerConfig, settings: Settings, news: RateLimitedLog, handshake: Handshake
    ) -> AsyncIterator[Transport]:
        """Open a session with a program, wherever it runs. Raises `UpstreamError`."""
        if sys.platform == "win32":
            raise _unavailable(server, "cannot be shared by processes on Windows", "Set instances to worker.")
        deadline = anyio.current_time() + settings.startup_timeout
        with anyio.CancelScope(deadline=deadline):
            await self._joined.wait()
        if self._replicas is None:
            what = "is shared with other processes of the gateway, which cannot be found without the state database"
            raise _unavailable(server, what, "Check the state database. It is retried automatically.")
        wanted = _Wanted(self._name(server, handshake), server, settings, news)
        while True:
            program, holder = await self._found(self._replicas, wanted)
            if program is not None:
                transport = LocalTransport(program)
                program.join(transport, transport.closed.set)
                try:
                    yield transport
                finally:
                    program.leave(transport)
                return
            if holder is not None and (peer := await self._reached(self._replicas, holder, wanted)):
                async with background() as tasks:
                    tasks.start_soon(peer.write)
                    tasks.start_soon(peer.read)
                    try:
                        yield peer
                    finally:
                        peer.close()
                return
            if anyio.current_time() > deadline:
                what = "runs in another process of the gateway, which cannot be reached"
                remedy = "If this goes on, set replica_address on each replica to an address that the others reach."
                raise _unavailable(server, what, remedy)
            await anyio.sleep(_PAUSE)

    def _name(self, server: ServerConfig, handshake: Handshake) -> str:
        """Return the name of the lease: of one entry, in one gateway if not in all. It tells nothing of the entry."""
        shared = [server.key, server.command, server.args, server.cwd, sorted(server.env.items())]
        group = None if server.instances == "single" else self._group
        # A second program, for clients of earlier versions, is another one.
        text = json.dumps([*shared, handshake == "only", group])
        return f"program:{hmac.digest(self._key, text.encode(), hashlib.sha256).hex()}"

    async def _found(self, replicas: Replicas, wanted: _Wanted) -> tuple[SharedProgram | None, Replica | None]:
        """Return the program if it runs here, or the replica that has its lease; neither for now, if that changes."""
        name, server = wanted.name, wanted.server
        async with self._starting.setdefault(name, anyio.Lock()):
            if self._is_ending:
                raise _ending(server)
            program = self._programs.get(name)
            if program is not None:
                return (program, None) if program.is_usable else (None, None)
            try:
                lease = await in_thread(partial(replicas.registry.take, name))
            except LeaseLostError:
                await replicas.registry.looked()
                return None, None
            except StoreError as error:
                # Clients are told this too, and not where the database is.
                log.warning("Server %r: it is unknown which process runs its program. %s", printable(server.key), error)
                what = "is shared, and the state database cannot be asked which process runs it"
                raise _unavailable(server, what, "It is retried automatically.") from error
            if lease.holder.id != replicas.registry.own.id:
                return None, lease.holder
            tasks = self._tasks
            if tasks is None:
                await self._release(replicas, name, lease)
                raise _ending(server)
            program = self._programs[name] = SharedProgram(self._gate(replicas, wanted, lease))
            tasks.start_soon(self._run, replicas, program, wanted)
            await program.started.wait()
            if program.failed is not None:
                raise program.failed
            return (program, None) if program.is_usable else (None, None)

    def _gate(self, replicas: Replicas, wanted: _Wanted, lease: HeldLease) -> LeaseGate:
        # Workers of one gateway are on one machine: they reach the database, or none of them does.
        is_strict = wanted.server.instances == "single"
        return LeaseGate(replicas.registry, wanted.name, lease, self._pauses, is_strict=is_strict)

    async def _run(self, replicas: Replicas, program: SharedProgram, wanted: _Wanted) -> None:
        try:
            with anyio.CancelScope(shield=True):
                await program.run(wanted.server, wanted.settings.max_result, wanted.news)
        finally:
            with anyio.CancelScope(shield=True):
                await self._release(replicas, wanted.name, program.gate.lease)
            self._programs.pop(wanted.name, None)

    @staticmethod
    async def _release(replicas: Replicas, name: str, lease: HeldLease) -> None:
        try:
            await in_thread(partial(replicas.registry.release, [name], lease.holder))
        except StoreError as error:
            log.debug("Cannot give a lease up; it is this process's until that ends. %s", error)

    async def _reached(self, replicas: Replicas, holder: Replica, wanted: _Wanted) -> PeerTransport | None:
        """Open a session with a program in another replica; None if that does not run it now."""
        try:
            response = await replicas.client.send(holder, _OPEN, {"name": wanted.name}, b"")
        except PeerFailure as failure:
            log.debug("Cannot reach a program of another replica. %s", failure)
            if failure.has_ended:
                # Nobody has to wait until its heartbeat is late.
                replicas.registry.observed.note_end(holder.id)
            return None
        return PeerTransport(replicas.client, holder, response, wanted.server.key, wanted.news)

    # For other replicas

    async def _open_for_peer(self, request: PeerRequest, reply: PeerReply) -> None:
        program = self._programs.get(str(request.about.get("name")))
        if program is None or not program.is_usable or not program.started.is_set() or self._tasks is None:
            await reply.refuse("the program does not run here")
            return
        id, client = secrets.token_urlsafe(_OWN_ID), RemoteClient()
        self._remote[id] = request.sender.id, program, client
        program.join(client, lambda: client.close(self._ending_of(program), program.tail.lines()))
        try:
            await reply.begin({"connection": id, "run": program.id})
            async with background() as tasks:
                tasks.start_soon(_until_gone, request, tasks.cancel_scope)
                async for piece in client.pieces():
                    await reply.write(piece)
                await reply.end()
        finally:
            del self._remote[id]
            program.leave(client)

    def _ending_of(self, program: SharedProgram) -> str:
        # It did not end by itself then, whatever is known of it.
        return GONE if self._is_ending else program.ending()

    async def _send_for_peer(self, request: PeerRequest, reply: PeerReply) -> None:
        found: Any = self._remote.get(str(request.about.get("connection")))
        if found is None or found[0] != request.sender.id:
            await reply.refuse("this connection is not open any more")
            return
        _, program, client = found
        try:
            for line in request.body.split(b"\n"):
                program.send(client, line)
        except (TransportError, ValueError):
            await reply.refuse("the program has ended, or what came is no message")
            return
        await reply.begin({})
        await reply.end()


async def _until_gone(request: PeerRequest, scope: anyio.CancelScope) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


def _ending(server: ServerConfig) -> UpstreamError:
    return _unavailable(server, "is not started any more, because the gateway ends", "Call it again later.")


def _unavailable(server: ServerConfig, problem: str, remedy: str) -> UpstreamError:
    return UpstreamError(server=server.key, kind="unreachable", problem=problem, remedy=remedy)
