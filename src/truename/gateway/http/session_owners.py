"""Find which replica has a session: the one that its id names, or whoever took it over when that one was gone."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from truename.errors import StoreError
from truename.gateway.background import begin
from truename.gateway.protocol.turns import in_thread
from truename.gateway.replicas.registry import HeldLease, LeaseLostError

if TYPE_CHECKING:
    from truename.gateway.replicas.liveness import Replica
    from truename.gateway.replicas.registry import ReplicaRegistry

__all__ = ["SessionOwners"]

_MOST_KNOWN: Final = 10_000
_TRIES: Final = 3


class SessionOwners:
    """The owners of sessions, as this process's registry of replicas knows them.

    A session is its issuer's while that is alive. Later it is a named lease: the first replica that is asked for it
    takes it. Nothing is asked of the database while the owner that is known is alive.
    """

    def __init__(self, registry: ReplicaRegistry) -> None:
        self._registry = registry
        # Of sessions that were asked for in the database.
        self._holders: OrderedDict[str, HeldLease] = OrderedDict()
        # Of sessions whose known holder was wrong.
        self._doubted: set[str] = set()
        # What this process has not any more, though it lives.
        self._given_up: dict[str, HeldLease] = {}

    @property
    def own(self) -> Replica:
        """This process."""
        return self._registry.own

    def is_current(self, own: Replica) -> bool:
        """Return, without waiting, whether this process surely has what it held as ``own``."""
        return self._registry.is_current(own)

    async def check(self, own: Replica) -> bool:
        """Return whether this process still has what it held as ``own``; ask the database if unsure."""
        return await self._registry.check(own)

    async def holder(self, id: str, issuer: str | None) -> Replica:
        """Return the replica that has a session; this process if nobody alive has it. Raises `StoreError`."""
        name = _lease(id)
        if (known := self.known(id, issuer)) is not None:
            return known
        for _ in range(_TRIES):
            with suppress(LeaseLostError):
                return await self._taken(name, issuer, self._given_up.get(name))
            await self._registry.looked()
        problem, remedy = "this gateway lost its lease", "Try again."
        raise StoreError(file="", key="", problem=problem, remedy=remedy, code="busy")

    def known(self, id: str, issuer: str | None) -> Replica | None:
        """Return the holder of a session that is known and alive; None if the database has to be asked."""
        name = _lease(id)
        if name in self._doubted or name in self._given_up:
            return None
        own, held = self.own, self._holders.get(name)
        holder = issuer if held is None else held.holder.id
        if holder is None or holder == own.id:
            return None if holder is None else own
        return None if self._registry.observed.is_expired(holder) else self._registry.find(holder)

    async def _taken(self, name: str, first: str | None, given_up: HeldLease | None) -> Replica:
        held = await in_thread(partial(self._registry.take, name, first, given_up=given_up))
        self._holders[name] = held
        self._holders.move_to_end(name)
        while len(self._holders) > _MOST_KNOWN:
            self._holders.popitem(last=False)
        self._doubted.discard(name)
        self._given_up.pop(name, None)
        return self.own if held.holder.id == self.own.id else held.holder

    def doubt(self, id: str) -> None:
        """Ask the database who has a session when it is asked for next: whoever was known says that it has not."""
        self._doubted.add(_lease(id))

    def give_up(self, id: str) -> int:
        """Give a session up that others may want now, and return the fencing token that it was held with."""
        own, name = self.own, _lease(id)
        held = self._given_up[name] = self._holders.pop(name, HeldLease(own, own.fence))
        return held.fence

    async def take_over(self, id: str, holder: Replica, fence: int) -> None:
        """Take a session that a replica which lives gave up, unless another one was quicker. Raises `StoreError`."""
        self.doubt(id)
        with suppress(LeaseLostError):
            await self._taken(_lease(id), holder.id, HeldLease(holder, fence))

    def release(self, id: str) -> None:
        """Give a session up that ended here: one that was taken over has a row."""
        held = self._holders.pop(_lease(id), None)
        if held is not None and held.holder.id == self.own.id:
            begin(self._release(_lease(id), held.holder))

    async def _release(self, name: str, own: Replica) -> None:
        # A row that stays is removed with the replica's own.
        with suppress(StoreError):
            await in_thread(partial(self._registry.release, [name], own))


def _lease(id: str) -> str:
    """Return the name of a session's lease, from which nobody can tell its id."""
    return f"session:{hashlib.sha256(id.encode('ascii', 'replace')).hexdigest()[:32]}"
