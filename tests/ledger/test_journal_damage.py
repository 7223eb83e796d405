"""The journal under damage: torn at any byte it opens; changed, missing, moved lines are refused by their number."""

from __future__ import annotations

import logging
import zlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.ledger.stories import claim, show
from truename import Ledger, ToolId
from truename.errors import LedgerError

if TYPE_CHECKING:
    from pathlib import Path

NEWCOMER = ToolId.parse("new/n")


def written(path: Path) -> bytes:
    ledger = Ledger.open(path)
    show(ledger, "a/b", "salesforce/get_leads")
    show(ledger, "a/b", "a/c", client="cursor")
    ledger.retire("a_b")
    ledger.redirect("fs.list", "a_c")
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


def test_a_journal_cut_at_any_byte_opens_and_is_mended_by_the_next_writer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = written(tmp_path / "whole")
    path = tmp_path / "cut"
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        kept = whole[:cut].rpartition(b"\n")[0]
        lines = kept.count(b"\n") + bool(kept)
        torn = cut > 0 and whole[cut - 1] != ord("\n")
        caplog.clear()

        reader = Ledger.open(path, readonly=True)
        assert path.read_bytes() == whole[:cut]
        assert [record.levelno for record in caplog.records] == [logging.WARNING] * torn
        assert all(f"line {lines + 1} was not written whole" in record.message for record in caplog.records)

        ledger = Ledger.open(path)
        assert holders(ledger) == holders(reader)
        ledger.record([claim("n", "new/n")])
        assert path.read_bytes().startswith(kept)

        caplog.clear()
        assert Ledger.open(path, readonly=True).holder("n") == NEWCOMER
        assert not caplog.records


def test_every_whole_line_counts(tmp_path: Path) -> None:
    whole = written(tmp_path / "whole").splitlines(keepends=True)
    path = tmp_path / "cut"
    seen = []
    for count in range(len(whole) + 1):
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
        assert caught.value.code == "newer" or caught.value.line in {line, 2 if line == 1 else line}


@pytest.mark.parametrize("number", range(2, 8))
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


@pytest.mark.parametrize("number", range(2, 8))
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
    other = written(tmp_path / "other").splitlines(keepends=True)

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

    assert (error.code, error.line, error.reason) == ("corrupt", 1, "it is no ledger")


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
    assert (
        1 <= caught.value.line <= whole[:at].count(b"\n") + 1 + noise.count(b"\n") + 1 or caught.value.code == "newer"
    )


def test_an_empty_file_is_an_empty_ledger(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    path.touch()

    Ledger.open(path).record([claim("n", "new/n")])

    assert Ledger.open(path).holder("n") == NEWCOMER


def test_a_journal_that_vanishes_while_it_is_in_use_is_told(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.open(path)
    ledger.record([claim("n", "new/n")])
    path.unlink()

    with pytest.raises(LedgerError) as caught:
        ledger.refresh()

    assert caught.value.code == "unusable"
    assert ledger.holder("n") == NEWCOMER
