"""A change: what differs between two lists of tools, how sure that is, and whether it breaks somebody."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from truename.migration.effects import Detail
    from truename.migration.pins import Pin

__all__ = ["Certainty", "Changes", "Kind", "ToolChange"]


class Kind(StrEnum):
    """What happened to a tool, the most dangerous first.

    ``swapped``: two names have each other's tools; ``reused``: a name means what another name meant; ``renamed``;
    ``moved`` to another server; ``removed``; ``narrowed``, ``changed``, ``widened``: a schema, as `Effect` has it;
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
    """``certain`` is proved by equal definitions or equal names, ``suggested`` is a resemblance for people to judge."""

    CERTAIN = "certain"
    SUGGESTED = "suggested"


@dataclass(frozen=True, kw_only=True)
class ToolChange:
    """One change: the tool as it was and as it is (None: there is none), a fact, and what to do about it.

    ``score`` and ``reasons`` say how alike the two are whose renaming is a suggestion. ``details`` are the single
    differences of the definitions.
    """

    kind: Kind
    old: Pin | None
    new: Pin | None
    fact: str
    remedy: str
    breaking: bool
    certainty: Certainty = Certainty.CERTAIN
    score: float = 1.0
    reasons: tuple[str, ...] = ()
    details: tuple[Detail, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        return f"{self.fact} {self.remedy}"


_ORDER = {kind: place for place, kind in enumerate(Kind)}


@dataclass(frozen=True)
class Changes:
    """All changes between two lists of tools: the breaking ones first, then by kind, server and name."""

    changes: tuple[ToolChange, ...] = ()

    @classmethod
    def of(cls, changes: Sequence[ToolChange]) -> Changes:
        """Return them in their order, whatever the order given."""
        return cls(tuple(sorted(changes, key=_place)))

    @property
    def breaking(self) -> tuple[ToolChange, ...]:
        """Those that break somebody who relied on how it was."""
        return tuple(one for one in self.changes if one.breaking)

    def renames(self, *certainties: Certainty) -> tuple[ToolChange, ...]:
        """Return the tools that have another name now, those of these certainties (none given: all)."""
        kinds = (Kind.RENAMED, Kind.SWAPPED, Kind.REUSED)
        wanted = certainties or tuple(Certainty)
        return tuple(one for one in self.changes if one.kind in kinds and one.certainty in wanted)

    def __iter__(self) -> Iterator[ToolChange]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)


def _place(change: ToolChange) -> tuple[bool, int, tuple[str, str], tuple[str, str]]:
    old, new = change.old or change.new, change.new or change.old
    none = ("", "")
    return not change.breaking, _ORDER[change.kind], old.key if old else none, new.key if new else none
