"""How much one tool resembles another: the words of the name, the description, the parameters.

Resemblance is a suggestion for people, never a proof. Words count by how few of the compared tools have them, verbs
half, and two verbs of one sense a little.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.errors import excerpt
from truename.migration.verbs import COMMON, VERBS, same_sense, senses
from truename.naming.words import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from truename.migration.pins import Pin

__all__ = ["Likeness", "Resemblance"]

_TEXT: Final = re.compile(r"[^\W_]+")
_READ: Final = 4_000
_TEXT_WORDS: Final = 300
_LONGEST_NAME: Final = 200
_MOST_PARAMETERS: Final = 100
_IDEOGRAPHS: Final = "\u2e80"
# What a part weighs in the whole; a part that one of the two tools does not have is left out.
_WEIGHTS: Final = {"name": 0.45, "text": 0.35, "parameters": 0.2}
_VERB: Final = 0.5
_SENSE: Final = 0.3
_SAME_SENSE: Final = 0.45
_STEMMED: Final = 4
# A tool is compared with those that share its rarest words, and in full with the best few of them.
_POSTINGS: Final = 400
_ONE_POSTING: Final = 2_000
_RAREST: Final = 16
_SHORTLIST: Final = 8
# Below the first nothing is suggested; a name with no word in common takes a description that is nearly the same.
LEAST: Final = 0.4
_LEAST_NAMELESS: Final = 0.6
_ALIKE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Likeness:
    """How much two tools resemble each other, from 0 to 1, and in what."""

    score: float
    reasons: tuple[str, ...] = ()


class _Traits(NamedTuple):
    pin: Pin
    squashed: str
    name: frozenset[str]
    text: frozenset[str]
    parameters: frozenset[str]

    @property
    def features(self) -> Iterable[tuple[str, str]]:
        yield "squashed", self.squashed
        for word in self.name:
            for sense in senses(word):
                yield "sense", sense
        for kind, several in (("name", self.name), ("text", self.text), ("parameters", self.parameters)):
            for word in several:
                yield kind, word


class Resemblance:
    """Finds for each old tool the new ones that it may have become, without comparing all with all."""

    def __init__(self, old: Sequence[Pin], new: Sequence[Pin]) -> None:
        self._old = [_traits(pin) for pin in old]
        self._new = [_traits(pin) for pin in new]
        self._holders: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for place, traits in enumerate(self._new):
            for feature in traits.features:
                self._holders[feature].append(place)
        self._count = max(len(old), len(new), 1)
        self._spread = Counter(feature for traits in self._old for feature in traits.features)
        self._weights = self._weighed()

    def pairs(self, least: float = LEAST, *, by_name: bool = True) -> list[tuple[Likeness, Pin, Pin]]:
        """Return the pairs that resemble each other, the most alike first; a tool may be in several."""
        found = []
        for old in self._old:
            for place in self._shortlist(old):
                likeness = self._likeness(old, self._new[place], by_name=by_name)
                if likeness.score >= least:
                    found.append((likeness, old.pin, self._new[place].pin))
        return sorted(found, key=lambda pair: (-pair[0].score, pair[1].key, pair[2].key))

    def definitions(self, old: Pin, new: Pin) -> float:
        """Return how much the definitions of two tools are alike, whatever their names."""
        return self._likeness(_traits(old), _traits(new), by_name=False).score

    def _shortlist(self, old: _Traits) -> list[int]:
        rarest = sorted((len(self._holders[one]), one) for one in old.features if one in self._holders)[:_RAREST]
        scores: defaultdict[int, list[float]] = defaultdict(list)
        looked = 0
        for count, feature in rarest:
            if looked + count > (_POSTINGS if looked else _ONE_POSTING):
                break
            looked += count
            for place in self._holders[feature]:
                scores[place].append(self._weights[feature[0]][feature[1]])
        best = heapq.nsmallest(_SHORTLIST, ((-math.fsum(several), place) for place, several in scores.items()))
        return [place for _, place in best]

    def _likeness(self, old: _Traits, new: _Traits, *, by_name: bool) -> Likeness:
        parts: dict[str, float] = {}
        if by_name:
            same = bool(old.squashed) and old.squashed == new.squashed
            parts["name"] = 1.0 if same else self._named(old.name, new.name)
        if old.text and new.text:
            parts["text"] = self._shared("text", old.text, new.text)
        if old.parameters and new.parameters:
            parts["parameters"] = self._shared("parameters", old.parameters, new.parameters)
        if parts.get("name") == 0.0 and parts.get("text", 0.0) < _LEAST_NAMELESS:
            return Likeness(0.0)
        total = math.fsum(_WEIGHTS[part] for part in parts) or 1.0
        score = math.fsum(_WEIGHTS[part] * value for part, value in parts.items()) / total
        return Likeness(round(score, 2), _reasons(old, new, parts))

    def _named(self, old: frozenset[str], new: frozenset[str]) -> float:
        """Return how much two names have in common: their words, and a little for a verb of the same sense."""
        left, right = old - new, new - old
        akin = {one for one in left & VERBS if any(same_sense(one, two) for two in right)}
        shared = self._shared("name", old, new) + _SENSE * len(akin) / max(len(old), len(new), 1)
        # ``query`` became ``find``.
        least = _SAME_SENSE if akin == left and len(akin) == len(right) == 1 else 0.0
        return min(max(shared, least), 1.0)

    def _shared(self, kind: str, old: frozenset[str], new: frozenset[str]) -> float:
        """Return the weight of what two sets share, of the weight of both."""
        total = self._total(kind, old) + self._total(kind, new)
        return 2 * self._total(kind, old & new) / total if total else 0.0

    def _total(self, kind: str, several: frozenset[str]) -> float:
        # Exact sums: the order of a set of words must not decide.
        weights = self._weights[kind]
        return math.fsum(map(weights.__getitem__, several))

    def _weighed(self) -> dict[str, dict[str, float]]:
        """Return what each word weighs: the less, the more tools of either side have it."""
        weights: defaultdict[str, dict[str, float]] = defaultdict(dict)
        for kind, word in self._spread.keys() | self._holders.keys():
            spread = max(self._spread[kind, word], len(self._holders.get((kind, word), ())))
            rarity = math.log1p(self._count / spread) / math.log1p(self._count)
            weights[kind][word] = rarity * (_VERB if kind == "name" and word in COMMON else 1.0)
        return weights


def _reasons(old: _Traits, new: _Traits, parts: dict[str, float]) -> tuple[str, ...]:
    reasons = []
    if parts.get("name") == 1.0:
        reasons.append("the names differ in spelling only")
    elif "name" in parts and (shared := sorted(old.name & new.name)):
        reasons.append(f"both names have {', '.join(excerpt(word, 30) for word in shared[:5])}")
    elif parts.get("name"):
        reasons.append("the verbs of the names mean the same")
    if (text := parts.get("text", 0.0)) >= _ALIKE:
        reasons.append("the descriptions are the same" if text == 1.0 else f"the descriptions are alike ({text:.2f})")
    if (share := parts.get("parameters", 0.0)) >= _ALIKE:
        reasons.append("the parameters are the same" if share == 1.0 else f"the parameters are alike ({share:.2f})")
    return tuple(reasons)


def _traits(pin: Pin) -> _Traits:
    name = words(pin.name[:_LONGEST_NAME])
    said = (pin.definition or {}).get("description")
    text = frozenset(_text_words(said)) if isinstance(said, str) else frozenset()
    parameters = frozenset(one.rstrip("?") for one in pin.parameters[:_MOST_PARAMETERS])
    return _Traits(pin, "".join(name), frozenset(map(_stem, name)), text, parameters)


def _text_words(text: str) -> Iterable[str]:
    for word in _TEXT.findall(text[:_READ].lower())[:_TEXT_WORDS]:
        if word >= _IDEOGRAPHS:
            # No spaces part these: pairs of characters stand for words.
            yield from (word[i : i + 2] for i in range(max(len(word) - 1, 1)))
        else:
            yield word


def _stem(word: str) -> str:
    return word[:-1] if len(word) >= _STEMMED and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word
