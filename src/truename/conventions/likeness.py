"""Tell how alike two tools are by name and description, and from where on one counts as an imitation."""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

__all__ = ["CLONED", "MOST_COMPARED", "NEAR_FROM", "NEAR_TO", "bag_of_words", "likeness", "shared_words"]

# Two descriptions count as the same, reworded, from this share of common words.
CLONED: Final = 0.75
_FEWEST_WORDS: Final = 3
_MOST_WORDS: Final = 400
# Shorter names often differ in one letter only: get, set.
NEAR_FROM: Final = 6
NEAR_TO: Final = 48
# Many servers have a tool such as "search"; comparing more of them gives no further information.
MOST_COMPARED: Final = 20
_WORD: Final = re.compile(r"[^\W_]{1,40}")


def likeness(one: str, other: str) -> float:
    """Return the share of common words of two descriptions, from 0 to 1; 0 if one has too few words.

    >>> likeness("Send an outbound email via SMTP.", "send an Outbound Email via SMTP!")
    1.0
    >>> likeness("Searches the local index.", "Searches a remote index.")
    0.3333333333333333
    """
    return shared_words(bag_of_words(one), bag_of_words(other))


def bag_of_words(text: str) -> frozenset[str]:
    """Return the first 400 words of a text, case-folded."""
    return frozenset(match.group() for match in islice(_WORD.finditer(text.casefold()), _MOST_WORDS))


def shared_words(own: frozenset[str], others: frozenset[str]) -> float:
    """Return the share of common words of two bags, as `likeness` does of two descriptions."""
    if min(len(own), len(others)) < _FEWEST_WORDS:
        return 0.0
    return len(own & others) / len(own | others)
