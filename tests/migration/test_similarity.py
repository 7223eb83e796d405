"""Resemblance: words, verbs and what they weigh; and that nothing of it takes all with all."""

from __future__ import annotations

import time

import pytest

from tests.migration.listed import LIST, pairs, tool
from tests.shared import UNHURRIED
from truename.migration import diff, pins_of
from truename.migration.matching import COMMON, Resemblance, have_same_sense

pytestmark = pytest.mark.slow

MANY = 3_000


def score(old: str, new: str, *others: str) -> float:
    """Return how much two names are alike among others."""
    sides = (
        pins_of([tool(name, definition) for name in (first, *others)]) for first in (old, new) for definition in [""]
    )
    found = {(one.name, other.name): likeness.score for likeness, one, other in Resemblance(*sides).pairs(0.0)}
    return found.get((old, new), 0.0)


@pytest.mark.parametrize(
    ("old", "better", "worse"),
    [
        ("create_issue", "add_issue", "create_release"),
        ("get_user", "fetch_user", "get_team"),
        ("screen_click", "click", "screen_type"),
        ("status_get", "get_status", "set_statuses"),
        ("getTinyImage", "get-tiny-image", "get-image"),
    ],
)
def test_what_a_tool_is_about_counts_more_than_its_verb(old: str, better: str, worse: str) -> None:
    assert score(old, better) > score(old, worse)


def test_a_word_that_all_have_tells_little() -> None:
    others = [f"acme_{word}" for word in ("red", "green", "blue", "grey")]

    assert score("acme_list", "acme_send") > score("acme_list", "acme_send", *others)


def test_a_verb_alone_may_have_become_another_of_its_sense() -> None:
    (change,) = diff([tool("query")], [tool("find")])

    assert change.reasons == ("the verbs of the names mean the same",)


def test_verbs_of_one_sense_are_known() -> None:
    assert have_same_sense("delete", "remove")
    assert not have_same_sense("delete", "create")
    assert not have_same_sense("issue", "issue")
    assert "get" in COMMON


@pytest.mark.parametrize(
    "new_name", ["acme_{}_item_{}", "{1}_item_{0}", "wholly-other-{0}{1}"], ids=["prefix", "turned", "other"]
)
def test_thousands_of_renamed_tools_are_compared_in_no_time(new_name: str) -> None:
    old = [tool(f"{word}_item_{number}") for number in range(MANY) for word in ("get", "list")]
    new = [tool(new_name.format(word, number)) for number in range(MANY) for word in ("get", "list")]
    began = time.process_time()
    changes = diff(old, new)

    assert time.process_time() - began < UNHURRIED
    assert len({one for one, _ in pairs(changes)}) == len(pairs(changes))


def test_thousands_of_tools_of_one_description_are_compared_in_no_time() -> None:
    old, new = ([tool(f"{side}{number}", LIST * 200, "path") for number in range(MANY)] for side in "ab")
    began = time.process_time()
    diff(old, new)

    assert time.process_time() - began < UNHURRIED
