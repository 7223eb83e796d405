"""A run that was killed is found by the next one, and taken back."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.migration.conftest import PLAN, changes
from tests.migration.repository import contents
from truename.errors import ConfigError
from truename.migration import apply, recover, survey, undo
from truename.migration.rename_apply import recorded_migrations

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


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

    with pytest.raises(ConfigError, match="has the original; remove that directory to continue"):
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

    assert len(recorded_migrations(state)) == 1
    recover(state)
    assert not (state / "killed-early").exists()
    assert recorded_migrations(state / "nowhere") == ()


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
