"""Every row of the table of dialects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from docsite.reference.text import head, table
from truename import dialects
from truename.cli.clients import facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.dialects import Dialect

__all__ = ["page"]

_KINDS: Final = {
    "own": "Truename's own",
    "client": "Clients",
    "framework": "Frameworks",
    "provider": "Model providers",
    "specification": "Specifications",
    "spec": "Specifications",
}
_INTRODUCTION: Final = """A dialect describes the tool names that one client, framework, provider or specification accepts, and its changes to
them. `truename clients NAME` prints the same; the table is `src/truename/dialects/table.json`. *run* means that the client was run in the
[lab](../measurements/lab.md) ([results](../compatibility/index.md)); *read* means that the rule is from its source or documentation.

| row | meaning |
|---|---|
| also known as | other words for it in settings and commands |
| characters | the characters that a name may contain (`any`: all printable ones) |
| length | the longest name that the model may see, and the part that is left for the tool's name if the client adds the server's key |
| tools | the most tools of one request |
| too long | what the client does with a longer name |
| illegal | what fails if a name has other characters: the tool, its server or the whole request |
| became equal | what the client does if its own changes made two names equal |
| listed twice | what the client does if one server lists a name twice |
| two servers' | what the client does if two servers list one name; without this row, the same as *became equal* |
| reserved | names that the client uses for itself, or cannot take |
| styles | the naming [styles](../glossary.md#style) whose names can be legal there |
| known by | run or read, and the versions |
| source, date | where the rule is from, and when it was last checked |"""


def page() -> str:
    """Return the page."""
    rows = dialects.table()
    parts = [head("Dialects", "`src/truename/dialects/table.json`"), _INTRODUCTION]
    for kind in dict.fromkeys(row.kind for row in rows):
        parts.append(f"## {_KINDS.get(kind, kind.capitalize())}")
        found = [row for row in rows if row.kind == kind]
        parts.append(
            table(
                ("name", "characters", "length", "tools", "known by", "date"),
                ([f"[{row.title}](#{row.name})", *_brief(row)] for row in found),
            )
        )
        for row in found:
            parts += _section(row)
    return "\n\n".join(parts) + "\n"


def _brief(row: Dialect) -> list[str]:
    said = facts(row)
    return [
        _code(said.get("characters", "")),
        said.get("length", "").partition(",")[0],
        said.get("tools", ""),
        row.confidence,
        row.date,
    ]


def _section(row: Dialect) -> Iterator[str]:
    yield f"### {row.name}"
    yield f"{row.title}{f', version {row.version}' if row.version else ''}."
    yield table(("", ""), ((label, _shown(label, text)) for label, text in facts(row).items()))
    if row.lab:
        yield f"Measured: {', '.join(map(_measured, row.lab))}."
    if row.notes:
        yield "\n".join(f"- {note}" for note in row.notes)


def _measured(file: str) -> str:
    """Return a link to the page of the client that a file of results is about."""
    client = file.removesuffix(".json").rpartition("-")[0]
    return f"[{client}](../compatibility/clients/{client}.md)"


def _shown(label: str, text: str) -> str:
    if label == "reserved":
        return ", ".join(f"`{word}`" for word in text.split(", "))
    return _code(text) if label == "characters" else text


def _code(text: str) -> str:
    return f"`{text}`" if text.startswith("[") else text
