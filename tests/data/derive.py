"""What the tests need of the shared collection: ``python -m tests.data.derive`` writes it into this folder.

Of the acceptance rows everything but the seeds' own sentences, of another library's errors their code, of the facts the
fields that tests read, of the real catalogues a sample: names only, one server a line, with where they come from.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import sys
from typing import TYPE_CHECKING, Any, Final

from tests.acceptance.verdict import coded
from tests.acceptance.words import NOT_COMPARED
from tests.shared import DATA, shared

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["derived", "quotations"]

_ROW: Final = ("id", "seed", "kind", "statement", "given", "expect", "basis")
_VECTOR: Final = ("id", "op", "about", "given", "expect", "quirk")
_CLIENT: Final = ("client", "scope", "os_paths", "confidence")
_DIALECT: Final = ("id", "client_info_names", "max_length")
_RELEASE: Final = ("live", "old", "gone", "new")
_SERVER: Final = ("id", "server", "family", "source", "licence")
_CLASHING: Final = ("search", "list_tables", "list_databases", "read_file")
_SEED: Final = 20261123
_DRAWN: Final = 60
_MOST_TOOLS: Final = 60
# So many words of a seed, one after the other, are a quotation.
_QUOTED: Final = 6
# Sentences of ours for those that repeat a seed's.
_STATEMENTS: Final = {
    "S000-013": "A call is understood in every spelling that a client can send",
    "S000-115": "The four spellings of one tool have one canonical id",
    "S001-007": "Two calls of one tool have two call ids",
    "S001-010": "Namesakes in two namespaces differ in lookup key, approval key and dispatch",
    "S001-029": "With a prefix shown, the server is still called by its tool's own name",
    "S001-031": "The key of a deferred tool without a namespace is of the deferred kind",
    "S001-034": "A namespace named like its only tool is refused",
    "S001-036": "A call by the synthetic namespace keeps it in its approval",
    "S001-037": "A call by the synthetic namespace keeps it in its interruption",
    "S001-038": "A call by the synthetic namespace keeps it in its trace",
    "S001-039": "A call by the synthetic namespace keeps it in the tool's context",
    "S002-010": "An illegal name in a list is reported, with the tool, before a request is made",
    "S002-014": "Option A: what a model calls leads back to the dotted name",
    "S002-023": "A check over all emitted names finds one that the pattern refuses",
    "S002-031": "A server and an agent of different releases are noticed",
    "S004-023": "A plain name gets its server's once another server has it too",
    "S004-028": "A file of mcpServers is read without a change",
}


def derived() -> dict[str, str]:
    """Return the files of this folder, by path, as the shared collection has them. Skips where there is none."""
    vectors = _read("acceptance", "openai-agents.json")
    return {
        "acceptance/seeds.json": _listed(map(_row, _read("acceptance", "seeds.json"))),
        "acceptance/openai-agents.json": (
            f'{{"observed_from": {_text(vectors["observed_from"])}, "vectors": '
            f"{_listed(map(_vector, vectors['vectors'])).rstrip()}}}\n"
        ),
        "facts/client-configs.json": _listed(_only(row, _CLIENT) for row in _read("facts", "client-configs.json")),
        "facts/dialects.json": _listed(_only(row, _DIALECT) for row in _read("facts", "dialects.json")),
        "corpus/drift.json": _listed(_only(row, _RELEASE) for row in _read("corpus", "drift.json")),
        "corpus/edge-names.json": _listed(_edges()),
        "corpus/sample.json": _listed(_sample()),
    }


def quotations(text: str) -> Iterator[str]:
    """Yield the passages of the seeds that a text repeats."""
    sources = [_words(path.read_text("utf-8", "replace")) for path in sorted(shared("seeds").glob("*.txt"))]
    passages = {tuple(words[n : n + _QUOTED]) for words in sources for n in range(len(words) - _QUOTED + 1)}
    words = _words(text)
    for n in range(len(words) - _QUOTED + 1):
        if tuple(words[n : n + _QUOTED]) in passages:
            yield " ".join(words[n : n + _QUOTED])


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9_@/.:-]+", text.lower())


def _read(*parts: str) -> Any:
    return json.loads(shared(*parts).read_text("utf-8"))


def _only(row: dict[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    return {key: row[key] for key in keys if key in row}


def _row(row: dict[str, Any]) -> dict[str, Any]:
    return _only(row | {"statement": _STATEMENTS.get(row["id"], row["statement"])}, _ROW)


def _vector(row: dict[str, Any]) -> dict[str, Any]:
    expect = {key: coded(wanted) for key, wanted in row["expect"].items() if key not in NOT_COMPARED}
    return _only(row | {"expect": expect}, _VECTOR)


def _edges() -> Iterator[dict[str, str]]:
    for group, rows in _read("corpus", "edge-names.json").items():
        yield from ({"group": group, "server": row["server"], "tool": row["tool"]} for row in rows)


def _sample() -> Iterator[dict[str, Any]]:
    """Yield servers with odd names, with names that others have too, that lists a tool twice, and any others."""
    with gzip.open(shared("corpus", "open.jsonl.gz"), "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    odd = {row["server"] for row in _edges()}
    listed = [[tool["name"] for tool in row["tools"]] for row in rows]
    small = {number for number, names in enumerate(listed) if len(names) <= _MOST_TOOLS}
    twice = {number for number in small if len(set(listed[number])) < len(listed[number])}
    chosen = twice | {number for number in small if rows[number]["server"] in odd}
    for name in _CLASHING:
        chosen.update([number for number in sorted(small) if name in listed[number]][:3])
    drawn = random.Random(_SEED).sample(sorted(small - chosen), _DRAWN)
    for number in sorted(chosen.union(drawn)):
        yield _only(rows[number], _SERVER) | {"tools": listed[number]}


def _text(value: object) -> str:
    return json.dumps(value)


def _listed(rows: Iterable[object]) -> str:
    """Return a JSON list with a row a line."""
    return "[\n" + ",\n".join(map(_text, rows)) + "\n]\n"


def main() -> int:
    """Write the files."""
    for name, text in derived().items():
        (DATA / name).parent.mkdir(exist_ok=True)
        (DATA / name).write_text(text, "utf-8")
        sys.stdout.write(f"{name}: {len(text):,} characters\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
