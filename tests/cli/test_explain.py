"""`truename explain`: every rule has a page, and the pages in the documentation are the same."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from truename.cli._rules import RULEBOOK
from truename.lint.pages import main, page

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Run


@pytest.mark.parametrize("word", ["TN104", "tn104", "illegal_for_client", "illegal-for-client"])
def test_a_rule_is_shown_by_its_code_and_by_its_name(run: Run, word: str) -> None:
    done = run("explain", word)
    assert done.status == 0
    assert done.out.startswith("TN104 illegal_for_client  error\n")
    assert "fs_list" in done.out


def test_every_rule_there_is_can_be_explained(run: Run) -> None:
    everything = run("explain", "--json").document["rules"]
    assert [one["code"] for one in everything] == sorted(RULEBOOK)
    for one in everything:
        assert one["what"].endswith(".")
        assert not one["what"].startswith("Find "), "a finding is a statement"
        assert one["why"]
        assert run("explain", one["code"], "--json").document["rule"] == one
    assert {one["found_by"] for one in everything} >= {"truename lint", "truename doctor"}


@pytest.mark.parametrize("width", ["80", "140"])
def test_the_table_of_all_rules_fits(run: Run, monkeypatch: pytest.MonkeyPatch, width: str) -> None:
    monkeypatch.setenv("COLUMNS", width)
    done = run("explain")
    assert "TN001" in done.out
    assert "TN195" in done.out
    assert all(len(line) <= int(width) for line in done.out.splitlines())


def test_a_rule_that_does_not_exist_is_told_with_the_nearest(run: Run) -> None:
    done = run("explain", "illegal_nam")
    assert done.status == 2
    assert "Did you mean illegal_name?" in done.err
    assert run("explain", "\x1b[31m").status == 2


def test_the_page_of_the_rules_is_written_into_a_file_and_has_every_rule_of_lint(tmp_path: Path) -> None:
    assert main([str(tmp_path / "rules.md")]) == 0
    assert (tmp_path / "rules.md").read_text("utf-8") == page()
    assert set(re.findall(r"^### (TN\d+)$", page(), re.MULTILINE)) == {code for code in RULEBOOK if code >= "TN100"}
    assert main([]) == 2
