"""Making a change in files, keeping what was there, giving it back."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.migration.conftest import PLAN, changes
from tests.migration.repository import RENAMES, contents, make
from truename.errors import ConfigError
from truename.migration import apply, plan, survey, undo
from truename.migration.rename_apply import recorded_migrations

pytestmark = pytest.mark.slow


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

    assert (again.files, again.originals, len(recorded_migrations(state))) == (0, None, 1)


def test_an_interrupt_is_taken_back_and_goes_on(root: Path, state: Path) -> None:
    before = contents(root)

    def interrupted(word: str, number: int, count: int) -> None:
        if (word, number) == ("replaced", 2):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        apply(changes(root), state, on_step=interrupted)

    assert contents(root) == before


def test_only_the_last_ones_are_kept(root: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truename.migration.rename_apply.MAX_ORIGINALS", 2)
    for name in ("one", "two", "three", "four"):
        (root / "a.py").write_bytes(b'"fs.list"')
        apply(changes(root), state, note=name)

    assert [one.note for one in recorded_migrations(state)] == ["four", "three"]


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


def test_files_with_long_names_that_begin_alike_are_changed(tmp_path: Path, state: Path) -> None:
    root = tmp_path / "long"
    root.mkdir()
    names = [f"{'request_' * 14}{number}.json" for number in range(3)] + ["\u5929" * 80 + ".md"]
    for name in names:
        (root / name).write_text('"fs.list"')

    apply(changes(root), state)

    assert {path.name: path.read_text() for path in root.iterdir()} == dict.fromkeys(names, '"fs_list"')
