"""A pattern leads to paths of that machine and of no other."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.clients.homes import machine
from truename.clients import Machine, config_files, name_files

if TYPE_CHECKING:
    from truename.clients.machine import System


@pytest.mark.parametrize(
    ("pattern", "steps"),
    [
        ("~/.codex/config.toml", "home/.codex/config.toml"),
        ("~", "home"),
        ("/etc/codex/config.toml", "root/etc/codex/config.toml"),
        (".mcp.json", "home/project/.mcp.json"),
        ("%APPDATA%/Zed/settings.json", "home/AppData/Roaming/Zed/settings.json"),
        ("%LOCALAPPDATA%/x", "home/AppData/Local/x"),
        ("%USERPROFILE%/x", "home/x"),
        ("%ProgramFiles%/x", "root/Program Files/x"),
        ("%ProgramData%/x", "root/ProgramData/x"),
        ("${NOT_SET:-~}/x", "home/x"),
        ("${NOT_SET:-${NOR_THIS:-~/.cline}/data}/x", "home/.cline/data/x"),
        ("${NOT_SET:-/etc/x.json}", "root/etc/x.json"),
    ],
)
def test_a_pattern_is_a_path_of_the_machine(pattern: str, steps: str, tmp_path: Path) -> None:
    assert machine(tmp_path, "linux").expand(pattern) == (tmp_path / steps,)


def test_a_variable_without_a_default_is_no_path_unless_it_is_set(tmp_path: Path) -> None:
    assert machine(tmp_path, "linux").expand("${X}") == ()
    assert machine(tmp_path, "linux", X="/some/where").expand("${X}") == (Path("/some/where"),)


def test_a_variable_of_windows_is_found_in_capitals(tmp_path: Path) -> None:
    here = machine(tmp_path, "windows", PROGRAMFILES=str(tmp_path / "D"))

    assert here.expand("%ProgramFiles%/x") == (tmp_path / "D" / "x",)


@pytest.mark.parametrize(
    "value", ["", "relative/dir", "../..", "~/x", "/a\0b", "/" + "a" * 5_000, "C:\\Users\\me", "$HOME"]
)
def test_a_value_that_is_no_absolute_path_is_ignored(value: str, tmp_path: Path) -> None:
    here = machine(tmp_path, "linux", CODEX_HOME=value)

    assert here.expand("${CODEX_HOME:-~/.codex}/config.toml") == (tmp_path / "home/.codex/config.toml",)


def test_a_path_that_no_file_system_takes_is_nowhere(tmp_path: Path) -> None:
    here = machine(tmp_path, "linux", CODEX_HOME="/" + "a" * 300)

    assert here.existing("${CODEX_HOME:-~/.codex}/config.toml") == ()


def test_stars_in_a_value_are_no_globs(tmp_path: Path) -> None:
    (tmp_path / "ab").mkdir()
    (tmp_path / "ab" / "config.toml").touch()
    here = machine(tmp_path, "linux", CODEX_HOME=str(tmp_path / "a*"))

    assert here.existing("${CODEX_HOME:-~}/config.toml") == ()
    assert here.existing("${CODEX_HOME:-~}/*.toml") == ()


def test_folders_above_the_project_are_searched_up_to_the_home(tmp_path: Path) -> None:
    here = machine(tmp_path, "linux")

    assert here.expand("<up>/.mcp.json") == (tmp_path / "home/project/.mcp.json", tmp_path / "home/.mcp.json")


def test_a_project_beside_the_home_is_searched_alone(tmp_path: Path) -> None:
    here = Machine(system="linux", home=tmp_path / "h", environ={}, project=tmp_path / "p", root=tmp_path / "r")

    assert here.expand("<up>/.mcp.json") == (tmp_path / "p/.mcp.json",)


def test_a_repository_is_searched_up_to_its_top(tmp_path: Path) -> None:
    project = tmp_path / "home" / "repo" / "a" / "b"
    project.mkdir(parents=True)
    here = Machine(system="linux", home=tmp_path / "home", environ={}, project=project, root=tmp_path / "r")
    assert here.expand("<repo>/x") == (project / "x",)

    (tmp_path / "home" / "repo" / ".git").mkdir()

    assert here.expand("<repo>/x") == (project / "x", project.parent / "x", project.parent.parent / "x")


def test_globs_find_files_in_order_and_not_what_plugins_brought_along(tmp_path: Path) -> None:
    here = machine(tmp_path, "linux")
    for steps in ("b/1/.mcp.json", "a/.mcp.json", ".mcp.json", "a/node_modules/m/.mcp.json", "a/x.json"):
        path = here.home / "plugins" / steps
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    found = [str(path.relative_to(here.home)) for path in here.existing("~/plugins/**/.mcp.json")]

    assert found == ["plugins/.mcp.json", "plugins/a/.mcp.json", "plugins/b/1/.mcp.json"]


def test_a_loop_of_links_ends(tmp_path: Path) -> None:
    here = machine(tmp_path, "linux")
    (here.home / "plugins").mkdir()
    (here.home / "plugins" / "again").symlink_to(here.home / "plugins")
    (here.home / "plugins" / "x.md").touch()

    assert here.existing("~/plugins/**/*.md") == (here.home / "plugins" / "x.md",)


def test_a_folder_with_the_name_of_a_file_is_no_file_of_a_glob(tmp_path: Path) -> None:
    here = machine(tmp_path, "linux")
    (here.home / "a.json").mkdir()

    assert here.existing("~/*.json") == ()


def test_no_more_files_are_found_than_can_be_looked_at(tmp_path: Path) -> None:
    here = machine(tmp_path, "linux")
    for number in range(600):
        (here.home / f"{number}.md").touch()

    assert len(here.existing("~/*.md")) == 500
    assert here.search("~/*.md")[1] == (here.home,)
    assert here.search("~/1.md")[1] == here.search("~/1*.md")[1] == ()


@pytest.mark.parametrize("system", ["linux", "macos", "windows"])
def test_every_pattern_of_the_table_stays_within_the_machine(system: System, tmp_path: Path) -> None:
    here = machine(tmp_path, system)
    patterns = {one for file in (*config_files(), *name_files()) for one in file.paths.get(system, ())}

    outside = [path for one in patterns for path in here.expand(one) if not path.is_relative_to(tmp_path)]

    assert outside == []


def test_this_machine_is_described_by_its_own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))

    here = Machine.here()

    assert here.home == Path.home()
    assert here.project == Path.cwd()
    assert here.environ["CODEX_HOME"] == str(tmp_path)
    assert here.root == Path(Path.home().anchor)
    assert Machine.here(tmp_path).project == tmp_path


def test_a_folder_that_may_not_be_read_has_nothing_in_it(tmp_path: Path) -> None:
    here = machine(tmp_path, "linux")
    locked = here.home / "locked"
    locked.mkdir()
    (locked / "x.json").touch()
    locked.chmod(0)
    try:
        # The superuser may read it all the same.
        assert here.existing("~/locked/*.json") == ((locked / "x.json",) if os.geteuid() == 0 else ())
    finally:
        locked.chmod(0o700)
