"""The benchmark of names: each system's formula, and figures that say what they claim."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bench.names_quality import comparison
from bench.names_quality.measures import reads_as_another, says_its_server
from bench.names_quality.systems import CLIENTS, SYSTEMS, lost_in
from tests.shared import ROOT

if TYPE_CHECKING:
    from bench.names import Pairs

ONE: Pairs = [("Git Hub", [{"name": "create_issue"}, {"name": "fs.list"}])]
TWO: Pairs = [*ONE, ("jira", [{"name": "create_issue"}])]
NAMED = {system.name: system for system in SYSTEMS}


@pytest.mark.parametrize(
    ("system", "name"),
    [
        ("FastMCP", "jira_create_issue"),
        ("ContextForge", "jira-create-issue"),
        ("MetaMCP", "jira__create_issue"),
        ("LiteLLM", "jira-create_issue"),
        ("Envoy AI Gateway", "jira__create_issue"),
        ("ToolHive", "jira_create_issue"),
        ("Docker MCP Gateway", "create_issue"),
        ("1MCP", "jira_1mcp_create_issue"),
        ("mcpproxy-go", "jira__create_issue"),
        ("agentgateway", "jira_create_issue"),
        ("prefixed", "jira_create_issue"),
        ("on-conflict", "jira_create_issue"),
        ("server-prefix", "mcp_jira__create_issue"),
        ("claude-code", "mcp__jira__create_issue"),
    ],
)
def test_each_system_names_a_tool_by_its_rule(system: str, name: str) -> None:
    one = NAMED[system]
    assert one.names(TWO, one.state())["jira", "create_issue"] == name


def test_every_client_that_is_compared_is_a_row() -> None:
    assert {system.name for system in SYSTEMS if system.kind == "client"} == set(CLIENTS)


@pytest.mark.parametrize(
    ("system", "changed", "share"),
    [
        ("agentgateway", 1.0, 0.0),
        ("FastMCP", 0.0, 0.0),
        ("Docker MCP Gateway", 0.0, 0.5),
        ("on-conflict, no ledger", 0.5, 0.0),
        ("on-conflict", 0.0, 0.0),
        ("prefixed", 0.0, 0.0),
    ],
)
def test_names_that_move_when_a_server_joins_are_counted(system: str, changed: float, share: float) -> None:
    moved = comparison._moved(NAMED[system], [(ONE, TWO)])
    assert moved == {"a second joins": changed, "another's": share}


@pytest.mark.parametrize(
    ("names", "lost"),
    [
        (["a_b", "c_d"], 0),
        (["a_b", "a_b"], 1),
        (["a_b", "a:b"], 1),
    ],
)
def test_a_tool_that_no_call_reaches_is_lost(names: list[str], lost: int) -> None:
    assert lost_in("claude-code", names) == lost


def test_a_name_says_its_server_if_no_other_key_reads_the_same() -> None:
    keys = ["git-hub", "jira", "mcp-jira"]
    named = [("git_hub_get", "git-hub"), ("get", "git-hub"), ("jira_get", "jira"), ("mcp_jira_get", "mcp-jira")]
    assert says_its_server(named, keys) == 2
    assert reads_as_another([("jira_get", "git-hub"), *named], keys) == [("jira_get", "git-hub")]


def test_the_page_has_the_rows_of_the_data() -> None:
    record = json.loads((ROOT / "docs/measurements/data/names-quality.json").read_text("utf-8"))
    page = (ROOT / "docs/measurements/names-quality.md").read_text("utf-8")
    assert [row["name"] for row in record["systems"]] == [system.name for system in SYSTEMS]
    assert comparison._tables(record) in page
