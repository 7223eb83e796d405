"""`truename diff`: what is compared, what is told, and how it ends."""

from __future__ import annotations

import json
import subprocess
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.conftest import HOSTILE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Run

LIST = "List the files of a directory on this machine."
SOURCE = '''
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("files")


@mcp.tool()
def fs_list(path: str) -> str:
    """List the files of a directory on this machine."""
'''


def written(path: Path, *tools: dict[str, Any] | str) -> Path:
    path.write_text(json.dumps({"tools": [{"name": one} if isinstance(one, str) else one for one in tools]}), "utf-8")
    return path


def git(where: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *words], cwd=where, check=True, capture_output=True)


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    """Two dumps: one tool renamed, one guessed, one removed, one new, one narrower."""
    narrower = {"name": "put", "inputSchema": {"properties": {"a": {"maxLength": 3}}}}
    old = written(
        tmp_path / "old.json",
        {"name": "fs.list", "description": LIST},
        "printEnv",
        "zap",
        {**narrower, "inputSchema": {}},
    )
    new = written(tmp_path / "new.json", {"name": "dir_list", "description": LIST}, "get-env", "quux", narrower)
    return old, new


def test_a_person_is_told_the_breaking_changes_first(run: Run, sides: tuple[Path, Path]) -> None:
    done = run("diff", *sides)

    assert done.status == 1
    assert done.out.index("breaking") < done.out.index("'zap' is gone") < done.out.index("not breaking")
    assert "'fs.list' is now called 'dir_list'; its definition is the same." in " ".join(done.out.split())
    assert "renamed?" in done.out
    assert "1 marked ? is a guess." in done.out
    assert "new.json:1" in done.out


def test_a_program_gets_everything(run: Run, sides: tuple[Path, Path]) -> None:
    done = run("diff", *sides, "--json")

    document = done.document
    assert document["schema"] == "truename.diff/1"
    assert document["summary"] == {"removed": 1, "renamed": 2, "widened": 1, "added": 1}
    (certain,) = [one for one in document["changes"] if one["kind"] == "renamed" and one["certainty"] == "certain"]
    assert (certain["old"]["name"], certain["new"]["name"]) == ("fs.list", "dir_list")
    assert certain["old"]["digest"].startswith("sha256:")
    assert [one["path"] for one in document["changes"][-2]["details"]] == ["inputSchema.properties.a"]


def test_equal_sides_have_nothing_to_tell(run: Run, sides: tuple[Path, Path]) -> None:
    done = run("diff", sides[0], sides[0])

    assert (done.status, done.out) == (0, "Nothing has changed.\n")


def test_only_with_strict_is_an_addition_a_failure(run: Run, tmp_path: Path) -> None:
    old, new = written(tmp_path / "a.json", "x"), written(tmp_path / "b.json", "x", "quux")

    assert run("diff", old, new).status == 0
    assert run("diff", old, new, "--strict").status == 1


def test_the_renames_are_a_file_of_which_only_the_certain_ones_count(run: Run, sides: tuple[Path, Path]) -> None:
    done = run("diff", *sides, "--map")

    assert tomllib.loads(done.out) == {"renames": {"fs.list": "dir_list"}}
    assert '# "printEnv" = "get-env"  # a guess (' in done.out


def test_swapped_names_are_no_renames_to_be_applied(run: Run, tmp_path: Path) -> None:
    one, other = {"description": LIST}, {"description": "Send a message to a channel."}
    old = written(tmp_path / "a.json", {"name": "a", **one}, {"name": "b", **other})
    new = written(tmp_path / "b.json", {"name": "a", **other}, {"name": "b", **one})

    assert tomllib.loads(run("diff", old, new, "--map").out) == {"renames": {}}
    assert "swapped" in run("diff", old, new).out


def test_sources_dumps_and_locks_are_compared_with_each_other(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(SOURCE, "utf-8")
    assert run("lock", "tools.py").status == 0
    dump = written(tmp_path / "dump.json", "fs_list")

    assert run("diff", "truename.lock", ".").status == 0
    assert run("diff", "truename.lock", dump).out == run("diff", "tools.py", dump).out
    assert "removed" not in run("diff", "tools.py", dump).out


def test_a_revision_of_git_is_compared(run: Run, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    source = tmp_path / "src" / "tools.py"
    source.write_text(SOURCE, "utf-8")
    run("lock", "src")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "src", "truename.lock")
    git(tmp_path, "commit", "-q", "-m", "first")
    source.write_text(SOURCE.replace("fs_list", "list_files"), "utf-8")

    for old in ("git:HEAD:src", "git:HEAD:src/tools.py", "git:HEAD:truename.lock"):
        done = run("diff", old, "src")
        assert done.status == 1
        assert "'fs_list' is now called 'list_files'" in done.out
    assert run("diff", "git:HEAD:src", "git:HEAD:src/tools.py").status == 0


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("git:HEAD", "is not a file in a git revision"),
        ("git:--output=x:y", "is not a file in a git revision"),
        ("git:HEAD --output=x:y", "git has no git:HEAD --output=x:y"),
        ("git:^HEAD:y", "git has no git:^HEAD:y"),
        ("git:HEAD::(top)y", "git has no git:HEAD::(top)y"),
        ("git:HEAD:../../../../../etc", "git has no git:HEAD:../../../../../etc"),
        ("git:HEAD:nowhere", "git has no git:HEAD:nowhere"),
        ("nowhere.json", "file not found: nowhere.json"),
        ("nowhere.lock", "nowhere.lock: it is not readable"),
    ],
)
def test_a_side_that_is_not_there_is_a_usage_error(run: Run, tmp_path: Path, source: str, expected: str) -> None:
    git(tmp_path, "init", "-q")
    done = run("diff", source, written(tmp_path / "new.json", "x"))

    assert (done.status, done.out) == (2, "")
    assert expected in done.err


