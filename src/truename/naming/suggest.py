"""Suggest the names nearest to an unknown one; a suggestion is never called."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from difflib import SequenceMatcher
from heapq import nlargest
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.identity import fold
from truename.naming.words import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["NameSuggester"]

_LONGEST: Final = 200
_CUTOFF: Final = 0.6
# However many names there are, so many are looked at for one text: those that share its rarest triples...
_MOST_LOOKED_AT: Final = 5_000
_SHORTLIST: Final = 50
# ...and on each side those that begin or end most like it: of a name with one slip, one half is right.
_BESIDE: Final = 8
_SCORED: Final = 16


class NameSuggester:
    """Finds near names: by letter triples that few names have, by their begins and ends, and by edit likeness last.

    The index is built at first need, in time about linear in the names; `prepare` builds it beforehand, in any
    thread. A search takes about as long for a hundred thousand names as for some thousand.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = tuple(names)
        self._built: _Index | None = None
        self._building = Lock()

    @property
    def is_ready(self) -> bool:
        """Whether the index is built."""
        return self._built is not None

    def prepare(self) -> None:
        """Build the index, unless it is there."""
        self._index()

    def nearest(self, text: str, count: int = 3) -> tuple[str, ...]:
        """Return up to ``count`` names that somebody could have meant, best first.

        >>> NameSuggester(["dg_prism_refract", "sf_get_leads"]).nearest("dg_prism_refrakt")
        ('dg_prism_refract',)
        """
        wanted = fold("_".join(words(text[:_LONGEST])) or text[:_LONGEST])
        scored = sorted((-_likeness(wanted, folded), name) for folded, name in self._likely(wanted))
        return tuple(name for score, name in scored[:count] if -score >= _CUTOFF)

    def _likely(self, wanted: str) -> list[tuple[str, str]]:
        """Return the names, folded too, of which the parts that are shared make up the most."""
        index, grams = self._index(), _grams(wanted)
        pairs = ((fold(self._names[number]), self._names[number]) for number in index.candidates(wanted))
        return nlargest(_SCORED, pairs, key=lambda pair: _overlap(grams, _grams(pair[0])))

    def _index(self) -> _Index:
        if self._built is None:
            with self._building:
                self._built = self._built or _Index.of(self._names)
        return self._built


class _Index(NamedTuple):
    """Numbers of names: by letter triple, and in the order of the names as they are read forwards and backwards."""

    grams: dict[str, list[int]]
    forwards: list[tuple[str, int]]
    backwards: list[tuple[str, int]]

    @classmethod
    def of(cls, names: Iterable[str]) -> _Index:
        grams: dict[str, list[int]] = {}
        forwards, backwards = [], []
        for number, name in enumerate(names):
            folded = fold(name)
            forwards.append((folded, number))
            backwards.append((folded[::-1], number))
            for gram in _grams(folded):
                grams.setdefault(gram, []).append(number)
        return cls(grams, sorted(forwards), sorted(backwards))

    def candidates(self, wanted: str) -> set[int]:
        return {*self._rarely_shared(wanted), *_beside(self.forwards, wanted), *_beside(self.backwards, wanted[::-1])}

    def _rarely_shared(self, wanted: str) -> Iterator[int]:
        shared: Counter[int] = Counter()
        room = _MOST_LOOKED_AT
        for numbers in sorted((self.grams[gram] for gram in _grams(wanted) if gram in self.grams), key=len):
            shared.update(numbers[:room])
            if (room := room - len(numbers)) <= 0:
                break
        return (number for number, _ in shared.most_common(_SHORTLIST))


def _beside(ordered: list[tuple[str, int]], wanted: str) -> Iterator[int]:
    at = bisect_left(ordered, (wanted, 0))
    return (number for _, number in ordered[max(at - _BESIDE, 0) : at + _BESIDE])


def _overlap(some: set[str], others: set[str]) -> float:
    return len(some & others) / (len(some) + len(others))


def _likeness(one: str, other: str) -> float:
    """Return how much of two texts is the same: their begins and ends, and what a matcher finds between.

    The matcher takes time with the square of what it is given, and between is little.
    """
    most = min(len(one), len(other))
    first = next((at for at in range(most) if one[at] != other[at]), most)
    last = next((at for at in range(most - first) if one[-at - 1] != other[-at - 1]), most - first)
    between = SequenceMatcher(None, one[first : len(one) - last], other[first : len(other) - last])
    inner = sum(block.size for block in between.get_matching_blocks())
    return 2 * (first + last + inner) / (len(one) + len(other) or 1)


def _grams(folded: str) -> set[str]:
    padded = f" {folded} "
    return {padded[i : i + 3] for i in range(len(padded) - 2)}
