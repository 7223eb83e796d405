"""The names that clients keep are found, taken apart, compared with tools, and spelled anew."""
# ruff: noqa: E501 - one file a row

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.clients.homes import machine
from truename.clients import KeptName, find, matches, read_source, respell
from truename.clients.kept_names import SPELLINGS, split_name

if TYPE_CHECKING:
    from collections.abc import Iterable


def kept(text: str, spelling: str, servers: Iterable[str] = (), server: str | None = None) -> KeptName:
    """Take a name apart as it would be in a file."""
    found = split_name(text, SPELLINGS[spelling], servers)
    assert found is not None, text
    return KeptName(
        text=text,
        spelling=spelling,
        path=Path("f"),
        where=(),
        server=server or found.server,
        tool=found.tool,
        effect="allow",
        template=found.template,
        suffix=found.suffix,
    )


def write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")


def names_of(folder: Path, client: str, system: str = "linux") -> list[tuple[str, str | None, str | None, str]]:
    found = find(machine(folder, system))  # type: ignore[arg-type]
    assert [one.problem for one in found if one.problem] == []
    return [
        (one.text, one.server, one.tool, one.effect)
        for each in found
        if each.file.client == client
        for one in each.kept
    ]


SERVER = {"command": "x"}
POLICIES = """
[[rule]]
toolName = "mcp_a_x"
decision = "allow"
[[rule]]
mcpName = "b"
toolName = ["y", "z"]
decision = "ask_user"
[[rule]]
toolName = "mcp_*_w"
decision = "deny"
[[rule]]
toolName = "run_shell_command"
[[rule]]
mcpName = "c"
decision = "deny"
"""
# file, content, client, what is kept: text, server, tool, effect
KEPT = [
    (".claude.json", {"mcpServers": {"my git": SERVER}, "projects": {"/p": {"mcpServers": {}, "allowedTools": ["mcp__my_git__log", "Bash"],
        "enabledMcpjsonServers": ["a"], "disabledMcpjsonServers": ["b"]}}}, "claude-code",
     [("mcp__my_git__log", "my git", "log", "allow"), ("a", "a", None, "allow"), ("b", "b", None, "deny")]),
    (".claude/settings.json", {"permissions": {"allow": ["mcp__a__x", "mcp__a", "mcp__a__*", "Read(*)", 5], "deny": ["mcp__a__y(*)"], "ask": "mcp__b__z"}},
     "claude-code", [("mcp__a__x", "a", "x", "allow"), ("mcp__a", "a", None, "allow"), ("mcp__a__*", "a", None, "allow"),
                     ("mcp__a__y(*)", "a", "y", "deny"), ("mcp__b__z", "b", "z", "ask")]),
    ("project/.claude/settings.local.json", {"hooks": {"PreToolUse": [{"matcher": "Edit|mcp__a__.*|^mcp__b__w.*$"}, {"matcher": "*"}, {"matcher": "mcp__.*__(a|b)"}]}},
     "claude-code", [("mcp__a__.*", "a", None, "hook"), ("^mcp__b__w.*$", "b", "w.*", "hook"), ("mcp__.*__(a|b)", None, None, "hook")]),
    (".claude/agents/team/x.md", "---\nname: x\ntools: Read, mcp__a__x, mcp__b\n---\nmcp__no__no\n", "claude-code",
     [("mcp__a__x", "a", "x", "only"), ("mcp__b", "b", None, "only")]),
    ("project/.claude/commands/x.md", "---\nallowed-tools:\n  - mcp__a__x\n  - 'Bash(git:*)'\n---\n", "claude-code", [("mcp__a__x", "a", "x", "allow")]),
    (".claude/skills/s/SKILL.md", '---\nallowed-tools: ["mcp__a__x"]\n---\n', "claude-code", [("mcp__a__x", "a", "x", "allow")]),
    (".claude/settings.json", {"allowedMcpServers": [{"serverName": "a"}, {"serverUrl": "u"}], "deniedMcpServers": [{"serverName": "b"}]}, "claude-code",
     [("a", "a", None, "allow"), ("b", "b", None, "deny")]),
    (".cursor/permissions.json", '{"mcpAllowlist": ["a:x", "*:y", "a:*", "plain"], // mine\n}', "cursor",
     [("a:x", "a", "x", "allow"), ("*:y", "*", "y", "allow"), ("a:*", "a", None, "allow")]),
    (".cursor/cli-config.json", {"permissions": {"allow": ["Mcp(a:x)", "Shell(ls)"], "deny": ["Mcp(a:*)"]}}, "cursor",
     [("Mcp(a:x)", "a", "x", "allow"), ("Mcp(a:*)", "a", None, "deny")]),
    ("project/.github/agents/x.agent.md", "---\ntools: ['a/x', 'b/*', 'search/codebase', 'fetch']\n---\n", "vscode",
     [("a/x", "a", "x", "only"), ("b/*", "b", None, "only")]),
    (".config/Code/User/prompts/x.toolsets.jsonc", {"mine": {"tools": ["a/x", "codebase"], "icon": "i"}}, "vscode", [("a/x", "a", "x", "only")]),
    (".codeium/windsurf/mcp_config.json", {"mcpServers": {"a": {**SERVER, "disabledTools": ["x"]}}}, "windsurf", [("x", "a", "x", "without")]),
    (".cline/data/settings/cline_mcp_settings.json", {"mcpServers": {"a": {**SERVER, "autoApprove": ["x"]}}}, "cline", [("x", "a", "x", "allow")]),
    ("project/.roo/mcp.json", {"mcpServers": {"a": {**SERVER, "alwaysAllow": ["*"], "disabledTools": ["x"]}}}, "roo-code",
     [("*", "a", None, "allow"), ("x", "a", "x", "without")]),
    (".continue/permissions.yaml", "allow:\n  - x\n  - Bash(ls)\nask:\n  - y(*)\nexclude:\n  - z\n", "continue",
     [("x", None, "x", "allow"), ("y(*)", None, "y", "ask"), ("z", None, "z", "without")]),
    (".config/zed/settings.json", {"agent": {"tool_permissions": {"tools": {"mcp:a:x": {"default": "confirm"}, "terminal": {}}},
        "profiles": {"p": {"context_servers": {"a": {"tools": {"y": False}}}}}}}, "zed", [("mcp:a:x", "a", "x", "ask"), ("y", "a", "y", "deny")]),
    (".codex/config.toml", '[mcp_servers.a]\ncommand = "x"\nenabled_tools = ["x"]\ndisabled_tools = ["y"]\n[mcp_servers.a.tools.z]\napproval_mode = "auto"\n', "codex",
     [("x", "a", "x", "only"), ("y", "a", "y", "without"), ("z", "a", "z", "setting")]),
    (".gemini/settings.json", {"mcpServers": {"a": {**SERVER, "includeTools": ["x(all)"], "excludeTools": ["y"]}}, "tools": {"allowed": ["mcp_a_x", "run_shell_command"]},
        "mcp": {"allowed": ["a"], "excluded": ["b"]}}, "gemini-cli",
     [("x(all)", "a", "x", "only"), ("y", "a", "y", "without"), ("mcp_a_x", "a", "x", "allow"), ("a", "a", None, "only"), ("b", "b", None, "without")]),
    (".gemini/policies/mine.toml", POLICIES, "gemini-cli",
     [("mcp_a_x", "a", "x", "allow"), ("b", "b", None, "ask"), ("y", "b", "y", "ask"), ("z", "b", "z", "ask"), ("mcp_*_w", "*", "w", "deny"), ("c", "c", None, "deny")]),
    (".qwen/settings.json", {"mcpServers": {"a": {**SERVER, "includeTools": ["x"]}}, "permissions": {"allow": ["mcp__a__x"], "deny": ["ShellTool"]}}, "qwen-code",
     [("x", "a", "x", "only"), ("mcp__a__x", "a", "x", "allow")]),
    (".gemini/config/mcp_config.json", {"mcpServers": {"a": {**SERVER, "disabledTools": ["x"]}}}, "antigravity", [("x", "a", "x", "without")]),
    (".config/opencode/opencode.json", {"mcp": {"my-a": {"type": "local", "command": ["x"]}}, "tools": {"my-a*": False, "bash": True},
        "permission": {"my-a_x": "ask", "gone_y": "allow", "bash": {"*": "ask"}}, "agent": {"p": {"tools": {"my-a_*": True}}}}, "opencode",
     [("my-a*", "my-a", None, "deny"), ("my-a_x", "my-a", "x", "ask"), ("gone_y", None, "gone_y", "allow"), ("my-a_*", "my-a", None, "allow")]),
    (".config/opencode/agent/p.md", '---\ntools:\n  write: false\n  "a_*": true\n---\n', "opencode", [("a_*", None, "a_*", "allow")]),
    (".config/goose/config.yaml", "extensions:\n  a:\n    type: stdio\n    cmd: x\n    available_tools: [x]\n  developer:\n    type: builtin\n", "goose", [("x", "a", "x", "only")]),
    (".config/goose/permission.yaml", "user:\n  always_allow: [a__x, developer__shell]\n  ask_before: [b__y]\n  never_allow: []\n", "goose",
     [("a__x", "a", "x", "allow"), ("b__y", "b", "y", "ask")]),
    (".copilot/mcp-config.json", {"mcpServers": {"a": {"type": "local", "command": "x", "tools": ["*"]}, "b": {"type": "local", "command": "x", "tools": ["y"]}}}, "copilot-cli",
     [("*", "a", None, "only"), ("y", "b", "y", "only")]),
    (".aws/amazonq/cli-agents/x.json", {"mcpServers": {"a": SERVER}, "tools": ["@a", "fs_read", "@builtin"], "allowedTools": ["@a/read_*"],
        "toolAliases": {"@a/x": "y"}, "toolsSettings": {"@a/z": {}}}, "amazon-q",
     [("@a", "a", None, "only"), ("@a/read_*", "a", "read_*", "allow"), ("@a/x", "a", "x", "alias"), ("@a/z", "a", "z", "setting")]),
    (".kiro/settings/mcp.json", {"mcpServers": {"a": {**SERVER, "autoApprove": ["x"], "disabledTools": ["y"]}}}, "kiro", [("x", "a", "x", "allow"), ("y", "a", "y", "without")]),
    (".config/crush/crush.json", {"mcp": {"a": {**SERVER, "disabled_tools": ["x"]}}, "permissions": {"allowed_tools": ["view", "mcp_a_y"]}}, "crush",
     [("x", "a", "x", "without"), ("mcp_a_y", "a", "y", "allow")]),
    (".config/crush/crushrc", "mcp add a --command x --disabled-tools y,z\n", "crush", [("y", "a", "y", "without"), ("z", "a", "z", "without")]),
    (".config/amp/settings.json", {"amp.mcpServers": {"a": SERVER}, "amp.tools.disable": ["mcp__a__x", "builtin:y"], "amp.tools.enable": ["mcp__a__*"],
        "amp.permissions": [{"tool": "mcp__b__z", "action": "ask"}, {"tool": "Bash"}]}, "amp",
     [("mcp__a__x", "a", "x", "without"), ("mcp__a__*", "a", None, "only"), ("mcp__b__z", "b", "z", "setting")]),
    (".vibe/config.toml", '[[mcp_servers]]\nname = "a"\ncommand = "x"\ndisabled_tools = ["y"]\n', "mistral-vibe", [("y", "a", "y", "without")]),
    ("project/.tabnine/agent/settings.json", {"mcpServers": {"a": {**SERVER, "excludeTools": ["x"]}}}, "tabnine", [("x", "a", "x", "without")]),
    (".factory/mcp.json", {"mcpServers": {"a": {**SERVER, "disabledTools": ["x"]}}}, "factory-droid", [("x", "a", "x", "without")]),
]  # fmt: skip


