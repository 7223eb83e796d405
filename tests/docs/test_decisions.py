"""The index of decisions is made from the headings of their pages."""

from __future__ import annotations

from docsite.decisions import INDEX, index


def test_the_index_has_the_title_of_every_decision() -> None:
    assert INDEX.read_text("utf-8") == index(), "python -m docsite.decisions"
