"""Subscriptions to single resources: many clients watch one, the server is asked once."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

import anyio

from truename.gateway.protocol.sdk import MCPError
from truename.gateway.protocol.specification import INTERNAL_ERROR

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Mapping

    from truename.gateway.quota import Share
    from truename.gateway.upstream.upstream import Upstream

    Tell = Callable[[], Awaitable[None]]

__all__ = ["MOST_WATCHED", "Watching"]

# Over all clients and servers; one principal has a share of them.
MOST_WATCHED: Final = 10_000
TELL_TIMEOUT: Final = 5.0
_Place = tuple[str, str]


class Watching:
    """Who watches what: by server and its own URI, each watcher with what tells it."""

    def __init__(self, pool: Mapping[str, Upstream], share: Share) -> None:
        self._pool = pool
        self._share = share
        self._owners: dict[tuple[_Place, Hashable], str | None] = {}
        self._held: Counter[str | None] = Counter()
        self._pending: dict[_Place, anyio.Event] = {}
        self._telling: set[_Place] = set()
        self._log: set[_Place] = set()
        self._watchers: defaultdict[_Place, dict[Hashable, Tell]] = defaultdict(dict)
        for upstream in pool.values():
            self.take(upstream)

    def take(self, upstream: Upstream) -> None:
        """Have a server tell of what is watched there, also one that has come in another's place."""
        upstream.follower.on_update = self._updated
        for key, uri in self._watchers:
            if key == upstream.key:
                upstream.follower.expect(uri)

    async def add(self, upstream: Upstream, uri: str, who: Hashable, tell: Tell, owner: str | None) -> None:
        """Have somebody told when this resource changes; it counts for ``owner`` (`room.whose`).

        Raises `MCPError`: too many, or the server's own refusal.
        """
        if not self._share.fits(self._held[owner], len(self._owners), is_alone=owner is None):
            raise MCPError(INTERNAL_ERROR, "Too many resource subscriptions. End one first.")
        place = upstream.key, uri
        while (first := self._pending.get(place)) is not None:
            # Whether the server confirms it is not known yet.
            await first.wait()
        if (place, who) not in self._owners:
            self._owners[place, who] = owner
            self._held[owner] += 1
        is_first = not self._watchers[place]
        self._watchers[place][who] = tell
        if not is_first:
            return
        self._pending[place] = anyio.Event()
        try:
            await upstream.awake()
            await upstream.follower.watch(uri)
        except BaseException:
            self.remove(upstream, uri, who)
            raise
        finally:
            self._pending.pop(place).set()

    def remove(self, upstream: Upstream, uri: str, who: Hashable) -> None:
        """Tell somebody no more. The last who watched a resource ends the subscription at its server."""
        watchers = self._watchers.get((upstream.key, uri), {})
        watchers.pop(who, None)
        if ((upstream.key, uri), who) in self._owners:
            self._held[self._owners.pop(((upstream.key, uri), who))] -= 1
        if not watchers:
            self._watchers.pop((upstream.key, uri), None)
            # Another one may have come in its place.
            now = self._pool.get(upstream.key)
            if now is not None:
                now.follower.unwatch(uri)

    async def _updated(self, server: str, uri: str) -> None:
        for place in list(self._watchers):
            key, watched = place
            # A server may tell of a part of what is watched.
            if key == server and (uri == watched or uri.startswith(f"{watched.rstrip('/')}/")):
                await self._tell_of(place)

    async def _tell_of(self, place: _Place) -> None:
        """Tell all who watch; how often it changes meanwhile, they are told once more."""
        self._log.add(place)
        if place in self._telling:
            return
        self._telling.add(place)
        try:
            while place in self._log:
                self._log.discard(place)
                async with anyio.create_task_group() as tasks:
                    for tell in tuple(self._watchers.get(place, {}).values()):
                        tasks.start_soon(_told, tell)
        finally:
            self._telling.discard(place)
            self._log.discard(place)


async def _told(tell: Tell) -> None:
    # Who does not read is not waited for long.
    with anyio.move_on_after(TELL_TIMEOUT):
        await tell()
