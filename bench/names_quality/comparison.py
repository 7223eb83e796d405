"""`python -m bench names-quality [--short] [--report]`: our names beside those that gateways and clients make.

The tools are those of the open collection under short keys, as people write them. Each draw is a number of servers of
one configuration; all draws have fixed seeds. ``--report`` writes the figures as JSON, and the generated part of
docs/measurements/names-quality.md. Never fails on a figure.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import sys
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.names_quality import measures, retrieval
from bench.names_quality.keys import servers
from bench.names_quality.systems import CLIENTS, GATEWAYS, SYSTEMS, lost_in
from truename import dialects
from truename.identity import fold

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench.names import Pairs
    from bench.names_quality.systems import Named, System

_ROOT: Final = Path(__file__).resolve().parents[2]
_DATA: Final = _ROOT / "docs" / "measurements" / "data" / "names-quality.json"
_PAGE: Final = _ROOT / "docs" / "measurements" / "names-quality.md"
_BEGIN: Final = "<!-- figures: begin (python -m bench names-quality --report writes what follows) -->"
_END: Final = "<!-- figures: end -->"
_SEED: Final = 2_026
_MODELS: Final = ("openai", "anthropic", "gemini")
_SESSION: Final = 10
_MOST_OF_ONE: Final = 5

Row = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write if asked to; 0 also where the collection is missing."""
    parser = argparse.ArgumentParser(prog="python -m bench names-quality", description="Compare names of systems.")
    parser.add_argument("--short", action="store_true", help="fewer servers and draws: to see that it works")
    parser.add_argument("--report", action="store_true", help="write the data and the page")
    options = parser.parse_args(arguments)
    try:
        pairs = servers("short keys")
    except FileNotFoundError as error:
        sys.stderr.write(f"{error.filename} is not there; set TRUENAME_SHARED. Nothing was measured.\n")
        return 0
    if options.short:
        pairs = random.Random(_SEED).sample(pairs, 100)
    tokens, count = measures.token_counter()
    retrievers = _retrievers()
    drawn = _draws(pairs, 2 if options.short else 10, 200 if options.short else 400)
    joins = _joins(pairs, 10 if options.short else 100)
    rows = []
    for system in SYSTEMS:
        sys.stderr.write(f"\r\x1b[K{system.name}" if sys.stderr.isatty() else "")
        rows.append(_measured(system, pairs, count=count, retrievers=retrievers, drawn=drawn, joins=joins))
    sys.stderr.write("\r\x1b[K" if sys.stderr.isatty() else "")
    record = {
        "date": datetime.now(UTC).date().isoformat(),
        "seed": _SEED,
        "servers": len(pairs),
        "tools": _tools(pairs),
        "tokens": tokens,
        "draws": len(drawn),
        "joins": len(joins),
        "systems": rows,
    }
    text = _tables(record)
    print(text)
    if options.report:
        _DATA.parent.mkdir(exist_ok=True)
        _DATA.write_text(_compact(record), "utf-8")
        before, _, rest = _PAGE.read_text("utf-8").partition(_BEGIN)
        _PAGE.write_text(f"{before}{_BEGIN}\n\n{text}\n\n{_END}{rest.partition(_END)[2]}", "utf-8")
    return 0


def _tools(pairs: Pairs) -> int:
    return len({(key, tool["name"]) for key, tools in pairs for tool in tools})


def _retrievers() -> dict[str, retrieval.Retriever]:
    found = {"BM25": retrieval.bm25, "static vectors": retrieval.static_vectors(), "MiniLM": retrieval.minilm()}
    return {name: one for name, one in found.items() if one is not None}


def _draws(pairs: Pairs, draws: int, size: int) -> list[list[tuple[tuple[str, str], str]]]:
    """Draw tools with a query each, at most five of a server."""
    asked = [
        ((key, tool["name"]), number, query)
        for number, (key, tools) in enumerate(pairs)
        for tool in tools
        if (query := retrieval.query_of(tool))
    ]
    chosen = retrieval.samples([one[1] for one in asked], draws=draws, size=size, most=_MOST_OF_ONE, seed=_SEED)
    return [[(asked[one][0], asked[one][2]) for one in draw] for draw in chosen]


def _joins(pairs: Pairs, count: int) -> list[tuple[Pairs, Pairs]]:
    """Draw configurations of some servers, and the same with one more."""
    found = []
    for draw in range(count):
        # Every other one begins with a single server.
        size = _SESSION if draw % 2 else 1
        drawn = random.Random(_SEED + draw).sample(pairs, size + 1)
        found.append((drawn[:-1], drawn))
    return found


