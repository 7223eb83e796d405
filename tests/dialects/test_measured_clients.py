"""The rows of the measurement that can be computed: what each client showed for the server key "lab"."""

from __future__ import annotations

import re

import pytest

from truename import dialects

DATAGROUT = "salesforce@1/get_leads@1"


def sized(length: int) -> str:
    """Return a name of this length whose head and tail tell it from those of other lengths."""
    head, tail = f"n{length:03d}_", f"_e{length:03d}"
    return head + ("abcdefghij" * 20)[: length - len(head) - len(tail)] + tail


MIDDLE = ("confluence_page_attachments_and_permissions_", "_for_all_spaces_in_the_whole_site_recursive")
CREATE, DELETE = (f"{MIDDLE[0]}{verb}{MIDDLE[1]}" for verb in ("create", "delete"))
LONG_ONE, LONG_TWO = (("shared_prefix_of_a_very_long_name_" * 3)[:70] + end for end in ("_one", "_two"))
NASTY = (
    "get_weather", "fs.list", "a/b", "has space", "天気取得", "CamelCase", "camelcase", "with-dash", "with_dash",
    "with__double", "_lead", "1digit", "salesforce@1/get_leads@1", "colon:name", "pct%41name", "tilde~1name",
    "web_search", "a_b", "a.b", CREATE, DELETE, LONG_ONE, LONG_TWO,
    *(sized(length) for length in (46, 49, 50, 57, 58, 59, 60, 63, 64, 65, 100, 128, 129)),
)  # fmt: skip


@pytest.mark.parametrize(
    ("client", "server", "name", "shown"),
    [
        ("claude-code", "lab", "get_weather", "mcp__lab__get_weather"),
        ("claude-code", "lab", "fs.list", "mcp__lab__fs_list"),
        ("claude-code", "lab", "天気取得", "mcp__lab______"),
        ("claude-code", "claude.ai Foo  Bar", "x", "mcp__claude_ai_Foo_Bar__x"),
        ("claude-code", "My Server.io/x", "x", "mcp__My_Server_io_x__x"),
        ("claude-code", "lab", sized(128), None),
        ("codex", "lab", "get_weather", "mcp__lab.get_weather"),
        ("codex", "lab", "with-dash", "mcp__lab.with_dash"),
        ("codex", "my-lab", "x", "mcp__my_lab.x"),
        ("codex", "天気", "x", None),
        ("codex", "My Server.io/x", "x", None),
        ("codex-code-mode", "lab", "get_weather", "mcp__lab__get_weather"),
        ("codex-code-mode", "lab", "_lead", "mcp__lab_lead"),
        ("gemini-cli", "lab", "fs.list", "mcp_lab_fs.list"),
        ("gemini-cli", "datagrout", DATAGROUT, "mcp_datagrout_salesforce_1_get_leads_1"),
        ("gemini-cli", "mcp_x", "y", "mcp_x_y"),
        ("gemini-cli", "claude.ai-x", "y", "mcp_claude.ai-x_y"),
        ("qwen", "lab", "get_weather", "mcp__lab__get_weather"),
        ("opencode", "lab", "fs.list", "lab_fs_list"),
        ("opencode", "lab", sized(129), "lab_" + sized(129)),
        ("cline", "lab", "get_weather", "lab__get_weather"),
        ("cline", "datagrout", DATAGROUT, "datagrout__salesforce_1_get_leads_1_643d26e9"),
        ("roo", "datagrout", DATAGROUT, "mcp--datagrout--salesforce1get_leads1"),
        ("roo", "lab", "1digit", "mcp--lab--_1digit"),
        ("continue-cli", "lab", "天気取得", "天気取得"),
        ("continue", "git", "github_search", "github_search"),
        ("continue", "Git Hub", "search", "git_hub_search"),
        ("openai-agents-python", "lab", "a/b", "a/b"),
        ("openai-agents-python-prefix", "lab", "fs.list", "mcp_lab__fs_list"),
        ("openai-agents-python-prefix", "天気", "x", "mcp_server__x"),
        ("openai-agents-js", "lab", "with-dash", "with_dash"),
        ("openai-agents-js-prefix", "lab", "with-dash", "mcp_lab__with_dash"),
        ("pydantic-ai-prefix", "lab", "a/b", "lab_a/b"),
        ("langchain", "lab", "a/b", "a/b"),
        ("langchain-mcp-adapters-js-prefix", "lab", "x", "mcp__lab__x"),
        ("llamaindex", "lab", "fs.list", "fs_list"),
        ("crewai", "mcp_127_0_0_1_34213_mcp", "get_weather", "mcp_127_0_0_1_34213_mcp_get_weather"),
        ("crewai", "lab", "CamelCase", "lab_camel_case"),
        ("crewai", "lab", "with__double", "lab_with_double"),
        ("crewai", "lab", "_lead", "lab_lead"),
        ("crewai", "lab", "天気取得", None),
        ("semantic-kernel", "lab", "a/b", "lab-a-b"),
        ("smolagents", "lab", "fs.list", "fslist"),
        ("smolagents", "lab", "with-dash", "with_dash"),
        ("smolagents", "lab", "1digit", "_1digit"),
        ("smolagents", "lab", "天気取得", "天気取得"),
        ("mcpadapt", "lab", "import", "import_"),
        ("mastra", "lab", sized(64), "lab_" + sized(64)[:59]),
        ("vscode", "io.github.upstash/context7", "x", "mcp_io_github_ups_x"),
        ("vscode", "lab", "fs.list", "mcp_lab_fs_list"),
        ("vscode", "lab", sized(65), "mcp_lab_" + sized(65)[:56]),
        ("n8n", "My node", sized(60), "My_" + "_" + sized(60)),
        ("n8n", "My node", sized(63), sized(63)),
        ("cursor", "lab", sized(57), None),
        ("cursor", "lab", "meta.index", None),
        ("librechat", "My Server!", "x", "x_mcp_My_Server"),
        ("goose", "My Server!", "a/b", "myserver___a/b"),
        ("openai", "lab", "fs.list", "fs.list"),
    ],
)
def test_a_client_shows_a_name_as_measured(client: str, server: str, name: str, shown: str | None) -> None:
    assert dialects.get(client).shown(server, name) == shown


