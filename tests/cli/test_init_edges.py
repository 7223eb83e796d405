"""What `truename init` makes of plugins, of entries that say more than a server, and of places it cannot write to."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Run

SECRETIVE = {
    "command": "npx",
    "args": ["@mcp/github"],
    "env": {"GITHUB_TOKEN": "ghp_0123456789abcdefABCDEF0123456789abcd"},
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    put(home / ".cursor" / "mcp.json", json.dumps({"mcpServers": {"github": SECRETIVE}}))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    for name in ("CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "GITHUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return home


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def test_the_place_of_a_fault_is_not_what_is_left_out(home: Path, run: Run) -> None:
    put(home / ".gemini" / "settings.json", '{"mcpServers": {')

    assert "settings.json was left out: line 1, column" in " ".join(run("init").err.split())


def test_what_an_entry_says_beside_is_told(home: Path, run: Run) -> None:
    entry = {"command": "x", "envFile": "/a", "headersHelper": "touch /tmp/x", "cwd": "sub", "disabledTools": ["t"]}
    put(home / "x" / ".cursor" / "mcp.json", json.dumps({"mcpServers": {"a": entry}}))

    run("init", home / "x" / ".cursor" / "mcp.json")
    text = Path("truename.toml").read_text("utf-8")

    assert "# not carried over: envFile, headersHelper" in text
    assert "/tmp/x" not in text


def test_a_directory_that_is_relative_to_where_its_client_was_started_is_told(home: Path, run: Run) -> None:
    put(home / ".kiro" / "settings" / "mcp.json", json.dumps({"mcpServers": {"a": {"command": "x", "cwd": "sub"}}}))

    run("init", home / ".kiro" / "settings" / "mcp.json")

    assert "# cwd is now relative to this file" in Path("truename.toml").read_text("utf-8")


def test_nothing_is_half_written_where_the_schema_cannot_stand(home: Path, run: Run) -> None:
    Path("truename.schema.json").mkdir()

    outcome = run("init", "--copy-secrets")

    assert outcome.status == 2
    assert not Path("truename.env").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes")
def test_what_is_kept_is_no_more_open_than_it_was(home: Path, run: Run) -> None:
    run("init", "--copy-secrets")
    before = Path("truename.env").read_bytes()

    run("init", "--copy-secrets", "--force")

    assert stat.S_IMODE(Path("truename.env.bak").stat().st_mode) == 0o600
    assert Path("truename.env.bak").read_bytes() == before


def test_two_plugins_with_one_key_are_two_servers_with_their_own_folders(home: Path, run: Run) -> None:
    for name in ("p", "q"):
        folder = home / ".claude" / "plugins" / "cache" / "m" / name
        put(folder / ".mcp.json", json.dumps({"mcpServers": {"s": {"command": "${CLAUDE_PLUGIN_ROOT}/run"}}}))
        put(folder / ".claude-plugin" / "plugin.json", "{}")

    outcome = run("init", "--json")

    folders = [Path(one["command"]).parent.name for one in outcome.document["servers"] if one["key"].startswith("s")]
    assert folders == ["p", "q"]


@pytest.mark.parametrize("out", ["gateway.json", "truename.env", "config"])
def test_the_file_is_called_what_it_is(home: Path, run: Run, out: str) -> None:
    outcome = run("init", "--copy-secrets", "--out", out)

    assert outcome.status == 2
    assert ".toml" in outcome.err
    assert not Path(out).exists()
