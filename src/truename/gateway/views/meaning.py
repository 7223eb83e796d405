"""Search by meaning: tools by the distance of their vectors from a query's, and both orders as one.

A tool's vector depends on its own words only, so it is computed once for each text and an index that follows another
takes over its rows; and the order of what one may see says nothing of what one may not.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import numpy as np

from truename.gateway.views.word_vectors import DIMENSIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truename.gateway.views.search import Words
    from truename.gateway.views.word_vectors import Vector, WordVectors

__all__ = ["MeaningIndex", "fused"]

# Characters of name, description and parameters that count, and how much each of the three counts.
_READ: Final = (200, 400, 200)
_WEIGHTS: Final = (1.0, 1.0, 0.3)
_LONGEST_QUERY: Final = 600
# Below this a tool has as much to do with a query as any other.
_LEAST_ALIKE: Final = 0.05
_MOST_FOUND: Final = 2_000
# Equal to so many digits is equal: processors differ in the last ones.
_DIGITS: Final = 4
# The first places of a list count this much more than later ones.
_HEAD: Final = 10


class MeaningIndex:
    """The vectors of tools by number, which never change; ``before`` is an index whose rows are taken over."""

    def __init__(self, rows: Sequence[Words], words: WordVectors, before: MeaningIndex | None = None) -> None:
        self._words = words
        self._row_of = {_key(row): number for number, row in reversed([*enumerate(rows)])}
        self._vectors = np.zeros((len(rows), DIMENSIONS), np.float32)
        known = before._row_of if before is not None else {}  # noqa: SLF001 - of the same class
        missing = []
        for number, row in enumerate(rows):
            was = known.get(_key(row))
            if was is None or before is None:
                missing.append(number)
            else:
                self._vectors[number] = before._vectors[was]  # noqa: SLF001 - of the same class
        if missing:
            self._vectors[missing] = _vectors([rows[number] for number in missing], words)
        self.computed = len(missing)

    @property
    def size(self) -> int:
        """Bytes of memory that the vectors take."""
        return self._vectors.nbytes

    def search(self, query: str) -> list[int]:
        """Return the numbers of the tools that mean something like a query, the nearest first."""
        asked = self._words.vectors([query[:_LONGEST_QUERY]])[0]
        # Not by `@`: a matrix library adds up in another order with each number of processors.
        alike = np.round(np.einsum("ij,j->i", self._vectors, asked), _DIGITS)
        near = np.flatnonzero(alike >= _LEAST_ALIKE)
        found: list[int] = near[np.argsort(-alike[near], kind="stable")][:_MOST_FOUND].tolist()
        return found


def fused(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """Return two orders as one: what is at the head of both comes first, then what is at the head of one.

    >>> fused([7, 8, 9], [9, 5])
    [9, 7, 5, 8]
    """
    points: dict[int, float] = {}
    for order in (first, second):
        for place, number in enumerate(order):
            points[number] = points.get(number, 0.0) + 1 / (_HEAD + place + 1)
    return sorted(points, key=lambda number: (-points[number], number))


def _key(row: Words) -> bytes:
    made = blake2b(digest_size=16)
    for text in row:
        raw = text.encode("utf-8", "surrogatepass")
        made.update(len(raw).to_bytes(8, "little") + raw)
    return made.digest()


def _vectors(rows: Sequence[Words], words: WordVectors) -> Vector:
    found = np.zeros((len(rows), DIMENSIONS), np.float32)
    for field, (most, weight) in enumerate(zip(_READ, _WEIGHTS, strict=True)):
        found += np.float32(weight) * words.vectors([row[field][:most] for row in rows])
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    np.divide(found, lengths, out=found, where=lengths > 0)
    return found
