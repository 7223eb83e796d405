"""A file is changed whole and safely, or left alone with a word about why."""

from __future__ import annotations

import os
import re
import stat
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from truename.editing import Document, check_file, remove_file, replace_file, replacement
from truename.editing.replacement import Backup, backups, backups_directory
from truename.errors import ConfigError
from truename.files.private import write_new

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

posix = pytest.mark.skipif(sys.platform == "win32", reason="modes and links are different there")
OLD, NEW = b'{"mcpServers": {}}\n', b'{"mcpServers": {"tn": {}}}\n'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def file(home: Path) -> Path:
    path = home / "mcp.json"
    path.write_bytes(OLD)
    return path


def environ(path: Path) -> dict[str, str]:
    home = next(one for one in path.parents if one.name == "home")
    return {"XDG_STATE_HOME": str(home.parent / "state"), "HOME": str(home)}


def change(document: Document, new: bytes | Document = NEW, **more: Any) -> Backup:
    return replace_file(document, new, client="cursor", action="connect", environ=environ(document.path), **more)


def refused(document: Document, wanted: str) -> ConfigError:
    """Look, and try: both say the same, nothing is changed, and nothing is left lying about."""
    with pytest.raises(ConfigError, match=wanted) as looked:
        check_file(document)
    with pytest.raises(ConfigError, match=wanted) as tried:
        change(document)
    assert str(looked.value) == str(tried.value)
    assert looked.value.code == "left_alone"
    assert "Nothing was changed" in looked.value.remedy
    assert backups(environ(document.path)) == ()
    assert not list(document.path.parent.glob(".*truename*")) if document.path.parent.is_dir() else True
    return looked.value


def test_new_bytes_come_and_the_old_ones_are_kept_with_a_record(file: Path) -> None:
    document = Document.read(file, "json")
    backup = change(document, note={"edits": [1]})
    assert file.read_bytes() == NEW
    assert (backup.client, backup.action, backup.path) == ("cursor", "connect", file)
    assert backup.original() == OLD
    assert backup.note == {"edits": [1]}
    assert backups(environ(file)) == (backup,)


def test_a_document_is_written_as_it_is(file: Path) -> None:
    document = Document.read(file, "json")
    changed = document.with_value(("mcpServers", "tn"), {"url": "http://x"})
    change(document, changed)
    assert file.read_bytes() == changed.raw


@posix
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o755])
def test_mode_and_owner_stay(file: Path, mode: int) -> None:
    file.chmod(mode)
    before = file.stat()
    change(Document.read(file, "json"))
    after = file.stat()
    assert stat.S_IMODE(after.st_mode) == mode
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)


@posix
def test_another_group_of_the_user_stays(file: Path) -> None:
    groups = [group for group in (*os.getgroups(), *([12345] if os.geteuid() == 0 else [])) if group != os.getegid()]
    if not groups:
        pytest.skip("this user has one group only")
    os.chown(file, -1, groups[-1])
    change(Document.read(file, "json"))
    assert file.stat().st_gid == groups[-1]


def test_the_time_of_change_is_new_because_clients_watch_it(file: Path) -> None:
    os.utime(file, (1, 1))
    change(Document.read(file, "json"))
    assert file.stat().st_mtime > 1


@posix
def test_a_new_file_and_its_directories_are_the_owners_alone(home: Path) -> None:
    path = home / ".cursor" / "deep" / "mcp.json"
    backup = change(Document.empty(path, "json"))
    assert path.read_bytes() == NEW
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert (backup.before, backup.original(), backup.made) == (
        None,
        None,
        (home / ".cursor", home / ".cursor" / "deep"),
    )


def test_removing_what_was_made_removes_the_directories_made_with_it_if_they_are_empty(home: Path) -> None:
    path = home / ".cursor" / "deep" / "mcp.json"
    made = change(Document.empty(path, "json")).made
    (home / ".cursor" / "other").write_bytes(b"")
    remove_file(Document.read(path, "json"), client="cursor", action="disconnect", environ=environ(path), made=made)
    assert sorted(one.name for one in home.rglob("*")) == [".cursor", "other"]
    assert [backup.original() for backup in backups(environ(path), path=path)] == [NEW, None]


@posix
def test_a_symbolic_link_is_left_alone_and_its_target_named(home: Path, file: Path) -> None:
    link = home / "link.json"
    link.symlink_to(file)
    fault = refused(Document.read(link, "json"), "symbolic link to .*mcp.json")
    assert str(link) == fault.file
    assert link.is_symlink()
    assert file.read_bytes() == OLD


@posix
def test_what_a_link_is_called_can_not_write_to_the_terminal(home: Path) -> None:
    evil = home / "\x1b[31mred\n"
    evil.write_bytes(OLD)
    (home / "link.json").symlink_to(evil.name)
    assert refused(Document.read(home / "link.json", "json"), "symbolic link").problem.isprintable()


@posix
def test_a_link_that_leads_nowhere_is_not_taken_for_a_file_that_is_not_there(home: Path) -> None:
    (home / "link.json").symlink_to("nowhere")
    refused(Document.empty(home / "link.json", "json"), "symbolic link")


