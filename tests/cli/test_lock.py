"""`truename lock`: what is written for review, and the proof that it is still true."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Run

SOURCE = '''
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("files")


@mcp.tool()
def fs_list(path: str, depth: int = 1) -> str:
    """List the files of a directory on this machine."""


@mcp.tool()
def ping() -> str: ...
'''


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "src" / "tools.py"
    path.parent.mkdir()
    path.write_text(SOURCE, "utf-8")
    return path


@pytest.fixture
def locked(run: Run, tmp_path: Path, source: Path) -> Path:
    assert run("lock", "src").status == 0
    return tmp_path / "truename.lock"


def test_a_lock_is_written_once_and_checked_without_naming_the_sources_again(
    run: Run, source: Path, tmp_path: Path
) -> None:
    done = run("lock", "src")
    text = (tmp_path / "truename.lock").read_text("utf-8")

    assert done.out == "truename.lock has 2 tools. Review and commit it with the change.\n"
    assert 'sources = ["src"]' in text
    assert run("lock", "--check").out.endswith("truename.lock is current: 2 tools.\n")
    assert (tmp_path / "truename.lock").read_text("utf-8") == text
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".truename")] == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("def fs_list", "def list_files", "'fs_list' is now called 'list_files'; its definition is the same."),
        ("def ping", "def quux", "'ping' is gone."),
        ("depth: int = 1", "depth: int", "'depth' is now required"),
        ("depth: int = 1", "depth: int = 1, more: int = 2", "'more' is a new optional parameter"),
        ("List the files", "Lists the files", "The text of 'fs_list' changed"),
    ],
)
def test_whatever_has_changed_fails_the_check_and_nothing_is_written(
    run: Run, locked: Path, old: str, new: str, expected: str
) -> None:
    before = locked.read_bytes()
    (locked.parent / "src" / "tools.py").write_text(SOURCE.replace(old, new), "utf-8")
    done = run("lock", "--check")

    assert done.status == 1
    assert expected in " ".join(done.out.split())
    assert "`truename lock` updates it for review" in done.out
    assert locked.read_bytes() == before


def test_writing_it_again_shows_what_has_changed(run: Run, locked: Path, source: Path) -> None:
    source.write_text(SOURCE.replace("def fs_list", "def list_files"), "utf-8")
    done = run("lock")

    assert done.status == 0
    assert "'fs_list' is now called 'list_files'" in done.out
    assert run("lock", "--check").status == 0


def test_lines_that_move_change_nothing(run: Run, locked: Path, source: Path) -> None:
    before = locked.read_bytes()
    source.write_text(f"# a comment\n\n{SOURCE}", "utf-8")

    assert run("lock", "--check").status == 0
    assert run("lock").status == 0
    assert locked.read_bytes() == before


def test_a_program_gets_everything(run: Run, locked: Path, source: Path) -> None:
    source.write_text(SOURCE.replace("def ping", "def quux"), "utf-8")
    document = run("lock", "--check", "--json").document

    assert (document["schema"], document["is_true"], document["written"]) == ("truename.lock/1", False, False)
    assert document["summary"] == {"removed": 1, "added": 1}


def test_the_protocol_version_is_kept_and_its_change_is_told(run: Run, locked: Path) -> None:
    assert run("lock", "--protocol", "0.2").status == 0
    assert 'protocol = "0.2"' in locked.read_text("utf-8")
    assert run("lock", "--check").status == 0

    done = run("lock", "--check", "--protocol", "0.10")
    assert done.status == 1
    assert "The protocol version is 0.10; the lock has 0.2." in done.out
    assert run("lock", "--protocol", "latest").status == 2


def test_the_protocol_version_is_read_from_the_file_that_states_it(run: Run, locked: Path, tmp_path: Path) -> None:
    (tmp_path / "truename.toml").write_text('[migration]\nprotocol = { file = "docs/*.md" }\n', "utf-8")
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs" / "protocol.md"
    page.write_text('PROTOCOL_VERSION = "0.2"\n', "utf-8")

    assert run("lock").status == 0
    assert 'protocol = "0.2"' in locked.read_text("utf-8")
    page.write_text('PROTOCOL_VERSION = "0.3"\n', "utf-8")
    assert run("lock", "--check").status == 1
    (tmp_path / "docs" / "other.md").write_text('PROTOCOL_VERSION = "0.4"\n', "utf-8")
    assert "files have different protocol versions" in run("lock").err
    assert run("lock", "--protocol", "0.4").status == 0


@pytest.mark.parametrize("pattern", ["/etc/*", ""])
def test_a_pattern_of_files_that_is_none_is_told(run: Run, locked: Path, tmp_path: Path, pattern: str) -> None:
    (tmp_path / "truename.toml").write_text(f'[migration]\nprotocol = {{ file = "{pattern}" }}\n', "utf-8")
    done = run("lock", "--check")

    assert done.status == 2
    assert "migration.protocol.file: it is not a glob" in done.err


def test_a_lock_elsewhere_names_its_sources_as_seen_from_there(run: Run, source: Path, tmp_path: Path) -> None:
    (tmp_path / "locks").mkdir()
    lock = tmp_path / "locks" / "tools.lock"

    assert run("lock", source, "--file", lock).status == 0
    assert 'sources = ["../src/tools.py"]' in lock.read_text("utf-8")
    assert run("lock", "--check", "--file", "locks/tools.lock").status == 0


def test_a_lock_with_a_merge_conflict_says_so_and_is_written_anew_if_sources_are_named(run: Run, locked: Path) -> None:
    text = locked.read_text("utf-8")
    locked.write_text(f"{text}<<<<<<< HEAD\n=======\n>>>>>>> theirs\n", "utf-8")

    for words in (("lock", "--check"), ("lock",), ("lock", "src", "--check")):
        done = run(*words)
        assert done.status == 2
        assert "line 8: it has an unresolved merge conflict" in done.err
    assert run("lock", "src").status == 0
    assert locked.read_text("utf-8") == text


def test_a_file_that_is_no_lock_is_never_replaced(run: Run, source: Path, tmp_path: Path) -> None:
    other = tmp_path / "poetry.lock"
    other.write_text("[[package]]\n", "utf-8")

    assert run("lock", "src", "--file", other).status == 2
    assert other.read_text("utf-8") == "[[package]]\n"


def test_a_conflict_in_another_file_is_no_leave_to_replace_it(run: Run, source: Path, tmp_path: Path) -> None:
    text = "<<<<<<< HEAD\nx = 1\n=======\nx = 2\n>>>>>>> theirs\n"
    (tmp_path / "settings.py").write_text(text, "utf-8")

    assert run("lock", "src", "--file", "settings.py").status == 2
    assert (tmp_path / "settings.py").read_text("utf-8") == text


@pytest.mark.parametrize(
    ("right", "wrong"),
    [(r"depth\?", "depth"), (r"\], digest", '], limits = ["shop"], digest')],
)
def test_a_line_that_was_edited_by_hand_is_not_true(run: Run, locked: Path, right: str, wrong: str) -> None:
    edited, times = re.subn(right, wrong, locked.read_text("utf-8"))
    locked.write_text(edited, "utf-8")
    done = run("lock", "--check")

    assert times
    assert done.status == 1
    assert "was edited by hand" in done.out
    assert "is out of date" in done.out


def test_a_definition_that_was_edited_by_hand_can_not_be_read(run: Run, locked: Path) -> None:
    locked.write_text(locked.read_text("utf-8").replace('"type": "object"', '"type": "string"'), "utf-8")
    done = run("lock", "--check")

    assert done.status == 2
    assert "does not match its digest" in done.err


def test_a_change_is_judged_by_the_lock_as_by_the_source_of_before(run: Run, locked: Path, source: Path) -> None:
    before = source.parent.with_name("before.py")
    before.write_text(source.read_text("utf-8"), "utf-8")
    source.write_text(source.read_text("utf-8").replace(", depth: int = 1", ""), "utf-8")
    checked = run("lock", "--check", "src", "--json")
    compared = run("diff", str(before), str(source), "--json")

    assert (checked.status, compared.status) == (1, 0)
    assert [one["breaking"] for one in checked.document["changes"]] == [False]
    assert [one["breaking"] for one in compared.document["changes"]] == [False]


def test_a_link_in_its_place_is_not_followed(run: Run, source: Path, tmp_path: Path) -> None:
    (tmp_path / "truename.lock").symlink_to(tmp_path / "elsewhere")
    done = run("lock", "src")

    assert done.status == 2
    assert not (tmp_path / "elsewhere").exists()


def test_what_is_no_file_is_not_waited_for(run: Run, source: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "truename.lock")

    assert run("lock", "--check").status == 2
    assert "it is not a regular file" in run("diff", "truename.lock", "src").err


def test_a_disk_that_is_full_leaves_the_lock_as_it_was(run: Run, locked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, raw: bytes) -> None:
        raise OSError(28, "No space left on device")

    before = locked.read_bytes()
    monkeypatch.setattr("truename.cli.lock.write_new", full)
    done = run("lock", "--protocol", "0.9")

    assert done.status == 2
    assert "No space left on device" in done.err
    assert locked.read_bytes() == before


def test_a_read_only_lock_is_left_alone(run: Run, locked: Path, source: Path) -> None:
    before = locked.read_bytes()
    locked.chmod(0o444)
    assert run("lock").status == 0
    source.write_text(SOURCE.replace("def ping", "def quux"), "utf-8")
    done = run("lock")

    assert done.status == 2
    assert "read-only" in done.err
    assert locked.read_bytes() == before


def test_bytes_that_are_no_text_are_told_with_their_line(run: Run, locked: Path) -> None:
    locked.write_bytes(locked.read_bytes() + b"\xff")
    done = run("lock", "--check")

    assert done.status == 2
    assert "line 8: it is not UTF-8" in done.err


def test_without_a_lock_or_a_source_it_says_what_to_type(run: Run, source: Path) -> None:
    for words, expected in ((("--check",), "truename.lock does not exist"), ((), "Run `truename lock src`")):
        done = run("lock", *words)
        assert done.status == 2
        assert expected in done.err


def test_a_source_that_can_not_be_read_writes_nothing(run: Run, locked: Path, source: Path) -> None:
    before = locked.read_bytes()
    source.write_text("def (", "utf-8")

    assert run("lock").status == 2
    assert run("lock", "--check").status == 2
    assert locked.read_bytes() == before


def test_servers_that_fail_write_nothing(run: Run, configure: Callable[..., Path], tmp_path: Path) -> None:
    config = configure({"files": ["x"]}, servers={"bad": {"command": "/nowhere/at/all"}})

    assert run("lock", config).status == 3
    assert not (tmp_path / "truename.lock").exists()


def test_servers_are_locked_with_their_keys(run: Run, configure: Callable[..., Path], tmp_path: Path) -> None:
    config = configure({"files": ["x"], "web": ["x"]})

    assert run("lock", config).status == 0
    text = (tmp_path / "truename.lock").read_text("utf-8")
    assert 'name = "x", server = "files"' in text
    assert 'name = "x", server = "web"' in text
    assert json.loads(config.read_text("utf-8"))["mcpServers"].keys() == {"files", "web"}


def test_a_server_that_has_another_key_is_told_though_it_is_the_only_one(
    run: Run, configure: Callable[..., Path]
) -> None:
    config = configure({"github": ["x"]})
    assert run("lock", config).status == 0
    run("allow")
    assert run("lock", "--check").status == 0
    configure({"gh": ["x"]})
    run("allow")
    done = run("lock", "--check")

    assert done.status == 1
    assert "The server is 'gh'; the lock has 'github'." in done.out
    assert run("lock", "--check", "--json").document["is_true"] is False
