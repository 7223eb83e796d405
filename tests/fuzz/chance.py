"""Chance for the targets: out of a seed, out of hypothesis, or out of bytes that a guided fuzzer chooses."""

from __future__ import annotations

from random import Random
from typing import Any

__all__ = ["Fed", "seeded"]


def seeded(seed: int, target: str, case: int) -> Random:
    """Return the chance of one numbered case: the same each time."""
    return Random(f"{seed}:{target}:{case}")


class Fed(Random):
    """Draws out of bytes, in order: whoever changes one of them changes one draw. After their end all draws are 0.

    >>> chance = Fed(b"\\x01abc")
    >>> chance.choice("xyz"), chance.rest(), chance.choice("xyz")
    ('y', b'abc', 'x')
    """

    def __new__(cls, _: bytes) -> Fed:
        return super().__new__(cls)

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = 0
        super().__init__(0)

    def rest(self) -> bytes:
        """Take all that is left, as it is."""
        return self._taken(len(self._raw) - self._at)

    def _taken(self, count: int) -> bytes:
        found = self._raw[self._at : self._at + count]
        self._at += len(found)
        return found

    def random(self) -> float:
        return int.from_bytes(self._taken(2)) / 65_536

    def getrandbits(self, k: int) -> int:
        count = (k + 7) // 8
        return int.from_bytes(self._taken(count).ljust(count, b"\0")) >> (8 * count - k)

    def _randbelow(self, n: int, *_: Any) -> int:
        return int.from_bytes(self._taken(max(1, (n - 1).bit_length() + 7) // 8)) % n
