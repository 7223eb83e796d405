"""Vectors of words from an installed package: nothing is downloaded, and nothing of that package runs.

The wheel of `wordllama` contains a vector of 256 numbers for each of 32,000 pieces of words, and the rules that cut a
text into such pieces. Both files are read here. The package itself is not imported: its loader does not find its own
rules and asks a server for them, and its import sets up the program's log.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from tokenizers import Tokenizer

from truename.naming.words import split

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

__all__ = ["DIMENSIONS", "WordVectors", "load"]

DIMENSIONS: Final = 256
_WEIGHTS: Final = "weights/l2_supercat_256.safetensors"
_RULES: Final = "tokenizers/l2_supercat_tokenizer_config.json"
_TABLE: Final = "embedding.weight"
_RUN: Final = re.compile(r"[^\W_]+")
_LONGEST_WORD: Final = 64
_LENGTH_BYTES: Final = 8
_LONGEST_HEADER: Final = 1 << 20


class WordVectors:
    """What a text means, as one vector of length 1: the mean of its pieces, whatever their order."""

    def __init__(self, table: NDArray[Any], rules: Tokenizer) -> None:
        self._table = table
        self._rules = rules

    def vectors(self, texts: Sequence[str]) -> Vector:
        """Return a row for each text, all zeros where a text has no word."""
        found = np.zeros((len(texts), DIMENSIONS), np.float32)
        for row, text in enumerate(texts):
            # One by one: a batch would take every processor, and memory for all texts at once.
            pieces = self._rules.encode(_spoken(text), add_special_tokens=False).ids
            if pieces:
                found[row] = _unit(self._table[pieces].astype(np.float32).sum(axis=0))
        return found


@lru_cache(maxsize=1)
def load() -> WordVectors:
    """Return the installed vectors, read once. Raises `ModuleNotFoundError` where the package is missing."""
    found = find_spec("wordllama")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("No module named 'wordllama'", name="wordllama")
    place = Path(found.submodule_search_locations[0])
    rules = Tokenizer.from_file(str(place / _RULES))
    rules.no_padding()
    rules.no_truncation()
    return WordVectors(_table(place / _WEIGHTS), rules)


def _table(path: Path) -> NDArray[Any]:
    """Map the table of a safetensors file into memory: its header says where it begins."""
    with path.open("rb") as file:
        length = min(int.from_bytes(file.read(_LENGTH_BYTES), "little"), _LONGEST_HEADER)
        where = json.loads(file.read(length))[_TABLE]
    start = _LENGTH_BYTES + length + int(where["data_offsets"][0])
    return np.memmap(path, dtype=np.float16, mode="r", offset=start, shape=(int(where["shape"][0]), DIMENSIONS))


def _spoken(text: str) -> str:
    """Return the words of a text; half a character, which a server may send, is no reason to fail."""
    sound = text.encode("utf-8", "replace").decode()
    return " ".join(word.lower() for run in _RUN.findall(sound) for word in split(run[:_LONGEST_WORD]))


def _unit(vector: Vector) -> Vector:
    length = float(np.linalg.norm(vector))
    return vector / np.float32(length) if length > 0 else vector
