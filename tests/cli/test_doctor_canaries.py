"""Looking runs nothing and reaches nobody: every field that a client would run or connect is a trap here."""

from __future__ import annotations

import json
import os
import socket
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.conftest import Outcome, Run

PROGRAMS = ("npx", "node", "uvx", "uv", "python", "python3", "docker", "sh", "bash", "curl", "git", "claude", "codex")


class Traps:
    """A home in which every program writes a file and every address is listened to."""

    def __init__(self, root: Path, run: Run) -> None:
        self._run = run
        self.home = root / "home"
        self.project = self.home / "project"
        self.bin = root / "bin"
        self.sprung = root / "sprung"
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        for folder in (self.project, self.bin, self.sprung):
            folder.mkdir(parents=True)
        for name in PROGRAMS:
            self.program(self.bin / name)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}/mcp"

    def program(self, path: Path) -> str:
        path.write_text(f"#!/bin/sh\n: > {self.sprung}/{path.name}-$$\n", "utf-8")
        path.chmod(0o755)
        return str(path)

    def shell(self, name: str) -> str:
        return f"$(touch {self.sprung}/{name}) `touch {self.sprung}/{name}-2` ; touch {self.sprung}/{name}-3"

    def was_reached(self) -> bool:
        try:
            self.listener.accept()
        except BlockingIOError:
            return False
        return True

    def write(self, name: str, content: Any) -> None:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")

    def run(self, *words: object) -> Outcome:
        return self._run("doctor", "--project", self.project, *words)


@pytest.fixture
def traps(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Traps]:
    made = Traps(tmp_path, run)
    environ = {"HOME": str(made.home), "PATH": f"{made.bin}:{os.environ['PATH']}", "XDG_CONFIG_HOME": ""}
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    fill(made)
    yield made
    made.listener.close()


def fill(traps: Traps) -> None:
    command = traps.program(traps.bin / "canary")
    stdio = {
        "command": command,
        "args": [traps.shell("args"), "--eval", traps.shell("eval")],
        "env": {"X": traps.shell("env"), "LD_PRELOAD": str(traps.bin / "canary")},
        "cwd": str(traps.project),
        "headersHelper": traps.shell("helper"),
        "envFile": str(traps.bin / "canary"),
    }
    http = {"type": "http", "url": traps.url, "headers": {"X": traps.shell("header")}, "headersHelper": command}
    both = {"local": stdio, "far": http, "shell": {"command": traps.shell("command")}, "bare": {"command": "npx"}}
    hook = {"matcher": "mcp__local__x", "hooks": [{"type": "command", "command": command}]}
    traps.write(".claude.json", {"mcpServers": both, "apiKeyHelper": command})
    traps.write(".claude/settings.json", {"hooks": {"PreToolUse": [hook]}, "statusLine": {"command": command}})
    traps.write("project/.mcp.json", {"mcpServers": both})
    traps.write("project/.claude/settings.json", {"hooks": {"PreToolUse": [hook]}, "apiKeyHelper": command})
    frontmatter = f"---\ntools: mcp__local__x\nrun: !!python/object/apply:os.system ['{traps.shell('yaml')}']\n---\n"
    traps.write(".claude/agents/a.md", frontmatter)
    traps.write(".cursor/mcp.json", {"mcpServers": both})
    traps.write("project/.vscode/mcp.json", {"servers": both, "inputs": [{"type": "command", "command": command}]})
    traps.write(".gemini/settings.json", {"mcpServers": both, "hooks": {"x": [{"command": command}]}})
    traps.write(
        ".codex/config.toml",
        f"notify = ['{command}']\n[mcp_servers.local]\ncommand = '{command}'\nargs = ['''{traps.shell('toml')}''']\n",
    )
    traps.write(
        ".config/goose/config.yaml",
        f"extensions:\n  local:\n    type: stdio\n    cmd: {command}\n    args: []\n"
        f"  trap: !!python/object/apply:os.system ['touch {traps.sprung}/tag']\n",
    )
    traps.write(".continue/config.yaml", f"mcpServers:\n  - name: local\n    command: {command}\n")
    for name in (".config/crush/crushrc", ".crushrc", "project/crushrc", "project/.crushrc"):
        traps.write(name, f"mcp add local --command {command}\n{traps.shell('rc')}\n{command}\n")
    traps.write(".config/opencode/opencode.json", {"mcp": {"local": {"type": "local", "command": [command]}}})


def content(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize("words", [(), ("--json",), ("--all",), ("--sarif", "-")])
def test_looking_at_a_machine_runs_and_writes_nothing(traps: Traps, words: tuple[str, ...]) -> None:
    before = content(traps.home)
    done = traps.run(*words)

    assert done.status in {0, 1}
    assert content(traps.home) == before
    assert list(traps.sprung.iterdir()) == []
    assert not traps.was_reached()


def test_looking_at_files_that_are_named_runs_nothing_either(traps: Traps) -> None:
    files = [path for path in sorted(traps.home.rglob("*")) if path.is_file()]
    statuses = {traps.run(path).status for path in files if path.suffix not in {".md", ".json"}}
    done = traps.run(*files, "--json")

    assert statuses | {done.status} <= {0, 1, 2}
    assert list(traps.sprung.iterdir()) == []
    assert not traps.was_reached()


def test_the_traps_are_seen_for_what_they_are(traps: Traps) -> None:
    told = traps.run("--json").document
    clients = {one["client"] for one in told["files"] if one["servers"]}
    waiting = {(one["server"], one["project"]) for one in told["not_asked"]}

    assert clients >= {"claude-code", "cursor", "vscode", "gemini-cli", "codex", "goose", "continue", "opencode"}
    assert {("local", False), ("far", False), ("shell", False)} <= waiting
    assert told["asked"] == 0


def test_with_leave_to_start_those_of_a_project_are_still_not_started(traps: Traps) -> None:
    for path in list(traps.home.glob(".*")):
        if path.is_file():
            path.unlink()
        else:
            for below in sorted(path.rglob("*"), reverse=True):
                below.unlink() if below.is_file() else below.rmdir()
    done = traps.run("--start", "--json")

    assert list(traps.sprung.iterdir()) == []
    assert not traps.was_reached()
    assert {one["project"] for one in done.document["not_asked"]} == {True}


def test_a_trap_that_is_started_does_spring(traps: Traps) -> None:
    path = traps.home / "only.json"
    path.write_text(json.dumps({"mcpServers": {"local": {"command": str(traps.bin / "canary")}}}), "utf-8")
    done = traps.run(path, "--start", "--json")

    assert [path.name.partition("-")[0] for path in traps.sprung.iterdir()][:1] == ["canary"]
    assert [one["code"] for one in done.document["findings"]] == ["TN014"]
    assert done.status == 3
