"""The format of a journal: the oldest that can say what is in it, so that an older program reads what it can."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ledger.stories import show
from truename import Ledger
from truename.errors import LedgerError


def number(path: Path) -> int:
    return int(path.read_bytes().split()[1])


def begun(path: Path) -> Ledger:
    ledger = Ledger.open(path)
    show(ledger, "a/b", "a/c", style="on-conflict")
    ledger.redirect("old", "b")
    return ledger


def test_what_earlier_versions_wrote_stays_readable_to_them(tmp_path: Path) -> None:
    begun(tmp_path / "ledger")

    assert number(tmp_path / "ledger") == 1


@pytest.mark.parametrize("style", ["prefixed", "on-conflict"])
def test_a_name_with_a_server_s_part_or_a_number_is_what_they_do_not_know(tmp_path: Path, style: str) -> None:
    path = tmp_path / "ledger"
    tools = ("a/b", "a@2/b") if style == "on-conflict" else ("a/b",)
    show(Ledger.open(path), *tools, style=style)

    assert number(path) == 4
    name = {"prefixed": "a_b", "on-conflict": "b_2"}[style]
    assert Ledger.open(path).parts(name) == {"prefixed": ("a_", None), "on-conflict": ("", 2)}[style]


@pytest.mark.parametrize("first", [True, False])
def test_what_they_do_not_know_raises_the_format_and_keeps_every_line(tmp_path: Path, first: bool) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.open(path) if first else begun(path)
    before = [line[9:] for line in path.read_bytes().splitlines()[1:]] if path.exists() else []
    reader = None if first else Ledger.open(path, readonly=True)

    ledger.redirect("fs.list", "a/c", until="2027-02-01")
    assert number(path) == 2
    assert [line[9:] for line in path.read_bytes().splitlines()[1:]][:-1] == before
    inode = path.stat().st_ino
    ledger.break_name("gone")
    assert path.stat().st_ino == inode
    if reader is not None:
        assert reader.refresh()
        assert dict(reader.withdrawn) == dict(ledger.withdrawn)
    assert [file.name for file in tmp_path.iterdir() if file.name.endswith("draft")] == []


def test_an_older_program_refuses_it_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    older = begun(tmp_path / "ledger")
    Ledger.open(tmp_path / "ledger").break_name("gone")
    monkeypatch.setattr("truename.ledger.journal.FORMAT", 1)

    for use in (lambda: Ledger.open(tmp_path / "ledger"), older.refresh, lambda: older.retire("b")):
        with pytest.raises(LedgerError) as caught:
            use()
        assert (caught.value.code, caught.value.version) == ("newer", 2)


def test_a_format_that_can_not_be_raised_records_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger"
    ledger = begun(path)
    before = path.read_bytes()

    def no_room(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", no_room)
        with pytest.raises(LedgerError) as caught:
            ledger.break_name("gone")
    assert caught.value.code == "unusable"
    assert path.read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["ledger", "ledger.lock"]
    assert ledger.standing("gone") is None

    ledger.break_name("gone")
    assert Ledger.open(path).withdrawn["gone"].status == "broken"


def test_a_shorter_file_keeps_its_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truename.ledger.journal._COMPACT_FROM", 20)
    path = tmp_path / "ledger"
    ledger = begun(path)
    ledger.break_name("gone", protocol="0.3")
    header = path.read_bytes().split(b"\n")[0]
    for turn in range(40):
        show(ledger, "a/b", client=("openai", "cursor")[turn % 2], style="on-conflict")
        ledger.record([event for event in ledger.history("b") if event.kind == "claim"][:1])

    assert path.read_bytes().split(b"\n")[0] != header
    assert number(path) == 2
    assert Ledger.open(path).withdrawn["gone"].protocol == "0.3"
