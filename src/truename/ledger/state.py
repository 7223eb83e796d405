"""The state of a ledger: all events applied, indexed for the questions that naming asks."""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING

from truename.errors import InvalidToolId
from truename.identity import ToolId, fold
from truename.ledger.events import Bind, Claim, Event, Own
from truename.ledger.space import Space, Standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Space", "Standing", "State"]


class State:
    """All scopes, the identities of origins, the pinned order, and how many names each server holds."""

    __slots__ = (
        "bindings",
        "bound",
        "claims",
        "events",
        "origins",
        "owned",
        "owners",
        "ranks",
        "server_ranks",
        "spaces",
    )

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.events: list[Event] = []
        self.spaces: defaultdict[str, Space] = defaultdict(Space)
        self.bindings: dict[tuple[str, str], ToolId] = {}
        self.ranks: dict[ToolId, tuple[int, int]] = {}
        self.server_ranks: dict[str, int] = {}
        self.origins: dict[ToolId, tuple[str, str]] = {}
        self.claims: Counter[str] = Counter()
        self.bound: Counter[str] = Counter()
        self.owners: dict[str, str] = {}
        self.owned: Counter[str] = Counter()
        for event in events:
            self.apply(event)

    def apply(self, event: Event) -> None:
        """Take one event into account."""
        self.events.append(event)
        if isinstance(event, Bind):
            before = self.bindings.get((event.server, event.name))
            if self.binds(event.server, event.name, event.id):
                self.bindings[event.server, event.name] = event.id
            rank = self.server_ranks.setdefault(event.server, len(self.server_ranks))
            if event.id not in self.origins:
                # A tool with another id stays where it was in the list.
                self.ranks[event.id] = (rank, len(self.ranks)) if before is None else self.ranks[before]
                self.origins[event.id] = (event.server, event.name)
                self.bound[event.server] += 1
            return
        if isinstance(event, Own):
            if event.uri not in self.owners:
                self.owners[event.uri] = event.server
                self.owned[event.server] += 1
            return
        space = self.spaces[event.scope]
        if isinstance(event, Claim) and fold(event.name) not in space.holders:
            self.claims[event.server] += 1
        space.apply(event)

    def binds(self, server: str, name: str, id: ToolId) -> bool:
        """Tell whether a tool of a server gets this id: its first, or one after an operator gave the first away."""
        bound = self.bindings.get((server, name))
        if bound is None:
            return True
        return bound != id and (id in self.spaces[""].successors(bound) or self._is_given_away(server, name))

    def current_bindings(self) -> Mapping[tuple[str, str], ToolId]:
        """Return the identities by (server id, upstream name), without those that became other tools.

        Where an operator redirected an id to another tool, and that tool was seen, calls of the id are that tool's.
        What the first server lists under the old name is a tool of its own then, and needs another id.
        """
        given_away = set()
        # Another thread may write meanwhile: what is iterated over is copied first, which no thread can interrupt.
        for name in list(self.spaces[""].withdrawn_names):
            with suppress(InvalidToolId):
                origin = self.origins.get(ToolId.parse(name)) if "/" in name else None
                if origin is not None and self._is_given_away(*origin):
                    given_away.add(origin)
        if not given_away:
            return self.bindings
        return {origin: id for origin, id in list(self.bindings.items()) if origin not in given_away}

    def _is_given_away(self, server: str, name: str) -> bool:
        origin = server, name
        successors = self.spaces[""].successors(self.bindings.get(origin))
        return any(self.origins.get(id, origin) != origin for id in successors)

    def keeps(self, other: State) -> bool:
        """Tell whether all that the other state promised is promised here too."""
        return (
            self.origins.items() >= other.origins.items()
            and self.owners.items() >= other.owners.items()
            and all(self.spaces[scope].keeps(space) for scope, space in list(other.spaces.items()))
        )
