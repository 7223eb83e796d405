"""Taking our own edits out of a tree that was changed since; edits as a list that can be kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.editing import ABSENT, Document, apply_edits, edit, find_edits, merge, value_at

_LEAVES = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["a", "b", "github", ""])
_TREES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)

_OBJECTS = st.dictionaries(st.sampled_from("abc"), _TREES, max_size=3)


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "merged"),
    [
        ({"a": 2}, {"a": 1}, {"a": 2, "b": 3}, {"a": 1, "b": 3}),
        ({"url": "u"}, {"command": "c"}, {"url": "u", "disabled": True}, {"command": "c", "disabled": True}),
        ({}, {"gone": 1}, {"more": 2}, {"gone": 1, "more": 2}),
        (["new"], ["old"], ["theirs", "new", "more"], ["theirs", "old", "more"]),
        (["x", "y"], ["all"], ["y", "user", "x"], ["all", "user"]),
        (["a", "new"], ["a"], ["new", "a", "b"], ["a", "b"]),
        (["a"], ["a", "b"], ["z", "a", "c"], ["z", "a", "b", "c"]),
        (["A", "B"], ["a", "b"], ["A"], ["a"]),
        ([{"name": "x"}], [{"name": "x", "v": 1}], [{"name": "x", "t": 2}], [{"name": "x", "t": 2, "v": 1}]),
        ({"on": 1}, {"on": True}, {"on": 1, "b": 0}, {"on": True, "b": 0}),
    ],
)  # fmt: skip
def test_a_merge_keeps_what_others_changed_and_undoes_the_rest(base: Any, mine: Any, theirs: Any, merged: Any) -> None:
    assert merge(base, mine, theirs).value == merged


def test_what_both_changed_stays_theirs_and_is_told() -> None:
    found = merge({"s": {"url": "ours"}}, {"s": {"command": "c"}}, {"s": {"url": "theirs"}})

    assert found.contested == (("s", "url"),)
    assert found.value["s"]["url"] == "theirs"


def test_what_somebody_took_out_stays_out() -> None:
    assert merge(["ours", "b"], ["before", "b"], ["b"]) == (["b"], ((),))


@given(_TREES, _TREES)
def test_a_merge_with_nothing_changed_by_others_is_what_was_before(base: Any, mine: Any) -> None:
    assert merge(base, mine, base) == (mine, ())


@given(_TREES, _TREES)
def test_a_merge_with_nothing_of_ours_is_theirs(base: Any, theirs: Any) -> None:
    assert merge(base, base, theirs).value == theirs


@given(_TREES, _TREES, _TREES)
def test_no_merge_fails(base: Any, mine: Any, theirs: Any) -> None:
    merge(base, mine, theirs)


@given(_TREES, _TREES)
def test_edits_lead_from_one_value_to_the_other(before: Any, after: Any) -> None:
    assert apply_edits(before, find_edits(before, after)) == after


@given(_OBJECTS, _OBJECTS, st.sampled_from([None, 2, "\t"]))
def test_a_text_is_brought_to_say_what_is_wanted(before: Any, wanted: Any, indent: int | str | None) -> None:
    document = Document.parse(json.dumps(before, indent=indent).encode(), Path("mcp.json"), "json")

    assert edit(document, wanted).value == wanted


def test_what_says_the_same_already_stays_as_it_is_written() -> None:
    text = b'{ "keep" :[1,2 ] , // mine\n"a": ["x", "y"], "b": {"c":1}}'
    document = Document.parse(text, Path("mcp.json"), "jsonc")

    after = edit(document, {"keep": [1, 2], "a": ["x", "z"], "b": {"c": 1}})

    assert after.raw == text.replace(b'"y"', b'"z"')


def test_a_place_that_is_not_there_is_absent() -> None:
    assert value_at({"a": [1]}, ("a", 1)) is ABSENT
    assert value_at({"a": None}, ("a",)) is None


def test_edits_of_another_value_are_refused() -> None:
    with pytest.raises(TypeError):
        apply_edits([1], [(("a",), 2)])
