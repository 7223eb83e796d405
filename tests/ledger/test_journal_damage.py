"""The journal under damage: torn at any byte it opens; changed, missing, moved lines are refused by their number."""

from __future__ import annotations

import logging
import shutil
import threading
import zlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.ledger.stories import SETTINGS, claim
from tests.support.ledger_journal import journal
from truename import Ledger, ToolId
from truename.errors import LedgerError
from truename.files.lock import locked
from truename.ledger import Redirect, Retire, opening

if TYPE_CHECKING:
    from pathlib import Path

NEWCOMER = ToolId.parse("new/n")


EVENTS = (
    SETTINGS,
    claim("a_b", "a/b"),
    claim("sf_get_leads", "salesforce/get_leads", server="salesforce"),
    claim("a_c", "a/c", table="cursor"),
    Retire(name="a_b"),
    Redirect(name="fs.list", id=ToolId.parse("a/c")),
)


def written(path: Path) -> bytes:
    path.write_bytes(journal(EVENTS))
    return path.read_bytes()


def holders(ledger: Ledger) -> dict[str, str]:
    standings = {name: ledger.standing(name) for name in ("a_b", "sf_get_leads", "a_c", "fs.list")}
    return {name: standing.status for name, standing in standings.items() if standing is not None}


def damage(path: Path) -> LedgerError:
    before = path.read_bytes()
    errors = []
    for readonly in (True, False):
        with pytest.raises(LedgerError) as caught:
            Ledger.open(path, readonly=readonly)
        errors.append(caught.value)
    assert errors[0] == errors[1]
    assert path.read_bytes() == before
    return errors[0]


def test_a_journal_cut_at_any_byte_is_imported_as_far_as_it_is_whole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = written(tmp_path / "whole")
    for cut in range(1, len(whole)):
        path = tmp_path / f"cut-{cut}"
        path.write_bytes(whole[:cut])
        lines = whole[:cut].count(b"\n")
        torn = whole[cut - 1] != ord("\n")
        caplog.clear()

        reader = Ledger.open(path, readonly=True)
        assert path.read_bytes() == whole[:cut]
        assert [record.levelno for record in caplog.records] == [logging.WARNING] * torn
        assert all(f"line {lines + 1} was not written whole" in record.message for record in caplog.records)

        if cut % 16 == 0 or not torn:
            ledger = Ledger.open(path)
            assert holders(ledger) == holders(reader)
            ledger.record([claim("n", "new/n")])
            ledger.close()
            assert (tmp_path / f"cut-{cut}.journal").read_bytes() == whole[:cut]
            assert Ledger.open(path, readonly=True).holder("n") == NEWCOMER


def test_every_whole_line_counts(tmp_path: Path) -> None:
    whole = written(tmp_path / "whole").splitlines(keepends=True)
    path = tmp_path / "cut"
    seen = []
    for count in range(1, len(whole) + 1):
        path.write_bytes(b"".join(whole[:count]))
        seen.append(len(holders(Ledger.open(path, readonly=True))))

    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0, 4)


def test_a_changed_byte_anywhere_is_refused_with_its_line(tmp_path: Path) -> None:
    whole = written(tmp_path / "whole")
    path = tmp_path / "damaged"
    for at in range(len(whole) - 1):
        if whole[at] == ord("\n"):
            continue
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x01]) + whole[at + 1 :])
        with pytest.raises(LedgerError) as caught:
            Ledger.open(path, readonly=True)
        line = whole[:at].count(b"\n") + 1
        # The header's random part is proved by the line behind it.
        assert caught.value.code in {"corrupt", "newer"}
        # Without its first word it is no journal, but somebody's file.
        is_named = caught.value.code == "corrupt" and at >= len("truename-ledger")
        assert not is_named or caught.value.line in {line, 2 if line == 1 else line}


@pytest.mark.parametrize("number", range(2, 7))
def test_a_missing_line_is_refused_where_the_next_one_stands(tmp_path: Path, number: int) -> None:
    path = tmp_path / "ledger"
    lines = written(path).splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: number - 1] + lines[number:]))

    error = damage(path)

    assert (error.code, error.line, error.path) == ("corrupt", number, path)
    assert str(error) == (
        f"{path}, line {number} is damaged (its checksum does not fit). "
        "Restore the file from a copy; nothing was changed."
    )


@pytest.mark.parametrize("number", range(2, 7))
def test_swapped_and_doubled_lines_are_refused(tmp_path: Path, number: int) -> None:
    path = tmp_path / "ledger"
    lines = written(path).splitlines(keepends=True)
    swapped = [*lines[: number - 1], lines[number], lines[number - 1], *lines[number + 1 :]]
    doubled = [*lines[:number], *lines[number - 1 :]]

    path.write_bytes(b"".join(swapped))
    assert (damage(path).code, damage(path).line) == ("corrupt", number)
    path.write_bytes(b"".join(doubled))
    assert (damage(path).code, damage(path).line) == ("corrupt", number + 1)


