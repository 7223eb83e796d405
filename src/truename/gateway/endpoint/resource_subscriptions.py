"""What a session sets for itself: which resources it watches, and how talkative logs are."""

from __future__ import annotations

from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio

from truename.gateway.protocol.callers import principal_of
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.specification import INVALID_PARAMS, INVALID_REQUEST
from truename.gateway.protocol.templates import LONGEST
from truename.gateway.protocol.writable import unwritable
from truename.gateway.quota import whose

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

    from truename.gateway.mcp.requests import Request
    from truename.gateway.registry import Registry
    from truename.gateway.upstream.upstream import Upstream
    from truename.gateway.views.view import ViewSpec

__all__ = ["ResourceSubscriptions"]

_WATCHED: Final = "truename.watched"
# What one session may watch.
_MOST: Final = 1_000


class ResourceSubscriptions:
    """Subscriptions of one endpoint's clients.

    ``find`` tells the server of a URI and its own name for it, ``spec_of`` the view of a request.
    """

    def __init__(
        self,
        registry: Registry,
        find: Callable[[Request, str], tuple[Upstream, str]],
        spec_of: Callable[[Request], ViewSpec],
    ) -> None:
        self._registry = registry
        self._find = find
        self._spec_of = spec_of
        self._streams: Counter[tuple[str, str, str]] = Counter()

    async def set_level(self, request: Request) -> dict[str, Any]:
        """Set how talkative logs are, for this session and as far as need be for the servers."""
        self._registry.levels.set(request)
        lowest = self._registry.levels.lowest
        async with anyio.create_task_group() as tasks:
            for upstream in self._registry.servers_in(self._spec_of(request)).values():
                if lowest is not None and upstream.follower.level != lowest:
                    tasks.start_soon(upstream.follower.set_level, lowest)
        return {}

    async def subscribe(self, request: Request) -> dict[str, Any]:
        """Have a session told when a resource changes, until it ends or unsubscribes. Raises `MCPError`."""
        connection, uri = request.connection, _uri(request)
        upstream, own = self._place(request, uri)
        if upstream.isolation is not None:
            text = "Each session has its own connection to this server, so its resources cannot be subscribed to."
            raise MCPError(INVALID_REQUEST, text)
        watched: dict[str, Callable[[], None]] = connection.state.setdefault(_WATCHED, {})
        if uri in watched:
            return {}
        if len(watched) >= _MOST:
            raise MCPError(INVALID_REQUEST, f"This session watches {_MOST:,} resources already. Unsubscribe from one.")
        said = {"uri": uri}

        async def tell() -> None:
            # Whose it was when it was watched may be other people's now.
            if self._shows(self._spec_of(request), upstream):
                await connection.notify("notifications/resources/updated", said)

        await self._registry.watching.add(upstream, own, connection, tell, whose(principal_of(request)))
        if not watched:
            connection.exit_stack.callback(_end_all, watched)
        watched[uri] = partial(self._registry.watching.remove, upstream, own, connection)
        return {}

    def _shows(self, spec: ViewSpec, upstream: Upstream) -> bool:
        return self._registry.sight(spec.limits).has("resources", upstream.key)

    def _place(self, request: Request, uri: str) -> tuple[Upstream, str]:
        if len(uri) > LONGEST:
            text = f"This URI is longer than {LONGEST:,} characters: it cannot be subscribed to."
            raise MCPError(INVALID_PARAMS, text)
        if (problem := unwritable({"uri": uri}, 1)) is not None:
            raise MCPError(INVALID_PARAMS, f"The parameters {problem}.")
        return self._find(request, uri)

    async def unsubscribe(self, request: Request) -> dict[str, Any]:
        """Tell a session no more of a resource."""
        end = request.connection.state.get(_WATCHED, {}).pop(_uri(request), None)
        if end is not None:
            end()
        return {}

    @asynccontextmanager
    async def watched(
        self, request: Request, uris: Iterable[str], tell: Callable[[str], Awaitable[None]]
    ) -> AsyncIterator[list[str]]:
        """Have changes of these resources told while the block lasts; gives those that lead somewhere."""
        found: list[str] = []
        async with AsyncExitStack() as stack:
            for uri in list(dict.fromkeys(uris))[:_MOST]:
                try:
                    stack.callback(await self._stream(request, uri, tell))
                except MCPError:
                    continue
                found.append(uri)
            yield found

    async def _stream(self, request: Request, uri: str, tell: Callable[[str], Awaitable[None]]) -> Callable[[], None]:
        """Watch for one more stream: one watcher tells all of them, and the last one ends it."""
        upstream, own = self._place(request, uri)
        if upstream.isolation is not None:
            raise MCPError(INVALID_REQUEST, "Each session has its own connection to this server.")
        place, who, spec = (upstream.key, own, uri), (id(self), uri), self._spec_of(request)

        async def tell_if_shown() -> None:
            if self._shows(spec, upstream):
                await tell(uri)

        def end() -> None:
            self._streams[place] -= 1
            if not self._streams[place]:
                del self._streams[place]
                self._registry.watching.remove(upstream, own, who)

        self._streams[place] += 1
        try:
            # Also where another stream watches: whether the server has confirmed that is not known yet.
            await self._registry.watching.add(upstream, own, who, tell_if_shown, whose(principal_of(request)))
        except BaseException:
            end()
            raise
        return end


def _uri(request: Request) -> str:
    return str((request.params or {}).get("uri"))


def _end_all(watched: dict[str, Callable[[], None]]) -> None:
    for end in watched.values():
        end()
