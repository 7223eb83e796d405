"""Tool names that clients keep: those that match nothing, or stand for another tool than they name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.doctor.homes import examined, of_rule, written

if TYPE_CHECKING:
    from pathlib import Path

LAB = {"command": "lab"}
CLAUDE = {".claude.json": {"mcpServers": {"lab": LAB}}}
TOOLS = {"lab": ["get_weather", "fs.list", "a/b", "a_b"]}


def claude(*allow: str) -> dict[str, Any]:
    return {**CLAUDE, ".claude/settings.json": {"permissions": {"allow": list(allow)}}}


# files, the texts that match nothing
KEPT: list[tuple[dict[str, Any], list[str]]] = [
    (claude("mcp__lab__get_weather", "mcp__lab", "mcp__lab__*", "Bash(ls)", "Read"), []),
    (claude("mcp__lab__get_wether"), ["mcp__lab__get_wether"]),
    (claude("mcp__lab__fs_list"), []),
    (claude("mcp__old__search", "mcp__old__other"), []),
    (claude("mcp__labs__a/b"), ["mcp__labs__a/b"]),
    (claude("mcp__claude_ai_Notion__search", "mcp__plugin_x_y__z"), []),
    (
        {".codex/config.toml": '[mcp_servers.lab]\ncommand = "lab"\nenabled_tools = ["get_weather", "gone"]\n'},
        ["gone"],
    ),
    ({".gemini/settings.json": {"mcpServers": {"lab": {**LAB, "excludeTools": ["fs.list", "rm"]}}}}, ["rm"]),
    (
        {".cursor/mcp.json": {"mcpServers": {"lab": LAB}}, ".cursor/permissions.json": {"mcpAllowlist": ["lab:gone"]}},
        ["lab:gone"],
    ),
    (
        {".cursor/mcp.json": {"mcpServers": {"lab": LAB}}, ".cursor/permissions.json": {"mcpAllowlist": ["*:a_b"]}},
        [],
    ),
]


@pytest.mark.parametrize(("files", "unmatched"), KEPT)
def test_a_kept_name_that_matches_no_tool_is_told(tmp_path: Path, files: dict[str, Any], unmatched: list[str]) -> None:
    found = of_rule(examined(written(tmp_path, files), TOOLS), "kept_name_unmatched")

    assert len(found) == len(unmatched)
    assert all(text in one.fact for one, text in zip(found, unmatched, strict=True))


def test_a_misspelt_name_gets_the_nearest_tool_as_a_remedy_and_its_place(tmp_path: Path) -> None:
    (found,) = of_rule(examined(written(tmp_path, claude("mcp__lab__get_wether")), TOOLS), "kept_name_unmatched")

    assert found.remedy == "Did you mean 'mcp__lab__get_weather'?"
    assert found.location is not None
    assert (found.location.file, found.location.line) == (str(tmp_path / ".claude/settings.json"), 4)


def test_names_of_a_server_that_was_not_asked_are_not_held_against_a_file(tmp_path: Path) -> None:
    assert of_rule(examined(written(tmp_path, claude("mcp__lab__anything"))), "kept_name_unmatched") == []


def test_names_of_a_server_that_is_switched_off_are_not_held_against_a_file(tmp_path: Path) -> None:
    files = {".gemini/settings.json": {"mcpServers": {"lab": {**LAB, "disabled": True, "includeTools": ["x"]}}}}

    assert of_rule(examined(written(tmp_path, files), TOOLS), "kept_name_unmatched") == []


def test_a_name_that_stands_for_several_tools_says_which_of_them_runs(tmp_path: Path) -> None:
    (found,) = of_rule(examined(written(tmp_path, claude("mcp__lab__a_b")), TOOLS), "kept_name_elsewhere")

    assert found.fact == "'mcp__lab__a_b' matches 'a/b' and 'a_b', and Claude Code runs 'a/b'."
    assert "truename connect claude-code" in found.remedy


def test_names_of_a_server_that_is_gone_are_noted_together(tmp_path: Path) -> None:
    files = claude("mcp__old__search", "mcp__old__other", "mcp__lab__get_weather")
    (found,) = of_rule(examined(written(tmp_path, files), TOOLS), "kept_name_of_no_server")

    assert "'mcp__old__search' and 'mcp__old__other' mean the server 'old'" in found.fact


def test_a_misspelt_server_is_no_server_that_is_gone(tmp_path: Path) -> None:
    (found,) = of_rule(examined(written(tmp_path, claude("mcp__labs__a/b")), TOOLS), "kept_name_unmatched")

    assert found.remedy == "Did you mean the server 'lab'?"


def test_a_tool_of_the_same_family_is_not_proposed(tmp_path: Path) -> None:
    files = claude("mcp__lab__delete_issue")
    (found,) = of_rule(examined(written(tmp_path, files), {"lab": ["create_issue"]}), "kept_name_unmatched")

    assert found.remedy == "Remove it, or correct it."
