"""Conventions from a configuration: everything is understood, or nothing is used."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.conventions import Convention, Severity, Suppression, plain_convention, read_convention
from truename.conventions.clauses import CLAUSES
from truename.conventions.convention import PRESETS
from truename.errors import ConfigError

TOML = """
[convention]
preset = "trailblaze"
apps = ["myapp", "payments"]
platforms = ["iOS", "Android", "Web"]
team = "payments-team"
reserved = ["test_tool"]
baseline = "names.baseline"

[convention.categories]
mobile = "mobile_{verbNoun}"
org_platform = false

[convention.owners]
"{verbNoun}" = "core"
payments = "payments-team"

[convention.severities]
verb_first = "note"
TN126 = "off"

[[convention.suppressions]]
rule = "separator"
tools = ["legacy.*"]
reason = "recorded trails use it until March"
"""


def leaves(error: BaseException) -> list[ConfigError]:
    if isinstance(error, ExceptionGroup):
        return [leaf for one in error.exceptions for leaf in leaves(one)]
    assert isinstance(error, ConfigError)
    return [error]


def test_a_convention_is_read_as_it_is_written() -> None:
    found = read_convention(tomllib.loads(TOML)["convention"], "truename.toml")

    assert (found.preset, found.file, found.apps, found.platforms) == (
        "trailblaze",
        "truename.toml",
        ("myapp", "payments"),
        ("ios", "android", "web"),
    )
    assert "mobile" in found.categories
    assert "org_platform" not in found.categories
    assert found.severities == {"verb_first": Severity.NOTE, "TN126": None}
    assert found.suppressions == (
        Suppression(rule="separator", tools=("legacy.*",), reason="recorded trails use it until March"),
    )


def test_nothing_said_is_the_plain_convention() -> None:
    assert read_convention({}) == Convention()


def test_all_faults_are_told_at_once_each_with_its_key() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        read_convention({"preset": "trail", "seperator": "_", "clients": ["opnai"], "max_length": "long"}, "t.toml")

    assert {error.key: error.remedy for error in leaves(caught.value)} == {
        "convention.seperator": "Did you mean 'separator'?",
        "convention.preset": "Did you mean 'trailblaze'?",
        "convention.clients[0]": "Did you mean 'openai', 'codex-cli' or 'azure-openai'?",
        "convention.max_length": "Correct it; an invalid convention is not used.",
    }
    assert {error.file for error in leaves(caught.value)} == {"t.toml"}


@pytest.mark.parametrize("table", [None, [], "trailblaze", 3])
def test_what_is_no_table_is_told(table: object) -> None:
    with pytest.raises(ConfigError, match="it is not a table"):
        read_convention(table)


def test_a_rule_that_does_not_exist_is_read_for_others_to_report() -> None:
    assert read_convention({"severities": {"TN999": "off"}}).named_rules == (("convention.severities.TN999", "TN999"),)


def test_a_suppression_without_a_reason_is_read_for_others_to_report() -> None:
    assert read_convention({"suppressions": [{"rule": "TN120"}]}).suppressions == (Suppression(rule="TN120"),)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_written_down_is_its_name(preset: str) -> None:
    assert plain_convention(Convention.of(preset)) == {"preset": preset}


def test_a_convention_written_down_and_read_again_is_the_same() -> None:
    found = read_convention(tomllib.loads(TOML)["convention"])

    assert read_convention(plain_convention(found)) == found


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-1, 200), st.text(max_size=8), st.sampled_from(["_", "snake"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*CLAUSES, "preset", "?"]), VALUES, max_size=4))
def test_whatever_a_table_holds_it_is_read_or_refused_with_keys(table: dict[str, Any]) -> None:
    refused: list[ConfigError] = []
    try:
        found = read_convention(table)
    except (ConfigError, ExceptionGroup) as error:
        refused = leaves(error)
    else:
        assert read_convention(plain_convention(found)) == found
    assert all(one.key.startswith("convention.") for one in refused)
