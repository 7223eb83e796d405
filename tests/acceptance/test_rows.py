"""All rows: none fails, and no row that should be executed is skipped in silence."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.acceptance.driver import execute
from tests.acceptance.rows import read
from tests.acceptance.verdict import FAILED, PASSED
from tests.shared import shared

# Whoever builds a capability raises the number by the rows that it makes pass.
LEAST_PASSED = {"seeds.json": 170, "openai-agents.json": 8}


@pytest.mark.parametrize(("file", "least"), LEAST_PASSED.items())
def test_no_row_of_a_file_fails_and_at_least_so_many_pass(file: str, least: int) -> None:
    verdicts = [(row.id, execute(row)) for row in read(shared("acceptance", file))]

    assert [(id, v.reason) for id, v in verdicts if v.status == FAILED] == []
    assert Counter(v.status for _, v in verdicts)[PASSED] >= least


@pytest.mark.parametrize("seed", ["S000", "S004"])
def test_every_row_of_a_finished_seed_passes(seed: str) -> None:
    rows = [row for row in read(shared("acceptance", "seeds.json")) if row.id.startswith(f"{seed}-")]
    others = [(row.id, verdict) for row in rows if (verdict := execute(row)).status != PASSED]

    assert rows
    assert others == []
