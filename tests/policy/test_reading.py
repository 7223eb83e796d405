"""Policies from a configuration: everything is understood, or nothing is used."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.errors import ConfigError
from truename.policy import CallRule, plain_policy, read_policy, read_rules

TOML = """
[policy]
default = "ask"

[[policy.rules]]
name = "reading is free"
outcome = "allow"
annotations = { readOnlyHint = true }
servers = ["docs", "git"]

[[policy.rules]]
outcome = "deny"
tools = ["git/delete_*", "*/drop_table"]
except = ["git/delete_branch"]
reason = "ask a person to do it by hand"
platforms = ["ios"]
"""


def test_a_policy_is_read_as_it_is_written() -> None:
    policy = read_policy(tomllib.loads(TOML)["policy"], "truename.toml")

    assert policy.default == "ask"
    assert policy.rules == (
        CallRule(name="reading is free", outcome="allow", annotations={"readOnlyHint": True}, servers=("docs", "git")),
        CallRule(
            name="policy.rules[1]",
            outcome="deny",
            tools=("git/delete_*", "*/drop_table"),
            but=("git/delete_branch",),
            reason="ask a person to do it by hand",
            platforms=("ios",),
        ),
    )
    assert read_rules(tomllib.loads(TOML)["policy"]["rules"]) == policy.rules


def test_a_policy_written_down_and_read_again_is_the_same() -> None:
    policy = read_policy(tomllib.loads(TOML)["policy"])

    assert read_policy(plain_policy(policy)) == policy


def test_a_policy_without_rules_allows_what_no_policy_would() -> None:
    assert (read_policy({}).default, read_policy({}).rules) == ("allow", ())


FAULTS: list[tuple[Any, str, str]] = [
    ("allow", "policy.rules", "it is not a list of at most 1,000 rules"),
    ([{}] * 1_001, "policy.rules", "it is not a list of at most 1,000 rules"),
    (["deny"], "policy.rules[0]", "it is not an object"),
    ([{"tools": ["git/*"]}], "policy.rules[0].outcome", "it is missing"),
    ([{"outcome": "block"}], "policy.rules[0].outcome", "it is not one of allow, ask, deny"),
    ([{"outcome": True}], "policy.rules[0].outcome", "it is not one of allow, ask, deny"),
    ([{"outcome": "deny", "tool": ["git/*"]}], "policy.rules[0].tool", "it is not a field of a rule"),
    ([{"outcome": "deny", "but": ["git/*"]}], "policy.rules[0].but", "it is not a field of a rule"),
    ([{"outcome": "deny", "xyzzy": 1}], "policy.rules[0].xyzzy", "it is not a field of a rule"),
    ([{"outcome": "deny", "tools": []}], "policy.rules[0].tools", "it is not a list of 1 to 1,000 texts"),
    ([{"outcome": "deny", "tools": "git/*"}], "policy.rules[0].tools", "it is not a list of 1 to 1,000 texts"),
    (
        [{"outcome": "deny", "tools": ["delete_*"]}],
        "policy.rules[0].tools",
        "'delete_*' cannot match any tool: it has no '/' between integration and tool",
    ),
    (
        [{"outcome": "deny", "except": ["git/ü"]}],
        "policy.rules[0].except",
        "'git/ü' cannot match any tool: it cannot match any tool id",
    ),
    ([{"outcome": "deny", "apps": [""]}], "policy.rules[0].apps", "it is not a text of 1 to 1,024 characters"),
    ([{"outcome": "deny", "name": 7}], "policy.rules[0].name", "it is not a text of 1 to 1,024 characters"),
    ([{"outcome": "deny", "annotations": {}}], "policy.rules[0].annotations", "it is not an object of hints"),
    (
        [{"outcome": "deny", "annotations": {"readOnly": True}}],
        "policy.rules[0].annotations.readOnly",
        "it is not an annotation",
    ),
    (
        [{"outcome": "deny", "annotations": {"readOnlyHint": "yes"}}],
        "policy.rules[0].annotations",
        "'readOnlyHint' is neither true nor false",
    ),
    (
        [{"outcome": "deny", "name": "x"}, {"outcome": "allow", "name": "x"}],
        "policy.rules[1].name",
        "an earlier rule has this name",
    ),
]


@pytest.mark.parametrize(("entries", "key", "problem"), FAULTS, ids=[row[1] + " " + row[2][:24] for row in FAULTS])
def test_a_rule_that_is_not_understood_is_refused_with_its_place(entries: Any, key: str, problem: str) -> None:
    for read in (lambda: read_rules(entries, "t.toml"), lambda: read_policy({"rules": entries}, "t.toml")):
        with pytest.raises(ConfigError) as caught:
            read()
        assert (caught.value.file, caught.value.key, caught.value.problem) == ("t.toml", key, problem)


@pytest.mark.parametrize(
    ("table", "key", "problem"),
    [
        (None, "policy", "it is not an object"),
        ([], "policy", "it is not an object"),
        ({"rule": []}, "policy.rule", "it is not a field of a policy"),
        ({"default": "none"}, "policy.default", "it is not one of allow, ask, deny"),
        ({"default": ["ask"]}, "policy.default", "it is not one of allow, ask, deny"),
    ],
)
def test_a_table_that_is_not_understood_is_refused(table: Any, key: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_policy(table)

    assert (caught.value.key, caught.value.problem) == (key, problem)


def test_a_misspelt_field_is_told_with_what_was_meant() -> None:
    with pytest.raises(ConfigError, match=r"Did you mean 'outcome'\?"):
        read_rules([{"outcom": "deny", "outcome": "deny"}])
    with pytest.raises(ConfigError, match=r"Did you mean 'rules'\?"):
        read_policy({"rule": []})


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        read_policy({"default": 7, "rules": [{"outcome": "x", "tool": 1}, 7]})

    keys = [error.key for error in caught.value.exceptions if isinstance(error, ConfigError)]
    assert keys == ["policy.default", "policy.rules[0].outcome", "policy.rules[0].tool", "policy.rules[1]"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["deny", "git/*"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["outcome", "tools", "except", "annotations", "readOnlyHint", "apps"]), inner)
    ),
    max_leaves=8,
)


@given(st.lists(JSON, max_size=3))
def test_whatever_is_written_is_a_policy_or_typed_errors(entries: list[Any]) -> None:
    rules: tuple[CallRule, ...] = ()
    refused: list[BaseException] = []
    try:
        rules = read_rules(entries)
    except* ConfigError as group:
        refused += group.exceptions
    assert refused or len(rules) == len(entries)
