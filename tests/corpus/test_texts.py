"""Names in texts on real catalogues: each server beside nine others, and what changes was read place by place."""

from __future__ import annotations

import csv
import random
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from tests.corpus.collection import catalogues
from tests.shared import ROOT, shared
from truename import Catalog, project
from truename.gateway.views.texts import ServerTexts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.catalog import Tool

pytestmark = [pytest.mark.slow, pytest.mark.corpus]

_READ: Final = Path(__file__).with_name("read_mentions.tsv")
_PAGE: Final = ROOT / "docs" / "measurements" / "names.md"
_SEED: Final = 20261122
_DRAWN: Final = 200
_MOST_OF_ONE: Final = 8
_BESIDE: Final = 9
_MARK: Final = "\0"


class Place(NamedTuple):
    """Where a name in a text changes: the server's row, the tool, the field, the how manieth change of it, the name."""

    id: str
    tool: str
    field: str
    number: int
    name: str


def servers() -> list[dict[str, Any]]:
    """Return the whole collection: what was read is in all of it."""
    shared("corpus", "open.jsonl.gz")
    return catalogues()


def shown(row: dict[str, Any], others: list[dict[str, Any]]) -> list[tuple[Tool, str]]:
    """Return the tools of a server, and what they are called where it stands beside others."""
    listed = [(row["server"], row["tools"]), *((f"{one['server']} {one['id']}", one["tools"]) for one in others)]
    catalog = Catalog.from_mcp(listed, strict=False)
    names = project(catalog, "universal", style="prefixed")
    return [(tool, names[id]) for id, tool in catalog.items() if tool.origin.server == row["server"]]


def changes(row: dict[str, Any], others: list[dict[str, Any]]) -> Iterator[Place]:
    tools = shown(row, others)
    # A mark in place of the name tells where it would stand.
    marked = [(tool, name if name == tool.origin.name else f"{_MARK}{tool.origin.name}{_MARK}") for tool, name in tools]
    texts = ServerTexts({row["server"]: marked})
    for tool, _ in tools:
        definition = texts.definition(tool)
        for field in ("title", "description"):
            found = str(definition.get(field)).split(_MARK)[1::2]
            yield from (Place(row["id"], tool.origin.name, field, number, name) for number, name in enumerate(found))


@cache
def places() -> list[Place]:
    drawing = random.Random(_SEED)
    found: list[Place] = []
    for row in servers():
        others = [one for one in drawing.sample(servers(), _BESIDE + 1) if one["id"] != row["id"]][:_BESIDE]
        found += changes(row, others)
    return found


def drawn() -> list[Place]:
    """Return places in descriptions, not too many of one server; titles that change are names and nothing else."""
    chosen: list[Place] = []
    counted: Counter[str] = Counter()
    for place in random.Random(_SEED).sample(places(), len(places())):
        if place.field == "description" and counted[place.id] < _MOST_OF_ONE and len(chosen) < _DRAWN:
            chosen.append(place)
            counted[place.id] += 1
    return chosen


def read() -> dict[Place, str]:
    with _READ.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    return {
        Place(row["id"], row["tool"], row["field"], int(row["number"]), row["name"]): row["verdict"] for row in rows
    }


def test_the_places_that_are_drawn_are_those_that_were_read() -> None:
    verdicts = read()

    assert len(verdicts) == _DRAWN
    assert set(drawn()) == set(verdicts)
    assert set(verdicts.values()) <= {"right", "wrong"}
    wrong = sum(verdict == "wrong" for verdict in verdicts.values())
    assert f"{wrong} of {_DRAWN}" in _PAGE.read_text("utf-8")


def test_the_page_says_how_often_texts_change() -> None:
    tools = sum(len({tool["name"] for tool in row["tools"]}) for row in servers())
    described = [place for place in places() if place.field == "description"]
    changed = {(place.id, place.tool) for place in described}
    having = {place.id for place in places()}
    said = " ".join(_PAGE.read_text("utf-8").split())

    assert f"{len(described):,} places in {len(changed):,} of {tools:,} descriptions" in said
    assert f"{len(places()) - len(described):,} titles" in said
    assert f"{len(having):,} of {len(servers()):,} servers" in said
