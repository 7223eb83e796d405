"""Rules of legality: what no server may say, what a client refuses, and what is too long for one."""

from __future__ import annotations

import pytest

from tests.policy.ruling import found, linted, texts_of, tool
from truename.conventions import Convention

MCP = Convention()
SAFE = Convention.of("provider-safe")


@pytest.mark.parametrize("name", ["get weather", "search/files", "", "naïve", "a\nb", "a:b"])
def test_what_the_protocol_has_no_characters_for_is_illegal(name: str) -> None:
    assert "E illegal_name" in found(name, convention=MCP)


@pytest.mark.parametrize("name", ["a", "fs.list", "Get-Leads_2", "x" * 128])
def test_what_every_server_may_say_is_left_alone(name: str) -> None:
    assert found(name, convention=MCP) == []


def test_without_clients_the_convention_knows_one_limit() -> None:
    assert found("x" * 129, convention=MCP) == ["E too_long"]


def test_a_client_that_has_to_accept_every_name_is_asked() -> None:
    convention = Convention(clients=("anthropic", "openai", "native"))
    (one,) = linted("fs.list", convention=convention)

    assert (one.rule.code, one.client, one.confidence) == ("TN104", "anthropic", "read")
    assert str(one) == (
        "'fs.list' is not legal for anthropic and openai: '.' at 2 is not in [a-zA-Z0-9_-]. Write 'fs_list'."
    )


def test_what_is_only_assumed_of_a_client_is_a_warning() -> None:
    assert found("getLeads", convention=Convention(clients=("chatgpt",))) == ["W illegal_for_client"]
    assert found("getLeads", convention=Convention(clients=("chatgpt", "crewai-adapter"))) == ["E illegal_for_client"]


def test_one_cause_is_one_finding_whoever_refuses_it() -> None:
    assert found("fs.list", convention=SAFE) == ["E separator"]
    assert found("fs list$", convention=SAFE) == ["E illegal_name", "E separator"]


def test_a_rule_that_is_off_hides_nothing_from_the_clients() -> None:
    quiet = Convention.of("provider-safe", severities={"separator": "off"})

    assert found("fs.list", convention=quiet) == ["E illegal_for_client"]
    assert found("fs_list$", convention=Convention.of("provider-safe", severities={"TN103": "off"})) == [
        "E illegal_for_client"
    ]


def test_a_name_above_the_conventions_own_limit_is_a_warning_and_above_a_clients_an_error() -> None:
    seed = Convention.of("trailblaze")

    assert [found("a" * length, convention=seed) for length in (60, 61, 64, 65)] == [
        [],
        ["W too_long"],
        ["W too_long"],
        ["E too_long"],
    ]
    assert "too many for openai" in texts_of("a" * 65, convention=seed)[0]
    assert "and the limit is 60" in texts_of("a" * 61, convention=seed)[0]


def test_the_tightest_client_counts_with_the_servers_key_in_front() -> None:
    convention = Convention(clients=("cursor",))
    name = "a" * 50

    assert found(tool(name, server="lab"), convention=convention) == []
    assert found(tool(name, server="a_much_longer_key"), convention=convention) == ["E too_long"]


def test_a_name_that_is_too_long_to_read_is_told_once_and_briefly() -> None:
    (one,) = linted("x" * 100_000, convention=SAFE)

    assert one.rule.name == "too_long"
    assert len(str(one)) < 400


def test_advice_keeps_to_the_convention() -> None:
    assert texts_of("get weather$", convention=Convention.of("canonical", max_length=0))[0].endswith(
        "Write 'get_weather'."
    )
    assert texts_of("取$", convention=Convention.of("trailblaze"))[0].endswith("Write 'qu'.")
    assert texts_of("$", convention=Convention.of("trailblaze"))[0].endswith("of letters, digits and underscores.")
