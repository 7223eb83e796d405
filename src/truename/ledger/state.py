"""The state of a ledger: all events applied, indexed for the questions that naming asks."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from truename.identity import fold
from truename.ledger.events import Bind, Claim, Event, Own
from truename.ledger.space import Space, Standing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from truename.identity import ToolId

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
        """Tell whether a tool of a server gets this id: its first, or the one to which an operator led the other."""
        bound = self.bindings.get((server, name))
        return bound is None or (bound != id and id in self.spaces[""].successors(bound))

    def keeps(self, other: State) -> bool:
        """Tell whether all that the other state promised is promised here too."""
        return (
            self.origins.items() >= other.origins.items()
            and self.owners.items() >= other.owners.items()
            and all(self.spaces[scope].keeps(space) for scope, space in list(other.spaces.items()))
        )
