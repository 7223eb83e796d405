"""Rules of ownership: whose a name is, and what no app may be called (seed 003)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.policy.ruling import found, linted, tool
from truename.conventions import Convention, lint
from truename.errors import ConfigError

OWNERS = {
    "tap": "core",
    "scroll": "core",
    "ios_*": "core",
    "android_*": "core",
    "org_*": "core",
    "myapp": "myapp-team",
    "payments": "payments-team",
}


def of(team: str, **changes: Any) -> Convention:
    return Convention.of("trailblaze", **{"owners": OWNERS, "team": team, **changes})


@pytest.mark.parametrize(
    "name", ["tap", "scroll", "scroll_v2", "ios_clearEverything", "org_doThing", "myapp_doThing", "payments_doThing"]
)
def test_a_team_may_not_take_what_another_one_owns(name: str) -> None:
    assert found(name, convention=of("other-team")) == ["E reserved"]


def test_its_owner_may() -> None:
    assert found("payments_addFunds", convention=of("payments-team")) == []
    assert found("tap", convention=of("core")) == []


def test_the_tools_own_word_goes_before_the_teams() -> None:
    assert found(tool("tap", owner="core"), convention=of("payments-team")) == []
    assert found(tool("tap", owner="payments-team"), convention=of("core")) == ["E reserved"]


def test_who_misspells_a_name_does_not_own_it() -> None:
    assert found("Tap", convention=of("other-team")) == ["E casing", "E reserved"]
    assert "E reserved" in found("ios.scroll", convention=of("other-team"))


def test_a_format_reserves_all_names_of_its_category() -> None:
    convention = of("payments-team", owners={"{verbNoun}": "core"})

    assert found("refund", convention=convention) == ["E reserved"]
    assert found("payments_refund", convention=convention) == ["N unowned"]


def test_who_says_nothing_is_believed_about_owned_names_and_not_about_reserved_ones() -> None:
    assert found("tap", convention=of("")) == []
    assert found("tap", convention=of("", reserved=["t*"])) == ["E reserved"]
    assert found("tap", convention=of("core", reserved=["t*"])) == []
    assert found("test", convention=of("core", reserved=["t*"])) == ["E reserved", "N unowned"]


def test_what_belongs_to_nobody_is_good_to_know_where_owners_are_named() -> None:
    nothing: dict[str, Any] = {"reserved": []}
    assert found("addFunds", convention=of("payments-team", **nothing)) == ["N unowned"]
    assert found(tool("addFunds", owner="payments-team"), convention=of("payments-team", **nothing)) == []
    assert found("addFunds", convention=of("payments-team", owners={}, **nothing)) == []


RESERVED = ("tap", "scroll_v2", "ios_clearKeychain", "org_mockServer", "org_ios_configureTestUser", "myapp_openCart")


@pytest.mark.parametrize("name", RESERVED)
def test_the_seeds_reserved_names_are_reserved_from_a_team_that_no_table_names(name: str) -> None:
    seed = Convention.of("trailblaze", apps=["myapp", "payments"], team="payments")

    assert found(name, convention=seed) == ["E reserved"]
    assert found(name, convention=Convention.of("trailblaze", apps=["myapp", "payments"])) == []
    assert found(name, convention=Convention.of("trailblaze", apps=["myapp"], team="payments", reserved=[])) == []


def test_a_team_has_the_prefix_of_its_own_app_and_what_owners_give_it() -> None:
    seed = Convention.of("trailblaze", apps=["myapp", "payments"], team="payments")
    core = Convention.of("trailblaze", apps=["myapp"], team="core", owners={"{verbNoun}": "core", "org_*": "core"})

    assert found("payments_addFunds", "payments_ios_addFunds", convention=seed) == []
    assert found("tap", "org_mockServer", convention=core) == []
    assert found("ios_scroll", convention=core) == ["E reserved", "N unowned"]


def test_a_category_that_is_spelled_otherwise_stays_reserved_and_one_that_is_left_out_does_not() -> None:
    changed = {"org": "company_{verbNoun}", "org_platform": False}
    convention = Convention.of("trailblaze", team="payments", categories=changed)

    assert found("company_mockServer", convention=convention) == ["E reserved"]
    assert "org_{platform}_{verbNoun}" not in convention.reserved


def test_a_format_that_no_category_has_can_reserve_nothing() -> None:
    with pytest.raises(ConfigError, match=r"convention\.reserved\[0\]: no category has this format"):
        Convention.of("trailblaze", reserved=["{verb_noun}"])


@pytest.mark.parametrize("app", ["ios", "Android", "org", "my_app", "my-app", "MyApp", "9lives", "é"])
def test_an_app_may_not_be_what_something_else_is(app: str) -> None:
    (one,) = lint([], Convention.of("trailblaze", apps=["fine", app], file="truename.toml")).findings

    assert one.rule.name == "clashing_app"
    assert one.location is not None
    assert (one.location.file, one.location.key) == ("truename.toml", "convention.apps[1]")


def test_two_apps_may_not_differ_in_capitals_only() -> None:
    assert found(convention=Convention.of("trailblaze", apps=["payTest", "paytest"])) == ["E clashing_app"]


def test_a_prefix_that_a_team_adds_is_no_app_any_more() -> None:
    assert found(convention=Convention.of("trailblaze", apps=["mobile"])) == []
    added = Convention.of("trailblaze", apps=["mobile"], categories={"mobile": "mobile_{verbNoun}"})
    assert found(convention=added) == ["E clashing_app"]


def test_the_app_that_a_tool_says_it_is_of_is_looked_at_too() -> None:
    (one,) = linted(tool("tap", app="ios"))

    assert one.fact == "'tap' belongs to the app 'ios', which is a platform."
    assert found(tool("tap", app="ios"), convention=Convention()) == []
