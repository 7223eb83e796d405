"""Which old tool is which new one: proved by equal definitions, or suggested because they resemble each other."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from truename.identity import fold
from truename.migration.similarity import Likeness, Resemblance

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from truename.migration.pins import Key, Pin

__all__ = ["Match", "Sides", "proved", "suggested", "suspected"]

# Less than the first in common is another tool under the name; as much as the second is the same tool as another's.
_STRANGE: Final = 0.4
_SUSPECT: Final = 0.7


@dataclass(frozen=True)
class Match:
    """An old tool and the new one that it is, or may be."""

    old: Pin
    new: Pin
    likeness: Likeness


@dataclass(frozen=True)
class Sides:
    """Both lists of tools by key. Two lists of one server each are of one server, whatever it is called."""

    old: Mapping[Key, Pin]
    new: Mapping[Key, Pin]

    @classmethod
    def of(cls, old: Sequence[Pin], new: Sequence[Pin]) -> Sides:
        """Return the two sides of a comparison."""
        labels = [{pin.server for pin in pins} for pins in (old, new)]
        if max(map(len, labels)) <= 1:
            return cls({("", pin.name): pin for pin in old}, {("", pin.name): pin for pin in new})
        return cls({pin.key: pin for pin in old}, {pin.key: pin for pin in new})


def proved(sides: Sides) -> dict[Key, Key]:
    """Return the tools that have another key, each under its old one, by definitions equal but for the name.

    An equal definition proves it only if exactly one tool has it on either side, and if it says enough.
    """
    before, after = (_by_shape(pins) for pins in (sides.old, sides.new))
    return {key: after[shape] for shape, key in before.items() if shape in after and after[shape] != key}


def _by_shape(pins: Mapping[Key, Pin]) -> dict[str, Key]:
    counts = Counter(pin.shape for pin in pins.values())
    return {pin.shape: key for key, pin in pins.items() if pin.shape and counts[pin.shape] == 1}


def suggested(gone: Mapping[Key, Pin], added: Mapping[Key, Pin]) -> list[Match]:
    """Return who may have become whom: of one name on another server, then by resemblance on one server.

    No tool is in two of them; of several that are as good, the first by name.
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


def suspected(kept: Mapping[Key, tuple[Pin, Pin]], gone: Mapping[Key, Pin]) -> list[Match]:
    """Return the names that were kept for another tool: what is told of it now was told of another before.

    ``kept`` are tools under their old names with other definitions, ``gone`` those that are nowhere.
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


def _exchanged(kept: Mapping[Key, tuple[Pin, Pin]]) -> list[Match]:
    """Return the tools of which each has exactly the definition that the other had, however little that says."""
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


def _equal(old: Pin, new: Pin) -> Match:
    return Match(old, new, Likeness(1.0, ("each has exactly the definition that the other had",)))


def _by_server(pins: Mapping[Key, Pin]) -> Mapping[str, list[Pin]]:
    found: defaultdict[str, list[Pin]] = defaultdict(list)
    for (server, _), pin in sorted(pins.items()):
        found[server].append(pin)
    return found


def _moved(gone: Mapping[Key, Pin], added: Mapping[Key, Pin]) -> list[tuple[Likeness, Pin, Pin]]:
    """Return the pairs of one name on two servers, if the name is of one tool on either side."""
    before, after = (_by_name(pins) for pins in (gone, added))
    pairs = []
    for name in sorted(before.keys() & after.keys()):
        ((server, old), *others), ((other, new), *more) = before[name], after[name]
        if not others and not more and server != other:
            found = Resemblance([old], [new]).pairs(0.0)
            reasons = found[0][0].reasons if found else ()
            pairs.append((Likeness(found[0][0].score if found else 0.0, reasons), old, new))
    return pairs


def _by_name(pins: Mapping[Key, Pin]) -> Mapping[str, list[tuple[str, Pin]]]:
    found: defaultdict[str, list[tuple[str, Pin]]] = defaultdict(list)
    for (server, name), pin in pins.items():
        found[fold(name)].append((server, pin))
    return found


def _chosen(pairs: Iterable[tuple[Likeness, Pin, Pin]]) -> list[Match]:
    """Return the best pairs, none of which shares a tool with a better one."""
    found = []
    taken_old: set[Key] = set()
    taken_new: set[Key] = set()
    for likeness, old, new in sorted(pairs, key=lambda pair: (-pair[0].score, pair[1].key, pair[2].key)):
        if old.key not in taken_old and new.key not in taken_new:
            taken_old.add(old.key)
            taken_new.add(new.key)
            found.append(Match(old, new, likeness))
    return found
