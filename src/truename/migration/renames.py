"""The renames of a comparison as a file that a person looks through and `truename rename --map` reads."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from truename.migration.changes import Certainty, Kind
from truename.migration.lock import quoted

if TYPE_CHECKING:
    from truename.migration.changes import Changes, ToolChange

__all__ = ["renames_table"]


def renames_table(changes: Changes) -> str:
    """Return TOML with a table ``[renames]``: certain renames as they are, all others as comments that say why.

    A guess has to be judged by a person, a name that was swapped or reused is no rename to be applied, and of two
    new names for one old name neither can be.
    """
    found = [one for one in changes.renames() if one.old and one.new and one.old.name != one.new.name]
    times = Counter(one.old.name for one in found if one.old)
    lines = [_line(one, times[one.old.name] if one.old else 0) for one in found]
    return "\n".join(["[renames]", *sorted(lines, key=lambda line: line.startswith("#")), ""])


def _line(change: ToolChange, times: int) -> str:
    old, new = (quoted(pin.name) if pin else "" for pin in (change.old, change.new))
    pair = f"{old} = {new}"
    if change.kind is not Kind.RENAMED:
        return f"# {pair}  # {change.kind.value}: what is called {new} now is another tool than before"
    if change.certainty is Certainty.SUGGESTED:
        return f"# {pair}  # a guess ({change.score:.2f})"
    return f"# {pair}  # the old name has several new ones" if times > 1 else pair
