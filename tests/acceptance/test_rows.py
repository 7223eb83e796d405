"""All rows: none fails but those that deviate on purpose, and no row that should be executed is skipped in silence."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from tests.acceptance.driver import execute
from tests.acceptance.rows import read
from tests.acceptance.verdict import FAILED, PASSED
from tests.shared import ROOT, data

# Whoever builds a capability raises the number by the rows that it makes pass.
LEAST_PASSED = {"seeds.json": 278, "openai-agents.json": 291}
PAGE = ROOT / "docs" / "frameworks" / "openai-agents-compat.md"


def deviating() -> set[str]:
    """Return the rows that the documentation says are done in another way: its table of differences."""
    lines = PAGE.read_text("utf-8").partition("## Differences")[2].partition("\n## ")[0].splitlines()
    return {id for line in lines if line.startswith("| `") for id in re.findall(r"`([^`]+)`", line.split("|")[1])}


def test_the_rows_that_fail_are_quirks_and_are_those_that_the_documentation_explains() -> None:
    vectors = json.loads(data("acceptance", "openai-agents.json").read_bytes())["vectors"]
    quirks = {vector["id"] for vector in vectors if "quirk" in vector}
    failing = {row.id for row in read(data("acceptance", "openai-agents.json")) if execute(row).status == FAILED}

    assert failing == deviating()
    assert failing <= quirks


def test_each_deviation_has_its_test() -> None:
    tests = {
        name
        for path in (ROOT / "tests" / "compat").glob("test_*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text("utf-8"))
    }

    assert set(re.findall(r"`(test_\w+)`", PAGE.read_text("utf-8"))) <= tests


@pytest.mark.parametrize(("file", "least"), LEAST_PASSED.items())
def test_no_other_row_of_a_file_fails_and_at_least_so_many_pass(file: str, least: int) -> None:
    verdicts = [(row.id, execute(row)) for row in read(data("acceptance", file))]

    assert [(id, v.reason) for id, v in verdicts if v.status == FAILED and id not in deviating()] == []
    assert Counter(v.status for _, v in verdicts)[PASSED] >= least


@pytest.mark.parametrize("seed", ["S000", "S001", "S004"])
def test_every_row_of_a_finished_seed_passes(seed: str) -> None:
    rows = [row for row in read(data("acceptance", "seeds.json")) if row.id.startswith(f"{seed}-")]
    others = [(row.id, verdict) for row in rows if (verdict := execute(row)).status != PASSED]

    assert rows
    assert others == []
