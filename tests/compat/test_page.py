"""The page on openai-agents: its examples run."""

from __future__ import annotations

import doctest

from tests.shared import ROOT


def test_the_examples_of_the_page_say_what_happens() -> None:
    found = doctest.testfile(str(ROOT / "docs" / "frameworks" / "openai-agents-compat.md"), module_relative=False)

    assert found.attempted > 10
    assert found.failed == 0
