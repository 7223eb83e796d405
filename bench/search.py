"""`python -m bench.search [--short]`: how fast tools are found among 100,000, and how often the right one is.

The tools are the collection's, repeated under other servers until there are enough. Quality is measured on the
collection itself: queries are made of a tool's own description by rule, with a fixed seed, and a tool counts as found
where one of the first five has its name and its description. Never fails on a figure.
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from bench.names import Pairs, real_pairs
from truename.catalog import Catalog
from truename.gateway.views.search import ToolIndex, terms, words_of

_SEED: Final = 2_026
_QUERIES: Final = 200
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s|\n")
_WORD: Final = re.compile(r"[^\W_]+")
_LEAST_WORDS: Final = 4
_LETTERS: Final = 5
_LARGE: Final = 100_000

Tools = list[dict[str, Any]]
Asking = Callable[[dict[str, Any]], str]


def main() -> int:
    """Measure and print; 0 also where the collection is missing."""
    parser = argparse.ArgumentParser(prog="python -m bench.search", description="Measure the search over tools.")
    parser.add_argument("--short", action="store_true", help="among 10,000 tools: to see that it works")
    options = parser.parse_args()
    try:
        pairs = real_pairs(8_000)
    except FileNotFoundError as error:
        sys.stderr.write(f"{error.filename} is not there; set TRUENAME_SHARED. Nothing was measured.\n")
        return 0
    sample = _sample([tool for _, tools in pairs for tool in tools])
    _quality(pairs, sample)
    _speed(real_pairs(10_000 if options.short else _LARGE), sample)
    return 0


def _index(pairs: Pairs) -> tuple[ToolIndex, Tools]:
    catalog = Catalog.from_mcp(dict(pairs), strict=False)
    tools = list(catalog.values())
    return ToolIndex(map(words_of, tools)), [dict(tool.definition) | {"name": tool.origin.name} for tool in tools]


def _quality(pairs: Pairs, sample: Tools) -> None:
    index, tools = _index(pairs)
    print(f"{len(tools):,} tools, {len(sample)} queries of each kind, seed {_SEED}")
    print(f"{'query':58}{'first':>8}{'in 5':>8}")
    for what, ask in _KINDS.items():
        ranks = [_rank(index, tools, wanted, ask(wanted)) for wanted in sample]
        first, five = (sum(rank < most for rank in ranks) / len(ranks) for most in (1, 5))
        print(f"{what:58}{first:8.1%}{five:8.1%}")
    index.close()


def _rank(index: ToolIndex, tools: Tools, wanted: dict[str, Any], query: str) -> int:
    found = (tools[number] for number, _ in zip(index.search(query), range(5), strict=False))
    same = (tool["name"] == wanted["name"] and _said(tool) == _said(wanted) for tool in found)
    return next((rank for rank, is_it in enumerate(same) if is_it), _QUERIES)


def _speed(pairs: Pairs, sample: Tools) -> None:
    catalog = Catalog.from_mcp(dict(pairs), strict=False)
    start = time.perf_counter()
    index = ToolIndex(map(words_of, catalog.values()))
    print(f"\n{len(catalog):,} tools indexed in {time.perf_counter() - start:.1f} s, {index.size / 1e6:.0f} MB")
    print(f"{'query':58}{'median':>8}{'95 %':>8}{'most':>8}   ms of CPU")
    for what, ask in _KINDS.items():
        times = sorted(_seconds(index, ask(tool)) for tool in sample)
        shown = (statistics.median(times), times[int(0.95 * len(times))], times[-1])
        print(f"{what:58}" + "".join(f"{1000 * value:8.1f}" for value in shown))
    for query in ("get", "list data", "create issue"):
        print(f"{query!r:58}{1000 * min(_seconds(index, query) for _ in range(5)):8.1f}")


def _seconds(index: ToolIndex, query: str) -> float:
    start = time.process_time()
    for _ in zip(index.search(query), range(10), strict=False):
        pass
    return time.process_time() - start


def _sample(tools: Tools) -> Tools:
    telling = [tool for tool in tools if len(_without_name(tool)) >= _LEAST_WORDS]
    return random.Random(_SEED).sample(telling, _QUERIES)


def _said(tool: dict[str, Any]) -> str:
    said = tool.get("description")
    return said if isinstance(said, str) else ""


def _first_sentence(tool: dict[str, Any]) -> str:
    return _SENTENCE.split(_said(tool).strip())[0].replace(tool["name"], "")


def _without_name(tool: dict[str, Any]) -> list[str]:
    name = set(terms(tool["name"]))
    return [word for word in _WORD.findall(_first_sentence(tool)) if not name & set(terms(word))]


def _four(tool: dict[str, Any]) -> list[str]:
    return random.Random(tool["name"]).sample(_without_name(tool), _LEAST_WORDS)


def _slipped(word: str) -> str:
    place = len(word) // 2
    return word if len(word) < _LETTERS else word[: place - 1] + word[place] + word[place - 1] + word[place + 1 :]


_KINDS: Final[dict[str, Asking]] = {
    "first sentence of the description, the name cut out": _first_sentence,
    "the same without any word of the name": lambda tool: " ".join(_without_name(tool)),
    "four words of that": lambda tool: " ".join(_four(tool)),
    "four words, each of five letters or more with a slip": lambda tool: " ".join(map(_slipped, _four(tool))),
    "the words of the name": lambda tool: " ".join(terms(tool["name"])),
}


if __name__ == "__main__":
    sys.exit(main())
