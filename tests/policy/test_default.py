"""A rule is about its tools: what holds for all others where a configuration does not say it."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tests.shared import ROOT
from truename import Catalog, project
from truename.policy import bound_call, read_policy

NAMES = project(Catalog.of("git/push", "git/log", "db/drop", "db/read"), "openai")
STRICTNESS = ("allow", "ask", "deny")
GLOBS = st.lists(st.sampled_from(["git/*", "*/drop", "git/log", "db/read"]), min_size=1, max_size=2)
RULE = {"tools": GLOBS}
RESTRICTING = st.fixed_dictionaries({**RULE, "outcome": st.sampled_from(["ask", "deny"])})
ALLOWING = st.fixed_dictionaries({**RULE, "outcome": st.just("allow")})


def outcomes(rules: list[Any], **more: Any) -> dict[str, str]:
    policy = read_policy({"rules": rules, **more})
    calls = (bound_call(name=str(id), call_id="c", arguments={}, names=NAMES) for id in NAMES)
    return {str(call.id): policy.decide(call).outcome for call in calls}


@given(st.lists(RESTRICTING, max_size=3), RESTRICTING)
def test_a_rule_that_asks_or_denies_changes_nothing_for_other_tools(rules: list[Any], more: Any) -> None:
    before, after = outcomes(rules), outcomes([*rules, more])
    about = {id for id, said in outcomes([more]).items() if said != "allow"}
    assert {id for id in before if before[id] != after[id]} <= about


@given(st.lists(RESTRICTING | ALLOWING, max_size=4), RESTRICTING)
def test_a_rule_that_asks_or_denies_allows_nothing_that_was_not_allowed(rules: list[Any], more: Any) -> None:
    before, after = outcomes(rules), outcomes([*rules, more])
    assert all(STRICTNESS.index(after[id]) >= STRICTNESS.index(before[id]) for id in before)


@given(st.lists(RESTRICTING, max_size=3), ALLOWING)
def test_a_first_rule_that_allows_has_all_else_asked_about_and_opens_nothing(rules: list[Any], more: Any) -> None:
    before, after = outcomes(rules), outcomes([*rules, more])
    assert all(STRICTNESS.index(after[id]) >= STRICTNESS.index(before[id]) for id in before)
    named = {id for id, said in outcomes([{**more, "outcome": "deny"}]).items() if said == "deny"}
    assert all(after[id] != "allow" for id in before if id not in named)


@pytest.mark.parametrize("default", STRICTNESS)
def test_what_is_said_holds(default: str) -> None:
    assert outcomes([{"outcome": "allow", "tools": ["git/log"]}], default=default)["db@1/read@1"] == default


def test_the_example_of_the_page_about_approvals_asks_about_its_tools_alone() -> None:
    example = re.search(
        r"```toml[^\n]*\n(.*?)```", (ROOT / "docs" / "gateway" / "approvals.md").read_text("utf-8"), re.DOTALL
    )
    assert example is not None
    policy = read_policy(tomllib.loads(example[1])["policy"])
    catalog = project(Catalog.of("agenda/create_event", "agenda/search", "db/delete_all", "db/read"), "openai")
    calls = (bound_call(name=str(id), call_id="c", arguments={}, names=catalog) for id in catalog)
    asked = {call.id.short for call in calls if policy.decide(call).outcome == "ask"}
    assert asked == {"agenda/create_event", "db/delete_all"}
