"""Making a change in files: all or nothing, kept, taken back, found again after a kill."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.migration.repository import RENAMES, contents, make
from truename.errors import ConfigError, LedgerError
from truename.ledger.lock import locked
from truename.migration import Change, apply, plan, recover, survey, undo
from truename.migration.originals import kept

if TYPE_CHECKING:
    from collections.abc import Callable

PLAN = plan({"fs.list": "fs_list"})
applying = sys.modules["truename.migration.apply"]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small repository, in which one stands."""
    files = {
        "a.py": b'"fs.list"',
        "b/c.md": b"\xef\xbb\xbf`fs.list`\r\nmore\r\n",
        "d.txt": b"none",
        "e.json": b'{"fs.list":1}',
    }
    for name, raw in files.items():
        path = tmp_path / "repository" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
    monkeypatch.chdir(tmp_path / "repository")
    return tmp_path / "repository"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The directory of originals."""
    return tmp_path / "state" / "migrations"


def changes(root: Path, *, rename_files: bool = False) -> tuple[Change, ...]:
    return survey(PLAN, [root], rename_files=rename_files).changes


def test_all_files_change_and_all_other_bytes_stay(root: Path, state: Path) -> None:
    (root / "a.py").chmod(0o751)

    done = apply(changes(root), state)

    assert done.files == 3
    assert contents(root) == {
        "a.py": b'"fs_list"',
        "b/c.md": b"\xef\xbb\xbf`fs_list`\r\nmore\r\n",
        "d.txt": b"none",
        "e.json": b'{"fs_list":1}',
    }
    assert stat.S_IMODE((root / "a.py").stat().st_mode) == 0o751


def test_undoing_gives_every_byte_and_name_back(root: Path, state: Path) -> None:
    (root / "fs.list.json").write_bytes(b"x")
    (root / "a.py").chmod(0o640)
    before = contents(root)
    found = survey(PLAN, [root], rename_files=True).with_file(root / "docs" / "new" / "0001.md", "text")

    apply(found.changes, state)
    after = contents(root)
    undone = undo(state, root)

    assert (undone.files, contents(root)) == (5, before)
    assert set(after) - set(before) == {"fs_list.json", "docs/new/0001.md"}
    assert not (root / "docs").exists()
    assert stat.S_IMODE((root / "a.py").stat().st_mode) == 0o640
    assert undo(state, root).originals is None


def test_a_new_file_may_be_read_by_others_as_any_other(root: Path, state: Path) -> None:
    mask = os.umask(0o022)
    try:
        apply(survey(PLAN, [root]).with_file(root / "0001.md", "text").changes, state)
    finally:
        os.umask(mask)

    assert stat.S_IMODE((root / "0001.md").stat().st_mode) == 0o644


def test_each_undo_takes_back_the_one_before(root: Path, state: Path) -> None:
    before = contents(root)
    apply(changes(root), state)
    between = contents(root)
    apply(survey(plan({"fs_list": "list_files"}), [root]).changes, state)

    undo(state, root)
    assert contents(root) == between
    undo(state, root)
    assert contents(root) == before


def test_another_directorys_changes_are_not_undone(root: Path, state: Path, tmp_path: Path) -> None:
    apply(changes(root), state)

    assert undo(state, tmp_path).originals is None


def test_a_second_run_changes_nothing(root: Path, state: Path) -> None:
    apply(changes(root), state)

    again = apply(changes(root), state)

    assert (again.files, again.originals, len(kept(state))) == (0, None, 1)


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
        (_touched, "it was changed by somebody else meanwhile"),
        (_gone, "it is gone"),
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
    assert kept(state) == ()


def test_every_file_that_is_in_the_way_is_told(root: Path, state: Path) -> None:
    for name in ("a.py", "e.json"):
        (root / name).chmod(0o444)

    with pytest.raises(ExceptionGroup, match="2 files can't be changed, so none was") as caught:
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

    with pytest.raises(ConfigError, match="it was made by somebody else meanwhile"):
        apply(wanted, state)

    assert contents(root) == before


@pytest.mark.parametrize("step", ["write_new", "dress"])
@pytest.mark.parametrize("failing", [1, 3])
def test_a_full_disk_changes_nothing_and_leaves_nothing(
    root: Path, state: Path, step: str, failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, before = changes(root), contents(root)
    fail_at(monkeypatch, applying, step, failing)

    with pytest.raises(ConfigError, match="No space left on device"):
        apply(wanted, state)

    assert contents(root) == before
    assert kept(state) == ()


def test_a_failure_between_the_renames_is_taken_back(root: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, before = changes(root), contents(root)
    monkeypatch.setattr(applying, "os", _FailingSystem(3))

    with pytest.raises(ConfigError, match="No space left"):
        apply(wanted, state)

    assert contents(root) == before
    assert kept(state) == ()


def test_an_interrupt_is_taken_back_and_goes_on(root: Path, state: Path) -> None:
    before = contents(root)

    def interrupted(word: str, number: int, count: int) -> None:
        if (word, number) == ("replaced", 2):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        apply(changes(root), state, on_step=interrupted)

    assert contents(root) == before


def test_where_no_copy_can_be_kept_nothing_is_changed(root: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, before = changes(root), contents(root)
    monkeypatch.setattr("truename.migration.originals.os.fsync", _full)

    with pytest.raises(ConfigError, match="no copy of the files could be kept there"):
        apply(wanted, state)

    assert contents(root) == before


def test_a_file_that_changes_while_the_new_bytes_are_written_stops_it(root: Path, state: Path) -> None:
    def meanwhile(word: str, number: int, count: int) -> None:
        if (word, number) == ("written", count):
            (root / "e.json").write_bytes(b"new")

    with pytest.raises(ConfigError, match="changed by somebody else meanwhile"):
        apply(changes(root), state, on_step=meanwhile)

    assert contents(root)["a.py"] == b'"fs.list"'
    assert contents(root)["e.json"] == b"new"
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

    with pytest.raises(ConfigError, match="it is not what was saved"):
        undo(state, root)
    (done.originals.directory / "originals").unlink()
    with pytest.raises(ConfigError, match="it can't be read"):
        undo(state, root)

    assert contents(root) == after


@pytest.mark.parametrize("words", ["checked", "written", "replaced"])
@pytest.mark.parametrize("number", [1, 2, 5])
def test_a_run_that_was_killed_is_taken_back_by_the_next(root: Path, state: Path, words: str, number: int) -> None:
    (root / "fs.list.json").write_bytes(b"x")
    before = contents(root)
    wanted = survey(PLAN, [root], rename_files=True).with_file(root / "new" / "0001.md", "text").changes
    assert len(wanted) == 5

    killed_at(lambda told: apply(wanted, state, on_step=told), words, number)
    begun = contents(root)
    recovered = recover(state)

    assert contents(root) == before
    assert not (root / "new").exists()
    assert len(recovered) == (0 if words == "checked" else 1)
    assert begun == before if words == "checked" else begun != before
    assert recover(state) == ()
    assert apply(wanted, state).files == 5


@pytest.mark.parametrize("number", [1, 3])
def test_an_undo_that_was_killed_is_taken_back_and_can_be_made_again(root: Path, state: Path, number: int) -> None:
    before = contents(root)
    apply(changes(root), state)
    after = contents(root)

    killed_at(lambda told: undo(state, root, on_step=told), "replaced", number)
    recover(state)
    assert contents(root) == after
    undo(state, root)
    assert contents(root) == before


def test_an_undo_killed_before_it_was_noted_is_known_by_its_own_record(root: Path, state: Path) -> None:
    before = contents(root)
    done = apply(changes(root), state)
    undo(state, root)
    assert done.originals is not None
    done.originals.with_status("done")

    assert undo(state, root).originals is None
    assert contents(root) == before


def test_what_somebody_changed_after_a_kill_is_left_to_them(root: Path, state: Path) -> None:
    wanted = changes(root)
    killed_at(lambda told: apply(wanted, state, on_step=told), "replaced", 2)
    (root / "a.py").write_bytes(b"mine")

    with pytest.raises(ConfigError, match="has its bytes; remove it to go on"):
        recover(state)

    assert contents(root)["a.py"] == b"mine"
    assert contents(root)["b/c.md"] == b"\xef\xbb\xbf`fs.list`\r\nmore\r\n"


def test_what_is_no_whole_record_is_passed_over(root: Path, state: Path) -> None:
    apply(changes(root), state)
    for name, raw in {
        "torn": b'{"format": 1',
        "newer": b'{"format": 2}',
        "other": b"[]",
        "odd": b'{"format": 1, "entries": 3}',
    }.items():
        (state / name).mkdir()
        (state / name / "journal.json").write_bytes(raw)
    (state / "killed-early").mkdir()
    (state / "killed-early" / "originals").write_bytes(b"x")

    assert len(kept(state)) == 1
    recover(state)
    assert not (state / "killed-early").exists()
    assert kept(state / "nowhere") == ()


def test_only_the_last_ones_are_kept(root: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truename.migration.originals._KEPT", 2)
    for name in ("one", "two", "three", "four"):
        (root / "a.py").write_bytes(b'"fs.list"')
        apply(changes(root), state, note=name)

    assert [one.note for one in kept(state)] == ["four", "three"]


def test_two_at_a_time_are_refused(root: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state.mkdir(parents=True)
    monkeypatch.setattr("truename.ledger.lock._PATIENCE", 0.0)
    monkeypatch.setattr(applying, "locked", lambda path, shared: locked(path, shared=shared, patience=0.0))

    with locked(state / "journal", shared=False), pytest.raises(LedgerError) as caught:
        apply(changes(root), state)

    assert caught.value.code == "busy"


def test_the_record_is_for_its_owner_alone(root: Path, state: Path) -> None:
    done = apply(changes(root), state)
    assert done.originals is not None

    assert stat.S_IMODE(done.originals.directory.stat().st_mode) == 0o700
    assert json.loads((done.originals.directory / "journal.json").read_bytes())["status"] == "done"


def test_a_repository_of_two_thousand_files(tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make(tmp_path / "large", 2_000)
    monkeypatch.chdir(root)
    before = contents(root)
    found = survey(plan(RENAMES), [root], rename_files=True)
    moved = {str(change.path.relative_to(root)): str(change.target.relative_to(root)) for change in found.changes}

    apply(found.changes, state)
    after = contents(root)

    assert len(found.changes) == 600
    assert {moved.get(path, path) for path in before} == set(after)
    assert all(after[path] == raw for path, raw in before.items() if path not in moved)
    for change in found.changes:
        assert change.before is not None
        back = after[str(change.target.relative_to(root))]
        for edit in sorted(change.edits, key=lambda edit: edit.start):
            back = back.replace(edit.new.encode(), edit.old.encode(), 1)
        assert back == change.before
    assert survey(plan(RENAMES), [root], rename_files=True).changes == ()
    undo(state, root)
    assert contents(root) == before


def test_a_large_repository_with_one_file_in_the_way_stays_as_it_is(tmp_path: Path, state: Path) -> None:
    root = make(tmp_path / "large", 500)
    found = survey(plan(RENAMES), [root])
    found.changes[-1].path.chmod(0o444)
    before = contents(root)

    with pytest.raises(ConfigError, match="it is read-only"):
        apply(found.changes, state)

    assert contents(root) == before


FILES = st.dictionaries(
    st.sampled_from(["a", "b.md", "c/d", "c/e.json", "fs.list.json"]),
    st.lists(st.sampled_from([b'"fs.list"', b"\r\n", b"\xff", b"fs.list", b"`fs.list`", b"\0", b" "])).map(b"".join),
    min_size=1,
)


@given(FILES, st.booleans())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_undo_after_apply_is_nothing_at_all(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes], rename_files: bool
) -> None:
    base = tmp_path_factory.mktemp("law")
    for name, raw in files.items():
        path = base / "r" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
    found = survey(PLAN, [base / "r"], rename_files=rename_files)

    apply(found.changes, base / "state")
    again = survey(PLAN, [base / "r"], rename_files=rename_files)
    undo(base / "state", Path.cwd())

    assert again.changes == ()
    assert contents(base / "r") == files


def killed_at(run: Callable[[Callable[[str, int, int], None]], object], word: str, number: int) -> None:
    """Run it in a child that ends, without a word, at this step."""

    def told(said: str, count: int, _: int) -> None:
        if (said, count) == (word, number):
            os._exit(9)

    child = os.fork()
    if child == 0:
        try:
            run(told)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


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


class _FailingSystem:
    """The operating system, which fails at the n-th rename."""

    def __init__(self, number: int) -> None:
        self._left = number

    def replace(self, old: Path, new: Path) -> None:
        self._left -= 1
        if self._left == 0:
            _full()
        os.replace(old, new)  # noqa: PTH105 - what is under test says it so

    def __getattr__(self, name: str) -> object:
        return getattr(os, name)