@pytest.mark.parametrize(
    ("client", "name", "pattern"),
    [
        ("qwen", "fs.list", r"mcp__lab__fs_list_[0-9a-z]{7}"),
        ("qwen", sized(53), "mcp__lab__" + sized(53)),
        ("qwen", sized(57), r"mcp__lab__.{45}_[0-9a-z]{7}"),
        ("codex", sized(129), r"mcp__lab\..{105}_[0-9a-f]{12}"),
        ("cline", "a/b", r"lab__a_b_[0-9a-f]{8}"),
        ("cline", sized(60), r"lab__.{50}_[0-9a-f]{8}"),
        ("open-webui", sized(63), r"lab_.{51}_[0-9a-f]{8}"),
        ("openai-agents-python-prefix", sized(60), r"mcp_lab__.{46}_[0-9a-f]{8}"),
        ("crewai", sized(63), r"lab_.{51}_[0-9a-f]{8}"),
        ("gemini-cli", CREATE, r"mcp_lab_confluence_page_attach\.\.\..{30}"),
    ],
)
def test_a_long_or_illegal_name_gets_the_measured_form(client: str, name: str, pattern: str) -> None:
    assert re.fullmatch(pattern, dialects.get(client).shown("lab", name) or "")


@pytest.mark.parametrize(
    ("client", "names", "winner"),
    [
        ("claude-code", ("a/b", "a_b", "a.b"), "a/b"),
        ("opencode", ("a/b", "a_b", "a.b"), "a.b"),
        ("gemini-cli", ("a/b", "a_b"), "a_b"),
        ("gemini-cli", (CREATE, DELETE), DELETE),
        ("semantic-kernel", ("a/b", "a b", "a-b"), "a/b"),
        ("llamaindex", ("a/b", "a_b", "a.b"), "a_b"),
        ("codex-code-mode", ("x", "__x"), "__x"),
    ],
)
def test_names_that_became_equal_leave_one_winner(client: str, names: tuple[str, ...], winner: str) -> None:
    seen = dialects.get(client).simulate("lab", names)

    (text,) = seen.merged
    assert seen.merged[text] == names
    assert (seen.winner(text), dict(seen.shown)) == (winner, {winner: text})
    assert set(seen.dropped) == set(names) - {winner}
    assert seen.scope == ""


