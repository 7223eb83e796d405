"""What a client is given of the names: its list where tools are searched, and what it makes of them all the same."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from truename import dialects

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from tests.cli.conftest import Run

OWN = ["search_tools", "describe_tools", "call_tool"]
ADDRESS = "http://127.0.0.1:8750/mcp/for/crewai"


def test_without_a_search_the_list_has_all_names(run: Run, dump: Path) -> None:
    document = run("names", dump, "--for", "cursor", "--json").document

    assert document["searched"] is None
    assert document["listed"] == [tool["name"] for tool in document["tools"]]


def test_at_an_address_that_searches_the_list_has_the_tools_that_search(run: Run, dump: Path) -> None:
    document = run("names", dump, "--search", "--json").document
    told = run("names", dump, "--search").out

    assert (document["searched"], document["listed"]) == ("its address asks for it", OWN)
    assert len(document["tools"]) == 6
    listed, _, found = told.partition("Found by a search, and called by these names:")
    assert all(name in listed for name in OWN)
    assert not any(name in found for name in OWN)
    assert "github_create_issue" in found
    assert "github_create_issue" not in listed


def test_what_is_pinned_stays_listed_and_a_servers_search_tools_keeps_its_name(
    run: Run, configure: Callable[..., Path]
) -> None:
    settings = {"tool_search": "on", "pinned": ["git/commit"], "style": "on-conflict"}
    path = configure({"git": ["commit", "push", "search_tools"]}, truename=settings)

    document = run("names", path, "--json").document

    assert document["searched"] == "tool_search is on"
    assert document["listed"] == ["commit", "gateway_search_tools", "describe_tools", "call_tool"]
    assert [tool["name"] for tool in document["tools"]] == ["commit", "push", "search_tools"]


def test_a_client_that_takes_few_tools_is_given_no_more_pinned_ones(run: Run, configure: Callable[..., Path]) -> None:
    names = [f"tool_{number}" for number in range(90)]
    path = configure({"big": names}, truename={"tool_search": "auto", "pinned": ["*"], "style": "on-conflict"})

    document = run("names", path, "--for", "cursor", "--json").document

    assert document["searched"] == f"it has 90 tools, and this client takes {dialects.get('cursor').max_tools}"
    assert document["listed"] == [*names[:77], *OWN]


def test_what_the_client_makes_of_the_names_is_told(run: Run, dump: Path) -> None:
    document = run("names", dump, "--for", "claude-code", "--json").document

    assert {tool["shown"] for tool in document["tools"]} == {
        f"mcp__truename__{tool['name']}" for tool in document["tools"]
    }
    assert "changes" not in run("names", dump, "--for", "claude-code").out
    assert "shown" not in run("names", dump, "--json").document["tools"][0]


def test_crewai_cuts_a_second_time_behind_the_address_and_that_is_told(run: Run, dump: Path) -> None:
    done = run("names", dump, "--for", "crewai")
    tools = run("names", dump, "--for", "crewai", "--json").document["tools"]

    long = next(tool for tool in tools if tool["server"] == "atlassian" and "confluence" in tool["name"].lower())
    assert long["shown"] == dialects.get("crewai").shown(ADDRESS, long["name"])
    assert not long["shown"].endswith(long["name"])
    said = " ".join(done.out.split())
    assert f"CrewAI changes 1 name for a gateway at {ADDRESS}: {long['name']} becomes {long['shown']}." in said


def test_without_the_gateway_there_are_no_tools_that_search_and_the_way_is_said(
    run: Run, dump: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "truename.gateway.views.own_tools", None)

    done = run("names", dump, "--search")

    assert (done.status, done.out) == (2, "")
    assert "Install `truename[gateway]`." in done.err
    assert run("names", dump).status == 0


def test_search_tools_alone_are_given_where_nothing_is_pinned_but_all_names_are_told(run: Run, dump: Path) -> None:
    assert run("names", dump, "--search", "--for", "crewai").out.count("search_tools") == 1
