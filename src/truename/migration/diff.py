"""`diff`: every change between two lists of tools, classified."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from truename.errors import excerpt
from truename.migration.changes import Certainty, Changes, Kind, ToolChange
from truename.migration.definitions import compare_pins
from truename.migration.effects import INPUT, OUTPUT, Detail, Effect
from truename.migration.matching import Match, Sides, proved, suggested, suspected
from truename.migration.pins import Key, Pin, Tools, pinned

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["diff"]

_REMEDIES: Final = {
    Kind.SWAPPED: "Give both their old names back, or two that are new: whoever calls one now runs the other.",
    Kind.REUSED: "Give it a name that was never used: whoever calls this one now runs another tool.",
    Kind.RENAMED: "Put the old name back, or plan it with `truename rename`, so that the old one leads to the new.",
    Kind.MOVED: "Keep the server's key, or plan it with `truename rename`: names and permissions go by it.",
    Kind.REMOVED: "Keep it, or retire it on purpose; whoever calls it gets an error.",
    Kind.NARROWED: "Go on accepting what was accepted, or give it a new name with a version suffix (_v2).",
    Kind.CHANGED: "Go on accepting and giving what was, or give it a new name with a version suffix (_v2).",
    Kind.WIDENED: "Promise what was promised, or give it a new name with a version suffix (_v2).",
    Kind.DRIFTED: "Look whether it still does what was approved.",
    Kind.ADDED: "Nobody is affected.",
}
_COPIED: Final = ("the definitions are the same, and the servers are not",)
_NOTHING_TO_DO: Final = "Nobody who relied on it is affected."
_COMPARED: Final = {
    Effect.NARROWED: (Kind.NARROWED, "is narrower"),
    Effect.WIDENED: (Kind.WIDENED, "is wider"),
    Effect.CHANGED: (Kind.CHANGED, "is another one"),
}


def diff(old: Tools, new: Tools) -> Changes:
    """Return every change between two lists of tools, each with its certainty and whether it breaks somebody.

    ``old`` and ``new`` are catalogues, declarations or pins; their order says nothing, and of a name that one server
    lists twice the first counts. A renaming is certain only where a definition that says enough is, but for the name,
    equal and unique on both sides of one server; else it is a suggestion. Names alone prove nothing, and a definition
    on another server may be a copy.

    >>> from truename.catalog import Catalog
    >>> def tools(**names): return Catalog.from_mcp({"s": [{"name": n, "description": d} for n, d in names.items()]})
    >>> for change in diff(tools(a="Read a file now.", b="Write a file now."),
    ...                    tools(b="Read a file now.", a="Write a file now.")): print(change.kind, change.fact)
    swapped 'b' means now what 'a' meant, and the other way round.
    swapped 'a' means now what 'b' meant, and the other way round.
    """
    return _Diff(Sides.of(pinned(old), pinned(new))).changes()


@dataclass
class _Diff:
    sides: Sides
    moved: dict[Key, Key] = field(init=False)
    origins: dict[Key, Key] = field(init=False)

    def __post_init__(self) -> None:
        self.moved = proved(self.sides)
        self.origins = {new: old for old, new in self.moved.items()}

    def changes(self) -> Changes:
        old, new = self.sides.old, self.sides.new
        gone = {key: pin for key, pin in old.items() if self._is_lost(key)}
        added = {key: pin for key, pin in new.items() if key not in old and key not in self.origins}
        matches = suggested(gone, added)
        matched = {id(pin) for match in matches for pin in (match.old, match.new)}
        return Changes.of(
            [
                *self._proved(),
                *map(_suggestion, matches),
                *(_removed(pin, is_taken=key in new) for key, pin in gone.items() if id(pin) not in matched),
                *(_added(pin) for pin in added.values() if id(pin) not in matched),
                *map(_suspicion, suspected(self._kept, gone)),
                *(change for one, other in self._kept.values() for change in _changed(one, other)),
            ]
        )

    def _is_lost(self, key: Key) -> bool:
        """Tell whether an old tool is nowhere that can be proved: its name is gone, or has come to another tool."""
        return key not in self.moved and (key not in self.sides.new or key in self.origins)

    def _proved(self) -> Iterator[ToolChange]:
        old, new = self.sides.old, self.sides.new
        for source, target in self.moved.items():
            if target in old:
                change = _reused(old[source], new[target], mutual=self.moved.get(target) == source)
            else:
                change = _renamed(old[source], new[target], elsewhere=source[0] != target[0])
            # Anybody can copy a definition: whoever serves the same elsewhere need not be the same.
            yield change if source[0] == target[0] else replace(change, certainty=Certainty.SUGGESTED, reasons=_COPIED)
            if source in new and source not in self.origins:
                yield _replaced(old[source], new[source], new[target])

    @cached_property
    def _kept(self) -> dict[Key, tuple[Pin, Pin]]:
        """The tools that kept their name and not their definition."""
        old, new = self.sides.old, self.sides.new
        both = [key for key in old if key in new and key not in self.moved and key not in self.origins]
        return {key: (old[key], new[key]) for key in both if not old[key].is_as(new[key])}


def _change(kind: Kind, old: Pin | None, new: Pin | None, fact: str, *, breaking: bool = True) -> ToolChange:
    return ToolChange(kind=kind, old=old, new=new, fact=fact, remedy=_REMEDIES[kind], breaking=breaking)


def _renamed(old: Pin, new: Pin, *, elsewhere: bool) -> ToolChange:
    if old.name == new.name:
        fact = (
            f"{excerpt(old.name)} has moved from server {excerpt(old.server)} to {excerpt(new.server)}, or was copied."
        )
        return _change(Kind.MOVED, old, new, fact)
    where = f" on server {excerpt(new.server)}" if elsewhere else ""
    fact = f"{excerpt(old.name)} is called {excerpt(new.name)}{where} now; its definition is the same."
    return _change(Kind.RENAMED, old, new, fact)


def _reused(old: Pin, new: Pin, *, mutual: bool) -> ToolChange:
    fact = f"{excerpt(new.name)} means now what {excerpt(old.name)} meant"
    if mutual:
        return _change(Kind.SWAPPED, old, new, f"{fact}, and the other way round.")
    return _change(Kind.REUSED, old, new, f"{fact}; what it meant before is no longer called so.")


def _replaced(old: Pin, new: Pin, now: Pin) -> ToolChange:
    fact = f"{excerpt(new.name)} means another tool now; what it meant is called {excerpt(now.name)}."
    return _change(Kind.REUSED, old, new, fact)


def _suggestion(match: Match) -> ToolChange:
    old, new, likeness = match.old, match.new, match.likeness
    why = f": {'; '.join(likeness.reasons)}" if likeness.reasons else ""
    is_move = old.name == new.name
    where = f" of server {excerpt(old.server)}", f" of server {excerpt(new.server)}"
    one, other = (f"{excerpt(pin.name)}{of if is_move else ''}" for pin, of in zip((old, new), where, strict=True))
    return ToolChange(
        kind=Kind.MOVED if is_move else Kind.RENAMED,
        old=old,
        new=new,
        fact=f"{one} is gone, and {other} is new and resembles it ({likeness.score:.2f}{why}).",
        remedy=_REMEDIES[Kind.MOVED if is_move else Kind.RENAMED],
        breaking=True,
        certainty=Certainty.SUGGESTED,
        score=likeness.score,
        reasons=likeness.reasons,
        details=compare_pins(old, new),
    )


def _suspicion(match: Match) -> ToolChange:
    old, new, likeness = match.old, match.new, match.likeness
    why = "; ".join(likeness.reasons)
    fact = f"{excerpt(new.name)} may mean now what {excerpt(old.name)} meant ({likeness.score:.2f}: {why})."
    return ToolChange(
        kind=Kind.SWAPPED if likeness.score == 1.0 else Kind.REUSED,
        old=old,
        new=new,
        fact=fact,
        remedy=_REMEDIES[Kind.REUSED],
        breaking=True,
        certainty=Certainty.SUGGESTED,
        score=likeness.score,
        reasons=likeness.reasons,
    )


def _removed(pin: Pin, *, is_taken: bool) -> ToolChange:
    name = excerpt(pin.name)
    fact = f"What {name} was is gone; the name is another tool's." if is_taken else f"{name} is gone."
    return _change(Kind.REMOVED, pin, None, fact)


def _added(pin: Pin) -> ToolChange:
    return _change(Kind.ADDED, None, pin, f"{excerpt(pin.name)} is new.", breaking=False)


def _changed(old: Pin, new: Pin) -> Iterator[ToolChange]:
    details = compare_pins(old, new)
    restated = tuple(one for one in details if one.effect is Effect.RESTATED)
    for side in (INPUT, OUTPUT):
        of_side = tuple(one for one in details if one.effect is not Effect.RESTATED and one.path.startswith(side.key))
        if of_side:
            effects = {one.effect for one in of_side}
            kind, how = _COMPARED[effects.pop() if len(effects) == 1 else Effect.CHANGED]
            yield _different(kind, old, new, f"The {side.word} of {excerpt(new.name)} {how}", of_side)
    if restated:
        yield _different(Kind.DRIFTED, old, new, f"{excerpt(new.name)} says something else of itself", restated)


def _different(kind: Kind, old: Pin, new: Pin, what: str, details: tuple[Detail, ...]) -> ToolChange:
    breaking = any(one.breaking for one in details)
    # The one that breaks is the one to read.
    first = next((one for one in details if one.breaking), details[0])
    more = f"; {len(details) - 1:,} more" if len(details) > 1 else ""
    return ToolChange(
        kind=kind,
        old=old,
        new=new,
        fact=f"{what}: {first.fact} ({first.path}{more}).",
        remedy=_REMEDIES[kind] if breaking or kind is Kind.DRIFTED else _NOTHING_TO_DO,
        breaking=breaking,
        details=details,
    )