@pytest.mark.parametrize(("file", "content", "client", "wanted"), KEPT, ids=[f"{row[2]}-{row[0]}" for row in KEPT])
def test_kept_names_are_found(
    file: str, content: Any, client: str, wanted: list[tuple[str, str | None, str | None, str]], tmp_path: Path
) -> None:
    write(tmp_path / "home" / file, content)

    assert names_of(tmp_path, client) == wanted


@pytest.mark.parametrize(("file", "content", "client", "wanted"), KEPT, ids=[f"{row[2]}-{row[0]}" for row in KEPT])
def test_the_place_of_a_name_leads_to_it(
    file: str, content: Any, client: str, wanted: list[tuple[str, str | None, str | None, str]], tmp_path: Path
) -> None:
    write(tmp_path / "home" / file, content)
    for found in find(machine(tmp_path, "linux")):
        for name in found.kept:
            if found.document is None:
                continue
            value = found.document.value
            for step in name.where[: -1 if name.is_key else None]:
                value = value[step]
            assert name.where[-1] in value if name.is_key else value == (name.within or name.text)
            assert name.text in name.within or not name.within


def test_a_server_that_another_file_names_takes_the_names_apart(tmp_path: Path) -> None:
    write(tmp_path / "home/.claude.json", {"mcpServers": {"a__b": SERVER, "a": SERVER}})
    write(tmp_path / "home/.claude/settings.json", {"permissions": {"allow": ["mcp__a__b__c", "mcp__a__c"]}})

    assert [(server, tool) for _, server, tool, _ in names_of(tmp_path, "claude-code")] == [("a__b", "c"), ("a", "c")]


