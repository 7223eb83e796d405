"""What is known of a server, whether it runs now or not."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

import anyio

from truename.gateway.upstream.counter import ActiveCounter
from truename.gateway.upstream.lists import NOTHING, Lists

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.config import ServerConfig, Settings
    from truename.gateway.protocol.definitions import Definition
    from truename.gateway.upstream.kept import Remembered
    from truename.gateway.upstream.server_connection import ServerConnection
    from truename.gateway.upstream.session import ServerSession
    from truename.gateway.upstream_errors import UpstreamError

__all__ = ["Before", "Known", "KnownServer", "State"]

Before = Callable[["Known"], Awaitable[None]]
"""Looks at a server when a request is about to be sent to it, and raises to keep it from being sent."""
State = Literal["starting", "ready", "resting", "reconnecting", "failed"]


class KnownServer(NamedTuple):
    """How a server stands at one moment: its entry, what it lists (None was never seen), what it says of its use."""

    config: ServerConfig
    tools: tuple[Definition, ...] | None = None
    lists: Lists = NOTHING
    instructions: str = ""

    def is_same(self, other: KnownServer | None) -> bool:
        """Tell whether nothing was said anew."""
        if other is None or self.instructions != other.instructions:
            return False
        return all(mine is theirs for mine, theirs in zip(self[:3], other[:3], strict=True))


def _kept(before: tuple[Definition, ...], now: tuple[Definition, ...]) -> tuple[Definition, ...]:
    """Return the definitions of now, of which those that are the same as before are the same objects."""
    known = {str(one.get("name")): one for one in before}
    return tuple(known[name] if _is_same(known.get(name := str(one.get("name"))), one) else one for one in now)


def _is_same(one: Definition | None, other: Definition) -> bool:
    # In Python `True` equals 1; in a definition it does not.
    return one is other or (one == other and json.dumps(one) == json.dumps(other))


class Known:
    """``tools`` is the last known list, which stays while the server is being reconnected; None was never seen.

    So do ``lists``, all others, and ``session``, what it said of itself. ``settled`` is set when it was ready or has
    failed for the first time, or its lists are known from before; ``problem`` is why it is not ready. ``running``
    counts the requests under which it must not be ended. ``looked_at`` is the list that a call had the gateway look at.
    """

    def __init__(self, config: ServerConfig, settings: Settings) -> None:
        # What the configuration calls it.
        self.key = config.key
        self.config = config
        self.settings = settings
        self.tools: tuple[Definition, ...] | None = None
        self.lists: Lists = NOTHING
        self.session: ServerSession | None = None
        self.problem: UpstreamError | None = None
        self.seconds: float | None = None
        self.settled = anyio.Event()
        self._connection: ServerConnection | None = None
        self._before: Remembered | None = None
        self._said = ""
        self.looked_at: tuple[Definition, ...] | None = None
        self._offered: tuple[tuple[Definition, ...], Mapping[str, Definition]] | None = None
        self.running = ActiveCounter()

    @property
    def is_resting(self) -> bool:
        """Whether it does not run, and is not to."""
        return False

    @property
    def state(self) -> State:
        """Where the connection stands."""
        if self._connection is not None:
            return "ready"
        if self.is_resting:
            return "resting"
        if self.tools is not None:
            return "reconnecting"
        return "failed" if self.problem is not None else "starting"

    @property
    def instructions(self) -> str:
        """What the server says of its use."""
        if self.session is not None:
            return self.session.instructions
        return "" if self._before is None else self._before.instructions

    @property
    def standing(self) -> KnownServer:
        """How it stands now."""
        return KnownServer(self.config, self.tools, self.lists, self.instructions)

    def takes(self, tools: tuple[Definition, ...], lists: Lists) -> bool:
        """Take what the server says now, and tell whether any of it is new: lists, or what it says of its use.

        A definition that was read again stays the object that it was: nobody looks at it again.
        """
        tools = _kept(self.tools or (), tools)
        is_same = self.tools is not None and [*map(id, tools)] == [*map(id, self.tools)]
        if is_same and (lists, self.instructions) == (self.lists, self._said):
            return False
        if not is_same:
            self.tools = tools
        self.lists, self._said = lists, self.instructions
        return True

    def definition_of(self, name: str) -> Definition | None:
        """Return the definition that the server listed last for a tool of its own name; None where it has none."""
        tools = self.tools or ()
        if self._offered is None or self._offered[0] is not tools:
            # Of a name that is listed twice the first counts, as in the catalogue.
            self._offered = tools, {str(one.get("name")): one for one in reversed(tools)}
        return self._offered[1].get(name)

    async def settle_announced(self) -> None:
        """Wait until the tools are listed anew, where the server announced that they changed."""

    def offers(self, capability: str) -> bool:
        """Whether the server has this; one that is only starting may have it."""
        if self.session is not None:
            return self.session.offers(capability)
        return self.state == "starting" if self._before is None else capability in self._before.capabilities

    def lacks(self, capability: str) -> bool:
        """Whether the server runs, or rests, and says that it does not have this."""
        return self.state in {"ready", "resting"} and not self.offers(capability)
