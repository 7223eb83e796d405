"""Killed anywhere, a change leaves the old file or the new one, and the backup of a new one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import pytest

from tests.editing.killing import killed_everywhere
from truename.editing import Document, backups, digest, remove_file, replace_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")]

_OLD: Final = b'{"mcpServers": {}} // mine\n'
_NEW: Final = b'{"mcpServers": {"tn": {"url": "http://127.0.0.1:8750/mcp"}}} // mine\n'


def environ(place: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(place / "state"), "HOME": str(place)}


def prepare(place: Path) -> None:
    (place / "mcp.json").write_bytes(_OLD)


def change(place: Path) -> None:
    document = Document.read(place / "mcp.json", "jsonc")
    replace_file(document, _NEW, client="cursor", action="connect", environ=environ(place))


def make(place: Path) -> None:
    document = Document.empty(place / ".cursor" / "deep" / "mcp.json", "json")
    replace_file(document, _NEW, client="cursor", action="connect", environ=environ(place))


def unmake(place: Path) -> None:
    document = Document.read(place / "mcp.json", "jsonc")
    remove_file(document, client="cursor", action="disconnect", environ=environ(place))


def _contents(places: Iterable[Path], name: str, new: bytes | None) -> list[bytes | None]:
    """Return what the file is after each kill, having looked at the backup where it is new."""
    found: list[bytes | None] = []
    for place in places:
        path = place / name
        found.append(path.read_bytes() if path.exists() else None)
        kept = backups(environ(place), path=path)
        for backup in kept:
            assert backup.original() in {_OLD, None}
        if found[-1] == new:
            (backup,) = kept
            assert backup.after == (digest(new) if new is not None else None)
    return found


@pytest.mark.parametrize(
    ("step", "name", "old", "new"),
    [
        ("change", "mcp.json", _OLD, _NEW),
        ("make", ".cursor/deep/mcp.json", None, _NEW),
        ("unmake", "mcp.json", _OLD, None),
    ],
)
def test_a_kill_at_any_step_leaves_the_old_or_the_new_and_the_backup(
    step: str, name: str, old: bytes | None, new: bytes | None, tmp_path: Path
) -> None:
    places = killed_everywhere(f"{__name__}:{step}", tmp_path)
    contents = _contents(places, name, new)
    assert len(places) > 20
    assert contents == [old] * contents.index(new) + [new] * (len(contents) - contents.index(new))
    assert old in contents
    for place in places:
        assert all(one.stat().st_mode & 0o077 == 0 for one in (place / "state").rglob("*") if one.is_file())


def test_a_file_that_a_killed_run_left_beside_another_does_no_harm(tmp_path: Path) -> None:
    for place in killed_everywhere(f"{__name__}:change", tmp_path)[:-1]:
        (place / "mcp.json").write_bytes(_OLD)
        change(place)
        assert (place / "mcp.json").read_bytes() == _NEW