@posix
def test_a_file_with_two_names_is_left_alone(home: Path, file: Path) -> None:
    (home / "other").hardlink_to(file)
    refused(Document.read(file, "json"), "2 names")


@posix
@pytest.mark.parametrize("mode", [0o444, 0o400])
def test_a_read_only_file_is_left_alone_even_by_the_administrator(file: Path, mode: int) -> None:
    file.chmod(mode)
    refused(Document.read(file, "json"), "it is read-only")
    assert stat.S_IMODE(file.stat().st_mode) == mode


@posix
def test_a_file_in_a_read_only_directory_is_left_alone(home: Path, file: Path) -> None:
    home.chmod(0o555)
    try:
        refused(Document.read(file, "json"), "its directory is read-only")
        refused(Document.empty(home / "new" / "mcp.json", "json"), "its directory is read-only")
    finally:
        home.chmod(0o755)


@posix
def test_somebody_elses_file_is_left_alone(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = Document.read(file, "json")
    owner = file.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    refused(document, "belongs to another user")


@pytest.mark.parametrize(
    ("spoil", "wanted"),
    [
        (lambda path: path.write_bytes(b'{"mcpServers": {"theirs": 1}}\n'), "another program changed it"),
        (lambda path: path.unlink(), "it was deleted meanwhile"),
        (lambda path: (path.unlink(), path.mkdir()), "not a regular file"),
    ],
    ids=["changed", "gone", "a directory now"],
)
def test_a_file_that_changed_since_it_was_read_is_left_alone(
    file: Path, spoil: Callable[[Path], Any], wanted: str
) -> None:
    document = Document.read(file, "json")
    spoil(file)
    refused(document, wanted)


def test_a_file_that_came_meanwhile_is_left_alone(home: Path) -> None:
    document = Document.empty(home / "mcp.json", "json")
    (home / "mcp.json").write_bytes(b"theirs")
    refused(document, "another program created it")


def test_a_file_where_a_directory_has_to_be_is_told(home: Path) -> None:
    (home / ".cursor").write_bytes(b"")
    refused(Document.empty(home / ".cursor" / "mcp.json", "json"), "is not a directory")


def test_a_change_right_before_the_rename_is_seen(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = Document.read(file, "json")

    def meanwhile(path: Path, raw: bytes) -> None:
        write_new(path, raw)
        file.write_bytes(b"theirs")

    monkeypatch.setattr(replacement, "write_new", meanwhile)
    with pytest.raises(ConfigError, match="another program changed it"):
        change(document)
    assert file.read_bytes() == b"theirs"
    assert backups(environ(file)) == ()
    assert [one.name for one in file.parent.iterdir()] == ["mcp.json"]


@pytest.mark.parametrize("step", ["write_new", "copy_metadata"])
def test_a_full_disk_changes_nothing_and_leaves_nothing(file: Path, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(replacement, step, full)
    with pytest.raises(ConfigError, match="No space left") as caught:
        change(Document.read(file, "json"))
    assert caught.value.code == "left_alone"
    assert file.read_bytes() == OLD
    assert [one.name for one in file.parent.iterdir()] == ["mcp.json"]
    assert list(backups_directory(environ(file)).iterdir()) == []


def test_without_a_backup_there_is_no_change(file: Path) -> None:
    (file.parent.parent / "state").write_bytes(b"a file where the directory should be")
    with pytest.raises(ConfigError, match="its backup cannot be written") as caught:
        change(Document.read(file, "json"))
    assert caught.value.code == "left_alone"
    assert file.read_bytes() == OLD


def test_an_interrupt_leaves_no_file_of_ours_and_keeps_the_backup(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(replacement, "copy_metadata", interrupted)
    with pytest.raises(KeyboardInterrupt):
        change(Document.read(file, "json"))
    assert [one.name for one in file.parent.iterdir()] == ["mcp.json"]
    assert file.read_bytes() == OLD
    assert len(backups(environ(file))) == 1


def test_what_a_killed_run_left_beside_the_file_goes_with_the_next_change(file: Path) -> None:
    old, fresh = (file.with_name(f".mcp.json.truename-{word}") for word in ("0000aaaa", "0000bbbb"))
    other = file.with_name(".settings.json.truename-0000aaaa")
    for path in (old, fresh, other):
        path.write_bytes(b"secret")
    hours_ago = time.time() - 7200
    os.utime(old, (hours_ago, hours_ago))
    os.utime(other, (hours_ago, hours_ago))
    change(Document.read(file, "json"))
    assert sorted(one.name for one in file.parent.iterdir()) == sorted([fresh.name, other.name, "mcp.json"])


def test_a_path_from_here_is_recorded_in_full(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    document = Document.read(file.relative_to(file.parent), "json")
    backup = replace_file(document, NEW, client="cursor", action="connect", environ=environ(file))
    assert backup.path == file
    assert backups(environ(file), path=file.relative_to(file.parent)) == (backup,)
    assert re.fullmatch(r"[0-9T.]+Z-cursor-[0-9a-f]{8}\.json", backup.record.name)