@pytest.mark.parametrize(
    ("client", "pattern"),
    [("codex", r"mcp__lab\.a_b_[0-9a-f]{12}"), ("openai-agents-python-prefix", r"mcp_lab__a_b_[0-9a-f]{8}")],
)
def test_clients_that_hash_keep_all_apart(client: str, pattern: str) -> None:
    seen = dialects.get(client).simulate("lab", ["a/b", "a_b", "a.b"])

    assert len(set(seen.shown.values())) == 3
    assert all(re.fullmatch(pattern, text) for text in seen.shown.values())
    assert not seen.merged


def test_the_agents_sdk_hashes_duplicates_with_the_observed_digests() -> None:
    for client in ("openai-agents-python-prefix", "openai-agents-js-prefix"):
        seen = dialects.get(client).simulate("lab", ["same_name", "other", "same_name"])

        assert {text for text in seen.reaches if "same" in text} == {
            "mcp_lab__same_name_f506dc6b",
            "mcp_lab__same_name_1cc8b9bb",
        }
        assert not seen.merged


def test_crewai_numbers_what_became_equal() -> None:
    for client, prefix in (("crewai", "lab_"), ("crewai-adapter", "")):
        seen = dialects.get(client).simulate("lab", ["getUser", "get_user", "get-user"])

        assert list(seen.shown.values()) == [prefix + "get_user", prefix + "get_user_2", prefix + "get_user_3"]


@pytest.mark.parametrize(
    ("client", "names", "refused", "scope"),
    [
        ("mastra", (LONG_ONE, LONG_TWO, "x"), (LONG_ONE, LONG_TWO), "request"),
        ("mastra", ("a/b", "a_b"), ("a/b", "a_b"), "request"),
        ("smolagents", ("with-dash", "with_dash"), ("with-dash", "with_dash"), "request"),
        ("smolagents", ("x", "x"), ("x",), "request"),
        ("openai-agents-js", ("a_b", "a.b", "c"), ("a_b", "a.b"), "request"),
        ("autogen", ("fs.list", "x"), ("fs.list",), "request"),
        ("autogen", (sized(65),), (sized(65),), "request"),
        ("autogen", ("x", "x"), ("x",), "request"),
        ("semantic-kernel", ("fs.list", "x"), ("fs.list",), "request"),
        ("qwen-code", ("same", "same", "x"), ("same",), "server"),
        ("crewai-adapter", ("天気取得", "x"), ("天気取得",), "request"),
        ("crewai-adapter", ("1digit", "x"), ("1digit",), "request"),
        ("claude-desktop", ("fs.list", "x"), ("fs.list",), "server"),
        ("anthropic", ("x", "x"), ("x",), "request"),
        ("openai", ("fs.list", "x", sized(65)), ("fs.list", sized(65)), "request"),
        ("xai", ("web_search", "fs.list"), ("web_search",), "request"),
    ],
)
def test_some_fail_as_a_whole(client: str, names: tuple[str, ...], refused: tuple[str, ...], scope: str) -> None:
    seen = dialects.get(client).simulate("lab", names)

    assert (seen.refused, seen.scope) == (refused, scope)
    assert not seen.shown
    assert not seen.reaches
    assert set(seen.dropped) == set(names) - set(refused)


@pytest.mark.parametrize("client", ["claude-code", "gemini-cli", "opencode", "cline", "langchain", "zed"])
def test_exact_duplicates_of_one_server_are_one_tool(client: str) -> None:
    seen = dialects.get(client).simulate("lab", ["same", "other", "same"])

    assert list(seen.shown) == ["same", "other"]
    assert list(seen.merged.values()) == [("same", "same")]
    assert not seen.dropped


