"""Print the changes between two lists of tools, as text or JSON."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from rich.text import Text

from truename.cli._rendering import printable, show, show_hanging, styled
from truename.migration import Certainty, ChangeKind, ToolChange, ToolChanges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truename.migration import Pin

__all__ = ["plain", "show_changes"]

_MOST: Final = 60
_DETAILS: Final = 6
_HEADINGS: Final = ((True, "breaking", "bold red"), (False, "not breaking", "bold"))
_STYLES: Final = {
    ChangeKind.SWAPPED: "bold red",
    ChangeKind.REUSED: "bold red",
    ChangeKind.ADDED: "green",
    ChangeKind.WIDENED: "green",
    ChangeKind.DRIFTED: "yellow",
}
_OTHER: Final = "red"


def show_changes(changes: ToolChanges, *, everything: bool) -> None:
    """Print all changes, the breaking ones first: the fact, the paths, and the remedy."""
    for breaking, heading, style in _HEADINGS:
        group = [one for one in changes if one.breaking is breaking]
        shown = group if everything else group[:_MOST]
        if not group:
            continue
        show(styled(heading, style))
        # A remedy that several changes in a row share is printed once, after the last of them.
        is_last = [remedy != following for remedy, following in pairwise([*(one.remedy for one in shown), None])]
        show_hanging([_row(one, with_remedy=last) for one, last in zip(shown, is_last, strict=True)], indent=2)
        if left := len(group) - len(shown):
            show(styled(f"  and {left:,} more (--all)", "dim"))
        show("")
    show(styled(summary(changes), "bold"))


def _row(change: ToolChange, *, with_remedy: bool) -> Sequence[Text]:
    style = _STYLES.get(change.kind, _OTHER if change.breaking else "")
    word = styled(change.kind.value, style)
    if change.certainty is Certainty.SUGGESTED:
        word = Text.assemble(word, styled("?", style))
    parts: list[Text | str] = [styled(change.fact)]
    # The fact of a change may already state its only difference.
    if len(change.details) >= (1 if change.kind in (ChangeKind.RENAMED, ChangeKind.MOVED) else 2):
        lines = [str(one) for one in sorted(change.details, key=lambda one: not one.breaking)[:_DETAILS]]
        if left := len(change.details) - len(lines):
            lines.append(f"and {left:,} more (--json lists all)")
        parts += [styled(f"\n{printable(one)}", "dim") for one in lines]
    place = change.new.location if change.new is not None else None
    if place is not None and place.line:
        parts += ["\n", styled(f"{place.file}:{place.line}", "dim")]
    if with_remedy:
        parts += ["\n", styled(change.remedy, "green")]
    return word, Text.assemble(*parts, overflow="fold")


def summary(changes: ToolChanges) -> str:
    """Return the last line: the number of breaking changes, and of renames that are guesses."""
    if not changes:
        return "Nothing has changed."
    breaking = len(changes.breaking)
    counts = Counter(one.kind.value for one in changes)
    by_kind = ", ".join(f"{number:,} {word}" for word, number in counts.items())
    guessed = sum(one.certainty is Certainty.SUGGESTED for one in changes)
    guesses = f" {guessed:,} marked ? {'is' if guessed == 1 else 'are'} a guess." if guessed else ""
    return f"{len(changes):,} change{'' if len(changes) == 1 else 's'}, {breaking:,} breaking: {by_kind}.{guesses}"


def plain(changes: ToolChanges) -> dict[str, object]:
    """Return the changes as JSON, as several commands include them."""
    return {
        "breaking": len(changes.breaking),
        "changes": [_plain(one) for one in changes],
        "summary": dict(Counter(one.kind.value for one in changes)),
    }


def _plain(change: ToolChange) -> dict[str, object]:
    return {
        "kind": change.kind.value,
        "certainty": change.certainty.value,
        "breaking": change.breaking,
        "old": _tool(change.old),
        "new": _tool(change.new),
        "score": change.score,
        "reasons": list(change.reasons),
        "fact": change.fact,
        "remedy": change.remedy,
        "details": [
            {"path": one.path, "effect": one.effect.value, "fact": one.fact, "breaking": one.breaking}
            for one in change.details
        ],
    }


def _tool(pin: Pin | None) -> dict[str, object] | None:
    if pin is None:
        return None
    place = pin.location
    location = None if place is None else {"file": place.file, "line": place.line, "column": place.column}
    return {"name": pin.name, "server": pin.server, "digest": pin.digest, "location": location}
