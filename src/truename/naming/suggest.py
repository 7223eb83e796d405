"""Suggest the names nearest to an unknown one; suggestions are shown in errors and never called."""

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
# However many names there are, only this many are examined for one text: those that share its rarest letter triples...
_MOST_EXAMINED: Final = 5_000
_SHORTLIST: Final = 50
# ...and its neighbours in the sorted names and reversed names: if there is one typo, one half of the name is right.
_NEIGHBOURS: Final = 8
_SCORED: Final = 16
# Names that are looked through one by one, before an index is built anew.
_MOST_BESIDE: Final = 64


class NameSuggester:
    """A search for similar names: by rare letter triples, by common starts and ends, and finally by edit distance.

    The index is built at first use, in about linear time; `prepare` builds it in advance, in any thread. A search takes
    about as long for a hundred thousand names as for a few thousand.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = tuple(names)
        self._built: _Index | None = None
        self._building = Lock()
        # What came and went since the index was built.
        self._new: tuple[str, ...] = ()
        self._gone: frozenset[str] = frozenset()

    def changed(self, gone: Iterable[str], new: Iterable[str]) -> NameSuggester:
        """Return a search for other names, over the same index as long as few are new."""
        gone, new = frozenset(gone), tuple(new)
        added = (*(name for name in self._new if name not in gone), *new)
        left = (self._gone | gone).difference(new)
        other = NameSuggester(self._names)
        if self._built is None or len(added) + len(left) > _MOST_BESIDE:
            other._names = tuple(name for name in dict.fromkeys((*self._names, *added)) if name not in left)
            return other
        other._built, other._new, other._gone = self._built, added, left
        return other

    @property
    def is_ready(self) -> bool:
        """Whether the index is built."""
        return self._built is not None

    def prepare(self) -> None:
        """Build the index unless it is built."""
        self._index()

    def nearest(self, text: str, count: int = 3) -> tuple[str, ...]:
        """Return up to ``count`` names that the text may be a misspelling of, best first.

        >>> NameSuggester(["dg_prism_refract", "sf_get_leads"]).nearest("dg_prism_refrakt")
        ('dg_prism_refract',)
        """
        text = fold("_".join(words(text[:_LONGEST])) or text[:_LONGEST])
        index, grams = self._index(), _grams(text)
        near = [*(self._names[number] for number in index.candidates(text)), *self._new]
        pairs = ((fold(name), name) for name in dict.fromkeys(near) if name not in self._gone)
        scored = sorted(
            (-_likeness(text, folded), name)
            for folded, name in nlargest(_SCORED, pairs, key=lambda pair: _overlap(grams, _grams(pair[0])))
        )
        return tuple(name for score, name in scored[:count] if -score >= _CUTOFF)

    def _index(self) -> _Index:
        if self._built is None:
            with self._building:
                self._built = self._built or _Index.of(self._names)
        return self._built


class _Index(NamedTuple):
    """An index of names by number: by letter triple, and sorted by name and by reversed name."""

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

    def candidates(self, text: str) -> set[int]:
        return {*self._rarely_shared(text), *_neighbours(self.forwards, text), *_neighbours(self.backwards, text[::-1])}

    def _rarely_shared(self, text: str) -> Iterator[int]:
        shared: Counter[int] = Counter()
        room = _MOST_EXAMINED
        for numbers in sorted((self.grams[gram] for gram in _grams(text) if gram in self.grams), key=len):
            shared.update(numbers[:room])
            if (room := room - len(numbers)) <= 0:
                break
        return (number for number, _ in shared.most_common(_SHORTLIST))


def _neighbours(ordered: list[tuple[str, int]], text: str) -> Iterator[int]:
    at = bisect_left(ordered, (text, 0))
    return (number for _, number in ordered[max(at - _NEIGHBOURS, 0) : at + _NEIGHBOURS])


def _overlap(some: set[str], others: set[str]) -> float:
    return len(some & others) / (len(some) + len(others))


def _likeness(one: str, other: str) -> float:
    """Return the similarity of two texts from 0 to 1: common start, common end, and matching blocks between them.

    The matcher takes quadratic time, so it only compares the short part between common start and end.
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
