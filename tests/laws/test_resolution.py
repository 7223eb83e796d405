"""The law of resolution over random lives, in short; `make law` is the long form. And that the oracle can object."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.oracle import Oracle, ToolRecord, Verdict
from tests.laws.resolution import lived
from tests.laws.sessions import Broken, Lists, Redirect, Retire, Script, Session, replayed, shrunk
from truename import Catalog, project


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_no_text_runs_a_tool_that_the_rules_exclude(seed: int) -> None:
    count: Counter[str] = Counter()

    found = next(lived(random.Random(seed), count, texts=60), None)

    assert found is None, str(shrunk(found))


def known(*tools: tuple[str, str], names: dict[str, str] | None = None, remembers: bool = True) -> Oracle:
    """Return an oracle that knows tools by label and own name, shown under these names or as server_tool."""
    catalog = Catalog.from_mcp([(label, [name]) for label, name in tools])
    oracle = Oracle(remembers)
    records = [ToolRecord(str(id), tool.origin.server, tool.origin.name) for id, tool in catalog.items()]
    shown = names or {str(id): str(name) for id, name in project(catalog, "universal").items()}
    assert oracle.projected(records, shown) == []
    return oracle


WEATHER, OTHER = "weather@1/get_data@1", "x@1/weather_get_data@1"


@pytest.mark.parametrize(
    ("text", "allowed", "may_fail"),
    [
        ("weather_get_data", {WEATHER}, False),
        ("x_weather_get_data", {OTHER}, False),
        ("Weather:get_data", {WEATHER}, False),
        ("weather@1/get_data@1", {WEATHER}, False),
        ("weather/get_data", {WEATHER}, False),
        ("weather%401~get_data", {WEATHER}, False),
        ("Weather_get_data", {OTHER}, True),
        ("WEATHER/Get_Data@v1", {WEATHER}, False),
        ("Weather-get-data", set(), True),
        ("weather/get_data@2", set(), True),
        ("weather/get/data", set(), True),
        ("weather%", set(), True),
        ("get_d\u0430ta", set(), True),
    ],
)
def test_the_oracle_says_what_the_rules_say(text: str, allowed: set[str], may_fail: bool) -> None:
    verdict = known(("Weather", "get_data"), ("X", "Weather_get_data")).verdict(text)

    assert (set(verdict.allowed), verdict.may_fail) == (allowed, may_fail)


def test_the_oracle_knows_what_left_what_was_retired_and_what_was_redirected() -> None:
    oracle = known(("a", "x"), ("b", "y"), ("c", "z"))
    stays = ToolRecord("c@1/z@1", "c", "z")
    oracle.retire("b_y")
    oracle.redirect("old", stays.id)
    assert oracle.projected([stays], {stays.id: "c_z"}) == []

    assert oracle.verdict("a_x").objection(None, "unknown_tool", "absent") == ""
    assert oracle.verdict("a_x").objection(stays.id)
    assert oracle.verdict("a:x").objection(stays.id)
    assert oracle.verdict("b_y").objection(None, "unknown_tool", "absent")
    assert oracle.verdict("b_y").objection(None, "retired_name") == ""
    assert oracle.verdict("old") == Verdict("step 2: it was redirected", frozenset({stays.id}), may_fail=False)


def test_of_two_redirects_that_lead_in_a_circle_the_last_one_counts() -> None:
    oracle = known(("a", "x"), ("b", "y"))
    oracle.redirect("a/x", "b@1/y@1")
    oracle.redirect("b/y", "a@1/x@1")
    assert oracle.projected([ToolRecord("a@1/x@1", "a", "x")], {"a@1/x@1": "a_x"}) == []

    assert oracle.verdict("b_y").allowed == oracle.verdict("a_x").allowed == {"a@1/x@1"}


@pytest.mark.parametrize(
    ("names", "objection"),
    [
        ({"a@1/x@1": "b_y", "b@1/y@1": "a_x"}, "'b_y' was shown for b@1/y@1 and is now shown for a@1/x@1"),
        ({"a@1/x@1": "a_x", "b@1/y@1": "a_x"}, "two tools have one name in the table"),
        ({"a@1/x@1": "a_x"}, "the table has not one name for each tool"),
    ],
)
def test_the_oracle_objects_to_a_table(names: dict[str, str], objection: str) -> None:
    oracle = known(("a", "x"), ("b", "y"))

    assert objection in oracle.projected(list(oracle.known.values()), names)


def test_what_breaks_the_law_is_made_small() -> None:
    step = Lists((("a", ("x", "y")), ("b", ("x", "z"))), ("c@1/t@2",), "openai")
    script = Script("prefixed", True, (step, Retire("a_y"), Redirect("old", "b@1/z@1"), step))
    session = Session(script.style, script.remembers)
    for one in script.steps:
        session.do(one)
    session.oracle.shown.clear()

    assert session.judged("a_x") == (Verdict("step 1: it is in the table", frozenset({"a@1/x@1"}), False), "")
    assert replayed(script, "a_x") == ""
    assert shrunk(Broken(script, "a_x", "nothing")).script == script
    assert "retire 'a_y'" in str(script)
