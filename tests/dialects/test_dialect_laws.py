"""What holds for all names in all dialects."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from truename import dialects
from truename.dialects.dialect import breaks, legal_pattern
from truename.dialects.transformation import NameTransformation, compile_transformation

ALL = dialects.table(older=True)
UNIVERSAL = dialects.get("universal")
WORDS = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=20)
SNAKES = st.lists(WORDS, min_size=1, max_size=6).map("_".join)
ANYTHING = st.text(max_size=200)


def folded(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower())


@st.composite
def legal(draw: st.DrawFn, dialect: dialects.Dialect) -> str:
    chars = sorted(dialect.chars or string.printable[:95])
    name = draw(st.text(chars, min_size=1, max_size=min(dialect.room() or 130, 130)))
    assume(not dialect.check(name))
    return name


@given(SNAKES)
@example("a")
@example("x" * 46)
@example("truename")
@example("mcp_truename")
def test_a_universal_name_is_legal_and_whole_everywhere(name: str) -> None:
    assume(not UNIVERSAL.check(name))

    for dialect in ALL:
        assert dialect.check(name) == (), dialect
        shown = dialect.shown("truename", name)
        assert shown is not None
        assert name in shown, dialect
        assert dict(dialect.simulate("truename", [name]).shown) == {name: shown}


@given(st.lists(SNAKES, min_size=2, max_size=12, unique=True))
@example(["b", "truename_b"])
@example([f"{'x' * 44}_1", f"{'x' * 44}_2"])
@example(["mcp_x", "x"])
def test_universal_names_stay_apart_everywhere(listed: list[str]) -> None:
    names = [name for name in listed if not UNIVERSAL.check(name)]

    for dialect in ALL:
        seen = dialect.simulate("truename", names)
        assert list(seen.shown) == names, dialect
        assert dict(seen.reaches) == {text: name for name, text in seen.shown.items()}
        assert (dict(seen.merged), seen.dropped, seen.refused) == ({}, (), ())


def test_a_client_that_makes_several_hyphens_one_takes_no_name_that_has_them() -> None:
    roo = dialects.get("roo-code")

    assert [reason.text for reason in roo.check("drop--table")] == ["'--' at 4 is more than one hyphen"]
    assert roo.check("drop-table-") == ()
    assert roo.simulate("lab", ["drop--table", "drop-table"]).merged


@pytest.mark.parametrize("dialect", ALL, ids=dialects.names(older=True))
def test_legal_names_stay_whole_and_apart(dialect: dialects.Dialect) -> None:
    @settings(max_examples=25)
    @given(legal(dialect), legal(dialect))
    def law(one: str, two: str) -> None:
        shown_one, shown_two = (dialect.shown("truename", name) for name in (one, two))
        assert shown_one is not None
        assert one in shown_one
        assert shown_one == compile_transformation(dialect.mangling).after(dialect._spelled("truename", one) or "")
        assert not breaks(dialect, "truename", one)
        if folded(one) != folded(two):
            assert shown_one != shown_two

    law()


@given(ANYTHING, st.sampled_from(ALL))
def test_check_says_nothing_only_of_names_that_match_in_full(name: str, dialect: dialects.Dialect) -> None:
    reasons = dialect.check(name)

    assert all(reason.text.isprintable() for reason in reasons)
    if not reasons:
        assert name.isprintable()
        assert dialect.chars is None or dialect.chars.issuperset(name)


@given(st.lists(ANYTHING, max_size=6), st.sampled_from(ALL), st.text(max_size=20))
def test_every_name_of_a_list_ends_in_exactly_one_place(
    names: list[str], dialect: dialects.Dialect, server: str
) -> None:
    seen = dialect.simulate(server, names)

    assert sorted([*seen.shown, *seen.dropped, *seen.refused]) == sorted(set(names))
    assert set(seen.shown) == set(seen.reaches.values())


@given(st.lists(SNAKES, min_size=2, max_size=5, unique=True), st.from_regex(r"[a-z][a-z0-9_-]{0,9}", fullmatch=True))
def test_universal_names_stay_apart_under_every_short_server_key(listed: list[str], server: str) -> None:
    names = [name for name in listed if not UNIVERSAL.check(name, server)]

    for dialect in ALL:
        if compile_transformation(dialect.mangling).ignores(server):
            continue  # no name helps there, and check() says so
        seen = dialect.simulate(server, names)
        assert dict(seen.reaches) == {text: name for name, text in seen.shown.items()}, dialect
        assert list(seen.shown) == names, dialect
        assert all(name in text for name, text in seen.shown.items()), dialect
        assert not any(dialect.check(name, server) for name in names), dialect


def test_a_name_that_begins_with_the_servers_own_is_not_universal() -> None:
    assert [reason.code for reason in UNIVERSAL.check("truename_search")] == ["prefix"]
    assert UNIVERSAL.check("truename_search", "lab") == ()
    assert UNIVERSAL.check("truenames") == ()
    assert [reason.code for reason in dialects.get("continue").check("git_hub", "git")] == ["prefix"]


def test_asking_for_what_a_dialect_does_not_have_is_an_error() -> None:
    engine = compile_transformation(NameTransformation())
    with pytest.raises(ValueError, match="digest"):
        engine.digested(engine.spell("lab", "x"), None)
    with pytest.raises(ValueError, match="printable"):
        legal_pattern(dialects.get("native"))
