"""`python -m bench.suggestions [NAMES]`: near names of mistyped ones, beside a search through all that share a triple.

It prints how often both find the same, and what they take of a processor.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections import Counter, defaultdict
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final

from bench.names import real_pairs
from truename.identity import fold
from truename.naming.suggest import NameSuggester
from truename.naming.words import words

if TYPE_CHECKING:
    from collections.abc import Iterable

_TEXTS: Final = 300
_REAL: Final = 9_000
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz_"


class Thorough:
    """Looks at every name that shares a triple of letters."""

    def __init__(self, names: Iterable[str]) -> None:
        self._grams: defaultdict[str, list[str]] = defaultdict(list)
        for name in names:
            for gram in self._of(fold(name)):
                self._grams[gram].append(name)

    def nearest(self, text: str, count: int = 3) -> tuple[str, ...]:
        """Return the nearest names."""
        wanted = fold("_".join(words(text[:200])) or text[:200])
        shared: Counter[str] = Counter()
        for gram in self._of(wanted):
            shared.update(self._grams.get(gram, ()))
        some = (name for name, _ in shared.most_common(60))
        scored = sorted((-SequenceMatcher(None, wanted, fold(name)).ratio(), name) for name in some)
        return tuple(name for score, name in scored[:count] if -score >= 0.6)

    @staticmethod
    def _of(folded: str) -> set[str]:
        padded = f" {folded} "
        return {padded[i : i + 3] for i in range(len(padded) - 2)}


def mistyped(name: str, chance: random.Random) -> str:
    """Return the name with one or two letters left out, put in, changed or swapped, or a word left out."""
    for _ in range(chance.choice((1, 1, 2))):
        at = chance.randrange(len(name)) if name else 0
        match chance.randrange(5):
            case 0:
                name = name[:at] + name[at + 1 :]
            case 1:
                name = name[:at] + chance.choice(_LETTERS) + name[at:]
            case 2:
                name = name[:at] + chance.choice(_LETTERS) + name[at + 1 :]
            case 3:
                name = name[:at] + name[at : at + 2][::-1] + name[at + 2 :]
            case _:
                parts = name.split("_")
                name = "_".join(parts[:-1] if len(parts) > 2 else parts)
    return name


def main() -> None:
    """Compare and measure."""
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    chance = random.Random(7)
    real = sorted({tool["name"] for _, tools in real_pairs(_REAL) for tool in tools if len(tool["name"]) > 3})
    # Beyond the collection: as other servers would show them.
    keys = sorted({name.partition("_")[0] for name in real if "_" in name})
    names = dict.fromkeys(real[:most])
    while len(names) < most:
        names[f"{chance.choice(keys)}_{chance.choice(real)}"] = None
    meant = chance.choices(list(names), k=_TEXTS)
    texts = [mistyped(name, chance) for name in meant]
    began = time.thread_time()
    quick = NameSuggester(names)
    quick.prepare()
    built = time.thread_time() - began
    thorough = Thorough(names)
    same = first = 0
    likeness = {"index": 0.0, "thorough": 0.0}
    hits = {"index": 0, "thorough": 0}
    seconds: dict[str, list[float]] = {"index": [], "thorough": []}
    for name, text in zip(meant, texts, strict=True):
        began = time.thread_time()
        new = quick.nearest(text)
        half = time.thread_time()
        old = thorough.nearest(text)
        seconds["index"].append(half - began)
        seconds["thorough"].append(time.thread_time() - half)
        hits["index"] += name in new
        hits["thorough"] += name in old
        for what, three in (("index", new), ("thorough", old)):
            likeness[what] += sum(SequenceMatcher(None, text, one).ratio() for one in three) / 3
        same += new == old
        first += new[:1] == old[:1]
    print(f"{len(names):,} names, {len(real):,} of them real, {_TEXTS:,} mistyped; index built in {built:.2f} s")
    print(f"the same three: {same / _TEXTS:.1%}; the same first: {first / _TEXTS:.1%}")
    for what, taken in seconds.items():
        ranked = sorted(taken)
        median, late = statistics.median(ranked), ranked[int(0.99 * len(ranked))]
        print(f"{what}: the name that was meant is among them {hits[what] / _TEXTS:.1%};", end=" ")
        print(f"they are {likeness[what] / _TEXTS:.3f} like it;", end=" ")
        print(f"median {1e3 * median:.2f} ms, 99 of 100 within {1e3 * late:.2f} ms")


if __name__ == "__main__":
    main()
