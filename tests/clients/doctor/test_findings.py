"""Findings in words: what each says of tools and lists, and that one cause is told once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename import dialects
from truename.catalog import estimated_tokens
from truename.clients.doctor import ClientCase, DoctorReport, ExaminedServer, ServerLists, examine
from truename.clients.doctor.tool_findings import BUDGET
from truename.config import ServerConfig
from truename.conventions import Location, Severity


def report(client: str, lists: dict[str, Any]) -> DoctorReport:
    servers = [ExaminedServer.listing(key, tools) for key, tools in lists.items()]
    return examine([ClientCase(dialect=dialects.get(client), lists=ServerLists(servers))])


LONG = "createConfluencePageFromMarkdownTemplateInSpaceWithLabels"

# client, lists, rule, what is said
SAID: list[tuple[str, dict[str, Any], str, str]] = [
    (
        "gemini-cli",
        {"lab": ["a/b", "a_b"]},
        "tools_merged",
        "'a/b' and 'a_b' of 'lab' become 'mcp_lab_a_b' in Gemini CLI, and every call runs 'a_b'.",
    ),
    (
        "google-adk",
        {"one": ["search"], "two": ["search"]},
        "wrong_tool",
        "'search' of 'one' and 'two' is one name in Google ADK, and every call runs 'search' of 'two'.",
    ),
    (
        "claude-code",
        {"a": ["b__c"], "a__b": ["c"]},
        "clash_of_unknown_end",
        (
            "'a: b__c' and 'a__b: c' become 'mcp__a__b__c' in Claude Code; "
            "which of them a call runs depends on which server is ready first."
        ),
    ),
    (
        "llamaindex",
        {"lab": ["fs.list"]},
        "wrong_tool",
        "'fs.list' of 'lab' is shown by LlamaIndex, but a call runs nothing.",
    ),
    (
        "claude-ai",
        {"lab": ["fs.list", "x"]},
        "server_fails",
        (
            "'fs.list' of 'lab' makes the whole server fail in claude.ai "
            "('.' at 2 is not in [a-zA-Z0-9_-]), and 1 tool with it."
        ),
    ),
    (
        "qwen-code",
        {"lab": ["x", "y", "x"]},
        "server_fails",
        "'x' of 'lab', listed twice, makes the whole server fail in Qwen Code, and 1 tool with it.",
    ),
    (
        "openai-agents-python",
        {"one": ["search"], "two": ["search", "x"]},
        "request_fails",
        "'search' of 'one' and 'two' is one name in OpenAI Agents SDK (Python), and the whole request fails.",
    ),
    (
        "vscode",
        {"lab": ["a/b", "a_b"]},
        "clash_of_unknown_end",
        "'a/b' and 'a_b' of 'lab' become 'mcp_lab_a_b' in VS Code (Copilot); which of them a call runs is unknown.",
    ),
    (
        "cursor",
        {"lab": ["a/b", "c"]},
        "tool_dropped",
        "'a/b' of 'lab' is left out by Cursor ('/' at 1 is not in [a-zA-Z0-9_]).",
    ),
    (
        "codex-cli",
        {"my lab": ["a", "b"]},
        "server_ignored",
        "Codex never connects to a server called 'my lab'; 2 tools are lost.",
    ),
    (
        "gemini-cli",
        {"lab": [LONG]},
        "name_cut",
        (
            f"'{LONG}' of 'lab' is too long for Gemini CLI, which shows "
            "'mcp_lab_createConfluencePageFr...kdownTemplateInSpaceWithLabels'."
        ),
    ),
    (
        "claude-code",
        {"lab": ["a.b", "c.d", "e.f"]},
        "name_respelled",
        "'a.b' of 'lab' is shown by Claude Code as 'mcp__lab__a_b'; 2 tools more are too.",
    ),
    (
        "cursor",
        {"lab": [f"tool_{n}" for n in range(81)]},
        "too_many_tools",
        "Cursor accepts 80 tools, and there are 81.",
    ),
    ("fastmcp", {"lab": ["x", "x"]}, "tool_listed_twice", "'lab' lists 'x' twice."),
    ("fastmcp", {"lab": ["", "x"]}, "unusable_name", "1 of the tools of 'lab' has no usable name."),
    ("fastmcp", {"lab": ["", 5, "x"]}, "unusable_name", "2 of the tools of 'lab' have no usable name."),
    ("claude-code", {"a": ["x"], "b": ["X"]}, "shared_name", "2 servers have 'x': 'a' and 'b'."),
    ("claude-code", {"a": ["get", "Get"], "b": ["get"]}, "shared_name", "2 servers have 'get': 'a' and 'b'."),
]


@pytest.mark.parametrize("said", SAID, ids=lambda said: f"{said[0]}-{said[2]}")
def test_a_finding_says_who_does_what_to_which_tools(said: tuple[str, dict[str, Any], str, str]) -> None:
    client, lists, rule, fact = said
    found = [one for one in report(client, lists).findings if one.rule.name == rule]

    assert [one.fact for one in found] == [fact]
    assert all(one.remedy.endswith(".") for one in found)


def test_the_one_that_is_kept_of_several_is_told_with_them_only() -> None:
    found = report("claude-code", {"lab": ["a/b", "a_b"]}).findings

    assert [one.rule.name for one in found] == ["tools_merged"]


def test_a_clash_of_several_servers_has_the_place_of_the_first() -> None:
    servers = [ExaminedServer.listing(key, ["search"], Location(file=f"{key}.json")) for key in ("one", "two")]
    found = examine([ClientCase(dialect=dialects.get("google-adk"), lists=ServerLists(servers))]).findings

    assert {one.location.file for one in found if one.location} == {"one.json"}
    assert all(one.location for one in found)


def test_definitions_over_the_budget_are_noted_with_the_heaviest_server() -> None:
    heavy = [{"name": f"t{n}", "description": "x" * 400, "inputSchema": {"type": "object"}} for n in range(120)]
    (found,) = [
        one
        for one in report("claude-code", {"heavy": heavy, "light": ["a"]}).findings
        if one.rule.name == "heavy_definitions"
    ]

    assert "'heavy' alone" in found.fact
    assert estimated_tokens(heavy) > BUDGET
    assert found.rule.severity is Severity.NOTE


@pytest.mark.parametrize(
    ("address", "remedy"),
    [
        ("https://mcp.example/mcp", "`truename connect cursor`"),
        (
            "http://127.0.0.1:8750/mcp/for/cursor/only/a",
            "`truename disconnect cursor`, then `truename connect cursor --one`",
        ),
        ("http://127.0.0.1:8750/mcp/only/a", "`truename disconnect cursor`, then `truename connect cursor --one`"),
    ],
)
def test_what_is_advised_is_not_what_was_done_already(address: str, remedy: str) -> None:
    servers = [
        ExaminedServer.listing(key, ["search"], config=ServerConfig(key=key, url=address, type="http"))
        for key in ("a", "b")
    ]
    case = ClientCase(dialect=dialects.get("cursor"), lists=ServerLists(servers), client="cursor")

    (found,) = [one for one in examine([case]).findings if one.client]

    assert found.remedy == f"{remedy} gives each tool a name that it keeps."


def test_a_shared_name_behind_the_gateway_needs_nothing() -> None:
    def rules(*addresses: str) -> set[str]:
        servers = [
            ExaminedServer.listing(key, ["search"], config=ServerConfig(key=key, url=address, type="http"))
            for key, address in zip("abc", addresses, strict=False)
        ]
        case = ClientCase(dialect=dialects.get("claude-code"), lists=ServerLists(servers), client="claude-code")
        return {one.rule.name for one in examine([case]).findings}

    gateway = "http://127.0.0.1:8750/mcp/for/claude-code/only/"

    assert "shared_name" not in rules(f"{gateway}a", f"{gateway}b")
    assert "shared_name" in rules(f"{gateway}a", "https://mcp.example/mcp")
    assert "shared_name" in rules(f"{gateway}a", f"{gateway}b", "https://mcp.example/mcp")


def test_lists_of_several_clients_are_told_once() -> None:
    lists = ServerLists([ExaminedServer.listing("a", ["x"]), ExaminedServer.listing("b", ["x"])])
    other = ServerLists([ExaminedServer.listing("a", ["x"]), ExaminedServer.listing("b", ["x"])])
    found = examine(
        [
            ClientCase(dialect=dialects.get("claude-code"), lists=lists),
            ClientCase(dialect=dialects.get("opencode"), lists=other),
        ]
    )

    assert [one.rule.name for one in found.general] == ["shared_name"]


def test_the_worst_comes_first_and_what_was_run_before_what_was_read() -> None:
    lists = ServerLists([ExaminedServer.listing("lab", ["a/b", "a_b", LONG, "x.y"])])
    found = examine([ClientCase(dialect=one, lists=lists) for one in dialects.table()]).findings
    ranks = [(list(Severity).index(one.rule.severity), one.confidence == "read") for one in found]

    assert ranks == sorted(ranks)


names = st.lists(st.text(alphabet="ab_-./ 天A1", max_size=6), max_size=6)


@given(st.dictionaries(st.text(alphabet="ab-_ .", max_size=4), names, max_size=3), st.sampled_from(dialects.names()))
def test_every_tool_that_is_lost_for_certain_stands_in_a_finding(lists: dict[str, list[str]], client: str) -> None:
    (diagnosis,) = report(client, lists).diagnoses
    told = {name for one in diagnosis.findings for name in one.tools}

    assert {fate.tool for fate in diagnosis.case.direct.lost if fate.loss != "falls"} <= told
    assert diagnosis.lost_through == 0
    assert all(one.client == client and one.fact.endswith(".") for one in diagnosis.findings)


@pytest.mark.parametrize("client", ["cursor", "continue", "gemini-cli", "opencode", "claude-code"])
def test_the_column_through_truename_is_about_what_connect_writes(client: str) -> None:
    servers = [ExaminedServer.listing(key, ["search", "create", "a.b", "a_b"]) for key in ("one", "two")]
    (case,) = (ClientCase(dialect=dialects.get(client), lists=ServerLists(servers), client=client),)

    assert case.lost_through == 0
    assert case.lists.after_connect(case.dialect).lost == ()


def test_a_client_that_is_connected_is_told_what_it_gets_now_and_what_ends_a_loss() -> None:
    at = "http://127.0.0.1:8750/mcp"
    single = [
        ExaminedServer.listing(key, ["search"], config=ServerConfig(key=key, url=f"{at}/only/{key}", type="http"))
        for key in ("a", "b")
    ]
    common = [
        ExaminedServer.listing(
            "tn", ["a_search", "b_search"], config=ServerConfig(key="tn", url=f"{at}/servers/a,b", type="http")
        )
    ]
    clashing, fine = (
        ClientCase(dialect=dialects.get("cursor"), lists=ServerLists(one), client="cursor") for one in (single, common)
    )

    assert (clashing.is_connected, clashing.lost_through) == (True, 2)
    assert "--one" in clashing.remedy
    assert (fine.is_connected, fine.lost_through, examine([fine]).findings) == (True, 0, ())
