"""``pytest --truename``: one item a file, which fails with the text that people read."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def outcome(path: Path, *words: str, among_all: bool = False) -> tuple[int, str]:
    """Run pytest there in a process of its own, with none of this project's settings, and this plugin only.

    The plugins of all that is installed here, among which pytest finds ours by itself, take six times as long.
    """
    plugins = ["no:langsmith_plugin"] if among_all else ["pytest_truename"]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", *plugins, *words]
    alone = {} if among_all else {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environ = {**os.environ, "PYTEST_ADDOPTS": "", "COLUMNS": "100", **alone}
    done = subprocess.run(command, cwd=path, env=environ, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\n", "utf-8")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "fine.py").write_text("@mcp.tool\ndef fine(): ...\n", "utf-8")
    (tmp_path / "src" / "bad.py").write_text("@mcp.tool(name='bad name')\ndef f(): ...\n", "utf-8")
    (tmp_path / "src" / "none.py").write_text("x = 1\n", "utf-8")
    (tmp_path / "test_it.py").write_text("def test_it(): pass\n", "utf-8")
    return tmp_path


def test_each_file_with_tools_is_an_item_and_a_bad_one_fails_with_the_text(project: Path) -> None:
    status, out = outcome(project, "--truename", "-v", among_all=True)
    assert status == 1
    assert "2 passed, 1 failed" in out or "1 failed, 2 passed" in out
    assert "src/fine.py::truename PASSED" in out
    assert "src/bad.py::truename FAILED" in out
    assert "\nsrc/bad.py:1:17  error  TN103 illegal_name" in out
    assert "1 | @mcp.tool(name='bad name')" in out
    assert "Traceback" not in out


def test_without_the_option_nothing_is_linted(project: Path) -> None:
    status, out = outcome(project)
    assert status == 0
    assert "1 passed" in out


def test_a_run_without_the_option_imports_nothing_of_the_package(project: Path) -> None:
    """Pytest loads the plugins of all that is installed, in every project."""
    told = "import sys\n\ndef test_it(): assert not [one for one in sys.modules if one.split('.')[0] == 'truename']\n"
    (project / "test_it.py").write_text(told, "utf-8")
    status, out = outcome(project, "-v", among_all=True)
    assert status == 0, out
    assert "truename" in next(line for line in out.splitlines() if line.startswith("plugins:"))


def test_the_sources_are_the_configured_ones(project: Path) -> None:
    (project / "truename.toml").write_text('[lint]\nsources = ["src/fine.py"]\n', "utf-8")
    assert outcome(project, "--truename")[0] == 0
    (project / "pytest.ini").write_text("[pytest]\ntruename_sources = src/bad.py\n", "utf-8")
    assert outcome(project, "--truename")[0] == 1


def test_a_broken_convention_fails_and_items_can_be_chosen_by_name(project: Path) -> None:
    (project / "truename.toml").write_text("[convention]\ncasing = 3\n", "utf-8")
    status, out = outcome(project, "--truename", "-k", "toml", "-v")
    assert status == 1
    assert "truename.toml::truename FAILED" in out
    assert "1 failed, 3 deselected" in out


def test_a_baseline_is_used(project: Path) -> None:
    command = [sys.executable, "-m", "truename", "lint", "--write-baseline"]
    subprocess.run(command, cwd=project, capture_output=True, timeout=60, check=True)
    assert outcome(project, "--truename")[0] == 0


def test_a_baseline_that_is_none_ends_the_run_with_a_sentence(project: Path) -> None:
    (project / "truename-baseline.jsonl").write_text("{}\n", "utf-8")
    status, out = outcome(project, "--truename")
    assert status == 4
    assert "it is not a baseline" in out
    assert "INTERNALERROR" not in out


def test_servers_alone_leave_nothing_to_lint(project: Path) -> None:
    (project / "truename.toml").write_text('[lint]\nsources = ["http://127.0.0.1:9/mcp"]\n', "utf-8")
    status, out = outcome(project, "--truename", "-v")
    assert status == 0, out
    assert "1 passed" in out


def test_servers_are_not_started(project: Path) -> None:
    (project / "mcp.json").write_text('{"mcpServers": {"a": {"command": "touch", "args": ["started"]}}}', "utf-8")
    sources = '["src/fine.py", "mcp.json", "gateway.toml", "http://127.0.0.1:9/mcp"]'
    (project / "truename.toml").write_text(f"[lint]\nsources = {sources}\n", "utf-8")
    status, out = outcome(project, "--truename", "-v")
    assert status == 0, out
    assert "2 passed" in out
    assert not (project / "started").exists()
