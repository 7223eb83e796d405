"""`python -m bench.search_ranking [--short]`: the search by words, by meaning and by both, beside each other.

Three sets of queries, each with one right tool. None is made by a language model:

- **questions**: `bench/questions.tsv`, written by hand for tools of 32 real servers, mostly without words of the name;
- **unseen description**: the first sentence of a tool's description, over an index that has no descriptions;
- **own words**: the kinds of `bench.search`, which are made of words that the index has.

Never fails on a figure. Needs the packages of the extra `search`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench.names import SHARED, Pairs, real_pairs
from bench.search import _KINDS, _first_sentence, _said, _sample
from truename.catalog import Catalog
from truename.gateway.views.meaning import MeaningIndex, fused
from truename.gateway.views.search import ToolIndex, Words, words_of
from truename.gateway.views.word_vectors import load

_QUESTIONS: Final = Path(__file__).with_name("questions.tsv")
_MOST: Final = 200
_LARGE: Final = 100_000

Find = Callable[[str], Sequence[int]]


class Rankings(NamedTuple):
    """The three rankings over one list of tools."""

    lexical: Find
    meaning: Find
    both: Find


def main() -> int:
    """Measure and print; 0 also where the collection is missing."""
    parser = argparse.ArgumentParser(prog="python -m bench.search_ranking", description="Compare rankings of a search.")
    parser.add_argument("--short", action="store_true", help="the questions only, and times among 10,000 tools")
    options = parser.parse_args()
    start = time.perf_counter()
    vectors = load()
    vectors.vectors(["one"])
    print(f"vectors loaded in {time.perf_counter() - start:.2f} s")
    try:
        _questions(real_servers())
        _attacks(real_servers())
        if not options.short:
            _own_texts(real_pairs(8_000))
        _speed(real_pairs(10_000 if options.short else _LARGE))
    except FileNotFoundError as error:
        sys.stderr.write(f"{error.filename} is not there; set TRUENAME_SHARED. Nothing was measured.\n")
    return 0


def real_servers() -> dict[str, list[dict[str, Any]]]:
    """Return the tools of each server by its key; of two entries of one key the longer one."""
    servers: dict[str, list[dict[str, Any]]] = {}
    with gzip.open(SHARED / "corpus" / "open.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            tools = list({tool["name"]: tool for tool in row["tools"]}.values())
            if len(tools) > len(servers.get(row["server"], ())):
                servers[row["server"]] = tools
    return servers


def _rankings(rows: Sequence[Words]) -> Rankings:
    lexical, meaning = ToolIndex(rows), MeaningIndex(rows, load())

    def by_words(query: str) -> Sequence[int]:
        return list(islice(lexical.search(query), _MOST))

    def by_both(query: str) -> Sequence[int]:
        return fused(by_words(query), meaning.search(query))

    return Rankings(by_words, meaning.search, by_both)


def _questions(servers: dict[str, list[dict[str, Any]]]) -> None:
    lines = [line.split("\t") for line in _QUESTIONS.read_text("utf-8").splitlines()]
    asked = dict.fromkeys(server for server, _, _ in lines)
    for what, keys in (("32 servers", asked), ("all servers", servers)):
        catalog = Catalog.from_mcp({key: servers[key] for key in keys}, strict=False)
        tools = list(catalog.values())
        keyed = [(tool.origin.server, tool.origin.name) for tool in tools]
        title = f"{len(lines)} questions among {len(tools):,} tools of {what}"
        _table(
            title,
            _rankings([words_of(tool) for tool in tools]),
            [(query, partial(_is_same, keyed, (server, name))) for server, name, query in lines],
        )


def _attacks(servers: dict[str, list[dict[str, Any]]]) -> None:
    """Count how often one hostile tool comes before all others, for each ranking."""
    lines = [line.split("\t") for line in _QUESTIONS.read_text("utf-8").splitlines()]
    catalog = Catalog.from_mcp({key: servers[key] for key in dict.fromkeys(line[0] for line in lines)}, strict=False)
    rows = [words_of(tool) for tool in catalog.values()]
    common = [word for word, _ in Counter(word for row in rows for word in row.description.split()).most_common(600)]
    hostile = {
        "600 commonest words as its description": Words("x y", " ".join(common), ""),
        "60 commonest words, ten times, everywhere": Words(*[" ".join(common[:60] * 10)] * 3),
        "all questions after each other": Words("x y", " ".join(line[2] for line in lines), ""),
    }
    for what, row in hostile.items():
        found = {
            name: [place for line in lines if (place := _place(find(line[2]), len(rows))) < _MOST]
            for name, find in _rankings([*rows, row])._asdict().items()
        }
        counts = "; ".join(
            f"{name} {sum(place < 1 for place in places)} first, {sum(place < 5 for place in places)} in 5"
            for name, places in found.items()
        )
        print(f"hostile tool with {what}: {counts} (of {len(lines)})")


def _place(found: Sequence[int], number: int) -> int:
    return next((at for at, one in enumerate(found) if one == number), _MOST)


def _is_same(keyed: list[tuple[str, str]], wanted: tuple[str, str], number: int) -> bool:
    return keyed[number] == wanted


def _own_texts(pairs: Pairs) -> None:
    tools = list(Catalog.from_mcp(dict(pairs), strict=False).values())
    known = [dict(tool.definition) | {"name": tool.origin.name} for tool in tools]
    rows = [words_of(tool) for tool in tools]
    sample = _sample([tool for _, each in pairs for tool in each])

    def is_it(wanted: dict[str, Any], number: int) -> bool:
        return bool(known[number]["name"] == wanted["name"] and _said(known[number]) == _said(wanted))

    unseen = _rankings([Words(row.name, "", row.parameters) for row in rows])
    asked = [(_first_sentence(wanted), partial(is_it, wanted)) for wanted in sample]
    _table(f"unseen description, {len(sample)} of {len(rows):,} tools", unseen, asked)
    seen = _rankings(rows)
    for what, ask in _KINDS.items():
        _table(f"own words: {what}", seen, [(ask(wanted), partial(is_it, wanted)) for wanted in sample])


def _table(title: str, rankings: Rankings, asked: list[tuple[str, Callable[[int], bool]]]) -> None:
    print(f"\n{title}\n{'':10}{'at 1':>8}{'at 5':>8}{'MRR':>8}")
    for name, find in rankings._asdict().items():
        places = [next((at for at, number in enumerate(find(query)) if fits(number)), _MOST) for query, fits in asked]
        first, five = (sum(place < most for place in places) / len(places) for most in (1, 5))
        reciprocal = statistics.fmean(0 if place >= _MOST else 1 / (place + 1) for place in places)
        print(f"{name:10}{first:8.1%}{five:8.1%}{reciprocal:8.3f}")


def _speed(pairs: Pairs) -> None:
    rows = [words_of(tool) for tool in Catalog.from_mcp(dict(pairs), strict=False).values()]
    queries = [line.split("\t")[2] for line in _QUESTIONS.read_text("utf-8").splitlines()]
    start, before = time.process_time(), _resident()
    meaning = MeaningIndex(rows, load())
    made = time.process_time() - start
    print(f"\n{len(rows):,} tools: vectors made in {made:.1f} s of CPU, {meaning.size / 1e6:.0f} MB "
          f"(the process grew by {(_resident() - before) / 1e6:.0f} MB)")  # fmt: skip
    lexical = ToolIndex(rows)
    for name, find in (
        ("lexical", lambda query: list(islice(lexical.search(query), _MOST))),
        ("meaning", meaning.search),
    ):
        times = sorted(_seconds(find, query) for query in queries)
        median, most = statistics.median(times), times[int(0.95 * len(times))]
        print(f"{name:10} median {1000 * median:6.1f} ms, 95 % {1000 * most:6.1f} ms of CPU a query")


def _seconds(find: Find, query: str) -> float:
    start = time.process_time()
    find(query)
    return time.process_time() - start


def _resident() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    sys.exit(main())
