"""Log messages of servers: relayed to the client whose request they are about, at the level that it asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from truename.gateway.protocol.own_meta import without_own_meta
from truename.gateway.protocol.specification import LOG_LEVEL_META_KEY, LOG_LEVELS, is_modern

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.gateway.mcp.connection import ClientConnection
    from truename.gateway.mcp.requests import Request
    from truename.gateway.upstream.following import Follower

__all__ = ["Levels", "own_level", "relayed", "with_level"]

_LEVEL: Final = "truename.log-level"


class Levels:
    """What sessions asked for. Connections that they share are set to the most talkative of it."""

    def __init__(self) -> None:
        self._levels: dict[ClientConnection, str] = {}

    def set(self, request: Request) -> None:
        """Note what a session asks for; it counts until the session ends."""
        connection, level = request.connection, str((request.params or {}).get("level"))
        if connection not in self._levels:
            connection.exit_stack.callback(self._levels.pop, connection, None)
        self._levels[connection] = connection.state[_LEVEL] = level

    @property
    def lowest(self) -> str | None:
        """The most talkative level that a session asked for; None if none did."""
        return min(self._levels.values(), key=LOG_LEVELS.index, default=None)


def with_level(request: Request, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parameters of a request to a server without sessions: there the level stands in each request."""
    level = _level_of(request)
    if level is None:
        return params
    return {**params, "_meta": {**(params.get("_meta") or {}), LOG_LEVEL_META_KEY: level}}


async def own_level(request: Request, follower: Follower) -> None:
    """Have the connection that a session has for itself log at its level."""
    level = _level_of(request)
    if level is not None and follower.level != level:
        await follower.set_level(level)


def _level_of(request: Request) -> str | None:
    """Return what a session asked for; where there are none, each request says it itself."""
    return None if is_modern(request.protocol_version) else request.connection.state.get(_LEVEL)


async def relayed(request: Request, params: Mapping[str, Any]) -> None:
    """Send a log message on the stream of the request that it is about, unless its client wants none of that level."""
    if _wanted(request, params["level"]):
        said = {key: value for key, value in params.items() if value is not None}
        await request.channel.notify("notifications/message", without_own_meta(said))


def _wanted(request: Request, level: str) -> bool:
    if is_modern(request.protocol_version):
        asked = ((request.params or {}).get("_meta") or {}).get(LOG_LEVEL_META_KEY)
        return asked in LOG_LEVELS and LOG_LEVELS.index(level) >= LOG_LEVELS.index(asked)
    # A session that asked for no level gets what the server sends.
    asked = _level_of(request) or LOG_LEVELS[0]
    return LOG_LEVELS.index(level) >= LOG_LEVELS.index(asked)