def _measured(
    system: System,
    pairs: Pairs,
    *,
    count: Callable[[str], int],
    retrievers: dict[str, retrieval.Retriever],
    drawn: list[list[tuple[tuple[str, str], str]]],
    joins: list[tuple[Pairs, Pairs]],
) -> Row:
    there = _tools(pairs)
    named = system.names(pairs, system.state())
    names = [*named.values()]
    lengths = sorted(map(len, names))
    keys = [key for key, _ in pairs]
    kept = [[(named[tool], query) for tool, query in draw if tool in named] for draw in drawn]
    taken = Counter(map(fold, names))
    return {
        "name": system.name,
        "kind": system.kind,
        "rule": system.rule,
        "source": system.source,
        "not shown": there - len(names),
        "illegal": {model: sum(bool(dialects.get(model).check(name)) for name in names) for model in _MODELS},
        "not unique": sum(times for times in Counter(names).values() if times > 1),
        "not unique folded": sum(times for times in taken.values() if times > 1),
        "length": {
            "mean": round(statistics.fmean(lengths), 1),
            "95 %": lengths[int(0.95 * len(lengths))],
            "most": lengths[-1],
        },
        "tokens": round(statistics.fmean(map(count, names)), 2),
        "says its server": round(
            measures.says_its_server([(name, key) for (key, _), name in named.items()], keys) / len(names), 4
        ),
        "reads as another": len(measures.reads_as_another(_parts(named), keys)),
        "recall": {
            what: round(
                statistics.fmean(
                    share
                    for draw in kept
                    for share in retriever([name for name, _ in draw], [query for _, query in draw])
                ),
                4,
            )
            for what, retriever in retrievers.items()
        },
        "lost in clients": {client: lost_in(client, names) for client in CLIENTS} if system.kind != "client" else {},
        "moved": _moved(system, joins),
    }


def _parts(named: Named) -> list[tuple[str, str]]:
    """Return names with their server's key, without the `mcp` that some put in front of every name."""
    is_constant = all(re.match("mcp_+", name) for name in named.values())
    return [(re.sub("^mcp_+", "", name) if is_constant else name, key) for (key, _), name in named.items()]


def _moved(system: System, joins: list[tuple[Pairs, Pairs]]) -> dict[str, float]:
    """Return the shares of shown names that change, or that another tool has as well, when one server joins."""
    changed: defaultdict[str, list[bool]] = defaultdict(list)
    shared: list[bool] = []
    for before, after in joins:
        state = system.state()
        was, now = system.names(before, state), system.names(after, state)
        held: Counter[str] = Counter(now.values())
        changed["a second" if len(before) == 1 else "one more"] += [now.get(tool) != name for tool, name in was.items()]
        shared += [held[name] > (1 if now.get(tool) == name else 0) for tool, name in _own(was).items()]
    shares = {f"{what} joins": found for what, found in changed.items()} | {_SHARED: shared}
    return {what: round(statistics.fmean(found), 4) if found else 0.0 for what, found in shares.items()}


def _own(named: Named) -> Named:
    """Return the names that one tool had."""
    count = Counter(named.values())
    return {tool: name for tool, name in named.items() if count[name] == 1}


def _tables(record: Row) -> str:
    """Return the record as tables of a page."""
    rows = record["systems"]
    recalls = list(rows[0]["recall"])
    intro = (
        f"Run on {record['date']}: {record['tools']:,} tools of {record['servers']} servers under short keys; tokens "
        f"of {record['tokens']}; recall: {record['draws']} draws; {record['joins']} joins; seed {record['seed']}."
    )
    first = _head("rule", _ILLEGAL, "not unique (folded)", "not shown", "length: mean, 95 %, most", "tokens")
    second = _head(*(f"recall at 1, {what}" for what in recalls), "says its server", _READS, *_MOVES)
    third = _head(*CLIENTS)
    for row in rows:
        length, moved = row["length"], row["moved"]
        illegal = ", ".join(f"{number:,}" for number in row["illegal"].values())
        first.append(
            f"| {_title(row)} | {row['rule']} | {illegal} | {row['not unique']:,} ({row['not unique folded']:,}) | "
            f"{row['not shown']:,} | {length['mean']}, {length['95 %']}, {length['most']} | {row['tokens']:.2f} |"
        )
        found = " | ".join(f"{row['recall'][what]:.1%}" for what in recalls)
        second.append(
            f"| {_title(row)} | {found} | {row['says its server']:.1%} | {row['reads as another']:,} | "
            f"{moved[_SECOND]:.2%} | {moved[_MORE]:.2%} | {moved[_SHARED]:.2%} |"
        )
        if row["lost in clients"]:
            third.append(f"| {_title(row)} | {' | '.join(f'{n:,}' for n in row['lost in clients'].values())} |")
    sources = "; ".join(f"{one.name} {one.source}" for one in GATEWAYS)
    return "\n\n".join([
        intro,
        "\n".join(first),
        "\n".join(second),
        "Tools that a call no longer reaches, once a client has changed the names of a gateway that lists them all:",
        "\n".join(third),
        f"Sources of the formulas, read or run in 2026-11: {sources}.",
    ])  # fmt: skip


_SECOND, _MORE, _SHARED = "a second joins", "one more joins", "another's"
_ILLEGAL: Final = "illegal at OpenAI, Anthropic, Gemini"
_READS: Final = "reads as another server's"
_MOVES: Final = ("names that change: 2nd server", "11th server", "names that get a second tool")


def _head(*columns: str) -> list[str]:
    return [f"| names by | {' | '.join(columns)} |", "|---" * (1 + len(columns)) + "|"]


def _title(row: Row) -> str:
    titles = {"client": f"{row['name']} (client)", "truename": f"**{row['name']}**"}
    return titles.get(row["kind"], str(row["name"]))


def _compact(record: Row) -> str:
    """Return JSON with a line for each system."""
    head = json.dumps({key: value for key, value in record.items() if key != "systems"})
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in record["systems"])
    return f'{head[:-1]}, "systems": [\n{lines}\n]}}\n'


if __name__ == "__main__":
    sys.exit(main())
