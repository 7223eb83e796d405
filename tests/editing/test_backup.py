"""Backups are found again, whole or not at all."""

from __future__ import annotations

import json
import stat
import sys
from typing import TYPE_CHECKING, Any

import pytest

from truename.editing import Document, replace_file
from truename.editing.replacement import Backup, backups, backups_directory, digest
from truename.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def environ(home: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(home / "state"), "HOME": str(home)}


def changed(home: Path, client: str = "cursor", name: str = "mcp.json", old: bytes = b"{}") -> Backup:
    path = home / name
    path.write_bytes(old)
    return replace_file(
        Document.read(path, "json"), b'{"a": 1}', client=client, action="connect", environ=environ(home)
    )


def test_the_newest_comes_first_and_each_is_found_by_client_and_file(tmp_path: Path) -> None:
    made = [changed(tmp_path), changed(tmp_path, "zed", "zed.json"), changed(tmp_path, old=b"[]")]
    assert backups(environ(tmp_path)) == tuple(reversed(made))
    assert backups(environ(tmp_path), client="cursor") == (made[2], made[0])
    assert backups(environ(tmp_path), path=tmp_path / "zed.json") == (made[1],)
    assert backups(environ(tmp_path), client="zed", path=tmp_path / "mcp.json") == ()
    assert [one.original() for one in made] == [b"{}", b"{}", b"[]"]


def test_without_a_state_directory_there_are_none(tmp_path: Path) -> None:
    assert backups(environ(tmp_path)) == ()


def test_backups_lie_beside_the_ledgers(tmp_path: Path) -> None:
    assert backups_directory(environ(tmp_path)) == tmp_path / "state" / "truename" / "backups"


@pytest.mark.skipif(sys.platform == "win32", reason="modes are different there")
def test_only_the_owner_reads_them_for_they_hold_secrets(tmp_path: Path) -> None:
    backup = changed(tmp_path)
    modes = {stat.S_IMODE(one.stat().st_mode) for one in (backup.record, backup.copy, backup.record.parent)}
    assert modes == {0o600, 0o700}


def test_the_record_says_what_was_done(tmp_path: Path) -> None:
    backup = changed(tmp_path)
    record = json.loads(backup.record.read_bytes())
    assert record["sha256_before"] == digest(b"{}")
    assert record["sha256_after"] == digest(b'{"a": 1}')
    assert {key: record[key] for key in ("client", "path", "action", "made", "note")} == {
        "client": "cursor",
        "path": str(tmp_path / "mcp.json"),
        "action": "connect",
        "made": [],
        "note": None,
    }
    assert record["time"].endswith("+00:00")


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[]", b"null", b'{"format": 2}', b'{"format": 1}', b'{"format": 1, "client": null}', b"[" * 100_000],
)
def test_a_damaged_record_is_passed_over(tmp_path: Path, damage: bytes) -> None:
    good, bad = changed(tmp_path), changed(tmp_path)
    bad.record.write_bytes(damage)
    assert backups(environ(tmp_path)) == (good,)


@pytest.mark.parametrize("key", ["client", "path", "made", "time", "sha256_before"])
@pytest.mark.parametrize("value", [None, 1, [1], {}])
def test_no_record_however_odd_is_an_exception(tmp_path: Path, key: str, value: Any) -> None:
    backup = changed(tmp_path)
    record = json.loads(backup.record.read_bytes())
    backup.record.write_bytes(json.dumps(record | {key: value}).encode())
    assert isinstance(backups(environ(tmp_path)), tuple)


@pytest.mark.parametrize("raw", [None, b"other bytes"])
def test_a_copy_that_is_not_what_was_saved_is_never_given_back(tmp_path: Path, raw: bytes | None) -> None:
    backup = changed(tmp_path)
    if raw is None:
        backup.copy.unlink()
    else:
        backup.copy.write_bytes(raw)
    with pytest.raises(ConfigError, match="Nothing was changed"):
        backup.original()


def test_a_discarded_backup_is_gone_and_can_be_discarded_again(tmp_path: Path) -> None:
    backup = changed(tmp_path)
    backup.discard()
    backup.discard()
    assert list(backup.record.parent.iterdir()) == []
