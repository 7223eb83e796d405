"""Match old tools with new ones: proven by equal definitions, or suggested by similarity."""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.errors import excerpt
from truename.identity import fold
from truename.naming.words import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from truename.migration.lock import Key, Pin

__all__ = [
    "COMMON",
    "Resemblance",
    "ToolMatch",
    "ToolSides",
    "have_same_sense",
    "proven_matches",
    "suggest_matches",
    "suspect_matches",
]

# Collected from real tool catalogs and the renames between their releases; a verb may have several senses.
_SENSES: Final = (
    "get fetch read retrieve show print view load describe query info status",
    "list get enumerate browse index ls",
    "find search query lookup locate discover",
    "create add new make insert generate build open register write",
    "delete remove drop clear erase destroy unregister rm",
    "update edit modify change set patch write put",
    "run execute exec invoke call trigger start launch perform",
    "stop end close cancel kill terminate abort",
    "send post submit publish push",
    "take capture make grab",
    "check verify validate test assert",
    "convert transform export translate",
    "upload import attach",
    "download export fetch",
    "press click tap",
    "type fill input enter",
    "wait sleep",
    "navigate go goto open visit",
)
_OF: Final[dict[str, set[int]]] = {}
for _number, _verbs in enumerate(_SENSES):
    for _verb in _verbs.split():
        _OF.setdefault(_verb, set()).add(_number)

VERBS: Final = frozenset(_OF)
# The verbs of reading, listing, finding, creating, deleting and updating, which hardly distinguish tools.
COMMON: Final = frozenset(verb for verbs in _SENSES[:6] for verb in verbs.split())


def verb_senses(word: str) -> tuple[str, ...]:
    """Return the senses of a verb; none for any other word."""
    return tuple(map(str, sorted(_OF.get(word, ()))))


def have_same_sense(one: str, other: str) -> bool:
    """Return whether two verbs share a sense.

    >>> have_same_sense("print", "get"), have_same_sense("get", "delete")
    (True, False)
    """
    return not _OF.get(one, set()).isdisjoint(_OF.get(other, ()))


_TEXT: Final = re.compile(r"[^\W_]+")
_READ: Final = 4_000
_TEXT_WORDS: Final = 300
_LONGEST_NAME: Final = 200
_MOST_PARAMETERS: Final = 100
_IDEOGRAPHS: Final = "\u2e80"
# The weight of each part in the score; a part that one of the two tools lacks is left out.
_WEIGHTS: Final = {"name": 0.45, "text": 0.35, "parameters": 0.2}
_VERB: Final = 0.5
_SENSE: Final = 0.3
_SAME_SENSE: Final = 0.45
_STEMMED: Final = 4
# A tool is compared with those that share its rarest words, and in full only with the best few of them.
_POSTINGS: Final = 400
_ONE_POSTING: Final = 2_000
_RAREST: Final = 16
_SHORTLIST: Final = 8
# Nothing below the first is suggested; names without a common word need nearly equal descriptions.
LEAST: Final = 0.4
_LEAST_NAMELESS: Final = 0.6
_ALIKE: Final = 0.5


@dataclass(frozen=True, slots=True)
class ToolLikeness:
    """The similarity of two tools, from 0 to 1, with its reasons."""

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
            for sense in verb_senses(word):
                yield "sense", sense
        for kind, several in (("name", self.name), ("text", self.text), ("parameters", self.parameters)):
            for word in several:
                yield kind, word


