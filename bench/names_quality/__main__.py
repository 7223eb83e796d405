"""`python -m bench.names_quality [--short] [--draw N [--seed N]]`: how good names are, beside plain `server_tool`.

All servers of the open collection are one catalogue, in style `prefixed` and dialect `universal`; once with package
names as keys, once with short keys. Never fails on a figure. ``--draw N`` prints N names instead, to be read.
"""

from __future__ import annotations

import argparse
import random
import sys
from typing import TYPE_CHECKING, Final

from bench.names_quality import measures, retrieval
from bench.names_quality.keys import KINDS, servers
from truename import Catalog, NameTable, project
from truename.identity import fold

if TYPE_CHECKING:
    from collections.abc import Callable

_SEED: Final = 2_026
_SIZE: Final = 400
_MOST: Final = 5
_ROW: Final = "{:36}" + "{:>14}" * 2


def main() -> int:
    """Measure and print; 0 also where the collection is missing."""
    parser = argparse.ArgumentParser(prog="python -m bench.names_quality", description="Measure the names themselves.")
    parser.add_argument("--short", action="store_true", help="two draws of tools and no embeddings")
    parser.add_argument("--draw", type=int, default=0, metavar="N", help="print N names instead, to be read")
    parser.add_argument("--seed", type=int, default=_SEED, metavar="N", help="draw other names to be read")
    options = parser.parse_args()
    try:
        tables = {kind: _table(kind) for kind in KINDS}
    except FileNotFoundError as error:
        sys.stderr.write(f"{error.filename} is not there; set TRUENAME_SHARED. Nothing was measured.\n")
        return 0
    if options.draw:
        _print_drawn(tables, options.draw, options.seed)
        return 0
    tokens, count = measures.token_counter()
    embeddings = None if options.short else retrieval.minilm()
    print(f"tokens: {tokens}; embeddings: {'none' if embeddings is None else 'all-MiniLM-L6-v2'}; seed {_SEED}")
    for kind, names in tables.items():
        _measure(kind, names, count, embeddings, draws=2 if options.short else 10)
    return 0


def _table(kind: str) -> NameTable:
    return project(Catalog.from_mcp(servers(kind), strict=False), "universal", style="prefixed")


def _plain(names: NameTable) -> list[str]:
    """Return what a gateway would show that puts the key in front and makes the rest legal, and no more."""
    tools = (names.catalog[id].origin for id in names)
    return ["_".join([*measures.spoken(tool.server), *measures.spoken(tool.name)]) for tool in tools]


def _measure(
    kind: str, names: NameTable, count: Callable[[str], int], embeddings: retrieval.Retriever | None, *, draws: int
) -> None:
    plain, ours = _plain(names), list(map(str, names.values()))
    rungs = [names.explain(id).rung for id in names]
    keys = [names.catalog[id].origin.server for id in names]
    labels = list(dict.fromkeys(keys))
    print(f"\n{kind}: {len(ours):,} tools of {len(labels)} servers")
    print(_ROW.format("", "server_tool", "names"))
    both = (plain, ours)

    def row(what: str, *figures: object) -> None:
        print(_ROW.format(what, *figures))

    row("not legal", *(sum(bool(names.dialect.check(name, names.server_name)) for name in each) for each in both))
    row("not unique", *(len(each) - len({fold(name) for name in each}) for each in both))
    row("tokens, mean", *(f"{sum(map(count, each)) / len(each):.2f}" for each in both))
    row("with a word twice", *(f"{sum(map(measures.repeats, each)) / len(each):.2%}" for each in both))
    taken = [measures.reads_as_another(zip(each, keys, strict=True), labels) for each in both]
    row("read as another server's", *map(len, taken))
    row("with a digest", "-", rungs.count("digest"))
    row("shortened", "-", f"{sum(names.explain(id).shortened for id in names) / len(names):.2%}")
    _recalls(names, both, embeddings, row, draws=draws)


def _recalls(
    names: NameTable,
    both: tuple[list[str], list[str]],
    embeddings: retrieval.Retriever | None,
    row: Callable[..., None],
    *,
    draws: int,
) -> None:
    queries = [
        retrieval.query_of(dict(tool.definition) | {"name": tool.origin.name}) for tool in names.catalog.values()
    ]
    asked = [number for number, query in enumerate(queries) if query]
    numbers: dict[str, int] = {}
    server_of = [numbers.setdefault(tool.origin.server_id, len(numbers)) for tool in names.catalog.values()]
    drawn = retrieval.samples([server_of[number] for number in asked], draws=draws, size=_SIZE, most=_MOST, seed=_SEED)
    chosen = [[each[number] for number in asked] for each in both]
    wanted = [queries[number] for number in asked]
    for what, retriever in (("BM25", retrieval.bm25), ("MiniLM", embeddings)):
        if retriever is not None:
            row(
                f"recall at 1, {what}, %",
                *(f"{100 * retrieval.recall(retriever, each, wanted, drawn):.1f}" for each in chosen),
            )


def _print_drawn(tables: dict[str, NameTable], count: int, seed: int) -> None:
    """Print names to be read one by one: half of each kind of keys."""
    chance = random.Random(seed)
    for kind, names in tables.items():
        for id in chance.sample(list(names), count // len(tables)):
            origin = names.catalog[id].origin
            said = names.catalog[id].definition.get("description") or ""
            print("\t".join((kind, origin.server, origin.name, names[id], " ".join(str(said).split())[:100])))


if __name__ == "__main__":
    sys.exit(main())
