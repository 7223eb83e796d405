"""What a server tells without being asked: that lists or resources changed, and what it logs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio

from truename.gateway.background import background
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.own_meta import without_own_meta
from truename.gateway.protocol.specification import INTERNAL_ERROR, LOG_LEVELS, REQUEST_TIMEOUT
from truename.gateway.upstream.logs import relayed
from truename.gateway.upstream.transport import TransportError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from truename.gateway.upstream.session import Notification, ServerSession

__all__ = ["Follower"]

_RELISTEN_DELAY: Final = 1.0
SUBSCRIBE_TIMEOUT: Final = 10.0
_EARS_OPEN: Final = 2.0
# More log messages than this wait for no client: what comes then is dropped.
_MOST_UNSENT: Final = 100
_MOST_UNWATCHED: Final = 1_000
_CHANGES: Final = frozenset(
    {
        *("notifications/tools/list_changed", "notifications/prompts/list_changed"),
        "notifications/resources/list_changed",
    }
)


class Follower:
    """Follows one server, over all of its connections; ``changed`` is called when a list of it is another one.

    ``level`` is how talkative its log shall be, ``on_update`` is told which of the watched resources changed, and
    ``on_task`` how a task stands, by server, as it said.
    """

    def __init__(self, key: str, changed: Callable[[], None]) -> None:
        self.level: str | None = None
        self.on_update: Callable[[str, str], Awaitable[None]] | None = None
        self.on_task: Callable[[str, Mapping[str, Any]], Coroutine[Any, Any, None]] | None = None
        self._key = key
        self._changed = changed
        self._session: ServerSession | None = None
        self._watched: dict[str, None] = {}
        self._rewatch = anyio.Event()
        self._opening: list[tuple[str, anyio.Event]] = []
        self._said: set[str] = set()
        self._listens: anyio.Event | None = None
        self._explain: Callable[[TransportError], Exception] = _as_it_is
        self._unwatched: dict[str, None] = {}
        self._unsaid: dict[str, None] = {}
        self._unsent = 0

    def begin(
        self,
        session: ServerSession,
        explain: Callable[[TransportError], Exception],
        listens: anyio.Event | None = None,
    ) -> None:
        """Take a new connection, before anybody hears of it; ``listens`` is set when it can tell what is not asked.

        ``explain`` says what went wrong with the connection.
        """
        self._session, self._explain, self._listens = session, explain, listens
        # A new session has no subscriptions to end, and is told of all that there are.
        self._unwatched.clear()
        self._unsaid.clear()
        self._said.clear()

    async def follow(self, session: ServerSession) -> None:
        """Follow the connection until cancelled. In the handshake eras what is told comes by itself (`heard`)."""
        try:
            if session.modern:
                async with background() as tasks:
                    tasks.start_soon(self._listen, session)
                    tasks.start_soon(self._listen_to_watched, session)
                    await anyio.sleep_forever()
            await self._restore(session)
        finally:
            self._session = None

    async def _listen(self, session: ServerSession) -> None:
        while session.announces_changes:
            await session.subscriptions.listen(self._changed)
            await anyio.sleep(_RELISTEN_DELAY)

    async def _listen_to_watched(self, session: ServerSession) -> None:
        while True:
            self._rewatch = anyio.Event()
            async with background() as tasks:
                if self._watched:
                    tasks.start_soon(self._listen_to, session, tuple(self._watched))
                await self._rewatch.wait()

    async def _listen_to(self, session: ServerSession, uris: tuple[str, ...]) -> None:
        while True:
            await session.subscriptions.listen_to(uris, partial(self._open, uris), self._tell)
            await anyio.sleep(_RELISTEN_DELAY)

    def _open(self, uris: tuple[str, ...]) -> None:
        for uri, event in self._opening:
            if uri in uris:
                event.set()

    async def _restore(self, session: ServerSession) -> None:
        """Say again, to a session that is new, what was said to the last one."""
        if self.level is not None:
            await self.set_level(self.level)
        for uri in [uri for uri in self._watched if uri not in self._said]:
            await self._say(session, "resources/subscribe", uri=uri)
        while True:
            self._rewatch = anyio.Event()
            while self._unsaid:
                await self._say(session, "resources/subscribe", uri=self._unsaid.popitem()[0])
            while self._unwatched:
                uri = next(iter(self._unwatched))
                del self._unwatched[uri]
                if uri not in self._watched:
                    await self._say(session, "resources/unsubscribe", uri=uri)
            await self._rewatch.wait()

    async def set_level(self, level: str) -> None:
        """Have the server log from this level on; where there are no sessions, each request says it."""
        self.level = level
        if (session := self._session) is not None and not session.modern and session.offers("logging"):
            await self._say(session, "logging/setLevel", level=level)

    async def watch(self, uri: str) -> None:
        """Be told of this resource, now and after a restart. Raises `MCPError` where the server refuses."""
        session, opened = self._session, anyio.Event()
        try:
            with anyio.fail_after(SUBSCRIBE_TIMEOUT):
                if session is not None and not session.modern:
                    await session.send("resources/subscribe", {"uri": uri})
                    self._said.add(uri)
                    await self._hearing()
                self._watched[uri] = None
                if session is not None and session.modern:
                    self._opening.append((uri, opened))
                    self._rewatch.set()
                    await opened.wait()
        except TimeoutError as error:
            raise MCPError(REQUEST_TIMEOUT, f"The server did not confirm the subscription to {uri!r}.") from error
        except TransportError as fault:
            raise MCPError(INTERNAL_ERROR, str(self._explain(fault))) from fault
        finally:
            self._opening = [one for one in self._opening if one[1] is not opened]

    async def _hearing(self) -> None:
        """Wait a moment for the stream of what is told unasked: without it a server has no way to tell anything."""
        if self._listens is not None:
            with anyio.move_on_after(_EARS_OPEN):
                await self._listens.wait()

    @property
    def watches(self) -> bool:
        """Whether somebody is told when a resource changes."""
        return bool(self._watched)

    def expect(self, uri: str) -> None:
        """Be told of it as soon as the server is asked for what is watched."""
        if uri not in self._watched:
            self._watched[uri] = self._unsaid[uri] = None
            self._rewatch.set()

    def unwatch(self, uri: str) -> None:
        """Be told of it no more; the server is told when there is time."""
        if uri in self._watched:
            del self._watched[uri]
            self._said.discard(uri)
            is_told = self._session is not None and not self._session.modern
            # A server that does not answer goes on to tell of what nobody watches, and nobody is told of it.
            if is_told and len(self._unwatched) < _MOST_UNWATCHED:
                self._unwatched[uri] = None
            self._rewatch.set()

    async def heard(self, told: Notification, session: ServerSession | None) -> None:
        """Take a notification of the server; one that is not as the protocol has it is passed over."""
        method, params = told.method, told.params
        if method in _CHANGES:
            self._changed()
        elif session is None:
            return
        elif method == "notifications/resources/updated":
            # In the stateless era the stream that asked for it tells it too.
            if not session.modern and isinstance(uri := params.get("uri"), str):
                await self._tell(uri)
        elif method == "notifications/message":
            asker = session.questions.whose_log(told.call) if params.get("level") in LOG_LEVELS else None
            if asker is not None and "data" in params:
                await self._unless_many(relayed(asker.request, params))
        elif method == "notifications/tasks/status" and self.on_task is not None:
            await self._unless_many(self.on_task(self._key, without_own_meta(params)))

    async def _unless_many(self, telling: Coroutine[Any, Any, None]) -> None:
        """Tell a client, unless too much waits already for clients that are slow to read."""
        if self._unsent >= _MOST_UNSENT:
            telling.close()
            return
        self._unsent += 1
        try:
            await telling
        finally:
            self._unsent -= 1

    async def _tell(self, uri: str) -> None:
        if self.on_update is not None:
            await self.on_update(self._key, uri)

    async def _say(self, session: ServerSession, method: str, **params: Any) -> None:
        try:
            with anyio.move_on_after(SUBSCRIBE_TIMEOUT):
                await session.send(method, params)
        except (MCPError, TransportError):
            return


def _as_it_is(fault: TransportError) -> Exception:
    return fault
