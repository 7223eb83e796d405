"""The endpoints that are in use over HTTP: each has sessions of its own; one that nobody uses makes room."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio

from truename.gateway.endpoint.addressing import address_of
from truename.gateway.http.replay import Bounds, Replay
from truename.gateway.http.session_forwarding import SessionForwarder
from truename.gateway.http.session_owners import SessionOwners
from truename.gateway.http.session_record import SessionRecord
from truename.gateway.http.sessions import Sessions
from truename.gateway.http.streamable import StreamableHttp
from truename.gateway.protocol.callers import headers_of
from truename.gateway.quota import Quota, share_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from starlette.types import Scope

    from truename.gateway.endpoint.endpoint import Endpoint
    from truename.gateway.gateway import Gateway
    from truename.gateway.replicas.replicas import Replicas

__all__ = ["ServedEndpoints"]

_TOO_MANY: Final = (
    "Too many views are in use, in total or by you (principal_share). Try again later, or raise max_views."
)
_TOO_MUCH: Final = (
    "The requests in progress take all bytes that max_incoming, or your principal_share of it, allows. Try again later."
)


@dataclass(eq=False)
class _Running:
    http: StreamableHttp
    # Who needed the path first: it counts as theirs.
    who: str | None


class ServedEndpoints:
    """Serves requests at endpoints, ``max_views`` of them at a time; of requests ``max_incoming`` bytes at a time.

    Of both, one principal has a share (`Share`), so that none keeps the next one out.
    A client may ask for any path that means something: a client, a context and a server make one each.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._settings = gateway.config.settings
        kept = self._settings
        self._replay = Replay(Bounds(kept.resume_events, kept.resume_bytes, kept.resume_total))
        self._record: SessionRecord | None = None
        self._replicas: Replicas | None = None
        self._owners: SessionOwners | None = None
        self._forwarder: SessionForwarder | None = None
        self._running: OrderedDict[Endpoint, _Running] = OrderedDict()
        self._busy: dict[Endpoint, int] = {}
        self._incoming = Quota(share_of(kept, kept.max_incoming))
        self._share = share_of(kept, kept.max_views)

    def __len__(self) -> int:
        return len(self._running)

    def __iter__(self) -> Iterator[Sessions]:
        return (one.http.sessions for one in self._running.values())

    @asynccontextmanager
    async def recorded(self) -> AsyncIterator[SessionRecord]:
        """Keep what sessions are gone on with by after a restart, while the block lasts."""
        self._record = SessionRecord.opened(self._gateway.config.state_location(), self._settings.session_timeout)
        try:
            async with self._record.keeping(self._note_use):
                yield self._record
        finally:
            self._record.close()

    def share_with(self, replicas: Replicas) -> None:
        """Share the sessions with replicas from now on: one that another has is asked of it."""
        self._replicas = replicas
        self._owners = SessionOwners(replicas.registry)
        self._forwarder = SessionForwarder(
            replicas, self._owners, lambda: self._gateway.registry.drain_tracker.is_ending
        )
        for running in self._running.values():
            running.http.share(self._owners, self._forwarder)
        replicas.on_change(self._discard_lost)

    def _discard_lost(self) -> None:
        for sessions in self:
            sessions.discard_lost()

    async def close(self) -> None:
        """End the open subscriptions of all, and write down which sessions were in use to the end."""
        for endpoint in self._running:
            endpoint.close()
        self._note_use()
        with anyio.CancelScope(shield=True):
            await self._known.write()
            for sessions in self:
                await sessions.closed()
            if self._replicas is not None:
                await self._replicas.leave()

    @property
    def _known(self) -> SessionRecord:
        assert self._record is not None  # noqa: S101 - requests are served within `recorded` only
        return self._record

    def _note_use(self) -> None:
        for sessions in self:
            sessions.note_use()

    def begin(self, endpoint: Endpoint, who: str | None, size: int) -> StreamableHttp | str:
        """Return what answers a request of so many bytes, which is counted until `end`; or why there is no room."""
        if not self._incoming.take(who, size):
            return _TOO_MUCH
        # Counted before anything is waited for: what is counted makes room for no other.
        self._busy[endpoint] = self._busy.get(endpoint, 0) + 1
        http = self._of(endpoint, who)
        if http is None:
            self.end(endpoint, who, size)
            return _TOO_MANY
        return http

    def end(self, endpoint: Endpoint, who: str | None, size: int) -> None:
        """Note that a request was answered."""
        self._incoming.give_back(who, size)
        left = self._busy.pop(endpoint) - 1
        if left:
            self._busy[endpoint] = left

    def size_of(self, scope: Scope) -> int:
        """Return the bytes that a request may have: as it says, and as many as are allowed where it says nothing."""
        headers, most = headers_of(scope), self._settings.max_body
        said = headers.get(b"content-length")
        if said is not None and said.isdigit():
            return min(int(said[:20]), most)
        return most if b"transfer-encoding" in headers else 0

    def _of(self, endpoint: Endpoint, who: str | None) -> StreamableHttp | None:
        if endpoint not in self._running and self._has_room(who):
            self._running[endpoint] = _Running(self._made(endpoint), who)
        if (found := self._running.get(endpoint)) is None:
            if self._busy.get(endpoint) == 1:
                self._gateway.release(endpoint)
            return None
        self._running.move_to_end(endpoint)
        return found.http

    def _made(self, endpoint: Endpoint) -> StreamableHttp:
        settings = self._settings
        sessions = Sessions(
            endpoint.answer,
            beside=self,
            address=address_of(endpoint.asked),
            record=self._known,
            replay=self._replay,
            share=share_of(settings, settings.max_sessions),
            lasts=settings.session_timeout,
            joined=endpoint.audience.join,
            told=partial(endpoint.audience.all_changed, endpoint.offered),
            owners=self._owners,
        )
        return StreamableHttp(
            endpoint.answer,
            sessions,
            max_body=settings.max_body,
            max_entries=settings.max_entries,
            forwarder=self._forwarder,
        )

    def _has_room(self, who: str | None) -> bool:
        """Make room where there is none for somebody, if a path is not in use; tells whether there is room."""
        while True:
            held = sum(running.who == who for running in self._running.values())
            if self._share.fits(held, len(self._running), is_alone=who is None):
                return True
            idle = (one for one, running in self._running.items() if self._is_idle(one, running))
            # Where their own share is used up, only what is theirs helps.
            is_full = who is not None and held >= self._share.each
            found = next((one for one in idle if not is_full or self._running[one].who == who), None)
            if found is None:
                return False
            self._running.pop(found).http.sessions.end()
            self._gateway.release(found)

    def _is_idle(self, endpoint: Endpoint, running: _Running) -> bool:
        return endpoint not in self._busy and not running.http.sessions.open_sessions
