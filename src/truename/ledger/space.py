"""One naming scope of a ledger: who holds a name, and what became of the names that were withdrawn."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple, TypeGuard

from truename.errors import InvalidToolId
from truename.identity import ToolId, fold
from truename.ledger.events import Break, Claim, Event, LedgerSettings, Redirect, Retire

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

__all__ = ["Space", "Standing"]

# More redirects in a row than this are a circle.
_MOST_REDIRECTS: Final = 32


class Standing(NamedTuple):
    """What a name stands for: ``held`` or ``redirected`` (then ``id`` is its tool), ``retired`` or ``broken``.

    A redirected name is listed until the day ``until``. A broken one does not exist since ``protocol``; ``id`` is the
    tool of its successor, as far as that is known.
    """

    status: str
    id: ToolId | None
    since: str
    successor: str | None = None
    until: str = ""
    protocol: str = ""


class Space:
    """One naming scope: within it a name once shown never means another tool."""

    __slots__ = (
        "_handed",
        "_spellings",
        "events",
        "first_versions",
        "holders",
        "names",
        "parts",
        "server_names",
        "settings",
        "tables",
        "withdrawals",
        "withdrawn",
        "withdrawn_names",
    )

    def __init__(self) -> None:
        self.settings: LedgerSettings | None = None
        self.server_names: list[str] = []
        self.holders: dict[str, ToolId] = {}
        self.names: dict[str, ToolId] = {}
        self.parts: dict[str, tuple[str, int | None]] = {}
        # Of the versions of a tool, the first that was shown under a name without a number.
        self.first_versions: dict[tuple[str, str | None, str], ToolId] = {}
        self.tables: defaultdict[str, dict[ToolId, str]] = defaultdict(dict)
        self.withdrawals = 0
        self.withdrawn: dict[str, Standing] = {}
        self.withdrawn_names: dict[str, Standing] = {}
        self.events: defaultdict[str, list[Event]] = defaultdict(list)
        self._handed: dict[str, ToolId] = {}
        self._spellings: defaultdict[str, set[str]] = defaultdict(set)

    def apply(self, event: Event) -> None:
        """Take one event into account. Names are compared folded, so a claim covers every spelling of it."""
        match event:
            case LedgerSettings():
                self.settings = event
                self.tables.clear()
                self.server_names = [*(n for n in self.server_names if n != event.server_name), event.server_name]
            case Claim():
                self._claim(event)
            case Retire(name=name, successor=successor):
                self._withdraw(event, name, Standing("retired", self.holders.get(fold(name)), event.at, successor))
            case Redirect(name=name, id=id):
                self._cut_circle(name, id, event.at)
                self._withdraw(event, name, Standing("redirected", id, event.at, str(id), event.until))
            case Break(name=name, id=id, successor=successor):
                broken = Standing("broken", id, event.at, successor or None, protocol=event.protocol)
                self._withdraw(event, name, broken)

    def _claim(self, event: Claim) -> None:
        name, id, key = event.name, event.id, fold(event.name)
        self.holders.setdefault(key, id)
        if self.holder(key) != id:
            # Only the tool to which the holder was redirected gets past the check; it may be the first one again.
            self._handed[key] = id
        self.names.setdefault(name, id)
        self._spellings[key].add(name)
        self.tables[event.table][id] = name
        if event.prefix or event.number is not None:
            self.parts[name] = event.prefix, event.number
        if event.number is None and "/" not in name:
            self.first_versions.setdefault(id.family, id)
        self.events[key].append(event)

    def _withdraw(self, event: Event, name: str, standing: Standing) -> None:
        key = fold(name)
        self.withdrawals += 1
        self.events[key].append(event)
        if _is_id(name):
            # Names that fold alike are one name; an id is itself alone, also where a name folds like it.
            self.withdrawn_names[name] = standing
            return
        if _is_respelled(key, standing):
            self.withdrawn_names[name] = standing
            if standing.id is not None:
                # The successor is another spelling of what was broken, which was perhaps another tool's.
                self._handed[key] = standing.id
            return
        self.withdrawn[key] = standing
        self.withdrawn_names[name] = standing
        self._spellings[key].add(name)
        for spelling in self._spellings[key]:
            # What was broken off stays so until an operator names exactly that spelling.
            if spelling == name or not self._is_broken(spelling):
                self.withdrawn_names[spelling] = standing

    def _is_broken(self, name: str) -> bool:
        standing = self.withdrawn_names.get(name)
        return standing is not None and standing.status == "broken"

    def _cut_circle(self, old: str, new: ToolId, at: str) -> None:
        """Take the redirect of ``new`` back where it leads to ``old``: the latest word of the operator counts."""
        if "/" in old and old != str(new) and old in map(str, self.successors(new)):
            self.withdrawn_names[str(new)] = Standing("redirected", new, at, str(new))

    def spellings(self, key: str) -> Collection[str]:
        """Return the names on record with this fold, as they were written."""
        return self._spellings.get(key, ())

    def keeps(self, other: Space) -> bool:
        """Tell whether all that the other promised is promised here."""
        return (
            self.names.items() >= other.names.items()
            and self.holders.items() >= other.holders.items()
            and self.withdrawn_names.keys() >= other.withdrawn_names.keys()
        )

    def holder(self, key: str) -> ToolId | None:
        """Return the tool that holds the name with this fold: the first, or the one that an operator gave it to."""
        return self._handed.get(key) or self.holders.get(key)

    def bars(self, name: str, id: ToolId) -> bool:
        """Tell whether a name was withdrawn and this tool can't have it; what was redirected to it, it can."""
        standing = self.withdrawn_names.get(name) or self.withdrawn.get(fold(name))
        if self._is_broken(name):
            return True
        return standing is not None and (standing.status, standing.id) != ("redirected", id)

    def is_heir(self, key: str, id: ToolId) -> bool:
        """Tell whether the name with this fold, or the tool that holds it, was redirected to this tool."""
        standing = self.withdrawn.get(key)
        if standing is not None:
            return (standing.status, standing.id) == ("redirected", id)
        return id in self.successors(self.holder(key))

    def successors(self, id: ToolId | None) -> Iterator[ToolId]:
        """Yield what an operator says that a tool is now, step by step; a circle ends somewhere."""
        for _ in range(_MOST_REDIRECTS):
            standing = self.withdrawn_names.get(str(id))
            if standing is None or standing.status == "retired" or standing.id in (None, id):
                return
            id = standing.id
            yield id

    def standing(self, name: str) -> Standing | None:
        """Return what exactly this spelling stands for, or None if it was never shown."""
        if name in self.withdrawn_names:
            return self.withdrawn_names[name]
        return Standing("held", self.holder(fold(name)), "") if name in self.names else None

    def standing_folded(self, key: str) -> Standing | None:
        """Return what any spelling with this fold stands for."""
        if key in self.withdrawn:
            return self.withdrawn[key]
        id = self.holder(key)
        return None if id is None else Standing("held", id, "")

    def shown_in(self, name: str, table: str) -> bool:
        """Tell whether a name was in this table's list; one that was in no list so far belongs in every."""
        tables = {event.table for event in self.events.get(fold(name), ()) if _is_claim_of(event, name)}
        return table in tables or not tables


def _is_id(name: str) -> bool:
    try:
        return "/" in name and str(ToolId.parse(name)) == name
    except InvalidToolId:
        return False


def _is_respelled(key: str, standing: Standing) -> bool:
    """Tell whether only the spelling changed, so that all others go on: ``fs.list`` to ``fs_list``."""
    if standing.status != "broken":
        return False
    id, successors = standing.id, {standing.successor or ""}
    if id is not None:
        bare = f"{id.suite}_{id.tool}" if id.suite else id.tool
        successors |= {id.tool, bare, f"{id.integration}_{bare}"}
    return key in map(fold, successors)


def _is_claim_of(event: Event, name: str) -> TypeGuard[Claim]:
    return isinstance(event, Claim) and event.name == name
