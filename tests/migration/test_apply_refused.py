"""All or nothing: what stops a change, before anything is written or in the middle of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.migration.conftest import changes
from tests.migration.repository import contents
from truename.errors import ConfigError, StoreError
from truename.files.lock import locked
from truename.migration import apply, undo
from truename.migration.rename_apply import recorded_migrations

if TYPE_CHECKING:
    from collections.abc import Callable

applying = sys.modules["truename.migration.rename_apply"]


def _read_only(root: Path) -> None:
    (root / "b" / "c.md").chmod(0o444)


def _in_read_only(root: Path) -> None:
    (root / "b").chmod(0o555)


def _link(root: Path) -> None:
    (root / "b" / "c.md").rename(root / "real.md")
    (root / "b" / "c.md").symlink_to(root / "real.md")


def _two_names(root: Path) -> None:
    os.link(root / "b" / "c.md", root / "other")


def _touched(root: Path) -> None:
    (root / "b" / "c.md").write_bytes(b"`fs.list`")


def _gone(root: Path) -> None:
    (root / "b" / "c.md").unlink()


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (_read_only, "it is read-only"),
        (_in_read_only, "its directory is read-only"),
        (_link, "it is a symbolic link"),
        (_two_names, "it has 2 names"),
        (_touched, "another program changed it meanwhile"),
        (_gone, "it was deleted meanwhile"),
    ],
)
def test_one_file_that_can_not_be_changed_stops_it_before_anything_is_written(
    root: Path, state: Path, spoil: Callable[[Path], None], told: str
) -> None:
    wanted = changes(root)
    spoil(root)
    before = contents(root)

    with pytest.raises(ConfigError, match=told) as caught:
        apply(wanted, state)
    (root / "b").chmod(0o755)

    assert caught.value.code == "left_alone"
    assert contents(root) == before
    assert recorded_migrations(state) == ()


def test_every_file_that_is_in_the_way_is_told(root: Path, state: Path) -> None:
    for name in ("a.py", "e.json"):
        (root / name).chmod(0o444)

    with pytest.raises(ExceptionGroup, match="2 files cannot be changed, so none was") as caught:
        apply(changes(root), state)

    assert [Path(error.file).name for error in caught.value.exceptions if isinstance(error, ConfigError)] == [
        "a.py",
        "e.json",
    ]


def test_a_file_is_not_moved_over_another(root: Path, state: Path) -> None:
    (root / "fs.list.json").write_bytes(b"x")
    wanted = changes(root, rename_files=True)
    (root / "fs_list.json").write_bytes(b"somebody's")
    before = contents(root)

    with pytest.raises(ConfigError, match="another program created it meanwhile"):
        apply(wanted, state)

    assert contents(root) == before


@pytest.mark.parametrize("step", ["write_new", "copy_metadata"])
@pytest.mark.parametrize("failing", [1, 3])
def test_a_full_disk_changes_nothing_and_leaves_nothing(
    root: Path, state: Path, step: str, failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, before = changes(root), contents(root)
    fail_at(monkeypatch, applying, step, failing)

    with pytest.raises(ConfigError, match="No space left on device"):
        apply(wanted, state)

    assert contents(root) == before
    assert recorded_migrations(state) == ()


def test_a_failure_between_the_renames_is_taken_back(root: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, before = changes(root), contents(root)
    # The first call puts the journal in place.
    fail_at(monkeypatch, Path, "replace", 4)

    with pytest.raises(ConfigError, match="No space left"):
        apply(wanted, state)

    assert contents(root) == before
    assert recorded_migrations(state) == ()


def test_where_no_copy_can_be_kept_nothing_is_changed(root: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, before = changes(root), contents(root)
    monkeypatch.setattr("truename.migration.rename_apply.os.fsync", _full)

    with pytest.raises(ConfigError, match="the originals cannot be stored there"):
        apply(wanted, state)

    assert contents(root) == before


def test_a_file_that_changes_while_the_new_bytes_are_written_stops_it(root: Path, state: Path) -> None:
    told: set[str] = set()

    def meanwhile(word: str, number: int, count: int) -> None:
        told.add(word)
        if (word, number) == ("written", count):
            (root / "e.json").write_bytes(b"new")

    with pytest.raises(ConfigError, match="another program changed it"):
        apply(changes(root), state, on_step=meanwhile)

    assert contents(root)["a.py"] == b'"fs.list"'
    assert contents(root)["e.json"] == b"new"
    assert "replaced" not in told
    assert len(contents(root)) == 4


def test_what_was_changed_since_is_not_undone_and_neither_is_the_rest(root: Path, state: Path) -> None:
    apply(changes(root), state)
    (root / "a.py").write_bytes(b"mine")
    (root / "e.json").unlink()
    (root / "e.json").symlink_to(root / "d.txt")
    after = contents(root)

    with pytest.raises(ExceptionGroup):
        undo(state, root)

    assert contents(root) == after


def test_damaged_originals_are_not_given_back(root: Path, state: Path) -> None:
    done = apply(changes(root), state)
    assert done.originals is not None
    (done.originals.directory / "originals").write_bytes(b"x" * 200)
    after = contents(root)

    with pytest.raises(ConfigError, match="it differs from the saved copy"):
        undo(state, root)
    (done.originals.directory / "originals").unlink()
    with pytest.raises(ConfigError, match="it is not readable"):
        undo(state, root)

    assert contents(root) == after


def test_two_at_a_time_are_refused(root: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state.mkdir(parents=True)
    monkeypatch.setattr("truename.files.lock.LOCK_TIMEOUT", 0.0)
    monkeypatch.setattr(applying, "locked", lambda path, shared: locked(path, shared=shared, patience=0.0))

    with locked(state / "journal", shared=False), pytest.raises(StoreError) as caught:
        apply(changes(root), state)

    assert caught.value.code == "busy"


def fail_at(monkeypatch: pytest.MonkeyPatch, module: object, name: str, number: int) -> None:
    """Let the disk be full at the n-th call."""
    whole, calls = getattr(module, name), iter(range(1, 1_000))

    def failing(*words: object) -> object:
        if next(calls) == number:
            _full()
        return whole(*words)

    monkeypatch.setattr(module, name, failing)


def _full(*_: object) -> None:
    raise OSError(28, "No space left on device", "somewhere")


def test_a_full_disk_is_told_of_the_file_that_people_know(
    root: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_at(monkeypatch, applying, "write_new", 2)

    with pytest.raises(ConfigError, match="free disk space, and run it again") as caught:
        apply(changes(root), state)

    assert Path(caught.value.file) == root / "a.py"


def test_what_somebody_saves_between_two_replacements_is_kept(root: Path, state: Path) -> None:
    before = contents(root)
    wanted = changes(root)
    last = wanted[-1].path

    def save(word: str, number: int, _: int) -> None:
        if (word, number) == ("replaced", 1):
            last.write_bytes(b"saved meanwhile")

    with pytest.raises(ConfigError, match="another program changed it meanwhile"):
        apply(wanted, state, on_step=save)

    assert last.read_bytes() == b"saved meanwhile"
    assert recorded_migrations(state) == ()
    assert contents(root) == before | {name: b"saved meanwhile" for name in before if (root / name) == last}
