"""What is kept of a journal outside of it: whatever somebody puts back, cuts off or empties is missed."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.audit import GENESIS, Anchor, AuditLog, AuditRecord, anchor_file, read_records, verify_log
from truename.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KEY = b"k" * 32


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def write(path: Path, *tools: str, key: bytes | None = None, max_bytes: int = 900) -> None:
    with AuditLog(path, key, max_bytes=max_bytes, anchor=anchor_file(path)) as journal:
        for tool in tools:
            journal.append([("call", {"tool": tool})])


def errors(path: Path, key: bytes | None = None, expected: Anchor | None = None) -> list[str]:
    return [one.kind for one in verify_log(path, key, anchor=anchor_file(path), expected=expected)[1]]


def last_of(path: Path, key: bytes | None = None) -> Anchor:
    record = [one for one in read_records(path, key) if isinstance(one, AuditRecord)][-1]
    return Anchor(record.number, record.hash)


def copied(path: Path, to: Path) -> Path:
    shutil.rmtree(to, ignore_errors=True)
    return shutil.copytree(path, to)


def emptied(path: Path, _: Path) -> None:
    for file in path.iterdir():
        file.unlink()


def emptied_but_locks(path: Path, _: Path) -> None:
    for file in path.iterdir():
        if file.suffix != ".lock":
            file.unlink()


def made_anew(path: Path, _: Path) -> None:
    shutil.rmtree(path)
    with AuditLog(path) as journal:
        journal.append([("call", {"tool": "other"})])


def replaced(path: Path, older: Path) -> None:
    copied(older, path)


def files_put_back(path: Path, older: Path) -> None:
    for file in path.iterdir():
        if not (older / file.name).exists():
            file.unlink()
    for file in older.iterdir():
        (path / file.name).write_bytes(file.read_bytes())


ROLLED_BACK: list[Callable[[Path, Path], None]] = [emptied, emptied_but_locks, made_anew, replaced, files_put_back]


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize("harm", ROLLED_BACK)
def test_a_journal_that_was_put_back_is_found_and_not_written_on(
    tmp_path: Path, harm: Callable[[Path, Path], None], key: bytes | None
) -> None:
    path = tmp_path / "audit"
    write(path, "a", "b", key=key)
    older = copied(path, tmp_path / "older")
    write(path, "c", "d", key=key)
    assert errors(path, key) == []

    harm(path, older)

    assert "truncated" in errors(path, key)
    # Without what is kept outside nothing is wrong with most of these.
    for alone in (True, False):
        with (
            pytest.raises(StoreError) as refused,
            AuditLog(path, key, alone=alone, anchor=anchor_file(path)) as journal,
        ):
            journal.append([("call", {"tool": "e"})])
        assert refused.value.code == "corrupt"


def test_who_put_another_journal_there_on_purpose_is_told_what_to_remove(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    write(path, "a")
    shutil.rmtree(path)

    with pytest.raises(StoreError) as refused:
        write(path, "b")

    assert f"if that was intended, remove {anchor_file(path)}" in str(refused.value)


def test_an_older_copy_alone_has_nothing_wrong(tmp_path: Path) -> None:
    write(tmp_path / "audit", "a")
    older = copied(tmp_path / "audit", tmp_path / "older")
    write(tmp_path / "audit", "b")

    assert verify_log(older)[1] == ()


def test_a_journal_and_its_anchor_both_put_back_are_found_by_what_was_kept_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    write(path, "a")
    older, state = copied(path, tmp_path / "older"), copied(tmp_path / "state", tmp_path / "older-state")
    write(path, "b")
    expected = last_of(path)
    assert errors(path, expected=expected) == []
    copied(older, path)
    copied(state, tmp_path / "state")

    assert errors(path) == []
    assert errors(path, expected=expected) == ["truncated"]


def test_what_was_kept_elsewhere_stays_good_when_the_journal_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    expected = [Anchor(0, GENESIS)]
    for tool in ("a", "b", "c"):
        write(path, tool)
        expected.append(last_of(path))

    assert [errors(path, expected=one) for one in expected] == [[]] * 4


def test_an_anchor_of_another_record_of_that_number_is_found(tmp_path: Path) -> None:
    write(tmp_path / "audit", "a")
    write(tmp_path / "other", "a")

    assert errors(tmp_path / "audit", expected=last_of(tmp_path / "other")) == ["truncated"]


def test_a_journal_that_is_begun_anew_on_purpose_is_taken_when_its_anchor_was_removed(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    write(path, "a")
    path.rename(tmp_path / "archived")
    with pytest.raises(StoreError):
        write(path, "b")

    anchor_file(path).unlink()
    write(path, "b")

    assert errors(path) == []


@pytest.mark.parametrize("raw", [b"x", b"{}\n" * 100, b"\0" * 512, b"x" * 4_096])
def test_an_anchor_that_was_damaged_is_found_and_nothing_is_written(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "audit"
    write(path, "a")

    anchor_file(path).write_bytes(raw)

    assert errors(path) == ["changed"]
    with pytest.raises(StoreError, match=r"anchor .* is damaged"):
        write(path, "b")


def test_an_anchor_made_with_another_key_is_damaged(tmp_path: Path) -> None:
    write(tmp_path / "audit", "a", key=KEY)
    write(tmp_path / "other", "a", key=b"o" * 32)

    anchor_file(tmp_path / "audit").write_bytes(anchor_file(tmp_path / "other").read_bytes())

    assert errors(tmp_path / "audit", KEY) == ["changed"]


def test_commands_beside_a_gateway_keep_one_anchor(tmp_path: Path) -> None:
    path, anchor = tmp_path / "audit", anchor_file(tmp_path / "audit")
    with AuditLog(path, anchor=anchor) as gateway:
        for number in range(6):
            gateway.append([("call", {"tool": f"g{number}"})])
            with AuditLog.beside(path, anchor=anchor) as command:
                command.append([("call", {"tool": f"c{number}"})])
                gateway.append([("call", {"tool": f"h{number}"})])
                command.append([("call", {"tool": f"d{number}"})])
            assert errors(path) == []
    older = copied(path, tmp_path / "older")
    with AuditLog.beside(path, anchor=anchor) as command:
        command.append([("call", {"tool": "last"})])
    copied(older, path)

    assert errors(path) == ["truncated"]


def test_an_anchor_that_is_removed_while_a_gateway_runs_is_made_again(tmp_path: Path) -> None:
    path, anchor = tmp_path / "audit", anchor_file(tmp_path / "audit")
    with AuditLog(path, anchor=anchor) as gateway:
        gateway.append([("call", {"tool": "a"})])
        anchor.unlink()
        gateway.append([("call", {"tool": "b"})])

    assert anchor.exists()
    assert errors(path) == []


def test_an_anchor_that_can_not_be_written_is_told_and_keeps_no_record_from_being_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "state").write_text("")

    write(tmp_path / "audit", "a", "b")

    assert verify_log(tmp_path / "audit") == (3, ())
    assert [one.getMessage().partition(":")[0] for one in caplog.records] == [
        f"Cannot write the anchor {anchor_file(tmp_path / 'audit')}"
    ]


def test_a_kill_between_a_record_and_its_anchor_is_nothing_wrong(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    write(path, "a")
    before = anchor_file(path).read_bytes()
    write(path, "b", "c")
    anchor_file(path).write_bytes(before)

    assert errors(path) == []
    write(path, "d")
    assert errors(path) == []
    assert anchor_file(path).read_bytes() != before


def test_the_anchor_is_its_owners_alone(tmp_path: Path) -> None:
    write(tmp_path / "audit", "a")
    anchor = anchor_file(tmp_path / "audit")

    assert (anchor.stat().st_mode & 0o777, anchor.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_link_to_an_older_copy_in_the_place_of_a_journal_is_found(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    write(path, "a")
    copied(path, tmp_path / "older")
    write(path, "b")
    path.rename(tmp_path / "away")
    path.symlink_to(tmp_path / "older")

    assert errors(path) == ["truncated"]
    with pytest.raises(StoreError, match="an older copy"):
        write(path, "c")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes by name here")
def test_a_pipe_in_the_place_of_an_anchor_is_not_waited_for(tmp_path: Path) -> None:
    write(tmp_path / "audit", "a")
    anchor_file(tmp_path / "audit").unlink()
    os.mkfifo(anchor_file(tmp_path / "audit"))

    assert errors(tmp_path / "audit") == ["changed"]


NO_ANCHORS = ["", "1", "1:", f"1:{GENESIS}\n", *(f"{one}:{'a' * 64}" for one in ("01", "-1", "0", "", "\u0661"))]


@pytest.mark.parametrize("text", [*NO_ANCHORS, f"1:{'A' * 64}", f"1:{'a' * 63}"])
def test_what_is_no_anchor_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="NUMBER:HASH"):
        Anchor.parse(text)


@pytest.fixture(scope="module")
def history() -> Iterator[Path]:
    """All states that a journal's directory had, one after each record, in several files."""
    with tempfile.TemporaryDirectory() as folder:
        path, kept = Path(folder, "audit"), Path(folder, "history")
        for number in range(8):
            write_at(path, Path(folder, "anchor"), f"tool-{number}")
            shutil.copytree(path, kept / str(number))
        yield Path(folder)


