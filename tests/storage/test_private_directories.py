"""The directories of state: for their owner alone, whatever the umask is and whoever made them first."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import pytest

from truename import Ledger
from truename.editing.replacement import backups_directory, save
from truename.errors import StoreError
from truename.files.private import make_private, state_directory
from truename.storage import Schema, open_database
from truename.trust import PinStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a state directory."""
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@contextmanager
def umask(bits: int) -> Iterator[None]:
    before = os.umask(bits)
    try:
        yield
    finally:
        os.umask(before)


def modes(path: Path) -> dict[str, int]:
    """Return the mode of every directory from this one down."""
    found = [path, *(one for one in path.rglob("*") if one.is_dir())]
    return {one.relative_to(path).as_posix(): stat.S_IMODE(one.stat().st_mode) for one in found}


@pytest.mark.parametrize("bits", [0o000, 0o022, 0o077, 0o277, 0o777])
def test_every_directory_of_state_is_its_owners_alone_whatever_the_umask(bits: int) -> None:
    state = state_directory()
    with umask(bits):
        make_private(state / "access" / "deeper")

    assert modes(state) == dict.fromkeys((".", "access", "access/deeper"), 0o700)


@pytest.mark.parametrize("wide", [0o755, 0o777, 0o1777, 0o2775, 0o710])
def test_a_state_directory_that_others_could_use_is_closed_to_them(wide: int) -> None:
    state = state_directory()
    (state / "pins").mkdir(parents=True)
    for one in (state, state / "pins"):
        one.chmod(wide)

    PinStore(state / "pins" / "a.pins")

    assert modes(state) == {".": 0o700, "pins": 0o700}


def test_all_that_keeps_state_keeps_its_directory_closed(tmp_path: Path) -> None:
    state = state_directory()
    state.mkdir(parents=True, mode=0o777)
    state.chmod(0o777)
    file = tmp_path / "file"
    file.write_text("{}")
    with umask(0):
        Ledger.open(state / "ledgers" / "a.ledger")
        PinStore(state / "pins" / "a.pins")
        save(file, b"{}", b"", client="x", action="connect", made=(), note=None, environ=None)

    assert modes(state) == dict.fromkeys((".", "ledgers", "pins", "backups"), 0o700)
    assert backups_directory() == state / "backups"


def test_a_directory_that_the_user_chose_is_left_as_it_is(tmp_path: Path) -> None:
    chosen = tmp_path / "project"
    chosen.mkdir()
    chosen.chmod(0o755)

    open_database(chosen / "own.state", Schema("a", (("CREATE TABLE a (b TEXT)",),))).close()

    assert stat.S_IMODE(chosen.stat().st_mode) == 0o755


def test_a_state_directory_of_another_user_is_refused_and_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    state_directory().mkdir(parents=True)
    monkeypatch.setattr("truename.files.private.ROOT_UID", -1)
    monkeypatch.setattr(os, "geteuid", lambda: 54_321)

    with pytest.raises(StoreError, match=r"belongs to another user; change its owner, or set XDG_STATE_HOME"):
        PinStore(state_directory() / "pins" / "a.pins")


@pytest.mark.parametrize(("mode", "is_refused"), [(0o2770, False), (0o777, True)])
def test_a_directory_of_roots_is_used_as_mounted_unless_it_is_open_to_all(
    monkeypatch: pytest.MonkeyPatch, mode: int, *, is_refused: bool
) -> None:
    state_directory().mkdir(parents=True)
    state_directory().chmod(mode)
    found, whose = state_directory().stat(), os.geteuid() + 1
    monkeypatch.setattr("truename.files.private.ROOT_UID", found.st_uid)
    monkeypatch.setattr(os, "geteuid", lambda: whose)

    with pytest.raises(PermissionError) if is_refused else nullcontext():
        make_private(state_directory())

    assert stat.S_IMODE(state_directory().stat().st_mode) == mode


def test_a_file_in_the_place_of_a_state_directory_is_an_error() -> None:
    state_directory().parent.mkdir(parents=True)
    state_directory().write_text("")

    with pytest.raises(OSError, match=r"[Nn]ot a directory|File exists"):
        make_private(state_directory() / "pins")
