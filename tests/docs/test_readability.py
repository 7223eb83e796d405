"""The report of readability finds what it is for, and nothing in code."""

from __future__ import annotations

import doctest
from typing import TYPE_CHECKING

import pytest

from tests.docs import readability

if TYPE_CHECKING:
    from pathlib import Path

LONG = "Word " * 31


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"{LONG}.", (1, 0, 0)),
        (f"```python\n{LONG}\n```\n\n<!-- {LONG} -->", (0, 0, 0)),
        ("Word " * 20 + "end. " + "Word " * 20 + "end.", (0, 0, 0)),
        (f"| a | {LONG} |", (1, 0, 0)),
        ("# What it costs", (0, 1, 1)),
        ("What is a dialect?", (0, 0, 0)),
        ("The client is told.", (0, 0, 1)),
        ("[Nobody](x.md) asks.", (0, 0, 1)),
    ],
)
def test_findings_are_counted(
    text: str, found: tuple[int, int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readability, "ROOT", tmp_path)
    (tmp_path / "page.md").write_text(text, "utf-8")

    report = readability.read("page.md")

    assert (len(report.long), len(report.what), len(report.riddles)) == found


def test_sentences_are_those_of_its_example() -> None:
    assert doctest.testmod(readability).failed == 0