def write_at(path: Path, anchor: Path, tool: str) -> None:
    with AuditLog(path, max_bytes=600, anchor=anchor) as journal:
        journal.append([("call", {"tool": tool})])


@given(st.data())
def test_whatever_older_files_are_put_together_the_end_is_missed(history: Path, data: st.DataObject) -> None:
    """Each file of the journal is as it is, as it once was, cut off anywhere, or gone; the anchor is as it is."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "audit")
        shutil.copytree(history / "audit", path)
        files = sorted(one for one in path.iterdir() if one.suffix in {".jsonl", ".head"})
        before = {one.name: one.read_bytes() for one in files}
        for file in files:
            stage = data.draw(st.integers(0, 7), label=file.name)
            what = data.draw(st.sampled_from(["as it is", "older", "cut off", "gone"]), label="what")
            older = history / "history" / str(stage) / file.name
            if what == "older":
                file.write_bytes(older.read_bytes() if older.exists() else b"")
            elif what == "cut off":
                file.write_bytes(before[file.name][: data.draw(st.integers(0, len(before[file.name]) - 1), label="at")])
            elif what == "gone":
                file.unlink()
        now = {one.name: one.read_bytes() for one in path.iterdir() if one.name in before}
        is_whole = all(now.get(name) == raw for name, raw in before.items() if name != "journal.head")

        broken = verify_log(path, anchor=history / "anchor")[1]

        if not is_whole:
            assert broken != ()
        if now == before:
            assert broken == ()
