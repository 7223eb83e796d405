"""The state of a ledger: all events applied, indexed for the questions that naming asks."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from truename.identity import ToolId, fold
from truename.ledger.events import Bind, Claim, Event, Redirect, Retire, Settings

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Space", "Standing", "State"]


class Standing(NamedTuple):
    """What a name stands for: ``held`` or ``redirected`` (then ``id`` is its tool) or ``retired``."""

    status: str
    id: ToolId | None
    since: str
    successor: str | None = None


class Space:
    """One naming scope: within it a name once shown never means another tool."""

    __slots__ = (
        "_current_folds",
        "events",
        "holders",
        "names",
        "server_names",
        "settings",
        "tables",
        "withdrawn",
        "withdrawn_ids",
        "withdrawn_names",
    )

    def __init__(self) -> None:
        self.settings: Settings | None = None
        self.server_names: list[str] = []
        self.holders: dict[str, ToolId] = {}
        self.names: dict[str, ToolId] = {}
        self.tables: defaultdict[str, dict[ToolId, str]] = defaultdict(dict)
        self.withdrawn: dict[str, Standing] = {}
        self.withdrawn_names: set[str] = set()
        self.withdrawn_ids: dict[str, Standing] = {}
        self.events: defaultdict[str, list[Event]] = defaultdict(list)
        self._current_folds: defaultdict[str, set[str]] = defaultdict(set)

    def apply(self, event: Event) -> None:
        """Take one event into account. Names are compared folded, so a claim covers every spelling of it."""
        match event:
            case Settings():
                self.settings = event
                self.tables.clear()
                self.server_names = [*(n for n in self.server_names if n != event.server_name), event.server_name]
            case Claim(name=name, id=id, table=table):
                self.holders.setdefault(fold(name), id)
                self.names.setdefault(name, id)
                self._current_folds[fold(name)].add(name)
                self.tables[table][id] = name
                self.events[fold(name)].append(event)
            case Retire(name=name, successor=successor):
                self._withdraw(event, name, Standing("retired", self.holders.get(fold(name)), event.at, successor))
            case Redirect(name=name, id=id):
                self._withdraw(event, name, Standing("redirected", id, event.at, str(id)))

    def _withdraw(self, event: Event, name: str, standing: Standing) -> None:
        key = fold(name)
        self.withdrawn[key] = standing
        if "/" in name:
            # Names that fold alike are one name; ids that do are several tools.
            self.withdrawn_ids[name] = standing
        self.withdrawn_names |= {name, *self._current_folds[key]}
        self.events[key].append(event)

    def keeps(self, other: Space) -> bool:
        """Tell whether all that the other promised is promised here."""
        return (
            self.names.items() >= other.names.items()
            and self.holders.items() >= other.holders.items()
            and self.withdrawn.keys() >= other.withdrawn.keys()
        )

    def standing(self, name: str) -> Standing | None:
        """Return what exactly this spelling stands for, or None if it was never shown."""
        if name in self.withdrawn_names:
            return self.withdrawn_ids.get(name) or self.withdrawn[fold(name)]
        id = self.names.get(name)
        return None if id is None else Standing("held", id, "")

    def standing_folded(self, key: str) -> Standing | None:
        """Return what any spelling with this fold stands for."""
        if key in self.withdrawn:
            return self.withdrawn[key]
        id = self.holders.get(key)
        return None if id is None else Standing("held", id, "")


class State:
    """All scopes, the identities of origins, the pinned order, and how many names each server holds."""

    __slots__ = ("bindings", "bound", "claims", "events", "origins", "ranks", "server_ranks", "spaces")

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.events: list[Event] = []
        self.spaces: defaultdict[str, Space] = defaultdict(Space)
        self.bindings: dict[tuple[str, str], ToolId] = {}
        self.ranks: dict[ToolId, tuple[int, int]] = {}
        self.server_ranks: dict[str, int] = {}
        self.origins: dict[ToolId, tuple[str, str]] = {}
        self.claims: Counter[str] = Counter()
        self.bound: Counter[str] = Counter()
        for event in events:
            self.apply(event)

    def apply(self, event: Event) -> None:
        """Take one event into account."""
        self.events.append(event)
        if isinstance(event, Bind):
            self.bindings.setdefault((event.server, event.name), event.id)
            rank = self.server_ranks.setdefault(event.server, len(self.server_ranks))
            if event.id not in self.origins:
                self.ranks[event.id] = (rank, len(self.ranks))
                self.origins[event.id] = (event.server, event.name)
                self.bound[event.server] += 1
            return
        space = self.spaces[event.scope]
        if isinstance(event, Claim) and fold(event.name) not in space.holders:
            self.claims[event.server] += 1
        space.apply(event)

    def keeps(self, other: State) -> bool:
        """Tell whether all that the other state promised is promised here too."""
        return self.origins.items() >= other.origins.items() and all(
            self.spaces[scope].keeps(space) for scope, space in list(other.spaces.items())
        )
