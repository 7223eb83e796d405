"""What a client is predicted to do with each tool: shown as, reaches, or lost and why."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename import dialects
from truename.clients.doctor import predict

ONE = [("lab", ["a/b", "a_b", "a.b", "fs.list", "plain"])]
TWO = [("jira", ["search", "open"]), ("github", ["search"])]
CONFLUENCE = [
    (
        "atlassian-confluence-cloud",
        ["createConfluencePageFromTemplateInSpace", "deleteConfluencePageFromTemplateInSpace"],
    )
]
TWICE = [("lab", ["x", "y", "x"]), ("other", ["z"])]

# client, servers, tool -> shown, reaches, loss, scope, change
SEEN = [
    ("claude-code", ONE, ("lab", "a/b"), "mcp__lab__a_b", ("lab", "a/b"), "", "", "respelled"),
    ("claude-code", ONE, ("lab", "a.b"), None, ("lab", "a/b"), "merged", "", ""),
    ("gemini-cli", ONE, ("lab", "a/b"), None, ("lab", "a_b"), "merged", "", ""),
    ("gemini-cli", ONE, ("lab", "a.b"), "mcp_lab_a.b", ("lab", "a.b"), "", "", ""),
    (
        "gemini-cli",
        CONFLUENCE,
        (CONFLUENCE[0][0], "createConfluencePageFromTemplateInSpace"),
        None,
        (CONFLUENCE[0][0], "deleteConfluencePageFromTemplateInSpace"),
        "merged",
        "",
        "",
    ),
    ("opencode", ONE, ("lab", "plain"), "lab_plain", ("lab", "plain"), "", "", ""),
    ("llamaindex", ONE, ("lab", "fs.list"), "fs_list", None, "misrouted", "", ""),
    ("llamaindex", ONE, ("lab", "a/b"), "a_b", ("lab", "a_b"), "misrouted", "", ""),
    ("google-adk", TWO, ("jira", "search"), "search", ("github", "search"), "misrouted", "", ""),
    ("continue-cli", TWO, ("github", "search"), "search", ("jira", "search"), "misrouted", "", ""),
    ("vercel-ai-sdk", TWO, ("jira", "search"), None, ("github", "search"), "merged", "", ""),
    ("openai-agents-python", TWO, ("jira", "search"), None, None, "refused", "request", ""),
    ("openai-agents-python", TWO, ("jira", "open"), None, None, "falls", "request", ""),
    ("claude-ai", ONE, ("lab", "fs.list"), None, None, "refused", "server", ""),
    ("claude-ai", ONE, ("lab", "plain"), None, None, "falls", "server", ""),
    ("qwen-code", TWICE, ("lab", "x"), None, None, "refused", "server", ""),
    ("qwen-code", TWICE, ("lab", "y"), None, None, "falls", "server", ""),
    ("qwen-code", TWICE, ("other", "z"), "mcp__other__z", ("other", "z"), "", "", ""),
    ("codex-cli", [("天気", ["plain"])], ("天気", "plain"), None, None, "dropped", "", ""),
    ("anthropic", TWO, ("jira", "search"), None, None, "refused", "request", ""),
    ("anthropic", ONE, ("lab", "plain"), None, None, "falls", "request", ""),
    ("vscode-copilot", ONE, ("lab", "a/b"), None, None, "unknown", "", ""),
]


@pytest.mark.parametrize("seen", SEEN, ids=lambda seen: f"{seen[0]}-{seen[2][1]}")
def test_a_tool_is_shown_reaches_what_it_names_or_is_lost_for_a_reason(seen: tuple[Any, ...]) -> None:
    client, servers, tool, *expected = seen
    fate = predict(dialects.get(client), servers).by_key[tool]

    assert [fate.shown, fate.reaches, fate.loss, fate.scope, fate.change] == expected


def test_a_cut_name_is_told_from_one_that_is_only_respelled() -> None:
    long = "create_a_page_from_a_template_in_a_space_of_the_confluence_cloud"
    seen = predict(dialects.get("gemini-cli"), [("lab", [long, "天気取得"])])

    assert [fate.change for fate in seen.changed] == ["cut", "respelled"]


def test_tools_of_one_name_in_one_request_are_a_group_for_a_provider_too() -> None:
    assert predict(dialects.get("anthropic"), TWO).groups == {"search": (("jira", "search"), ("github", "search"))}


names = st.text(alphabet="abA_-./ 天1", min_size=1, max_size=8)
many = st.dictionaries(names, st.lists(names, max_size=5), max_size=4)


@given(servers=many, client=st.sampled_from(dialects.names()))
def test_every_tool_has_one_fate_and_no_shown_name_runs_two_tools(servers: dict[str, list[str]], client: str) -> None:
    seen = predict(dialects.get(client), servers.items())

    assert [fate.key for fate in seen.fates] == list(
        dict.fromkeys((key, name) for key, tools in servers.items() for name in tools)
    )
    alive = [fate for fate in seen.fates if not fate.loss]
    assert all(fate.shown is not None and fate.reaches == fate.key for fate in alive)
    assert all(fate.reaches != fate.key for fate in seen.lost)
    assert len({fate.shown for fate in alive}) == len(alive)
    reached: dict[str, object] = {}
    for fate in seen.fates:
        if fate.shown is not None:
            assert reached.setdefault(fate.shown, fate.reaches) == fate.reaches
