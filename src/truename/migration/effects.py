"""What one difference between two definitions means for those who knew the first."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

__all__ = ["INPUT", "OUTPUT", "Detail", "Effect", "Side", "path_text"]

_SHOWN: Final = 60


class Effect(StrEnum):
    """How what a schema allows has changed; ``restated`` is a text or an annotation that allows no more and no less."""

    NARROWED = "narrowed"
    WIDENED = "widened"
    CHANGED = "changed"
    RESTATED = "restated"


@dataclass(frozen=True, slots=True)
class Side:
    """A schema of a tool: its key in the definition, and the effects that break who relied on the old one."""

    key: str
    word: str
    breaking: frozenset[Effect]


# Who calls must still be allowed what was allowed; who reads must still get what was promised.
INPUT: Final = Side("inputSchema", "input", frozenset({Effect.NARROWED, Effect.CHANGED}))
OUTPUT: Final = Side("outputSchema", "output", frozenset({Effect.WIDENED, Effect.CHANGED}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """One difference: where (a path in the definition), what it does, the fact, and whether it breaks somebody."""

    path: str
    effect: Effect
    fact: str
    breaking: bool

    def __str__(self) -> str:
        return f"{self.path}: {self.fact}"


def path_text(keys: tuple[str, ...]) -> str:
    r"""Return a path as people write it; a key that is no word stands in brackets, printable and short.

    >>> path_text(("inputSchema", "properties", "a.b\n"))
    "inputSchema.properties['a.b\\n']"
    """
    short = (key[:_SHOWN] for key in keys)
    parts = [
        f".{key}" if _is_word(key) else f"[{key if key.isdecimal() and key.isascii() else ascii(key)}]" for key in short
    ]
    return "".join(parts).removeprefix(".")


def _is_word(key: str) -> bool:
    return key.isascii() and key.replace("$", "_").replace("-", "_").isidentifier()