def test_lines_of_another_journal_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    lines = written(path).splitlines(keepends=True)
    other = journal(EVENTS, mark="fedcba9876543210").splitlines(keepends=True)

    path.write_bytes(b"".join(lines + other[1:]))
    assert damage(path).line == len(lines) + 1
    path.write_bytes(b"".join(lines[:1] + other[1:]))
    assert damage(path).line == 2


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"no json", "Expecting value"),
        (b"5", ""),
        (b'{"event": "other"}', "unknown kind of event: 'other'"),
        (b'{"event": "redirect", "name": "x", "id": "nothing"}', "'nothing' is not a tool id"),
    ],
)
def test_a_line_that_is_whole_and_says_no_event_is_refused(tmp_path: Path, body: bytes, reason: str) -> None:
    path = tmp_path / "ledger"
    header = b"truename-ledger 1 0123456789abcdef"
    path.write_bytes(b"%s\n%08x %s\n" % (header, zlib.crc32(body, zlib.crc32(header)), body))

    error = damage(path)

    assert (error.code, error.line) == ("corrupt", 2)
    assert reason in error.reason


@pytest.mark.parametrize(
    "content",
    [
        b"my precious notes",
        b"my precious notes\n",
        b"\n",
        b"truename-ledger\n",
        b"truename-ledger x\n",
        b"truename-ledger 0 0123456789abcdef\n",
        b"truename-ledger 1\n",
        b"truename-ledger 1 0123456789abcdef \n",
        b"truename-ledger is my favourite",
        b"TRUENAME-LEDGER 1 0123456789abcdef\n",
        b"\xff\xfe\x00",
        b"{}",
    ],
)
def test_a_file_that_is_no_ledger_is_never_changed(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)

    error = damage(path)

    assert error.code == "corrupt"
    assert content.startswith(b"truename-ledger") == (error.reason == "it is not a ledger")


def test_a_journal_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    path.write_bytes(b"truename-ledger 5 0123456789abcdef\n")

    error = damage(path)

    assert (error.code, error.version) == ("newer", 5)
    assert str(error) == (f"{path} was written by a newer Truename (format 5). Upgrade Truename; nothing was changed.")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(noise=st.binary(min_size=1, max_size=40), at=st.integers(0, 10_000))
def test_noise_put_in_is_never_taken_for_a_promise(tmp_path: Path, noise: bytes, at: int) -> None:
    path = tmp_path / "ledger"
    path.unlink(missing_ok=True)
    whole = written(path)
    at %= len(whole)
    path.write_bytes(whole[:at] + noise + whole[at:])

    with pytest.raises(LedgerError) as caught:
        Ledger.open(path, readonly=True)

    assert caught.value.code in {"corrupt", "newer"}
    line = caught.value.line
    is_named = caught.value.code == "corrupt" and at >= len("truename-ledger")
    assert not is_named or 1 <= line <= whole[:at].count(b"\n") + 1 + noise.count(b"\n") + 1


def test_an_empty_file_is_an_empty_ledger(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    path.touch()

    Ledger.open(path).record([claim("n", "new/n")])

    assert Ledger.open(path).holder("n") == NEWCOMER


def test_a_journal_that_was_imported_before_is_not_imported_over_it(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    written(path)
    Ledger.open(path).close()
    path.with_name("ledger.revision").unlink()
    written(path)

    with pytest.raises(LedgerError, match=r"it is a journal, and ledger\.journal is there already"):
        Ledger.open(path)


def test_a_journal_that_can_not_be_imported_stays_and_leaves_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ledger"
    whole = written(path)

    def no_room(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copy2", no_room)
        with pytest.raises(LedgerError, match="No space left on device"):
            Ledger.open(path)
    assert path.read_bytes() == whole
    assert {one.name for one in tmp_path.iterdir()} == {"ledger", "ledger.lock"}
    assert Ledger.open(path).holder("a_c") == ToolId.parse("a/c")


def test_processes_that_find_a_journal_at_once_import_it_once(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    written(path)
    ledgers: list[Ledger] = []
    threads = [threading.Thread(target=lambda: ledgers.append(Ledger.open(path))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [holders(ledger) for ledger in ledgers] == [holders(ledgers[0])] * 6


@pytest.mark.parametrize("readonly", [True, False])
def test_a_journal_that_another_process_imports_is_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, readonly: bool
) -> None:
    path = tmp_path / "ledger"
    written(path)
    monkeypatch.setattr(opening, "locked", lambda path, shared: locked(path, shared=shared, patience=0.0))

    with locked(path, shared=False):
        if readonly:
            assert Ledger.open(path, readonly=True).holder("a_c") == ToolId.parse("a/c")
        else:
            with pytest.raises(LedgerError) as caught:
                Ledger.open(path)
            assert (caught.value.code, caught.value.path) == ("busy", path)