def test_a_source_that_can_not_be_read_is_no_list_of_removed_tools(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text("def broken(:\n", "utf-8")
    done = run("diff", written(tmp_path / "old.json", "x"), "tools.py")

    assert done.status == 2
    assert "tools.py:1" in done.err
    assert "removed" not in done.out


def test_every_source_that_can_not_be_read_is_told(run: Run, tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("def broken(:\n", "utf-8")
    done = run("diff", ".", ".")

    assert done.status == 2
    assert "a.py:1" in done.err
    assert "b.py:1" in done.err


def test_a_name_that_is_made_when_the_program_runs_is_noted(run: Run, tmp_path: Path) -> None:
    computed = SOURCE.replace("@mcp.tool()", "@mcp.tool(name=str(3))")
    (tmp_path / "tools.py").write_text(computed, "utf-8")
    done = run("diff", "tools.py", "tools.py")

    assert done.status == 0
    assert "note: tools.py:7" in done.err


def test_without_git_it_says_what_to_do(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run("diff", "git:HEAD:src", written(tmp_path / "new.json", "x"))

    assert done.status == 2
    assert "git is not installed. Install it, or give a file." in " ".join(done.err.replace("\n", ". ", 1).split())


def test_a_revision_is_what_was_committed_whatever_its_attributes_say(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(SOURCE, "utf-8")
    (tmp_path / ".gitattributes").write_text("tools.py export-ignore export-subst\n", "utf-8")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    (tmp_path / "tools.py").write_text(SOURCE.replace("fs_list", "list_files"), "utf-8")

    for old in ("git:HEAD:.", "git:HEAD:tools.py", "git:HEAD:./tools.py"):
        assert "'fs_list' is now called 'list_files'" in run("diff", old, "tools.py").out


def test_a_revision_is_seen_from_a_directory_below_and_never_the_files_of_today(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "src" / "tools.py").write_text(SOURCE, "utf-8")
    (tmp_path / "src" / "deep" / "more.py").write_text("", "utf-8")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    (tmp_path / "src" / "tools.py").write_text(SOURCE.replace("fs_list", "list_files"), "utf-8")
    monkeypatch.chdir(tmp_path / "src" / "deep")

    for old in ("git:HEAD:..", "git:HEAD:../tools.py", "git:HEAD:../../src/"):
        assert "'fs_list' is now called 'list_files'" in run("diff", old, "..").out
    done = run("diff", f"git:HEAD:{tmp_path}/src", "..")
    assert "is not relative" in " ".join(done.err.split())


def test_what_is_wrong_in_a_revision_is_told_under_its_own_name(run: Run, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def (", "utf-8")
    (tmp_path / "truename.lock").write_text("<<<<<<< HEAD\n", "utf-8")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    new = written(tmp_path / "new.json", "x")

    assert "git:HEAD:broken.py:1" in run("diff", "git:HEAD:broken.py", new).err
    assert "git:HEAD:./broken.py:1" in run("diff", "git:HEAD:.", new).err
    assert "git:HEAD:truename.lock: line 1" in run("diff", "git:HEAD:truename.lock", new).err


def test_links_of_a_revision_are_not_followed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "secret.py").write_text(SOURCE, "utf-8")
    (tmp_path / "src" / "link.py").symlink_to(tmp_path / "secret.py")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "src")
    git(tmp_path, "commit", "-q", "-m", "first")
    done = run("diff", "git:HEAD:src", written(tmp_path / "new.json", "x"), "--json")

    assert [one["kind"] for one in done.document["changes"]] == ["added"]


def test_a_configuration_has_its_servers_asked(run: Run, configure: Callable[..., Path], tmp_path: Path) -> None:
    config = configure({"files": ["fs_list"]})
    done = run("diff", written(tmp_path / "old.json", "fs_list", "zap"), config, "--json")

    assert done.status == 1
    assert [one["old"]["name"] for one in done.document["changes"] if one["kind"] == "removed"] == ["zap"]


def test_a_server_that_fails_is_no_list_of_removed_tools(
    run: Run, configure: Callable[..., Path], tmp_path: Path
) -> None:
    config = configure({"files": ["x"]}, servers={"bad": {"command": "/nowhere/at/all"}})
    done = run("diff", written(tmp_path / "old.json", "x"), config)

    assert (done.status, done.out) == (3, "")
    assert "could not list the tools of bad" in done.err


def test_what_is_hostile_is_shown_as_text(run: Run, tmp_path: Path) -> None:
    hostile = {"name": HOSTILE, "description": HOSTILE, "inputSchema": {"properties": {HOSTILE: {}}}}
    old, new = written(tmp_path / "a.json", hostile), written(tmp_path / "b.json", {**hostile, "inputSchema": {}}, "x")
    for words in ((), ("--json",), ("--map",)):
        for pair in ((old, new), (new, old), (old, written(tmp_path / "c.json", f"{HOSTILE}2"))):
            done = run("diff", *pair, *words)
            assert "\x1b" not in done.out
            assert "\u202e" not in done.out


def test_two_forms_at_once_are_refused(run: Run, sides: tuple[Path, Path]) -> None:
    assert run("diff", *sides, "--json", "--map").status == 2


def test_many_changes_are_cut_short_unless_all_are_asked_for(run: Run, tmp_path: Path) -> None:
    old, new = written(tmp_path / "a.json"), written(tmp_path / "b.json", *(f"t{number}" for number in range(80)))

    assert "and 20 more (--all)" in run("diff", old, new).out
    assert "'t79' is new." in run("diff", old, new, "--all").out