def test_llamaindex_shows_names_that_run_nothing() -> None:
    seen = dialects.get("llamaindex").simulate("lab", ["fs.list", "get_weather"])

    assert dict(seen.shown) == {"get_weather": "get_weather"}
    assert seen.winner("fs_list") is None
    assert seen.dropped == ("fs.list",)


def test_a_client_that_is_not_known_to_choose_is_not_said_to_choose() -> None:
    seen = dialects.get("vscode").simulate("lab", ["a/b", "a_b"])

    assert dict(seen.merged) == {"mcp_lab_a_b": ("a/b", "a_b")}
    assert seen.dropped == ("a/b", "a_b")


@pytest.mark.parametrize(
    ("client", "pair", "lost"),
    [
        ("qwen-code", (("a", "b__c"), ("a__b", "c")), ("a", "b__c")),
        ("cline", (("a", "b__c"), ("a__b", "c")), ("a", "b__c")),
        ("codex", (("a", "b__c"), ("a__b", "c")), None),
        ("openai-agents-python-prefix", (("a", "b__c"), ("a__b", "c")), None),
        ("semantic-kernel", (("a", "b_c"), ("a_b", "c")), None),
        ("continue-cli", (("a", "x"), ("b", "x")), ("b", "x")),
        ("langchain-js", (("a", "x"), ("b", "x")), ("b", "x")),
        ("llamaindex", (("a", "x"), ("b", "x")), ("a", "x")),
        ("google-adk", (("a", "x"), ("b", "x")), ("a", "x")),
        ("langchain", (("a", "x"), ("b", "x")), ("a", "x")),
        ("vercel-ai-sdk", (("a", "x"), ("b", "x")), ("a", "x")),
    ],
)
def test_servers_whose_names_join_to_the_same_text(
    client: str, pair: tuple[tuple[str, str], tuple[str, str]], lost: tuple[str, str] | None
) -> None:
    seen = dialects.get(client).simulate_all((server, [name]) for server, name in pair)

    assert seen.dropped == (() if lost is None else (lost,))
    assert set(seen.shown) == {one for one in pair if one != lost}


@pytest.mark.parametrize("client", ["openai-agents-python", "openai-agents-js", "pydantic-ai", "autogen", "smolagents"])
def test_frameworks_that_raise_on_the_same_name_of_two_servers(client: str) -> None:
    seen = dialects.get(client).simulate_all([("a", ["x"]), ("b", ["x", "y"])])

    assert seen.refused == (("a", "x"), ("b", "x"))
    assert seen.scope == "request"


def test_a_server_that_fails_takes_only_its_own_tools_along() -> None:
    seen = dialects.get("qwen-code").simulate_all([("a", ["same", "same", "x"]), ("b", ["x"])])

    assert dict(seen.shown) == {("b", "x"): "mcp__b__x"}
    assert seen.refused == (("a", "same"),)
    assert seen.dropped == (("a", "x"),)


def test_zed_prefixes_only_what_is_equal() -> None:
    long = "x" * 63
    seen = dialects.get("zed").simulate_all([("one", ["x", "y", long]), ("two", ["x", long])])

    assert list(seen.shown.values()) == ["one_x", "y", "two_x", long]
    assert seen.winner(long) == ("two", long)


def test_nobody_cuts_a_list_of_two_hundred() -> None:
    listed = [f"tool_{number:03d}" for number in range(1, 201)]

    for dialect in dialects.table():
        assert len(dialect.simulate("lab", listed).shown) == 200, dialect


@pytest.mark.parametrize("name", dialects.names())
def test_every_awkward_name_ends_in_exactly_one_place(name: str) -> None:
    seen = dialects.get(name).simulate("lab", NASTY)

    places = [*seen.shown, *seen.dropped, *seen.refused]
    assert sorted(places) == sorted(NASTY)
    assert {name: seen.winner(text) for name, text in seen.shown.items()} == {name: name for name in seen.shown}
    assert set(seen.reaches.values()) == set(seen.shown)
