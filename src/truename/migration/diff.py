"""Compare two lists of tools: every change, its certainty, and whether it breaks a caller."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Final

from truename.errors import excerpt
from truename.migration.definitions import compare_pins
from truename.migration.lock import Key, Pin, Tools, pins_of, toml_string
from truename.migration.matching import ToolMatch, ToolSides, proven_matches, suggest_matches, suspect_matches
from truename.migration.schema_changes import INPUT, OUTPUT, ChangeDetail, ChangeEffect

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Certainty", "ChangeKind", "ToolChange", "ToolChanges", "diff", "renames_table"]


class ChangeKind(StrEnum):
    """The kind of a change, the most dangerous first.

    ``swapped``: two names exchanged their tools; ``reused``: a name means the tool of another name; ``renamed``;
    ``moved`` to another server; ``removed``; ``narrowed``, ``changed``, ``widened``: a schema, as in `ChangeEffect`;
    ``drifted``: title, description or annotations; ``added``.
    """

    SWAPPED = "swapped"
    REUSED = "reused"
    REMOVED = "removed"
    RENAMED = "renamed"
    MOVED = "moved"
    NARROWED = "narrowed"
    CHANGED = "changed"
    WIDENED = "widened"
    DRIFTED = "drifted"
    ADDED = "added"


class Certainty(StrEnum):
    """The certainty of a match: ``certain`` by equal definitions or names, or ``suggested`` by similarity."""

    CERTAIN = "certain"
    SUGGESTED = "suggested"


@dataclass(frozen=True, kw_only=True)
class ToolChange:
    """One change: the old and the new tool (None: there is none), a fact, and a remedy.

    ``score`` and ``reasons`` state the similarity behind a suggested rename. ``details`` are the single differences of
    the definitions.
    """

    kind: ChangeKind
    old: Pin | None
    new: Pin | None
    fact: str
    remedy: str
    breaking: bool
    certainty: Certainty = Certainty.CERTAIN
    score: float = 1.0
    reasons: tuple[str, ...] = ()
    details: tuple[ChangeDetail, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        return f"{self.fact} {self.remedy}"


_ORDER = {kind: place for place, kind in enumerate(ChangeKind)}


@dataclass(frozen=True)
class ToolChanges:
    """All changes between two lists of tools: breaking ones first, then by kind, server and name."""

    changes: tuple[ToolChange, ...] = ()

    @classmethod
    def of(cls, changes: Sequence[ToolChange]) -> ToolChanges:
        """Return the changes in their order, whatever the given order."""

        def place(change: ToolChange) -> tuple[bool, int, Key, Key]:
            old, new = change.old or change.new, change.new or change.old
            none = ("", "")
            return not change.breaking, _ORDER[change.kind], old.key if old else none, new.key if new else none

        return cls(tuple(sorted(changes, key=place)))

    @property
    def breaking(self) -> tuple[ToolChange, ...]:
        """The changes that break a caller who relied on the old tools."""
        return tuple(one for one in self.changes if one.breaking)

    def renames(self, *certainties: Certainty) -> tuple[ToolChange, ...]:
        """Return the changes of names with these certainties (none given: all)."""
        kinds = (ChangeKind.RENAMED, ChangeKind.SWAPPED, ChangeKind.REUSED)
        wanted = certainties or tuple(Certainty)
        return tuple(one for one in self.changes if one.kind in kinds and one.certainty in wanted)

    def __iter__(self) -> Iterator[ToolChange]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)


_REMEDIES: Final = {
    ChangeKind.SWAPPED: "Restore both old names, or choose two new ones: a caller of one now runs the other.",
    ChangeKind.REUSED: "Choose a name that was never used: a caller of this one now runs another tool.",
    ChangeKind.RENAMED: "Restore the old name, or run `truename rename`, so that the old name leads to the new one.",
    ChangeKind.MOVED: "Keep the server's key, or run `truename rename`: names and permissions depend on it.",
    ChangeKind.REMOVED: "Keep it, or retire it deliberately; its callers get an error.",
    ChangeKind.NARROWED: "Keep accepting the old arguments, or give it a new name with a version suffix (_v2).",
    ChangeKind.CHANGED: "Keep accepting and returning old values, or give it a new name with a version suffix (_v2).",
    ChangeKind.WIDENED: "Return only values of the old schema, or give it a new name with a version suffix (_v2).",
    ChangeKind.DRIFTED: "Check that it still does what was approved.",
    ChangeKind.ADDED: "No caller is affected.",
}
_COPIED: Final = ("the definitions are equal, but the servers differ",)
_NOTHING_TO_DO: Final = "No caller is affected."
_COMPARED: Final = {
    ChangeEffect.NARROWED: (ChangeKind.NARROWED, "is narrower"),
    ChangeEffect.WIDENED: (ChangeKind.WIDENED, "is wider"),
    ChangeEffect.CHANGED: (ChangeKind.CHANGED, "is different"),
}


def diff(old: Tools, new: Tools) -> ToolChanges:
    """Return every change between two lists of tools, each with its certainty and whether it breaks a caller.

    ``old`` and ``new`` are catalogs, declarations or pins in any order; of a name that one server lists twice, the
    first counts. A rename is certain only on one server, and only if a sufficiently long definition is equal except for
    the name, and unique on both sides; otherwise it is a suggestion. Names alone prove nothing, and a definition on
    another server may be a copy.

    >>> from truename.catalog import Catalog
    >>> def tools(**names): return Catalog.from_mcp({"s": [{"name": n, "description": d} for n, d in names.items()]})
    >>> for change in diff(tools(a="Read a file now.", b="Write a file now."),
    ...                    tools(b="Read a file now.", a="Write a file now.")): print(change.kind, change.fact)
    swapped 'b' now means the tool that 'a' meant, and vice versa.
    swapped 'a' now means the tool that 'b' meant, and vice versa.
    """
    return _Diff(ToolSides.of(pins_of(old), pins_of(new))).changes()


@dataclass
class _Diff:
    sides: ToolSides
    moved: dict[Key, Key] = field(init=False)
    origins: dict[Key, Key] = field(init=False)

    def __post_init__(self) -> None:
        self.moved = proven_matches(self.sides)
        self.origins = {new: old for old, new in self.moved.items()}

    def changes(self) -> ToolChanges:
        old, new = self.sides.old, self.sides.new
        # An old tool is gone if it has no proven match, and its name is missing or belongs to another tool.
        gone = {
            key: pin for key, pin in old.items() if key not in self.moved and (key not in new or key in self.origins)
        }
        added = {key: pin for key, pin in new.items() if key not in old and key not in self.origins}
        matches = suggest_matches(gone, added)
        matched = {id(pin) for match in matches for pin in (match.old, match.new)}
        return ToolChanges.of(
            [
                *self._proved(),
                *map(_suggestion, matches),
                *(_removed(pin, is_taken=key in new) for key, pin in gone.items() if id(pin) not in matched),
                *(
                    _change(ChangeKind.ADDED, None, pin, f"{excerpt(pin.name)} is new.", breaking=False)
                    for pin in added.values()
                    if id(pin) not in matched
                ),
                *map(_suspicion, suspect_matches(self._kept, gone)),
                *(change for one, other in self._kept.values() for change in _changed(one, other)),
            ]
        )

    def _proved(self) -> Iterator[ToolChange]:
        old, new = self.sides.old, self.sides.new
        for source, target in self.moved.items():
            if target in old:
                is_mutual = self.moved.get(target) == source
                fact = f"{excerpt(new[target].name)} now means the tool that {excerpt(old[source].name)} meant"
                fact += ", and vice versa." if is_mutual else "; its former tool lost this name."
                kind = ChangeKind.SWAPPED if is_mutual else ChangeKind.REUSED
                change = _change(kind, old[source], new[target], fact)
            else:
                change = _renamed(old[source], new[target], elsewhere=source[0] != target[0])
            # A definition can be copied, so an equal one on another server proves nothing.
            yield change if source[0] == target[0] else replace(change, certainty=Certainty.SUGGESTED, reasons=_COPIED)
            if source in new and source not in self.origins:
                name, now = excerpt(new[source].name), excerpt(new[target].name)
                fact = f"{name} now means another tool; its former tool is called {now}."
                yield _change(ChangeKind.REUSED, old[source], new[source], fact)

    @cached_property
    def _kept(self) -> dict[Key, tuple[Pin, Pin]]:
        """The tools that kept their name, but not their definition."""
        old, new = self.sides.old, self.sides.new
        both = [key for key in old if key in new and key not in self.moved and key not in self.origins]
        return {key: (old[key], new[key]) for key in both if not old[key].is_as(new[key])}


def _change(kind: ChangeKind, old: Pin | None, new: Pin | None, fact: str, *, breaking: bool = True) -> ToolChange:
    return ToolChange(kind=kind, old=old, new=new, fact=fact, remedy=_REMEDIES[kind], breaking=breaking)


def _renamed(old: Pin, new: Pin, *, elsewhere: bool) -> ToolChange:
    if old.name == new.name:
        fact = f"{excerpt(old.name)} moved from server {excerpt(old.server)} to {excerpt(new.server)}, or was copied."
        return _change(ChangeKind.MOVED, old, new, fact)
    where = f" on server {excerpt(new.server)}" if elsewhere else ""
    fact = f"{excerpt(old.name)} is now called {excerpt(new.name)}{where}; its definition is the same."
    return _change(ChangeKind.RENAMED, old, new, fact)


def _suggestion(match: ToolMatch) -> ToolChange:
    old, new, likeness = match.old, match.new, match.likeness
    why = f": {'; '.join(likeness.reasons)}" if likeness.reasons else ""
    is_move = old.name == new.name
    where = f" of server {excerpt(old.server)}", f" of server {excerpt(new.server)}"
    one, other = (f"{excerpt(pin.name)}{of if is_move else ''}" for pin, of in zip((old, new), where, strict=True))
    return ToolChange(
        kind=ChangeKind.MOVED if is_move else ChangeKind.RENAMED,
        old=old,
        new=new,
        fact=f"{one} is gone, and {other} is new and resembles it ({likeness.score:.2f}{why}).",
        remedy=_REMEDIES[ChangeKind.MOVED if is_move else ChangeKind.RENAMED],
        breaking=True,
        certainty=Certainty.SUGGESTED,
        score=likeness.score,
        reasons=likeness.reasons,
        details=compare_pins(old, new),
    )


def _suspicion(match: ToolMatch) -> ToolChange:
    old, new, likeness = match.old, match.new, match.likeness
    why = "; ".join(likeness.reasons)
    fact = f"{excerpt(new.name)} may now mean the tool that {excerpt(old.name)} meant ({likeness.score:.2f}: {why})."
    return ToolChange(
        kind=ChangeKind.SWAPPED if likeness.score == 1.0 else ChangeKind.REUSED,
        old=old,
        new=new,
        fact=fact,
        remedy=_REMEDIES[ChangeKind.REUSED],
        breaking=True,
        certainty=Certainty.SUGGESTED,
        score=likeness.score,
        reasons=likeness.reasons,
    )


def _removed(pin: Pin, *, is_taken: bool) -> ToolChange:
    name = excerpt(pin.name)
    fact = f"The tool {name} is gone; another tool has the name." if is_taken else f"{name} is gone."
    return _change(ChangeKind.REMOVED, pin, None, fact)


def _changed(old: Pin, new: Pin) -> Iterator[ToolChange]:
    details = compare_pins(old, new)
    restated = tuple(one for one in details if one.effect is ChangeEffect.RESTATED)
    for side in (INPUT, OUTPUT):
        of_side = tuple(
            one for one in details if one.effect is not ChangeEffect.RESTATED and one.path.startswith(side.key)
        )
        if of_side:
            effects = {one.effect for one in of_side}
            kind, how = _COMPARED[effects.pop() if len(effects) == 1 else ChangeEffect.CHANGED]
            yield _different(kind, old, new, f"The {side.word} of {excerpt(new.name)} {how}", of_side)
    if restated:
        yield _different(ChangeKind.DRIFTED, old, new, f"The text of {excerpt(new.name)} changed", restated)


def _different(kind: ChangeKind, old: Pin, new: Pin, what: str, details: tuple[ChangeDetail, ...]) -> ToolChange:
    breaking = any(one.breaking for one in details)
    # Show the breaking difference first.
    first = next((one for one in details if one.breaking), details[0])
    more = f"; {len(details) - 1:,} more" if len(details) > 1 else ""
    return ToolChange(
        kind=kind,
        old=old,
        new=new,
        fact=f"{what}: {first.fact} ({first.path}{more}).",
        remedy=_REMEDIES[kind] if breaking or kind is ChangeKind.DRIFTED else _NOTHING_TO_DO,
        breaking=breaking,
        details=details,
    )


def renames_table(changes: ToolChanges) -> str:
    """Return a TOML table ``[renames]`` with the certain renames; all others are comments that state the reason.

    A person has to judge a guess; a swapped or reused name is not a rename to apply, nor is an old name with two new
    ones.
    """
    found = [one for one in changes.renames() if one.old and one.new and one.old.name != one.new.name]
    times = Counter(one.old.name for one in found if one.old)
    lines = [_line(one, times[one.old.name] if one.old else 0) for one in found]
    return "\n".join(["[renames]", *sorted(lines, key=lambda line: line.startswith("#")), ""])


def _line(change: ToolChange, times: int) -> str:
    old, new = (toml_string(pin.name) if pin else "" for pin in (change.old, change.new))
    pair = f"{old} = {new}"
    if change.kind is not ChangeKind.RENAMED:
        return f"# {pair}  # {change.kind.value}: {new} now means another tool than before"
    if change.certainty is Certainty.SUGGESTED:
        return f"# {pair}  # a guess ({change.score:.2f})"
    return f"# {pair}  # the old name has several new names" if times > 1 else pair