class Resemblance:
    """A search for the new tools that each old one may have become, without comparing all pairs."""

    def __init__(self, old: Sequence[Pin], new: Sequence[Pin]) -> None:
        self._old = [_traits(pin) for pin in old]
        self._new = [_traits(pin) for pin in new]
        self._holders: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for place, traits in enumerate(self._new):
            for feature in traits.features:
                self._holders[feature].append(place)
        self._count = max(len(old), len(new), 1)
        self._spread = Counter(feature for traits in self._old for feature in traits.features)
        # The more tools of either side have a word, the less it weighs.
        self._weights: defaultdict[str, dict[str, float]] = defaultdict(dict)
        for kind, word in self._spread.keys() | self._holders.keys():
            spread = max(self._spread[kind, word], len(self._holders.get((kind, word), ())))
            rarity = math.log1p(self._count / spread) / math.log1p(self._count)
            self._weights[kind][word] = rarity * (_VERB if kind == "name" and word in COMMON else 1.0)

    def pairs(self, least: float = LEAST, *, by_name: bool = True) -> list[tuple[ToolLikeness, Pin, Pin]]:
        """Return the similar pairs, the most similar first; a tool may be in several."""
        found = []
        for old in self._old:
            for place in self._shortlist(old):
                likeness = self._likeness(old, self._new[place], by_name=by_name)
                if likeness.score >= least:
                    found.append((likeness, old.pin, self._new[place].pin))
        return sorted(found, key=lambda pair: (-pair[0].score, pair[1].key, pair[2].key))

    def definitions(self, old: Pin, new: Pin) -> float:
        """Return the similarity of the definitions of two tools, ignoring their names."""
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

    def _likeness(self, old: _Traits, new: _Traits, *, by_name: bool) -> ToolLikeness:
        parts: dict[str, float] = {}
        if by_name:
            same = bool(old.squashed) and old.squashed == new.squashed
            parts["name"] = 1.0 if same else self._named(old.name, new.name)
        if old.text and new.text:
            parts["text"] = self._shared("text", old.text, new.text)
        if old.parameters and new.parameters:
            parts["parameters"] = self._shared("parameters", old.parameters, new.parameters)
        if parts.get("name") == 0.0 and parts.get("text", 0.0) < _LEAST_NAMELESS:
            return ToolLikeness(0.0)
        total = math.fsum(_WEIGHTS[part] for part in parts) or 1.0
        score = math.fsum(_WEIGHTS[part] * value for part, value in parts.items()) / total
        return ToolLikeness(round(score, 2), _reasons(old, new, parts))

    def _named(self, old: frozenset[str], new: frozenset[str]) -> float:
        """Return the similarity of two names: their common words, and a little for verbs with the same sense."""
        left, right = old - new, new - old
        akin = {one for one in left & VERBS if any(have_same_sense(one, two) for two in right)}
        shared = self._shared("name", old, new) + _SENSE * len(akin) / max(len(old), len(new), 1)
        # For example, ``query`` became ``find``.
        least = _SAME_SENSE if akin == left and len(akin) == len(right) == 1 else 0.0
        return min(max(shared, least), 1.0)

    def _shared(self, kind: str, old: frozenset[str], new: frozenset[str]) -> float:
        """Return the weight of the common words as a share of the weight of both sets."""
        total = self._total(kind, old) + self._total(kind, new)
        return 2 * self._total(kind, old & new) / total if total else 0.0

    def _total(self, kind: str, several: frozenset[str]) -> float:
        # Exact sums, so that the order of a set does not matter.
        weights = self._weights[kind]
        return math.fsum(map(weights.__getitem__, several))


def _reasons(old: _Traits, new: _Traits, parts: dict[str, float]) -> tuple[str, ...]:
    reasons = []
    if parts.get("name") == 1.0:
        reasons.append("the names differ only in spelling")
    elif "name" in parts and (shared := sorted(old.name & new.name)):
        reasons.append(f"both names have {', '.join(excerpt(word, 30) for word in shared[:5])}")
    elif parts.get("name"):
        reasons.append("the verbs of the names mean the same")
    if (text := parts.get("text", 0.0)) >= _ALIKE:
        reasons.append("the descriptions are equal" if text == 1.0 else f"the descriptions are similar ({text:.2f})")
    if (share := parts.get("parameters", 0.0)) >= _ALIKE:
        reasons.append("the parameters are equal" if share == 1.0 else f"the parameters are similar ({share:.2f})")
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
            # Languages without spaces: pairs of characters serve as words.
            yield from (word[i : i + 2] for i in range(max(len(word) - 1, 1)))
        else:
            yield word


def _stem(word: str) -> str:
    return word[:-1] if len(word) >= _STEMMED and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


# A tool below the first similarity is a different one under the same name; one above the second is the same under
# another name.
_STRANGE: Final = 0.4
_SUSPECT: Final = 0.7


@dataclass(frozen=True)
class ToolMatch:
    """An old tool, and the new one that it certainly or probably became."""

    old: Pin
    new: Pin
    likeness: ToolLikeness


@dataclass(frozen=True)
class ToolSides:
    """Both lists of tools by key. If each list has one server, these are taken as one server, whatever their keys."""

    old: Mapping[Key, Pin]
    new: Mapping[Key, Pin]

    @classmethod
    def of(cls, old: Sequence[Pin], new: Sequence[Pin]) -> ToolSides:
        """Return the two sides of a comparison."""
        labels = [{pin.server for pin in pins} for pins in (old, new)]
        if max(map(len, labels)) <= 1:
            return cls({("", pin.name): pin for pin in old}, {("", pin.name): pin for pin in new})
        return cls({pin.key: pin for pin in old}, {pin.key: pin for pin in new})


def proven_matches(sides: ToolSides) -> dict[Key, Key]:
    """Return the tools with another key, each under its old one, by definitions that are equal except for the name.

    An equal definition proves a match only if it is long enough, and only one tool has it on either side.
    """
    before, after = (_by_shape(pins) for pins in (sides.old, sides.new))
    return {key: after[shape] for shape, key in before.items() if shape in after and after[shape] != key}


