"""A scenario counts as passed only if the suite wrote down that it did."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.conformance.outcome import Check, Outcome, broken, lost, outcomes_below

if TYPE_CHECKING:
    from pathlib import Path

_TIME = "2026-11-22T08-39-53-815Z"


def _wrote(folder: Path, scenario: str, **statuses: str) -> None:
    place = folder / f"server-{scenario}-{_TIME}"
    place.mkdir(parents=True)
    checks = [{"id": id, "status": status, "description": f"Looks at {id}."} for id, status in statuses.items()]
    (place / "checks.json").write_text(json.dumps(checks), encoding="utf-8")


def _outcome(scenario: str, **statuses: str) -> Outcome:
    return Outcome(scenario, counts=True, checks=tuple(Check(id, status, "") for id, status in statuses.items()))


def test_a_failed_check_fails_its_scenario_and_a_skipped_one_does_not(tmp_path: Path) -> None:
    _wrote(tmp_path, "ping", answers="SUCCESS", promptly="SKIPPED")
    _wrote(tmp_path, "caching", lists="SUCCESS", reads="FAILURE")
    ping, caching = outcomes_below(tmp_path, "server-", {"ping": True, "caching": True})
    assert (ping.passed, ping.failing) == (1, ())
    assert caching.failing == (Check("reads", "FAILURE", "Looks at reads."),)


def test_a_scenario_that_left_nothing_behind_failed(tmp_path: Path) -> None:
    (outcome,) = outcomes_below(tmp_path, "server-", {"ping": True})
    assert [check.said for check in outcome.failing] == ["The scenario was not run."]


def test_a_scenario_is_not_taken_for_a_longer_one(tmp_path: Path) -> None:
    _wrote(tmp_path, "tools-list-changed", told="SUCCESS")
    (outcome,) = outcomes_below(tmp_path, "server-", {"tools-list": True})
    assert outcome.failing


def test_a_warning_fails_a_client_only(tmp_path: Path) -> None:
    _wrote(tmp_path, "ping", promptly="WARNING")
    (server,) = outcomes_below(tmp_path, "server-", {"ping": True})
    (client,) = outcomes_below(tmp_path, "server-", {"ping": True}, warnings_fail=True)
    assert (server.failing, len(server.warnings)) == ((), 1)
    assert (len(client.failing), client.warnings) == (1, ())


def test_the_suites_own_no_is_a_failure_though_no_check_tells_it() -> None:
    outcome = _outcome("ping", answers="SUCCESS").refused("The client ended with an error.")
    assert [check.said for check in outcome.failing] == ["The client ended with an error."]


def test_what_succeeds_directly_and_is_not_looked_at_behind_the_gateway_is_lost() -> None:
    before = [
        _outcome("lists", tools="SUCCESS", prompts="SUCCESS", logs="SKIPPED"),
        _outcome("ping", answers="SUCCESS"),
    ]
    after = [_outcome("lists", tools="SUCCESS", prompts="SKIPPED"), _outcome("ping", answers="FAILURE")]
    assert [(scenario, check.id, check.status) for scenario, check in lost(before, after)] == [
        ("lists", "prompts", "SKIPPED")
    ]


def test_what_fails_behind_the_gateway_alone_is_broken_there() -> None:
    before = [
        _outcome("ping", answers="SUCCESS"),
        _outcome("lists", tools="SUCCESS", prompts="FAILURE"),
        _outcome("tasks", begins="FAILURE"),
        _outcome("caching", hints="SKIPPED"),
    ]
    after = [
        _outcome("ping", answers="SUCCESS"),
        _outcome("lists", tools="FAILURE", prompts="FAILURE"),
        _outcome("tasks", begins="FAILURE", ends="FAILURE"),
        _outcome("caching", hints="FAILURE"),
    ]
    assert [(scenario, check.id) for scenario, check in broken(before, after)] == [
        ("lists", "tools"),
        ("caching", "hints"),
    ]
