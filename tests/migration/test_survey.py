"""Looking through files: which are read, which are history, what is reported of those that cannot be changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from truename.errors import ConfigError, MigrationError
from truename.migration import HISTORY, Survey, apply, plan, survey
from truename.migration.rename_survey import MAX_FILE, walk

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PLAN = plan({"fs.list": "fs_list", "agent.update": "agent_update"})
OLD = b'"fs.list"'


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(root: Path, files: dict[str, bytes]) -> Path:
    for name, raw in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
    return root


def changed(found: Survey, root: Path) -> list[str]:
    return [str(change.path.relative_to(root)) for change in found.changes]


def left(found: Survey) -> list[tuple[str, str, int]]:
    return [(one.path.name, one.leftover.reason, one.leftover.line) for one in found.leftovers]


def test_history_and_machinery_are_left_out(tmp_path: Path) -> None:
    names = [
        "CHANGELOG.md",
        "docs/adr/0001-x.md",
        "deep/docs/adr/0001-x.md",
        "uv.lock",
        "package-lock.json",
        "recordings/a/b.jsonl",
        ".git/config",
        "node_modules/x/index.js",
        "src/__pycache__/a.pyc",
        "src/a.py",
        ".github/w.yml",
        "adr/x.md",
    ]
    root = write(tmp_path / "repository", dict.fromkeys(names, OLD))

    found = survey(PLAN, [root])

    assert changed(found, root) == [".github/w.yml", "adr/x.md", "src/a.py"]
    assert found.excluded == HISTORY
    assert found.files == 3


@pytest.mark.parametrize(
    ("exclude", "read"),
    [
        ((), ["docs/adr/x.md", "docs/y.md", "z.md"]),
        (("*.md",), []),
        (("docs",), ["z.md"]),
        (("docs/adr/*",), ["docs/y.md", "z.md"]),
        (("repository/z.md",), ["docs/adr/x.md", "docs/y.md"]),
        (("adr/*", "z.*"), ["docs/y.md"]),
        (("repository",), ["docs/adr/x.md", "docs/y.md", "z.md"]),
    ],
)
def test_patterns_are_for_names_and_for_paths(tmp_path: Path, exclude: Sequence[str], read: list[str]) -> None:
    root = write(tmp_path / "repository", dict.fromkeys(["docs/adr/x.md", "docs/y.md", "z.md"], OLD))

    assert sorted(str(found.path.relative_to(root)) for found in walk([root], exclude)) == read


def test_patterns_of_paths_hold_from_wherever_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write(tmp_path / "docs", {"adr/x.md": OLD, "y.md": OLD})
    monkeypatch.chdir(root)

    assert [found.path.name for found in walk([root])] == ["y.md"]
    assert [found.path.name for found in walk([root / "adr"], ["adr/*"])] == []
    assert [found.path.name for found in walk([root / "adr" / "x.md"], ())] == ["x.md"]


def test_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    root = write(tmp_path / "r", {"a/b.py": OLD})

    assert survey(PLAN, [root, root / "a", root / "a" / "b.py"]).files == 1


def test_a_path_where_nothing_is_is_told(tmp_path: Path) -> None:
    with pytest.raises(MigrationError, match="it does not exist"):
        survey(PLAN, [tmp_path / "nowhere"])


def test_links_to_directories_are_not_followed(tmp_path: Path) -> None:
    root = write(tmp_path / "r", {"real/a.py": OLD})
    (root / "loop").symlink_to(root)
    (root / "broken").symlink_to(root / "nowhere")
    os.mkfifo(root / "pipe")

    found = survey(PLAN, [root])

    assert changed(found, root) == ["real/a.py"]
    assert found.files == 1


def test_a_link_changes_with_its_file_and_one_that_leads_out_is_a_change_that_can_not_be_made(tmp_path: Path) -> None:
    root = write(tmp_path / "r", {"AGENTS.md": OLD})
    write(tmp_path, {"outside.md": OLD})
    (root / "CLAUDE.md").symlink_to("AGENTS.md")
    (root / "out.md").symlink_to(tmp_path / "outside.md")

    found = survey(PLAN, [root])

    assert changed(found, root) == ["AGENTS.md", "out.md"]
    with pytest.raises(ConfigError, match="it is a symbolic link to"):
        apply(found.changes, tmp_path / "state")
    assert (root / "CLAUDE.md").read_bytes() == OLD


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ('"fs.list"'.encode("utf-16"), True),
        ('"fs.list"'.encode("utf-16-be"), True),
        ('"fs.list" é'.encode("latin-1"), True),
        (b'\0\0"fs.list"', True),
        ("é".encode("latin-1"), False),
        (b"\0" * 100, False),
    ],
)
def test_what_is_not_utf_8_is_told_if_it_has_an_old_name(tmp_path: Path, raw: bytes, told: bool) -> None:
    root = write(tmp_path / "r", {"a.bin": raw})

    found = survey(PLAN, [root])

    assert found.changes == ()
    assert [(one.leftover.name, one.leftover.reason) for one in found.leftovers] == (
        [("fs.list", "encoding")] if told else []
    )
    assert found.is_clean is not told


@pytest.mark.parametrize("at", [0, 4 * 1024 * 1024 - 3, MAX_FILE])
def test_a_file_too_large_to_change_is_searched(tmp_path: Path, at: int) -> None:
    file = tmp_path / "large.txt"
    with file.open("wb") as stream:
        stream.truncate(MAX_FILE + 100)
        stream.seek(at)
        stream.write(OLD)

    assert left(survey(PLAN, [file])) == [("large.txt", "encoding", 0)]


def test_a_large_file_without_old_names_is_no_business_of_ours(tmp_path: Path) -> None:
    file = tmp_path / "large.txt"
    with file.open("wb") as stream:
        stream.truncate(MAX_FILE + 100)

    assert survey(PLAN, [file]).is_clean


def test_a_file_that_can_not_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path, {"a.py": OLD}) / "a.py"

    def refused(*_: object) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("truename.migration.rename_survey.read_plain", refused)
    with pytest.raises(MigrationError, match=r"a\.py: it is not readable \(Permission denied\)"):
        survey(PLAN, [file])


def test_files_with_an_old_name_in_theirs_are_told_or_renamed(tmp_path: Path) -> None:
    root = write(
        tmp_path / "r",
        {
            "fixtures/request_fs.list.json": b"{}",
            "fixtures/fs.list.v1.yaml": OLD,
            "fs.list.py": b"",
            "fs.list_dir.json": b"",
            "fs.listing.json": b"",
            "fs_list.fs.list.py": b"",
            "use.py": b'load("fixtures/request_fs.list.json") # see fs.list.v1.yaml, xfs.list.v1.yaml',
        },
    )

    told = survey(PLAN, [root])
    asked = survey(PLAN, [root], rename_files=True)

    assert [name for name, reason, _ in left(told) if reason == "file name"] == [
        "fs.list.py",
        "fs_list.fs.list.py",
        "fs.list.v1.yaml",
        "request_fs.list.json",
    ]
    assert [(change.path.name, change.target.name) for change in asked.moved] == [
        ("fs.list.v1.yaml", "fs_list.v1.yaml"),
        ("request_fs.list.json", "request_fs_list.json"),
    ]
    (use,) = [change for change in asked.changes if change.path.name == "use.py"]
    assert use.after == b'load("fixtures/request_fs_list.json") # see fs_list.v1.yaml, xfs.list.v1.yaml'
    assert [name for name, reason, _ in left(asked) if reason == "file name"] == ["fs.list.py", "fs_list.fs.list.py"]


def test_two_files_never_become_one(tmp_path: Path) -> None:
    for others in ({"fs_list.json": b""}, {"agent_update.json": b"", "agent.update.json": b""}):
        root = write(tmp_path / str(len(others)), {"fs.list.json": b"", **others})
        with pytest.raises(MigrationError, match="which already exists"):
            survey(PLAN, [root], rename_files=True)


def test_the_protocol_version_is_counted_up_in_every_file_that_states_it(tmp_path: Path) -> None:
    files = {
        "a.py": OLD,
        "v.rs": b'const PROTOCOL_VERSION: &str = "0.2";',
        "d.md": b'`fs.list`\nPROTOCOL_VERSION = "0.2"',
    }
    root = write(tmp_path / "r", files)

    found = survey(PLAN, [root], count_up=True)
    after = {change.path.name: change.after for change in found.changes}

    assert found.protocol is not None
    assert (found.protocol.old, found.protocol.new) == ("0.2", "0.3")
    assert after["v.rs"] == b'const PROTOCOL_VERSION: &str = "0.3";'
    assert after["d.md"] == b'`fs_list`\nPROTOCOL_VERSION = "0.3"'
    assert survey(PLAN, [root]).protocol is None


def test_nothing_is_counted_up_where_no_name_changes(tmp_path: Path) -> None:
    root = write(tmp_path / "r", {"v.rs": b'PROTOCOL_VERSION = "0.3"'})

    assert survey(PLAN, [root], count_up=True).changes == ()


def test_two_protocol_versions_are_refused_unless_one_file_counts(tmp_path: Path) -> None:
    root = write(tmp_path / "r", {"a.py": b'"fs.list" PROTOCOL_VERSION = "0.2"', "b.py": b'PROTOCOL_VERSION = "0.1"'})

    with pytest.raises(MigrationError, match=r"the protocol version is 0\.1 in .*b\.py and 0\.2 in .*a\.py"):
        survey(PLAN, [root], count_up=True)
    found = survey(PLAN, [root], count_up=True, pattern_file="*/a.py")
    assert found.protocol is not None
    assert changed(found, root) == ["a.py"]


def test_a_pattern_of_ones_own_is_looked_for(tmp_path: Path) -> None:
    root = write(tmp_path / "r", {"a.py": b'"fs.list"; CONTRACT = 1.2; PROTOCOL_VERSION = "0.2"'})

    (change,) = survey(PLAN, [root], count_up=True, pattern="CONTRACT = {version}").changes

    assert change.after == b'"fs_list"; CONTRACT = 2.0; PROTOCOL_VERSION = "0.2"'


def test_a_new_name_that_stood_there_before_is_told(tmp_path: Path) -> None:
    root = write(tmp_path / "r", {"a.py": b'"fs.list"\n"fs_list"', "b.py": b'"fs_list"'})

    assert [str(one).rpartition("/")[2] for one in survey(PLAN, [root]).taken] == ["a.py:2:2: fs_list"]


def test_single_files_are_left_out_and_progress_is_told(tmp_path: Path) -> None:
    root = write(tmp_path / "r", {"map.toml": OLD, "a.py": OLD})
    told: list[tuple[int, int]] = []

    found = survey(PLAN, [root], skip=[root / "map.toml"], on_file=lambda number, count: told.append((number, count)))

    assert changed(found, root) == ["a.py"]
    assert told == [(1, 1)]


def test_a_plan_that_is_refused_is_not_looked_for(tmp_path: Path) -> None:
    with pytest.raises(MigrationError, match="swap their names"):
        survey(plan({"a": "b", "b": "a"}), [tmp_path])


def test_a_directory_that_can_not_be_looked_into_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("truename.migration.rename_survey.os.scandir", refused)
    with pytest.raises(MigrationError, match="the directory is not readable"):
        survey(PLAN, [tmp_path])
