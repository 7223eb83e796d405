"""What is wrong with the files of clients: told with client, place, line and column, and a remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.doctor.homes import examined, machine, of_rule, written
from truename.clients import find
from truename.clients.doctor import RULES, find_startable

if TYPE_CHECKING:
    from pathlib import Path

LAB = {"command": "lab"}
COMMENT = '{\n  // mine\n  "mcpServers": {"lab": {"command": "lab"}}\n}'
COMMA = '{\n  "mcpServers": {"lab": {"command": "lab"},}\n}'
BOM = b'\xef\xbb\xbf{"mcpServers": {"lab": {"command": "lab"}}}'
TWICE = '{"mcpServers": {"lab": {"command": "a"},\n "lab": {"command": "b"}}}'
BROKEN = '{"mcpServers": {"lab": {"command": \n'
CLINE = ".cline/data/settings/cline_mcp_settings.json"

# file, what is in it, rule, client, line (None: nothing is found)
FILES: list[tuple[str, Any, str, str, int | None]] = [
    ("project/.mcp.json", COMMENT, "comment_refused", "claude-code", 2),
    ("project/.mcp.json", COMMA, "trailing_comma_refused", "claude-code", 2),
    (CLINE, COMMENT, "comment_refused", "cline", 2),
    (CLINE, BOM, "byte_order_mark_refused", "cline", 1),
    (".gemini/settings.json", COMMENT, "comment_refused", "gemini-cli", None),
    (".gemini/settings.json", COMMA, "trailing_comma_refused", "gemini-cli", 2),
    (".gemini/settings.json", BOM, "byte_order_mark_refused", "gemini-cli", 1),
    (".qwen/settings.json", COMMA, "trailing_comma_refused", "qwen-code", 2),
    (".claude.json", BOM, "byte_order_mark_refused", "claude-code", None),
    (".claude.json", TWICE, "duplicate_key", "claude-code", 2),
    (".claude.json", BROKEN, "unreadable_file", "claude-code", 2),
    (".codex/config.toml", "[mcp_servers.lab\n", "unreadable_file", "codex", 1),
    (".codex/config.toml", '[mcp_servers."my server"]\ncommand = "x"\n', "server_ignored", "codex", 1),
    (".codex/config.toml", '[mcp_servers.my-server]\ncommand = "x"\n', "server_ignored", "codex", None),
    (".claude.json", {"mcpServers": {"lab": {}}}, "server_not_understood", "claude-code", 3),
    (".claude.json", {"mcpServers": {"a": {"url": "http://far.example/mcp"}}}, "unencrypted_server", "claude-code", 3),
    (".claude.json", {"mcpServers": {"a": {"url": "http://127.0.0.1/mcp"}}}, "unencrypted_server", "claude-code", None),
    (".claude.json", {"mcpServers": {"a": {"url": "http://[::1]:1/m"}}}, "unencrypted_server", "claude-code", None),
    (".claude.json", {"mcpServers": {"a": {"url": "http://localhost/"}}}, "unencrypted_server", "claude-code", None),
    (".claude.json", {"mcpServers": {"a": {"url": "https://far.example/"}}}, "unencrypted_server", "claude-code", None),
    (".claude.json", {"mcpServers": {"a": LAB | {"env": {"API_KEY": "k3y-k3y"}}}}, "literal_secret", "claude-code", 6),
    (".claude.json", {"mcpServers": {"a": LAB | {"env": {"API_KEY": "${K}"}}}}, "literal_secret", "claude-code", None),
]


@pytest.mark.parametrize("case", FILES, ids=lambda case: f"{case[3]}-{case[2]}")
def test_a_file_is_held_to_what_its_own_client_reads(
    tmp_path: Path, case: tuple[str, Any, str, str, int | None]
) -> None:
    name, content, rule, client, line = case
    found = [one for one in of_rule(examined(written(tmp_path, {name: content})), rule) if one.client == client]

    assert [one.location.line for one in found if one.location] == ([] if line is None else [line])
    assert all(one.location and one.location.file == str(tmp_path / name) for one in found)


def test_the_tools_of_a_file_that_its_client_refuses_are_lost(tmp_path: Path) -> None:
    report = examined(
        written(tmp_path, {".qwen/settings.json": BOM, ".claude.json": {"mcpServers": {"lab": LAB}}}),
        {"lab": ["x", "y"]},
    )

    assert {one.case.name: (one.lost, one.unread) for one in report.diagnoses if one.tools} == {
        "claude-code": (0, 0),
        "qwen-code": (2, 2),
    }


def test_what_qwen_does_with_a_file_that_it_dislikes_is_said(tmp_path: Path) -> None:
    (found,) = of_rule(examined(written(tmp_path, {".qwen/settings.json": BOM})), "byte_order_mark_refused")

    assert "renamed" in found.fact
    assert (found.confidence, found.remedy) == ("run", "Save it as UTF-8 without one.")


def test_an_address_in_a_client_of_commands_only_is_told(tmp_path: Path) -> None:
    content = {"mcpServers": {"far": {"url": "https://far.example/mcp"}}}
    report = examined(written(tmp_path, {".config/Claude/claude_desktop_config.json": content}))

    assert [(one.client, one.server) for one in of_rule(report, "server_ignored")] == [("claude-desktop", "far")]


def test_one_key_for_two_servers_is_told_and_for_the_same_server_only_noted(tmp_path: Path) -> None:
    user = {"mcpServers": {"lab": LAB, "same": LAB}}
    project = {"mcpServers": {"lab": {"command": "other"}, "same": LAB}}
    report = examined(written(tmp_path, {".claude.json": user, "project/.mcp.json": project}))

    assert [one.server for one in of_rule(report, "shadowed_server") if one.client == "claude-code"] == ["lab"]
    assert [one.server for one in of_rule(report, "repeated_server") if one.client == "claude-code"] == ["same"]


def test_servers_of_two_projects_in_one_file_do_not_shadow_each_other(tmp_path: Path) -> None:
    projects = {f"/{name}": {"mcpServers": {"lab": {"command": name}}} for name in ("one", "two")}
    report = examined(written(tmp_path, {".claude.json": {"projects": projects}}), {"lab": ["a/b", "a_b"]})

    assert of_rule(report, "shadowed_server") == []
    assert [one.case.called for one in report.diagnoses if one.lost] == ["Claude Code in /one", "Claude Code in /two"]
    assert len(of_rule(report, "tools_merged")) == 2


def test_the_same_server_of_several_clients_is_one_to_be_asked(tmp_path: Path) -> None:
    lab = {"command": "npx", "args": ["lab"]}
    here = written(
        tmp_path,
        {
            ".claude.json": {"mcpServers": {"lab": lab}},
            ".gemini/settings.json": {"mcpServers": {"mine": lab}},
            ".cursor/mcp.json": {"mcpServers": {"lab": {"command": "npx", "args": ["other"]}}},
        },
    )

    plan = list(find_startable(find(here)).values())
    assert sorted(one.clients for one in plan) == [("Claude Code", "Gemini CLI"), ("Cursor",)]


def test_a_file_that_can_not_be_read_at_all_is_a_finding_and_no_error(tmp_path: Path) -> None:
    here = written(tmp_path, {".gemini/settings.json": b"\xff\xfe\x00", ".cursor/mcp.json": b"[" * 100_000})
    (tmp_path / ".claude.json").mkdir()

    assert {one.client for one in of_rule(examined(here), "unreadable_file")} >= {"gemini-cli", "cursor", "claude-code"}


def test_an_empty_home_has_nothing_wrong(tmp_path: Path) -> None:
    assert examined(machine(tmp_path)).findings == ()


def test_every_rule_has_a_code_of_its_own_and_says_what_and_why() -> None:
    rules = RULES.values()

    assert len({rule.code for rule in rules}) == len(rules)
    assert all(rule.what.endswith(".") and rule.why.endswith((".", ".)")) for rule in rules)