def test_the_names_of_a_file_that_is_named_are_read_too(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "settings.json"
    write(path, {"permissions": {"allow": ["mcp__a__x"]}})

    found = read_source(path)

    assert found.problem is None
    assert [one.text for one in found.kept] == ["mcp__a__x"]


# spelling, text, servers that are known, tools that it means, tools that it does not mean, other servers
MEANING = [
    ("tool", "x", (), [("s", "x")], [("s", "y")]),
    ("tool", "get_*", (), [("s", "get_it")], [("s", "set_it")]),
    ("tool", "*", (), [("s", "x")], []),
    ("mcp__server__tool", "mcp__s__x", ("s",), [("s", "x")], [("s", "y"), ("t", "x")]),
    ("mcp__server__tool", "mcp__s", (), [("s", "x")], [("s2", "x")]),
    ("mcp__server__tool", "mcp__s__*", (), [("s", "x")], [("t", "x")]),
    ("mcp__server__tool", "mcp__s__get_*", (), [("s", "get_x")], [("s", "x")]),
    ("mcp__server__tool", "mcp__a__b__c", (), [("a", "b__c")], [("a", "c")]),
    ("mcp__server__tool", "mcp__claude_ai_Foo_Bar__x_y", (), [("claude.ai Foo  Bar", "x.y")], []),
    ("mcp__server__tool.*", "mcp__s__.*", (), [("s", "x")], [("t", "x")]),
    ("mcp__server__tool.*", "^mcp__.*__write.*$", (), [("s", "write_it"), ("t", "write")], [("s", "read")]),
    ("server:tool", "s:x", (), [("s", "x")], [("t", "x")]),
    ("server:tool", "*:x", (), [("s", "x"), ("t", "x")], [("s", "y")]),
    ("server:tool", "s:*", (), [("s", "x")], [("t", "x")]),
    ("mcp:server:tool", "mcp:s:x", (), [("s", "x")], [("s", "y")]),
    ("Mcp(server:tool)", "Mcp(s:x)", (), [("s", "x")], [("s", "y")]),
    ("Mcp(server:tool)", "Mcp(s:*)", (), [("s", "x")], [("t", "y")]),
    ("server(tool)", "s(x)", (), [("s", "x")], [("s", "y")]),
    ("server(tool)", "s", (), [("s", "x")], [("t", "x")]),
    ("@server/tool", "@s/x", (), [("s", "x")], [("s", "y")]),
    ("@server/tool", "@s", (), [("s", "x")], [("t", "x")]),
    ("@server/tool", "@s/read_*", (), [("s", "read_x")], [("s", "x")]),
    ("server/tool", "s/*", (), [("s", "x")], [("t", "x")]),
    ("server_tool", "s_x", (), [("s", "x")], [("t", "x")]),
    ("server_tool", "s_*", ("s",), [("s", "x")], [("t", "x")]),
    ("server_tool", "my-*", (), [("my-s", "x")], [("s", "x")]),
    ("mcp_server_tool", "mcp_*_x", (), [("s", "x"), ("t", "x")], [("s", "y")]),
    ("mcp_server_tool", "mcp_a_b_x", ("a_b",), [("a_b", "x")], [("b", "x")]),
    ("server__tool", "s__x", (), [("s", "x")], [("s", "y")]),
    ("server", "s", (), [("s", "x")], [("t", "x")]),
]


@pytest.mark.parametrize(("spelling", "text", "servers", "meant", "others"), MEANING)
def test_a_name_means_these_tools_and_no_others(
    spelling: str, text: str, servers: tuple[str, ...], meant: list[tuple[str, str]], others: list[tuple[str, str]]
) -> None:
    name = kept(text, spelling, servers)

    assert [one for one in meant if not matches(name, *one)] == []
    assert [one for one in others if matches(name, *one)] == []
    assert [one for one in meant if not matches(name, one[0], None)] == []


def test_a_name_in_the_entry_of_one_server_means_nothing_of_another() -> None:
    name = kept("x", "tool", server="a")

    assert matches(name, "a", "x")
    assert not matches(name, "b", "x")
    assert not matches(name, "b", None)


def test_a_name_that_two_servers_could_have_made_means_both() -> None:
    name = kept("mcp__a__b__c", "mcp__server__tool")

    assert matches(name, "a", "b__c")
    assert matches(name, "a__b", "c")


def test_what_a_client_shows_counts_too() -> None:
    name = kept("mcp__a__x_1a2b3c4", "mcp__server__tool")

    assert not matches(name, "a", "x.y")
    assert matches(name, "a", "x.y", "mcp__a__x_1a2b3c4")


def test_an_opaque_pattern_means_no_certain_tool_and_is_left_as_it_is() -> None:
    name = KeptName(text="mcp__(a|b)__x", spelling="mcp__server__tool.*", path=Path("f"), where=(), server=None, tool=None,
                    effect="hook", opaque=True)  # fmt: skip

    assert matches(name, "a", None)
    assert not matches(name, "a", "x")
    assert respell(name, "tn", "x") == "mcp__(a|b)__x"


RESPELLED = [
    # spelling, text, servers, new server, new tool, the new text
    ("tool", "x", (), "tn", "y", "y"),
    ("tool", "x", (), "tn", None, "x"),
    ("tool", "x(arg)", (), "tn", "y", "y(arg)"),
    ("tool", "*", (), "tn", None, "*"),
    ("tool", "get_*", (), "tn", "get_it", "get_*"),
    ("tool", "get_*", (), "tn", "fetch", "fetch"),
    ("mcp__server__tool", "mcp__a", (), "tn", None, "mcp__tn"),
    ("mcp__server__tool", "mcp__a__*", (), "tn", None, "mcp__tn__*"),
    ("mcp__server__tool", "mcp__a__x", (), "tn", None, "mcp__tn__x"),
    ("mcp__server__tool", "mcp__a__x", (), "tn", "y", "mcp__tn__y"),
    ("mcp__server__tool", "mcp__a__x(*)", (), "tn", "y", "mcp__tn__y(*)"),
    ("mcp__server__tool", "mcp__a__*", (), "tn", "y", "mcp__tn__y"),
    ("mcp__server__tool.*", "mcp__a__w.*", (), "tn", None, "mcp__tn__w.*"),
    ("mcp__server__tool.*", "mcp__.*__w.*", (), "tn", "write", "mcp__.*__w.*"),
    ("mcp__server__tool.*", "^mcp__a__x$", (), "tn", "y", "^mcp__tn__y$"),
    ("mcp__server__tool.*", "^mcp__a__.*", (), "tn", "y", "^mcp__tn__y"),
    ("server:tool", "*:x", (), "tn", "y", "*:y"),
    ("server:tool", "my-*:x", (), "tn", "y", "tn:y"),
    ("Mcp(server:tool)", "Mcp(a:*)", (), "tn", None, "Mcp(tn:*)"),
    ("server(tool)", "a", (), "tn", None, "tn"),
    ("server(tool)", "a", (), "tn", "y", "tn(y)"),
    ("@server/tool", "@a", (), "tn", None, "@tn"),
    ("server_tool", "a*", ("a",), "tn", None, "tn*"),
    ("server_tool", "gone_x", (), "tn", None, "gone_x"),
    ("server_tool", "gone_x", (), "tn", "y", "tn_y"),
    ("mcp_server_tool", "mcp_*_x", (), "tn", "y", "mcp_*_y"),
    ("server", "a", (), "tn", None, "tn"),
    ("server", "a", (), "tn", "y", "tn"),
]


@pytest.mark.parametrize("row", RESPELLED, ids=str)
def test_a_name_is_spelled_anew(row: tuple[str, str, tuple[str, ...], str, str | None, str]) -> None:
    spelling, text, servers, server, tool, wanted = row

    assert respell(kept(text, spelling, servers), server, tool) == wanted


PIECES = st.text(min_size=1, max_size=10).filter(lambda text: not set(text) & set("*?()"))
SAFE = st.from_regex(r"[a-z][a-z0-9]{0,6}", fullmatch=True)
OF_BOTH = [spelling for spelling in SPELLINGS.values() if not spelling.is_without_server and spelling.tool]


@given(spelling=st.sampled_from(OF_BOTH), server=PIECES, tool=PIECES, new=st.tuples(SAFE, SAFE))
def test_a_name_that_was_spelled_anew_is_taken_apart_again(
    spelling: Any, server: str, tool: str, new: tuple[str, str]
) -> None:
    name = kept(spelling.tool.format(server=server, tool=tool), spelling.name, [server])
    assume(name.tool is not None and name.server == server)

    text = respell(name, *new)
    again = kept(text, spelling.name, [new[0]])

    assert (again.server, again.tool) == new
    assert respell(again, new[0], new[1]) == text
    assert matches(again, *new)


@given(spelling=st.sampled_from(OF_BOTH), server=PIECES, tool=st.none() | PIECES)
def test_spelling_a_name_for_what_it_means_changes_nothing(spelling: Any, server: str, tool: str | None) -> None:
    template = spelling.whole[0] if tool is None else spelling.tool
    name = kept(template.format(server=server, tool=tool), spelling.name, [server])

    assert respell(name, name.server or "", name.tool) == name.text


@given(
    text=st.text(max_size=30),
    spelling=st.sampled_from(sorted(SPELLINGS)),
    servers=st.lists(st.text(max_size=5), max_size=3),
)
def test_no_text_makes_taking_apart_fail(text: str, spelling: str, servers: list[str]) -> None:
    found = split_name(text, SPELLINGS[spelling], servers)
    if found is not None:
        name = kept(text, spelling, servers)
        for server in [*servers, "s"]:
            matches(name, server, "t")
            matches(name, server, None)
            assert isinstance(respell(name, server, "t"), str)
            assert isinstance(respell(name, server, None), str)
