"""The text rules on the collections: labelled attacks, and real catalogues, whose findings were read one by one."""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any, Final

import pytest

from tests.corpus.attacks import CATEGORIES, Tally, entries, left_out, tally
from tests.corpus.collection import catalogues
from tests.policy.text_examples import findings
from tests.shared import ROOT, shared
from truename.conventions import Convention, Declaration, lint
from truename.conventions.rules import LintContext
from truename.conventions.rules.shadowing import CHECKS as SHADOWING

pytestmark = [pytest.mark.slow, pytest.mark.corpus]

_READ: Final = Path(__file__).with_name("read_findings.tsv")
_PAGE: Final = ROOT / "docs" / "measurements" / "text-rules.md"
_SEED: Final = 20261122
_DRAWN: Final = 200


def servers() -> list[dict[str, Any]]:
    """Return the whole collection: what was read is in all of it."""
    shared("corpus", "open.jsonl.gz")
    return catalogues()


def material(*rows: dict[str, Any]) -> LintContext:
    tools = ((row["id"], tool) for row in rows for tool in row["tools"])
    return LintContext(
        tuple(Declaration(name=tool["name"], server=id, definition=tool) for id, tool in tools), Convention()
    )


def test_95_in_100_of_the_hostile_are_found_and_at_most_5_in_100_of_the_harmless_are_flagged() -> None:
    """The same holds for each category that the rules were tuned without, and for all others beside it."""
    whole = sum(tally(entries()).values(), Tally())
    without = {category: left_out(category, entries()) for category in CATEGORIES}
    missed = {
        category: found
        for category, found in without.items()
        if not (_holds(found[category]) and _holds(sum(found.values(), Tally())))
    }

    assert whole.hostile + whole.harmless == 57
    assert _holds(whole)
    assert missed == {}


def _holds(counted: Tally) -> bool:
    return counted.found >= 0.95 * counted.hostile > 0 and counted.flagged <= 0.05 * counted.harmless


def test_the_findings_of_the_text_rules_on_real_tools_are_those_that_were_read() -> None:
    found = {
        (row["id"], finding.tools[0], finding.rule.code) for row in servers() for finding in findings(material(row))
    }
    with _READ.open(encoding="utf-8", newline="") as lines:
        read = list(csv.DictReader(lines, delimiter="\t"))

    assert found == {(row["id"], row["tool"], row["rule"]) for row in read}
    assert {row["verdict"] for row in read} == {"true", "false"}
    false = sum(row["verdict"] == "false" for row in read)
    assert f"{false} of {len(read)}" in _PAGE.read_text("utf-8")


def test_of_200_real_tools_what_was_read_is_all_that_is_found() -> None:
    tools = [(row, tool["name"]) for row in servers() for tool in row["tools"]]
    drawn = random.Random(_SEED).sample(tools, _DRAWN)
    drawn_from = {row["id"]: row for row, _ in drawn}
    linted = {id: lint(material(row).declarations).findings for id, row in drawn_from.items()}
    found = [
        (row["server"], name, finding.rule.name)
        for row, name in drawn
        for finding in linted[row["id"]]
        if name in finding.tools
    ]

    assert found == [("@moises-paschoalick/ai-agent-with-mcp", "Users Tool", "illegal_name")]


def test_ten_servers_of_different_families_hardly_shadow_each_other() -> None:
    drawing = random.Random(_SEED)
    sets = 60
    pairs = set()
    for number in range(sets):
        families = {row["family"]: row for row in drawing.sample(servers(), 30)}
        together = material(*list(families.values())[:10])
        for check in SHADOWING:
            pairs |= {(number, finding.server) for finding in check.find(together)}

    assert len(pairs) <= 0.1 * sets, pairs
