"""The table of clients' files says only what can be used, and agrees with the collected facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients.homes import machine, rows
from truename import dialects
from truename.clients import ConfigFile, config_files, name_files
from truename.clients.kept_names import SPELLINGS
from truename.clients.server_entries import FORMS

if TYPE_CHECKING:
    from pathlib import Path

EVERYTHING = (*config_files(), *name_files())
SCOPES = {"user", "local", "project", "managed", "plugin", "deployment"}
QUIRKS = {"comment", "trailing-comma", "bom"}


@pytest.mark.parametrize("file", EVERYTHING, ids=lambda file: f"{file.client}-{file.scope}-{file.format}")
def test_a_row_is_whole(file: ConfigFile) -> None:
    assert dialects.get(file.dialect).name == file.dialect
    assert file.scope in SCOPES
    assert file.format in {"json", "jsonc", "toml", "yaml", "shell", "markdown"}
    assert file.accepts | file.refuses <= QUIRKS
    assert not file.accepts & file.refuses
    assert file.title
    assert file.source
    assert file.date
    assert file.confidence in {"run", "read"}
    assert set(file.paths) <= {"linux", "macos", "windows"}
    assert any(file.paths.values()) or file.how
    assert not any("\\" in pattern for patterns in file.paths.values() for pattern in patterns)
    assert {place.spelling for place in (*file.entry, *file.kept)} <= {*SPELLINGS, "policy"}


def test_files_with_servers_have_a_shape_and_files_with_names_have_places() -> None:
    assert all(file.shape in FORMS for file in config_files())
    assert all(not file.shape and file.kept for file in name_files())


def test_one_client_can_be_asked_for() -> None:
    assert {file.client for file in config_files("codex")} == {"codex"}
    assert {file.client for file in name_files("goose")} == {"goose"}
    assert config_files("no such client") == ()


def test_rows_can_be_kept_in_sets() -> None:
    assert len(set(EVERYTHING)) == len(EVERYTHING)


# What the clients themselves did with a file that had it, measured.
MEASURED = [
    ("claude-code", "project", "comment", False),
    ("claude-code", "project", "trailing-comma", False),
    ("claude-code", "user", "bom", True),
    ("gemini-cli", "user", "comment", True),
    ("gemini-cli", "project", "trailing-comma", False),
    ("gemini-cli", "managed", "bom", False),
    ("qwen-code", "user", "comment", True),
    ("qwen-code", "user", "trailing-comma", False),
    ("qwen-code", "project", "bom", False),
    ("copilot-cli", "user", "comment", True),
    ("copilot-cli", "user", "trailing-comma", True),
    ("copilot-cli", "user", "bom", True),
    ("cline", "user", "comment", False),
    ("cline", "user", "trailing-comma", False),
    ("cline", "user", "bom", False),
    ("amp", "user", "comment", True),
    ("amp", "user", "trailing-comma", True),
    ("amp", "user", "bom", False),
    ("opencode", "user", "comment", True),
    ("opencode", "user", "trailing-comma", True),
    ("opencode", "user", "bom", True),
    ("codex", "user", "bom", True),
]


@pytest.mark.parametrize(("client", "scope", "quirk", "accepted"), MEASURED)
def test_what_was_measured_is_in_the_table(client: str, scope: str, quirk: str, accepted: bool) -> None:
    file = next(file for file in config_files(client) if file.scope == scope)

    assert quirk in (file.accepts if accepted else file.refuses)


def test_clients_that_were_run_are_marked_so() -> None:
    run = {row["client"] for row in rows() if row["confidence"].startswith("measured")}

    assert {file.client for file in config_files() if file.confidence == "run"} == run


# Where other installers write to the wrong place: the client's own source decides.
@pytest.mark.parametrize(
    ("client", "system", "steps"),
    [
        ("cline", "linux", "home/.cline/data/settings/cline_mcp_settings.json"),
        ("zed", "macos", "home/.config/zed/settings.json"),
        ("zed", "windows", "home/AppData/Roaming/Zed/settings.json"),
        ("goose", "windows", "home/AppData/Roaming/Block/goose/config/config.yaml"),
        ("antigravity", "linux", "home/.gemini/config/mcp_config.json"),
        ("kimi-cli", "linux", "home/.kimi-code/mcp.json"),
        ("opencode", "linux", "home/.config/opencode/opencode.jsonc"),
        ("copilot-cli", "linux", "home/.copilot/mcp-config.json"),
    ],
)
def test_a_new_file_goes_where_the_client_looks(client: str, system: str, steps: str, tmp_path: Path) -> None:
    here = machine(tmp_path, system)  # type: ignore[arg-type]

    assert config_files(client)[0].target(here) == tmp_path / steps


def test_the_file_that_is_there_is_the_one_to_write(tmp_path: Path) -> None:
    here = machine(tmp_path, "linux")
    there = tmp_path / "home/.cache/lm-studio/mcp.json"
    there.parent.mkdir(parents=True)
    there.touch()

    assert config_files("lm-studio")[0].target(here) == there


def test_a_client_without_a_file_has_none_to_write(tmp_path: Path) -> None:
    assert config_files("n8n")[0].target(machine(tmp_path, "linux")) is None


RELOCATED = [
    ("claude-code", "CLAUDE_CONFIG_DIR", "", ".claude.json"),
    ("codex", "CODEX_HOME", "", "config.toml"),
    ("copilot-cli", "COPILOT_HOME", "", "mcp-config.json"),
    ("gemini-cli", "GEMINI_CLI_HOME", "", ".gemini/settings.json"),
    ("qwen-code", "QWEN_HOME", "", "settings.json"),
    ("cline", "CLINE_DIR", "", "data/settings/cline_mcp_settings.json"),
    ("cline", "CLINE_DATA_DIR", "", "settings/cline_mcp_settings.json"),
    ("cline", "CLINE_MCP_SETTINGS_PATH", "own.json", ""),
    ("opencode", "XDG_CONFIG_HOME", "", "opencode/opencode.jsonc"),
    ("amp", "XDG_CONFIG_HOME", "", "amp/settings.json"),
    ("zed", "XDG_CONFIG_HOME", "", "zed/settings.json"),
    ("zed", "FLATPAK_XDG_CONFIG_HOME", "", "zed/settings.json"),
    ("crush", "XDG_CONFIG_HOME", "", "crush/crush.json"),
    ("crush", "CRUSH_GLOBAL_CONFIG", "", "crush.json"),
    ("grok-build", "GROK_HOME", "", "config.toml"),
    ("kimi-cli", "KIMI_CODE_HOME", "", "mcp.json"),
    ("pi", "PI_CODING_AGENT_DIR", "", "mcp.json"),
    ("librechat", "CONFIG_PATH", "own.yaml", ""),
]


@pytest.mark.parametrize(("client", "variable", "file", "below"), RELOCATED)
def test_a_variable_moves_the_file(client: str, variable: str, file: str, below: str, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / file
    here = machine(tmp_path, "linux", **{variable: str(elsewhere)})

    assert config_files(client)[0].target(here) == elsewhere / below


def test_copilot_ignores_what_its_documentation_says(tmp_path: Path) -> None:
    here = machine(tmp_path, "linux", XDG_CONFIG_HOME=str(tmp_path / "elsewhere"))

    assert config_files("copilot-cli")[0].target(here) == tmp_path / "home/.copilot/mcp-config.json"