def _by_shape(pins: Mapping[Key, Pin]) -> dict[str, Key]:
    counts = Counter(pin.shape for pin in pins.values())
    return {pin.shape: key for key, pin in pins.items() if pin.shape and counts[pin.shape] == 1}


def suggest_matches(gone: Mapping[Key, Pin], added: Mapping[Key, Pin]) -> list[ToolMatch]:
    """Return the suggested matches: tools of one name on another server, then similar tools on one server.

    No tool is in two of them; of equally good ones, the first by name counts.
    """
    moves = _chosen(_moved(gone, added))
    moved_from, moved_to = {one.old.key for one in moves}, {one.new.key for one in moves}
    old, new = (_by_server(pins) for pins in (gone, added))
    pairs = []
    for server in sorted(old.keys() & new.keys()):
        left = [pin for pin in old[server] if pin.key not in moved_from]
        right = [pin for pin in new[server] if pin.key not in moved_to]
        pairs += Resemblance(left, right).pairs()
    return [*moves, *_chosen(pairs)]


def suspect_matches(kept: Mapping[Key, tuple[Pin, Pin]], gone: Mapping[Key, Pin]) -> list[ToolMatch]:
    """Return the names that probably mean another tool now: their new definition resembles another tool's old one.

    ``kept`` are tools with their old names and other definitions, ``gone`` those without a match.
    """
    exchanged = _exchanged(kept)
    sure = {one.new.key for one in exchanged}
    strange = {
        key: (old, new)
        for key, (old, new) in kept.items()
        if new.key not in sure and Resemblance([old], [new]).definitions(old, new) < _STRANGE
    }
    before = _by_server({**gone, **{key: old for key, (old, _) in strange.items()}})
    after = _by_server({key: new for key, (_, new) in strange.items()})
    pairs = []
    for server in sorted(before.keys() & after.keys()):
        found = Resemblance(before[server], after[server]).pairs(_SUSPECT, by_name=False)
        pairs += [pair for pair in found if pair[1].name != pair[2].name]
    return [*exchanged, *_chosen(pairs)]


def _exchanged(kept: Mapping[Key, tuple[Pin, Pin]]) -> list[ToolMatch]:
    """Return the pairs of tools that exchanged exactly their definitions, however short."""
    by_digests: defaultdict[tuple[str, str], list[Key]] = defaultdict(list)
    for key in sorted(kept):
        old, new = kept[key]
        by_digests[old.unnamed, new.unnamed].append(key)
    found = []
    for (was, now), keys in sorted(by_digests.items()):
        if was and now and was < now:
            for one, other in zip(keys, by_digests.get((now, was), ()), strict=False):
                found += [_equal(kept[one][0], kept[other][1]), _equal(kept[other][0], kept[one][1])]
    return found


def _equal(old: Pin, new: Pin) -> ToolMatch:
    return ToolMatch(old, new, ToolLikeness(1.0, ("each has exactly the other's former definition",)))


def _by_server(pins: Mapping[Key, Pin]) -> Mapping[str, list[Pin]]:
    found: defaultdict[str, list[Pin]] = defaultdict(list)
    for (server, _), pin in sorted(pins.items()):
        found[server].append(pin)
    return found


def _moved(gone: Mapping[Key, Pin], added: Mapping[Key, Pin]) -> list[tuple[ToolLikeness, Pin, Pin]]:
    """Return the pairs of one name on two servers, if only one tool has the name on either side."""
    before, after = (_by_name(pins) for pins in (gone, added))
    pairs = []
    for name in sorted(before.keys() & after.keys()):
        ((server, old), *others), ((other, new), *more) = before[name], after[name]
        if not others and not more and server != other:
            found = Resemblance([old], [new]).pairs(0.0)
            reasons = found[0][0].reasons if found else ()
            pairs.append((ToolLikeness(found[0][0].score if found else 0.0, reasons), old, new))
    return pairs


def _by_name(pins: Mapping[Key, Pin]) -> Mapping[str, list[tuple[str, Pin]]]:
    found: defaultdict[str, list[tuple[str, Pin]]] = defaultdict(list)
    for (server, name), pin in pins.items():
        found[fold(name)].append((server, pin))
    return found


def _chosen(pairs: Iterable[tuple[ToolLikeness, Pin, Pin]]) -> list[ToolMatch]:
    """Return the best pairs, none of which shares a tool with a better one."""
    found = []
    taken_old: set[Key] = set()
    taken_new: set[Key] = set()
    for likeness, old, new in sorted(pairs, key=lambda pair: (-pair[0].score, pair[1].key, pair[2].key)):
        if old.key not in taken_old and new.key not in taken_new:
            taken_old.add(old.key)
            taken_new.add(new.key)
            found.append(ToolMatch(old, new, likeness))
    return found
