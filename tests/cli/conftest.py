"""What the command line's tests share: commands run in this process or a new one, sources to run them on."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from tests.shared import ROOT
from truename.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable

GOLDEN = Path(__file__).parent / "golden"
DUMP = {
    "github": ["search", "create_issue", "fs.list"],
    "atlassian": {"tools": [{"name": "createConfluencePageFromMarkdownTemplateInSpaceWithLabels"}, {"name": "search"}]},
    "天気": ["天気取得"],
}
HOSTILE = "[bold red]boo[/]\x1b]0;owned\x07\x1b[31m\u202egnp"


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


class Run(Protocol):
    def __call__(self, *words: object) -> Outcome: ...


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty directory, with a state directory of its own and a terminal of 100 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("NO_COLOR", "FORCE_COLOR", "TRUENAME_DEBUG", "TRUENAME_TOKEN", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process."""

    def run(*words: object) -> Outcome:
        capsys.readouterr()
        status = main([str(word) for word in words])
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    return run


def entry(*words: object, **environ: str) -> Outcome:
    """Run the installed command in a process of its own."""
    command = [str(Path(sys.executable).with_name("truename")), *map(str, words)]
    done = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", env=os.environ | environ, timeout=60, check=False
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """A dump of three servers."""
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(DUMP), "utf-8")
    return path


@pytest.fixture
def configure(tmp_path: Path) -> Callable[..., Path]:
    """Write a configuration: server keys with the tools of each, or the command of one."""

    def configure(lists: dict[str, list[str]], **more: Any) -> Path:
        entries = {key: fake(key, *tools) for key, tools in lists.items()}
        path = tmp_path / "mcp.json"
        path.write_text(json.dumps({"mcpServers": entries | more.pop("servers", {}), **more}), "utf-8")
        return path

    return configure


def fake(key: str, *tools: str) -> dict[str, Any]:
    """Return the entry of a server that lists these tools."""
    return {"command": sys.executable, "args": ["-m", "tests.gateway.servers.normal", key, *tools], "cwd": str(ROOT)}


def columned(text: str) -> list[str]:
    """Return the lines of tables: they fit the terminal, while it wraps sentences, paths and commands itself."""
    return [line for line in text.splitlines() if re.search(r"\S {2,}\S|──", line)]


def same_as_golden(name: str, text: str) -> None:
    """Compare with the recorded text; ``TRUENAME_GOLDEN=1`` records it."""
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("TRUENAME_GOLDEN") == "1":
        path.write_text(text, "utf-8")

    assert text == path.read_text("utf-8")
