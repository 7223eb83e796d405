"""Many globs at once: what is found by an index is what one look at each would find."""

from __future__ import annotations

from itertools import product

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from truename import ToolId
from truename.catalog.globs import (
    ById,
    Globs,
    fits,
    fits_all,
    fits_id,
    glob_error,
    is_wild,
    may_meet,
    unmatched_globs,
    unversioned,
)

TEXTS = st.text("ab_", max_size=4)
GLOBS = st.text("ab_*?", min_size=1, max_size=4)
IDS = [ToolId.parse(text) for text in ("git/push", "git@2/push@3", "git/pull", "hub/push", "git/a.push")]


@given(st.lists(GLOBS, max_size=6), TEXTS)
def test_the_glob_that_fits_a_text_is_the_text_itself_else_the_first_pattern(globs: list[str], text: str) -> None:
    patterns = [glob for glob in globs if is_wild(glob) and fits(glob, text)]
    expected = text if text in globs else next(iter(patterns), "")

    assert Globs(globs).first(text) == expected


def test_no_globs_fit_nothing() -> None:
    assert [Globs([]).first(text) for text in ("", "a")] == ["", ""]
    assert Globs(["a"]).first("b") == ""
    assert Globs(["b*", "*", "a*"]).first("a") == "*"


@pytest.mark.parametrize(
    ("table", "id", "named", "globbed"),
    [
        ({}, "git/push", [], []),
        ({"git/push": 1, "hub/push": 2}, "git/push", [("git/push", 1)], []),
        ({"Git/Push": 1}, "git@2/push@3", [("Git/Push", 1)], []),
        ({"git/push@1": 1, "git/push": 2}, "git/push", [("git/push@1", 1), ("git/push", 2)], []),
        ({"git/push@1": 1, "git/push": 2}, "git/push@3", [("git/push", 2)], []),
        ({"*": 1, "git/*": 2, "hub/*": 3, "git/push": 4}, "git/push", [("git/push", 4)], [("*", 1), ("git/*", 2)]),
        ({"git/*@2": 1, "git/p?sh": 2}, "git/push", [], [("git/p?sh", 2)]),
    ],
)
def test_an_entry_with_an_id_is_found_and_those_with_globs_in_the_table_s_order(
    table: dict[str, int], id: str, named: list[tuple[str, int]], globbed: list[tuple[str, int]]
) -> None:
    found = ById(table)

    assert bool(found) is bool(table)
    assert found.about(ToolId.parse(id)) == (named, globbed)


@pytest.mark.parametrize("glob", ["git/push", "git/*", "*/push", "*", "git@2/*", "*/push@3", "git/a.*", "*@*/*@*"])
def test_a_table_of_one_glob_finds_what_the_glob_fits(glob: str) -> None:
    table = ById({glob: 1})

    assert [bool(sum(map(len, table.about(id)))) for id in IDS] == [fits_id(glob, id) for id in IDS]


@pytest.mark.parametrize(
    ("id", "parts"),
    [
        ("git/push", ("git", "push")),
        ("Git@2/A.Push@3", ("git", "a.push")),
        ("git@*/*", ("git", "*")),
        ("*", ("*",)),
        ("a/b@1/c", ("a", "b", "c")),
    ],
)
def test_versions_are_left_out_of_what_an_id_names(id: str, parts: tuple[str, ...]) -> None:
    assert unversioned(id) == parts


@pytest.mark.parametrize(
    ("glob", "fault"),
    [
        ("git/push", ""),
        ("GIT@2/Push@3", ""),
        ("*", ""),
        ("*@*/*@*", ""),
        ("git/" + "x" * 508, ""),
        ("git/" + "x" * 509, "it is longer than 512 characters"),
        ("delete_*", "it has no '/' between integration and tool"),
        ("**", "it has no '/' between integration and tool"),
        ("a/b/c", "it cannot match any tool id"),
        ("git/push@0", "it cannot match any tool id"),
        ("git/", "it cannot match any tool id"),
        ("git /push", "it cannot match any tool id"),
    ],
)
def test_a_glob_that_fits_nothing_is_told(glob: str, fault: str) -> None:
    assert glob_error(glob) == fault


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("*", "git/push", True),
        ("git/push", "git/push", True),
        ("git/push", "GIT/Push", True),
        ("git/push", "git/pull", False),
        ("git/push@1", "git/push@2", False),
        ("git/push@1", "git/push", True),
        ("git@1/*", "git@2/*", False),
        ("git/a*b", "git/*ba*", True),
        ("git/a?c", "git/abc", True),
        ("git/a?c", "git/abbc", False),
        ("git/**a", "git/b*", True),
        ("git/?", "git/??", False),
        ("git/*?", "git/??", True),
        ("a*/b", "a/c*", False),
    ],
)
def test_globs_meet_where_one_id_could_fit_both(one: str, other: str, meet: bool) -> None:
    assert may_meet(one, other) is may_meet(other, one) is meet


WITNESSES = ["".join(letters) for length in range(9) for letters in product("ab", repeat=length)]
SHORT = st.text("ab*?", min_size=1, max_size=4)


@given(SHORT, SHORT)
@example("*a", "b*")
@example("*a", "*b")
@example("*", "?")
@example("**", "ab")
@example("a*b", "ab")
@example("*?*", "**")
def test_globs_meet_exactly_where_there_is_a_text_that_fits_both(one: str, other: str) -> None:
    meet = any(fits(one, text) and fits(other, text) for text in WITNESSES)

    assert may_meet(f"git/{one}", f"git/{other}") is meet
    assert may_meet(f"{one}/x", f"{other}/x") is meet


def test_globs_that_name_what_there_is_not_stray() -> None:
    globs = ["git/push", "git@2/push", "git/push@9", "git/p*", "git/x*", "hub/*", "no/*", "n*/x", "*", "*/x", "hub/x"]

    assert unmatched_globs(globs, IDS) == ("git/push@9", "no/*", "hub/x")


@pytest.mark.parametrize(
    ("glob", "all_of_them"), [("*", True), ("*/*", True), ("*@*/?*", True), ("*/a", False), ("X*", False)]
)
def test_globs_that_name_nothing_fit_all(glob: str, all_of_them: bool) -> None:
    assert fits_all(glob) is all_of_them
