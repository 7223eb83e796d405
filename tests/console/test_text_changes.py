"""Differences of definitions: nothing that changed is left out, and no server makes one that takes long."""

from __future__ import annotations

import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.shared import UNHURRIED
from truename.console.text_changes import changed_lines, changed_words

TEXTS = st.text(st.sampled_from("ab .\n"), max_size=60)
VALUES = st.dictionaries(st.sampled_from("abcdef"), st.lists(st.integers(0, 3), max_size=8), max_size=6)


@given(TEXTS, TEXTS)
def test_what_is_same_or_removed_is_the_old_text_and_what_is_same_or_added_the_new_one(old: str, new: str) -> None:
    parts = changed_words(old, new)
    assert "".join(part.text for part in parts if part.kind != "added") == old
    assert "".join(part.text for part in parts if part.kind != "removed") == new


@given(VALUES, VALUES)
def test_of_lines_only_equal_ones_are_left_out(old: dict[str, Any], new: dict[str, Any]) -> None:
    parts = changed_lines(old, new)
    for kind, value, other in (("removed", old, new), ("added", new, old)):
        changed = [part.text for part in parts if part.kind == kind]
        assert set(_lines(value)) - set(_lines(other)) <= set(changed)


def test_equal_lines_far_from_a_change_are_counted() -> None:
    old = {"a": 1, "list": [*range(30)], "z": 1}
    (gap,) = [part.text for part in changed_lines(old, {**old, "a": 2}) if part.kind == "gap"]
    assert gap == "... 31 equal lines"


def test_texts_that_were_made_to_be_slow_are_not() -> None:
    began = time.process_time()
    for size in (2_000, 20_000, 100_000):
        changed_words("a b " * size, "b a a " * size)
        changed_lines({"x": [1, 2] * size}, {"x": [2, 1, 1] * size})
    assert time.process_time() - began < UNHURRIED


def _lines(value: dict[str, Any]) -> list[str]:
    return [part.text for part in changed_lines("", value)]
