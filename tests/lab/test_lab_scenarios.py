"""The scenarios, and what the model does in them."""

from __future__ import annotations

import pytest

from lab import scenarios
from lab.model import Offered
from lab.scenarios import PINNED, SCENARIOS, UNLISTED, planner, scenario


def test_servers_of_a_scenario_have_different_keys_and_at_most_899_tools() -> None:
    for one in SCENARIOS:
        keys = [server.key for server in one.servers]
        assert len(keys) == len(set(keys))
        assert all(len(server.names) < 900 for server in one.servers)


def test_the_joins_join_to_the_same_text_with_two_underscores_and_with_one() -> None:
    pairs = [(server.key, name) for server in scenario("joins").servers for name in server.names]
    for between in ("__", "_"):
        assert len({f"{key}{between}{name}" for key, name in pairs}) < len(pairs)


def test_a_part_of_the_awkward_scenario_has_one_construct_and_a_plain_companion() -> None:
    assert scenario("awkward/dot").servers[0].names == ("plain_companion", "fs.list")
    with pytest.raises(LookupError, match="no scenario 'awkwarder'"):
        scenario("awkwarder")


def _offered(*names: str) -> list[Offered]:
    return [Offered(name=name, namespace="mcp__lab", description=f"[lab:{n}]") for n, name in enumerate(names, 1)]


def test_a_sweep_calls_the_tools_in_the_order_of_their_marks() -> None:
    steps = planner(scenario("awkward"))(list(reversed(_offered("a", "b"))))
    assert [(step.shown, step.mark) for step in steps] == [("mcp__lab.a", 1), ("mcp__lab.b", 2)]


def test_after_a_rename_the_old_name_is_called_twice() -> None:
    steps = planner(scenario("rename"))(_offered("get_weather", "rename_now", "other"))
    assert [step.name for step in steps] == ["get_weather", "rename_now", "other", "get_weather", "get_weather"]
    assert [step.probe for step in steps[2:]] == [None, "after-rename", "after-rename"]


def test_probes_are_wrong_names_and_then_calls_that_fail() -> None:
    steps = planner(scenario("probes"))(_offered("get_weather", "a_b", "err_jsonrpc", "err_iserror"))
    wrong, failing = steps[:-2], steps[-2:]
    assert "mcp__lab.get_weather" not in {step.shown for step in wrong}
    assert [step.name for step in failing] == ["err_jsonrpc", "err_iserror"]
    assert [step.name for step in planner(scenario("probes"), start=3)(_offered("get_weather"))] == [
        step.name for step in wrong[3:]
    ]
    assert planner(scenario("probes"))([]) == []


def test_the_servers_of_a_scenario_can_be_read() -> None:
    assert scenarios.spelled(scenario("duplicates")).count("same_name") == 2


def test_where_tools_are_searched_the_listed_one_is_called_and_then_one_that_is_not() -> None:
    offered = [Offered(name=f"mcp__tn__{PINNED}", description="[lab:1]")]
    steps = planner(scenario("searched"))(offered)

    assert [step.name.removeprefix("mcp__tn__") for step in steps] == [
        PINNED,
        "search_tools",
        "describe_tools",
        "call_tool",
        UNLISTED,
    ]
    assert steps[3].numbered(3).sent == {"name": UNLISTED, "arguments": {"q": "k3"}}
    assert planner(scenario("searched"))([]) == []
    assert [one.name for one in SCENARIOS if one.search != "off"] == ["searched"]
