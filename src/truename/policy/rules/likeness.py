"""Which tools of different servers are like each other: by name, by what a name looks like, by their words."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from functools import cached_property
from itertools import chain, combinations, groupby, islice
from typing import TYPE_CHECKING, Final

from truename.identity import fold
from truename.policy.rules.confusables import skeleton

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from truename.policy.declaration import Declaration
    from truename.policy.rules.material import Material

__all__ = ["CLONED", "Neighbours", "likeness"]

# Two descriptions are one, reworded, if so much of the words of both is shared.
CLONED: Final = 0.75
_FEWEST_WORDS: Final = 3
_MOST_WORDS: Final = 400
# Shorter names differ by a letter as a matter of course: get, set.
_NEAR_FROM: Final = 6
_NEAR_TO: Final = 48
# A name such as "search" is of many servers; more of them say nothing more.
_MOST_COMPARED: Final = 20
_SAME_SOFTWARE: Final = 0.8
_WORD: Final = re.compile(r"[^\W_]{1,40}")


def likeness(one: str, other: str) -> float:
    """Return how much of the words of two descriptions is shared, 0 to 1; too few words say nothing.

    >>> likeness("Send an outbound email via SMTP.", "send an Outbound Email via SMTP!")
    1.0
    >>> likeness("Searches the local index.", "Searches a remote index.")
    0.3333333333333333
    """
    return _shared(_bag(one), _bag(other))


class Neighbours:
    """Pairs of tools of different servers, each pair once: about a declaration, and what stands beside it."""

    def __init__(self, material: Material) -> None:
        self._material = material
        self._peers = frozenset(map(id, material.peers))
        self._instances: dict[tuple[str, str], bool] = {}
        self._bags: dict[str, frozenset[str]] = {}

    def looking_alike(self) -> Iterator[tuple[Declaration, Declaration]]:
        """Yield pairs whose names look the same and are not."""
        for one, other in self._pairs(self._by_skeleton):
            if fold(one.name) != fold(other.name):
                yield one, other

    def cloned(self) -> Iterator[tuple[Declaration, Declaration]]:
        """Yield pairs of one name and nearly one description, but for two instances of one program."""
        for one, other in self._pairs(self._material.alike):
            if self._is_clone(one, other) and not self._are_instances(one.server, other.server):
                yield one, other

    def near(self) -> Iterator[tuple[Declaration, Declaration]]:
        """Yield pairs of nearly one description whose names are one edit apart."""
        compared: Counter[str] = Counter()
        for name, near in sorted(self._near_names):
            compared.update((name, near))
            if max(compared[name], compared[near]) > _MOST_COMPARED:
                continue
            group = [*self._material.alike[name], *self._material.alike[near]]
            for one, other in self._pairs({"": group}):
                if fold(one.name) != fold(other.name) and self._is_clone(one, other):
                    yield one, other

    def _pairs(self, index: Mapping[str, Sequence[Declaration]]) -> Iterator[tuple[Declaration, Declaration]]:
        for group in index.values():
            if len(group) > 1 and len({one.server for one in group}) > 1:
                ordered = sorted(group, key=_order)
                mine = [one for one in ordered if id(one) not in self._peers]
                first, beside = _first(mine), _first(one for one in ordered if id(one) in self._peers)
                for one in mine:
                    # Each pair of declarations is told of the later one.
                    earlier = first[: bisect_left(first, one.server, key=_server)]
                    others = chain(earlier, (other for other in beside if other.server != one.server))
                    yield from ((one, other) for other in islice(others, _MOST_COMPARED))

    def _is_clone(self, one: Declaration, other: Declaration) -> bool:
        return _shared(self._bag(one.description), self._bag(other.description)) >= CLONED

    def _bag(self, text: str) -> frozenset[str]:
        if text not in self._bags:
            self._bags[text] = _bag(text)
        return self._bags[text]

    def _are_instances(self, one: str, other: str) -> bool:
        """Whether two servers list the same tools in the same words: the same program, started twice."""
        if (one, other) not in self._instances:
            mine, others = self._lists[one], self._lists[other]
            shared = len(mine & others)
            self._instances[one, other] = shared > 1 and shared >= _SAME_SOFTWARE * max(len(mine), len(others))
        return self._instances[one, other]

    @cached_property
    def _lists(self) -> Mapping[str, frozenset[tuple[str, str]]]:
        by_server = self._material.by_server
        return {key: frozenset((one.name, one.description) for one in tools) for key, tools in by_server.items()}

    @cached_property
    def _by_skeleton(self) -> Mapping[str, Sequence[Declaration]]:
        found: defaultdict[str, list[Declaration]] = defaultdict(list)
        for one in self._several():
            found[skeleton(fold(one.name))].append(one)
        return found

    @property
    def _near_names(self) -> set[tuple[str, str]]:
        """Folded names one edit apart: near names share what is left of them without one of their characters."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for name in dict.fromkeys(fold(one.name) for one in self._several()):
            if _NEAR_FROM <= len(name) <= _NEAR_TO:
                found[name].append(name)
                for at in range(len(name)):
                    found[name[:at] + name[at + 1 :]].append(name)
        groups = (sorted(set(group))[:_MOST_COMPARED] for group in found.values() if len(group) > 1)
        return {pair for group in groups for pair in combinations(group, 2) if _is_one_edit(*pair)}

    def _several(self) -> Iterable[Declaration]:
        return self._material.everything if len(self._material.by_server) > 1 else ()


def _first(ordered: Iterable[Declaration]) -> list[Declaration]:
    """Return the first few of each of the first few servers: whatever server is left out, enough others stay."""
    by_server = islice(groupby(ordered, key=_server), _MOST_COMPARED + 1)
    return [one for _, tools in by_server for one in islice(tools, _MOST_COMPARED)]


def _server(one: Declaration) -> str:
    return one.server


def _order(one: Declaration) -> tuple[str, str]:
    return one.server, one.name


def _bag(text: str) -> frozenset[str]:
    return frozenset(match.group() for match in islice(_WORD.finditer(text.casefold()), _MOST_WORDS))


def _shared(mine: frozenset[str], others: frozenset[str]) -> float:
    if min(len(mine), len(others)) < _FEWEST_WORDS:
        return 0.0
    return len(mine & others) / len(mine | others)


def _is_one_edit(one: str, other: str) -> bool:
    """Whether two different names become one by a character more, less or other, or by two that change places."""
    if one == other or abs(len(one) - len(other)) > 1:
        return False
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    mine, others = one[start:], other[start:]
    swapped = mine[:2] == others[1::-1] and mine[2:] == others[2:]
    return swapped or mine[1:] == others[1:] or mine[1:] == others or mine == others[1:]
