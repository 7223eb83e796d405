"""Conventions as values: presets, changes, owners, and everything that is refused when one is made."""

from __future__ import annotations

from typing import Any

import pytest

from truename.conventions import Convention, Severity, Suppression
from truename.conventions.convention import PRESETS
from truename.conventions.rules import CHECKS
from truename.errors import ConfigError

SEED = Convention.of("trailblaze")


def errors(**clauses: Any) -> list[str]:
    """Return the keys of all that is refused."""
    with pytest.raises((ConfigError, ExceptionGroup)) as caught:
        Convention(**clauses)
    error = caught.value
    each = error.exceptions if isinstance(error, ExceptionGroup) else (error,)
    return [one.key for one in each if isinstance(one, ConfigError)]


def test_without_a_word_it_asks_for_what_every_server_must_keep_to() -> None:
    assert Convention() == Convention.of("mcp")
    assert (Convention().max_length, Convention().clients, Convention().formats) == (128, (), ())


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_can_be_taken_and_is_equal_and_hashed_as_a_value(preset: str) -> None:
    found = Convention.of(preset)

    assert found == Convention.of(preset, file="elsewhere.toml")
    assert hash(found) == hash(Convention.of(preset))
    assert found.preset == preset


def test_a_preset_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(ConfigError, match="'trailblazer' is not a preset") as caught:
        Convention.of("trailblazer")

    assert caught.value.key == "convention.preset"
    assert caught.value.remedy == "Did you mean 'trailblaze'?"


def test_tables_are_joined_with_those_of_the_preset_and_lists_take_their_place() -> None:
    found = Convention.of("trailblaze", platforms=["Web"], categories={"mobile": "mobile_{verbNoun}", "org": False})

    assert found.platforms == ("web",)
    assert found.categories["mobile"] == "mobile_{verbNoun}"
    assert "org" not in found.categories
    assert "app" in found.categories
    assert "mobile" in found.taken


def test_the_format_that_asks_for_most_is_tried_first() -> None:
    assert [one.category for one in SEED.formats] == [
        "org_platform",
        "app_platform",
        "org",
        "platform",
        "app",
        "universal",
    ]


REFUSED: list[tuple[dict[str, Any], list[str]]] = [
    ({"clients": ["opnai"]}, ["convention.clients[0]"]),
    ({"clients": "openai"}, ["convention.clients"]),
    ({"characters": "z-a"}, ["convention.characters"]),
    ({"characters": "é"}, ["convention.characters"]),
    ({"max_length": -1}, ["convention.max_length"]),
    ({"max_length": True}, ["convention.max_length"]),
    ({"max_length": 1_025}, ["convention.max_length"]),
    ({"separator": "__"}, ["convention.separator"]),
    ({"separator": "__", "categories": {"a": "{app}__{verb_noun}"}}, ["convention.separator"]),
    ({"verbs": [1], "categories": {"a": "{verb}"}}, ["convention.verbs[0]", "convention.categories.a"]),
    ({"casing": "loud"}, ["convention.casing"]),
    ({"categories": {"a": "{verb}"}}, ["convention.categories.a"]),
    ({"categories": {"a": "{app}"}}, ["convention.categories.a"]),
    ({"categories": {"a": ""}}, ["convention.categories.a"]),
    ({"categories": {"a": 1}}, ["convention.categories.a"]),
    ({"categories": {"a": "{verbNoun}_{app}"}, "separator": "_"}, ["convention.categories.a"]),
    ({"categories": {"a": "{app}_{app}_{verbNoun}"}, "separator": "_"}, ["convention.categories.a"]),
    ({"categories": {"a": "{verb_noun}_{verbNoun}"}, "separator": "_"}, ["convention.categories.a"]),
    ({"categories": {"a": "or g_{verbNoun}"}, "separator": "_"}, ["convention.categories.a"]),
    ({"categories": {"a": "org{verbNoun}"}, "separator": "_"}, ["convention.categories.a"]),
    ({"categories": {"a": "{verbNoun}", "b": "x_{verb_noun}"}, "separator": "_"}, ["convention.casing"]),
    ({"categories": {"a": "{verbNoun}"}, "casing": "snake"}, ["convention.casing"]),
    ({"categories": []}, ["convention.categories"]),
    ({"apps": [""]}, ["convention.apps[0]"]),
    ({"apps": [1]}, ["convention.apps[0]"]),
    ({"platforms": ["i os"]}, ["convention.platforms[0]"]),
    ({"owners": {"tap": ""}}, ["convention.owners.tap"]),
    ({"owners": {"": "core"}}, ["convention.owners.''"]),
    ({"owners": {"fs.list": ""}}, ["convention.owners.'fs.list'"]),
    ({"categories": {"a\nb": "{verbNoun}"}}, ["convention.categories.'a\\nb'"]),
    ({"owners": {"{verbNoun}": "core"}}, ["convention.owners.{verbNoun}"]),
    ({"team": "a\nb"}, ["convention.team"]),
    ({"reserved": "tap"}, ["convention.reserved"]),
    ({"verbs": ["9"]}, ["convention.verbs[0]"]),
    ({"version_suffix": "v2"}, ["convention.version_suffix"]),
    ({"device_words": [None]}, ["convention.device_words[0]"]),
    ({"unique": "sometimes"}, ["convention.unique"]),
    ({"families": {"files": "fs_*"}}, ["convention.families.files"]),
    ({"severities": {"TN104": "loud"}}, ["convention.severities.TN104"]),
    ({"suppressions": ["TN104"]}, ["convention.suppressions[0]"]),
    ({"suppressions": [{"tools": ["a"]}]}, ["convention.suppressions[0].rule"]),
    ({"suppressions": [{"rule": "TN104", "tool": "a"}]}, ["convention.suppressions[0].tool"]),
    ({"suppressions": {}}, ["convention.suppressions"]),
    ({"baseline": 1}, ["convention.baseline"]),
    (
        {"clients": ["nobody"], "unique": "no", "team": 1},
        ["convention.clients[0]", "convention.team", "convention.unique"],
    ),
]


