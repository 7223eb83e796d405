"""Screening: what the linter's rules about texts and look-alikes say of tools that were not seen before."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from truename.conventions import Convention, Declaration, lint
from truename.conventions.rules import CHECKS
from truename.naming.spellings import plain_spellings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from truename.catalog import Tool
    from truename.conventions import Finding
    from truename.identity import ToolId
    from truename.trust.book import Pinned

    Findings = Mapping[tuple[str, str], Sequence[Finding]]

__all__ = ["SCREENED", "Names", "declared", "screened", "screened_pins", "screened_text", "spellings"]

SCREENED: Final = frozenset(
    {
        *("TN150", "TN151", "TN152", "TN153"),
        *("TN160", "TN161", "TN162", "TN163", "TN164"),
        *("TN170", "TN171", "TN172", "TN173"),
    }
)
"""The rules that admission asks: characters, look-alikes, orders in texts. Names' style is a team's own matter."""

_ALONE: Final = Convention(
    severities={check.rule.code: None for check in CHECKS.values() if check.rule.code not in SCREENED}
)


_TOLD: Final = frozenset({"TN150", "TN151", "TN153", "TN170", "TN171"})
_OF_TEXTS: Final = Convention(
    severities={check.rule.code: None for check in CHECKS.values() if check.rule.code not in _TOLD}
)
_LONGEST: Final = 200_000

Names = Callable[["Tool"], "Iterable[str]"]
"""Gives what clients call a tool, beside its own name."""


def spellings(tool: Tool) -> Iterator[str]:
    """Yield what a tool is called where its server's key stands in front, in all styles: `plain_spellings`."""
    yield from plain_spellings(tool.id, tool.origin.server, tool.origin.name, None)


def screened(
    new: Sequence[Tool], trusted: Iterable[Tool], names: Names = spellings
) -> Mapping[ToolId, Sequence[Finding]]:
    """Return what is found about new tools beside those that are trusted, by id.

    Nothing is found about the trusted ones: who was there first is not the one who imitates. ``names`` are those under
    which texts of others may speak of a tool.
    """
    ids = {(tool.origin.server_id, tool.origin.name): tool.id for tool in new}
    # Of the present list of a tool that changed only the new definition counts.
    peers = [declared(tool, names) for tool in trusted if (tool.origin.server_id, tool.origin.name) not in ids]
    found: defaultdict[ToolId, list[Finding]] = defaultdict(list)
    for finding in lint([declared(tool, names) for tool in new], _ALONE, peers).findings:
        id = ids.get((finding.server, finding.tools[0])) if finding.tools else None
        if id is not None:
            found[id].append(finding)
    return found


def screened_text(server: str, text: str) -> tuple[Finding, ...]:
    """Return what is found about a server's instructions: orders to a model, and characters that hide something.

    Of those that are longer the first 200,000 characters are looked at.
    """
    declaration = Declaration(name="instructions", server=server, definition={"description": text[:_LONGEST]})
    return tuple(lint([declaration], _OF_TEXTS).findings)


def screened_pins(new: Iterable[Pinned], trusted: Iterable[Pinned]) -> Findings:
    """Return what is found about what is kept, beside what is trusted, by key and digest.

    A name that only clients were shown is not known here. Of what is known by its digest nothing is found.
    """
    pins = [*trusted]
    found: dict[tuple[str, str], Sequence[Finding]] = {}
    rounds: defaultdict[int, list[Pinned]] = defaultdict(list)
    times: Counter[str] = Counter()
    for one in new:
        if one.id is None:
            found[one.key, one.digest] = screened_text(one.server, one.content) if isinstance(one.content, str) else ()
        else:
            # Definitions of one tool are not beside each other: one is in the place of the other.
            rounds[times[one.key]].append(one)
            times[one.key] += 1
    for several in rounds.values():
        found |= _screened_beside(several, pins)
    return found


def _screened_beside(new: Sequence[Pinned], trusted: Sequence[Pinned]) -> Findings:
    keys = {(one.server, one.name): (one.key, one.digest) for one in new}
    peers = [declaration for one in trusted if (one.server, one.name) not in keys for declaration in _kept(one)]
    found: defaultdict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in lint([declaration for one in new for declaration in _kept(one)], _ALONE, peers).findings:
        if finding.tools and (finding.server, finding.tools[0]) in keys:
            found[keys[finding.server, finding.tools[0]]].append(finding)
    return found


def _kept(one: Pinned) -> Iterator[Declaration]:
    if one.id is not None and isinstance(one.content, Mapping):
        shown = tuple(plain_spellings(one.id, one.server, one.name, None))
        yield Declaration(name=one.name, server=one.server, definition=one.content, shown=shown)


def declared(tool: Tool, names: Names = spellings) -> Declaration:
    """Return a tool as the rules look at it, with what clients call it."""
    origin, shown = tool.origin, tuple(names(tool))
    return Declaration(name=origin.name, server=origin.server_id, definition=tool.definition, shown=shown)
