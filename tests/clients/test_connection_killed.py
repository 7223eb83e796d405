"""A kill at any step leaves each file old or new, and the backup of each new one; what was begun can be finished."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.clients.killing import FILES, environ_of, finish, home_at
from tests.shared import ROOT
from truename.clients.backup import backups, digest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
OLD = {name: text.encode() for name, text in FILES.items()}


def homes_killed_at_each_step(directory: Path, todo: str) -> list[Path]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.clients.killing", str(directory), todo],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
        check=True,
    )
    assert int(done.stdout) > 20
    return [directory / str(step) for step in range(1, int(done.stdout) + 1)]


def state_of(base: Path) -> dict[str, bytes]:
    return {name: (base / "home" / name).read_bytes() for name in FILES}


@pytest.fixture
def new(tmp_path: Path) -> dict[str, bytes]:
    """What the files are when nobody is killed."""
    home_at(tmp_path / "whole")
    finish(tmp_path / "whole", "connect")
    return state_of(tmp_path / "whole")


def test_a_kill_at_any_step_of_connect_leaves_old_or_new_files_and_a_backup_of_each_new_one(
    tmp_path: Path, new: dict[str, bytes]
) -> None:
    changed = 0
    for number, base in enumerate(homes_killed_at_each_step(tmp_path, "connect")):
        kept = {str(one.path): one for one in backups(environ_of(base))}
        for name, now in state_of(base).items():
            assert now in (OLD[name], new[name])
            if now == new[name]:
                changed += 1
                backup = kept[str(base / "home" / name)]
                assert (backup.original(), backup.after) == (OLD[name], digest(now))
        # After one call and before the next the disk is the same: each state is finished once, and undone at once.
        if number % 2:
            finish(base, "connect")
            assert state_of(base) == new
        finish(base, "disconnect")
        assert state_of(base) == OLD
    assert changed


def test_a_disconnection_that_was_killed_can_be_finished(tmp_path: Path, new: dict[str, bytes]) -> None:
    for base in homes_killed_at_each_step(tmp_path, "disconnect"):
        for name, now in state_of(base).items():
            assert now in (OLD[name], new[name])
        finish(base, "disconnect")
        assert state_of(base) == OLD
        assert not [one for one in backups(environ_of(base)) if one.action == "connect"]