@pytest.mark.parametrize(("clauses", "keys"), REFUSED, ids=str)
def test_what_is_not_understood_is_refused_with_its_key_and_all_of_it_at_once(
    clauses: dict[str, Any], keys: list[str]
) -> None:
    assert errors(**clauses) == keys


def test_a_client_that_is_misspelt_comes_with_the_one_that_was_meant() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'openai'"):
        Convention(clients=("opnai",))


def test_clients_are_known_by_all_their_names() -> None:
    assert Convention(clients=("Claude Code", "claude-code", "OpenAI")).clients == ("claude-code", "openai")


OWNED = Convention.of(
    "trailblaze",
    owners={
        "tap": "core",
        "ios_*": "core",
        "ios_test*": "testers",
        "payments": "payments-team",
        "org_{verbNoun}": "platform-team",
    },
)


@pytest.mark.parametrize(
    ("name", "category", "owner"),
    [
        ("tap", "universal", "core"),
        ("tap_v2", "universal", "core"),
        ("tapTwice", "universal", ""),
        ("ios_scroll", "platform", "core"),
        ("ios_testScroll", "platform", "testers"),
        ("payments_addFunds", "app", "payments-team"),
        ("paymentsOther_addFunds", "app", ""),
        ("org_mockServer", "org", "platform-team"),
        ("org_mockServer", "", ""),
    ],
)
def test_a_name_an_app_the_longest_glob_or_a_format_says_who_owns_it(name: str, category: str, owner: str) -> None:
    assert OWNED.owner(name, category) == owner


def test_a_family_is_said_and_no_name_is_split_for_it() -> None:
    found = Convention.of(
        "provider-safe", families={"password policy": ["*_lockout", "password_policy_*"], "net": ["net_*"]}
    )

    assert [found.family(name) for name in ("password_policy_set", "net_dns_flush", "fs_list")] == [
        "password policy",
        "net",
        "",
    ]


def test_severities_are_said_by_code_or_by_name_and_a_rule_can_be_off() -> None:
    found = Convention.of("mcp", severities={"TN120": "note", "casing": None, "TN104": "off", "TN105": Severity.ERROR})

    assert [found.severity(CHECKS[code].rule) for code in ("TN120", "TN121", "TN104", "TN105", "TN110")] == [
        Severity.NOTE,
        None,
        None,
        Severity.ERROR,
        Severity.ERROR,
    ]


def test_every_rule_that_it_names_is_told_with_its_key() -> None:
    found = Convention.of("mcp", severities={"TN999": "off"}, suppressions=(Suppression(rule="casings", reason="old"),))

    assert found.named_rules == (
        ("convention.severities.TN999", "TN999"),
        ("convention.suppressions[0].rule", "casings"),
    )
