"""`truename clients`: show which names each client, framework and provider accepts, and how it changes others."""

from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter

from truename import dialects
from truename.cli import _completion
from truename.cli._client_rules import client_rules
from truename.cli._options import JsonOutput
from truename.cli._rendering import Cell, output, print_json, print_table, show, styled
from truename.dialects import Dialect
from truename.dialects.dialect import DEFAULT_SERVER, brackets

__all__ = ["clients", "facts"]

Name = Annotated[
    str | None,
    Parameter(completer=_completion.clients, help="A client, framework or provider, by its name or an alias."),
]
_LAB = "lab"
_ROOMY = 150
_EXAMPLES = ("get_weather", "fs.list", "has space", "a/b", "天気取得", "_lead", "x" * 70)
_OVER = {
    "cut": "cut off at the end",
    "drop": "the tool is dropped",
    "hash": "cut, with a digest at the end",
    "keep": "sent unchanged",
    "middle": "the middle is cut out",
    "shrink": "the server's part is cut",
}
_EQUAL = {
    "both-first": "all are shown, calls go to the first",
    "both-last": "all are shown, calls go to the last",
    "first": "the first stays, the others are dropped",
    "greatest": "the last in the order of code points stays, the others are dropped",
    "last": "the last stays, calls of the others reach it",
    "same": "all are shown, calls go to the one whose own name it is",
    "hash": "each gets a digest",
    "hash-later": "the first stays, later ones get a digest",
    "number": "later ones get a number",
    "prefix": "the server's name is put in front",
    "race": "the server that is ready first keeps it, which varies",
    "refuse-request": "the whole request fails",
    "refuse-server": "the whole server fails",
    "refuse-tool": "the tools fail",
    "unknown": "not known",
}


def clients(name: Name = None, /, *, as_json: JsonOutput = False) -> int:
    """Show the rules of all clients, or everything about one, with source and date."""
    if name is None:
        rows = dialects.table()
        if as_json:
            print_json([_plain(row) for row in rows])
        else:
            _table(rows)
    else:
        row = client_rules(name)
        if as_json:
            print_json(_plain(row))
        else:
            _one(row)
    return 0


def _table(rows: tuple[Dialect, ...]) -> None:
    headings = ["client", "length", "shows get_x of lab as", "known by"]
    roomy = output().width >= _ROOMY
    if roomy:
        headings += ["date", "kind", "tools", "too long", "became equal", "source"]
    cells: list[list[Cell]] = []
    for row in rows:
        confidence = styled(row.confidence, "green" if row.confidence == "run" else "dim")
        cells.append([styled(row.name, "bold"), _length(row), row.shown(_LAB, "get_x") or "-", confidence])
        if roomy:
            over = _OVER[row.mangling.over] if row.known_length else "?"
            tools = _number(row.max_tools, "-")
            cells[-1] += [row.date, row.kind, tools, over, _EQUAL[row.mangling.equal], row.source]
    print_table(headings, cells)
    show("")
    show("length: of the name that the model sees, with any prefix; ?: unknown, so the universal limit is used.")
    show("run: observed in a run; read: from code, documentation or issues. `truename clients NAME` shows details.")


def _length(row: Dialect) -> str:
    return "?" if "max_length" in row.unknown else _number(row.max_length, "any")


def _room(row: Dialect) -> str:
    """Return the greatest length of a name, and how much of it is left behind the prefix of a common server key."""
    room = row.room()
    if "max_length" in row.unknown:
        return f"not known, so Truename uses at most {room} characters" if room is not None else "not known"
    if room is None or room == row.max_length:
        return _length(row)
    return f"{row.max_length}, of which {room} are left for the tool's name, if the server's key is {DEFAULT_SERVER}"


def _number(value: int | None, otherwise: str) -> str:
    return otherwise if value is None else str(value)


def _one(row: Dialect) -> None:
    show(styled(f"{row.title} {row.release}".rstrip(), "bold"), f" ({row.name}, {row.kind})")
    for label, text in facts(row).items():
        show(styled(f"  {label:<16}", "dim"), text)
    show("")
    shown = [(example, row.shown(_LAB, example)) for example in _EXAMPLES]
    print_table(["a tool of lab", "as the model sees it"], [[name, text or "(dropped)"] for name, text in shown])
    for note in row.notes:
        show(f"  {note}")


def facts(row: Dialect) -> dict[str, str]:
    """Return the known facts about a client, in words, by label."""
    rules = row.mangling
    facts = {
        "also known as": ", ".join(row.aliases),
        "characters": "not known" if "chars" in row.unknown else "any" if row.chars is None else brackets(row.chars),
        "length": _room(row),
        "tools": _number(row.max_tools, "no limit is known"),
        "too long": _OVER[rules.over] if row.known_length else "",
        "illegal": f"the {rules.illegal} fails" if rules.illegal else "",
        "became equal": _EQUAL[rules.equal],
        "listed twice": _EQUAL[rules.duplicate],
        "two servers'": _EQUAL[rules.across] if rules.across else "",
        "reserved": ", ".join(sorted(row.reserved)),
        "styles": ", ".join(row.styles),
        "known by": row.unrun or f"it was {row.confidence}" + (f", version {row.version}" if row.version else ""),
        "source": row.source,
        "date": row.date,
        "run with": ", ".join(f"{run.version} ({run.date})" for run in row.runs) if len(row.runs) > 1 else "",
        "other versions": "; ".join(_versions_in_words(row)),
    }
    return {label: text for label, text in facts.items() if text}


def _versions_in_words(row: Dialect) -> Iterator[str]:
    """Yield the rules of other versions: how to ask for them, and which versions were run."""
    for one in dialects.versions(row.name):
        if one.name != row.name:
            yield f"{one.name} (run with {', '.join(run.version for run in one.runs)})"


def _plain(row: Dialect) -> dict[str, object]:
    return {
        "name": row.name,
        "title": row.title,
        "kind": row.kind,
        "aliases": list(row.aliases),
        "characters": None if row.chars is None else "".join(sorted(row.chars)),
        "max_length": row.max_length,
        "room": row.room(),
        "max_tools": row.max_tools,
        "case_sensitive": row.case_sensitive,
        "unknown": list(row.unknown),
        "reserved": sorted(row.reserved),
        "styles": list(row.styles),
        "shows": {example: row.shown(_LAB, example) for example in _EXAMPLES},
        "over_long": row.mangling.over,
        "equal": row.mangling.equal,
        "duplicate": row.mangling.duplicate,
        "across": row.mangling.across or row.mangling.equal,
        "illegal": row.mangling.illegal or None,
        "source": row.source,
        "date": row.date,
        "version": row.version,
        "confidence": row.confidence,
        "release": row.release or None,
        "unrun": row.unrun or None,
        "runs": [{"version": run.version, "date": run.date} for run in row.runs],
        "versions": [
            {"name": one.name, "runs": [{"version": run.version, "date": run.date} for run in one.runs]}
            for one in dialects.versions(row.name)
        ],
        "notes": list(row.notes),
    }
