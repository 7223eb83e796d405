"""Suggestions: the nearest names to one that does not exist. They are told, never called."""

from __future__ import annotations

from collections import Counter, defaultdict
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final

from truename.identity import fold
from truename.naming.words import words

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Suggester"]

_LONGEST: Final = 200
_SHORTLIST: Final = 60
_CUTOFF: Final = 0.6


class Suggester:
    """Finds near names in large tables fast: by shared words and letter triples first, by edit likeness last."""

    def __init__(self, names: Iterable[str]) -> None:
        self._grams: defaultdict[str, list[str]] = defaultdict(list)
        for name in names:
            for gram in _grams(fold(name)):
                self._grams[gram].append(name)

    def nearest(self, text: str, count: int = 3) -> tuple[str, ...]:
        """Return up to ``count`` names that somebody could have meant, best first.

        >>> Suggester(["dg_prism_refract", "sf_get_leads"]).nearest("dg_prism_refrakt")
        ('dg_prism_refract',)
        """
        wanted = fold("_".join(words(text[:_LONGEST])) or text[:_LONGEST])
        shared: Counter[str] = Counter()
        for gram in _grams(wanted):
            shared.update(self._grams.get(gram, ()))
        scored = sorted(
            ((-SequenceMatcher(None, wanted, fold(name)).ratio(), name) for name, _ in shared.most_common(_SHORTLIST))
        )
        return tuple(name for score, name in scored[:count] if -score >= _CUTOFF)


def _grams(folded: str) -> set[str]:
    padded = f" {folded} "
    return {padded[i : i + 3] for i in range(len(padded) - 2)}
