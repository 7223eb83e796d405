"""Pairs of shown names that a model may take for each other, kept until the names are other ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truename.identity import ToolId
    from truename.naming import NameTable

__all__ = ["NearNames", "NearPair"]

# More names that differ in the same place are a numbered series, and no confusion.
_MOST_ALIKE: Final = 200


class NearPair(NamedTuple):
    """Two names, and the tools that have them."""

    name: str
    other: str
    id: ToolId
    other_id: ToolId


class NearNames:
    """The near names of the table that was asked for last."""

    def __init__(self) -> None:
        self._known: tuple[NameTable | None, Sequence[NearPair]] = None, ()

    def of(self, table: NameTable) -> Sequence[NearPair]:
        """Return the pairs of a table, sorted. Takes a second for 10,000 names, once."""
        known, pairs = self._known
        if known is not table:
            pairs = _pairs(table)
            self._known = table, pairs
        return pairs


def _pairs(table: NameTable) -> list[NearPair]:
    """Return pairs of shown names that differ in one letter, which is another one or missing in one of them."""
    # Two names of which one letter differs are equal without it: no pair has to be compared.
    names = frozenset(table.values())
    without: dict[tuple[int, str], list[str]] = {}
    pairs: set[tuple[str, str]] = set()
    for name in sorted(names):
        for at in range(len(name)):
            rest = name[:at] + name[at + 1 :]
            without.setdefault((at, rest), []).append(name)
            if rest in names and not name[at].isdigit():
                pairs.add((rest, name))
    pairs |= {
        (one, other)
        for several in without.values()
        if 1 < len(several) <= _MOST_ALIKE
        for place, one in enumerate(several)
        for other in several[place + 1 :]
        if not (one[-1:].isdigit() and other[-1:].isdigit())
    }
    return [NearPair(one, other, table.id_of(one), table.id_of(other)) for one, other in sorted(pairs)]
