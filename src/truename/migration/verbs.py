"""Verbs of tool names that are used for one another: ``printEnv`` became ``get-env``, ``query`` became ``find``."""

from __future__ import annotations

from typing import Final

__all__ = ["COMMON", "VERBS", "same_sense", "senses"]

# Read off real tool catalogues and the renames between their releases; a verb may have several senses.
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
# The verbs of reading, listing, finding, making, removing and changing: they tell hardly one tool from another.
COMMON: Final = frozenset(verb for verbs in _SENSES[:6] for verb in verbs.split())


def senses(word: str) -> tuple[str, ...]:
    """Return the senses of a verb, none for any other word."""
    return tuple(map(str, sorted(_OF.get(word, ()))))


def same_sense(one: str, other: str) -> bool:
    """Tell whether two verbs are used for the same thing.

    >>> same_sense("print", "get"), same_sense("get", "delete")
    (True, False)
    """
    return not _OF.get(one, set()).isdisjoint(_OF.get(other, ()))
