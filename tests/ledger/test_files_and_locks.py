"""A ledger as a file: reading creates nothing, failures of the disk change nothing, writers wait for each other."""

from __future__ import annotations

import stat
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.ledger.stories import claim, show
from tests.shared import ROOT
from truename import Ledger, ToolId
from truename.errors import LedgerError
from truename.ledger import open_ledger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

AB = ToolId.parse("a/b")


def test_reading_creates_nothing(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "no" / "ledger", readonly=True)

    assert ledger.readonly
    assert dict(ledger.bindings()) == {}
    ledger.refresh()
    assert list(tmp_path.iterdir()) == []


def test_reading_only_shows_names_and_records_none(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    writer = Ledger.open(path)
    show(writer, "a/b")
    writer.close()
    before = path.read_bytes()

    ledger = Ledger.open(path, readonly=True)
    names = show(ledger, "a/b", "a/c")
    canonical = show(ledger, "a/b", client="native", style="canonical")

    assert dict(names) == {AB: "a_b", ToolId.parse("a/c"): "a_c"}
    assert dict(canonical) == {AB: "a@1/b@1"}
    assert path.read_bytes() == before


def test_a_reader_that_came_before_the_ledger_sees_it_when_it_is_there(tmp_path: Path) -> None:
    reader = Ledger.open(tmp_path / "ledger", readonly=True)
    assert (reader.has_news(), reader.refresh(), reader.history("x")) == (False, False, ())
    writer = Ledger.open(tmp_path / "ledger")
    writer.record([claim("x", "a/b")])

    assert (reader.has_news(), reader.refresh(), reader.holder("x")) == (True, True, AB)
    assert [event.kind for event in reader.history("x")] == ["claim"]


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda ledger: ledger.retire("a_b"), "a_b"),
        (lambda ledger: ledger.redirect("old", "a_b"), "old"),
        (lambda ledger: ledger.restyle(ledger.settings), "settings"),
    ],
)
def test_a_ledger_open_for_reading_refuses_to_change(
    tmp_path: Path, change: Callable[[Ledger], None], name: str
) -> None:
    show(Ledger.open(tmp_path / "ledger"), "a/b")
    reader = Ledger.open(tmp_path / "ledger", readonly=True)

    with pytest.raises(LedgerError) as caught:
        change(reader)

    assert (caught.value.code, caught.value.name) == ("readonly", name)


def test_a_reader_sees_what_is_written_when_it_looks_again(tmp_path: Path) -> None:
    writer = Ledger.open(tmp_path / "ledger")
    reader = Ledger.open(tmp_path / "ledger", readonly=True)
    writer.record([claim("x", "a/b")])

    assert reader.holder("x") is None
    reader.refresh()

    assert reader.holder("x") == AB


def test_folders_are_made_and_the_file_is_private(tmp_path: Path) -> None:
    path = tmp_path / "state" / "truename" / "ledger"

    show(Ledger.open(str(path)), "a/b")

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


_FULL = """
import resource, signal, sys
from tests.ledger.stories import show
from truename import Ledger
from truename.errors import LedgerError
from truename.ledger import open_ledger
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
no_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
ledger = Ledger.open(sys.argv[1])
show(ledger, "a/b")
for again in range(2):
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, no_limit[1]))
    if again:
        ledger.close()
        ledger = Ledger.open(sys.argv[1])
    try:
        show(ledger, "a/b", "a/c")
    except LedgerError as error:
        print(error.code, error.reason.partition(" (")[0])
    print(dict(show(ledger, "a/b")), ledger.holder("a_c"))
    resource.setrlimit(resource.RLIMIT_FSIZE, no_limit)
show(ledger, "a/b", "a/c")
print(Ledger.open(sys.argv[1]).holder("a_c"))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit of file sizes")
def test_a_full_disk_serves_what_is_on_record_and_records_when_there_is_room(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FULL, str(tmp_path / "ledger")], check=False, capture_output=True, text=True, cwd=ROOT
    )

    served = "{ToolId('a@1/b@1'): 'a_b'} None"
    assert done.stderr == ""
    assert done.stdout.splitlines() == [*("unusable it cannot be used", served) * 2, "a@1/c@1"]


@pytest.mark.parametrize("readonly", [True, False])
def test_a_path_that_is_a_folder_is_told(tmp_path: Path, readonly: bool) -> None:
    with pytest.raises(LedgerError) as caught:
        Ledger.open(tmp_path, readonly=readonly)

    assert (caught.value.code, caught.value.path) == ("unusable", tmp_path)
    assert "it is not a file; nothing was changed. Check the path." in str(caught.value)


def test_a_path_below_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(LedgerError) as caught:
        Ledger.open(tmp_path / "file" / "ledger")

    assert caught.value.code == "unusable"


def test_a_ledger_that_another_process_writes_is_busy_and_reads_on(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger, other = open_ledger(path, patience=0.02), Ledger.open(path)
    ledger.record([claim("x", "a/b")])

    with other.transaction():
        other.record([claim("y", "a/c")])
        assert (ledger.is_locked(), other.is_locked()) == (True, False)
        assert not ledger.refresh()
        assert (ledger.holder("x"), ledger.holder("y")) == (AB, None)
        with pytest.raises(LedgerError) as caught:
            ledger.record([claim("z", "a/b")])
    assert (caught.value.code, caught.value.path) == ("busy", path)
    assert "another process is writing; nothing was changed. Try again." in str(caught.value)
    assert not ledger.is_locked()
    ledger.record([claim("z", "a/b")])
    assert (ledger.holder("z"), ledger.holder("y")) == (AB, ToolId.parse("a/c"))


def test_what_a_transaction_recorded_before_it_raised_is_not_kept(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger")
    ledger.record([claim("x", "a/b")])

    def both() -> None:
        with ledger.transaction():
            ledger.record([claim("y", "a/c")])
            ledger.record([claim("x", "a/c")])

    with pytest.raises(LedgerError, match="is held by"):
        both()

    assert (ledger.holder("x"), ledger.holder("y")) == (AB, None)
    assert Ledger.open(tmp_path / "ledger").holder("y") is None


def test_a_projection_that_others_overtake_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, other = Ledger.open(tmp_path / "ledger"), Ledger.open(tmp_path / "ledger")
    whole, turns = Ledger.remember, iter(range(100))

    def overtaken(self: Ledger, *words: Any, **more: Any) -> bool:
        if self is ledger and more:
            show(other, f"other/n{next(turns)}", style="on-conflict")
        return whole(self, *words, **more)

    monkeypatch.setattr(Ledger, "remember", overtaken)

    assert list(show(ledger, "a/n0", style="on-conflict").values()) == ["a_n0"]
    assert next(turns) == 3


def test_who_may_not_wait_is_told_that_another_thread_writes(tmp_path: Path) -> None:
    ledger, other = Ledger.open(tmp_path / "ledger"), Ledger.open(tmp_path / "ledger")
    other.record([claim("x", "a/b")])
    told: list[tuple[bool, bool, bool]] = []

    def look() -> None:
        told.append((ledger.is_locked(), ledger.refresh(wait=False), ledger.has_news()))

    assert ledger.has_news()
    with ledger.transaction():
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        assert not ledger.refresh()
    # What the transaction read is news for who looks after it, once.
    assert told == [(True, False, True)]
    assert (ledger.has_news(), ledger.refresh(wait=False), ledger.has_news(), ledger.refresh()) == (
        *(True, True),
        *(False, False),
    )
    with ledger.transaction():
        ledger.record([claim("y", "a/c")])
        assert not ledger.has_news()
    assert not ledger.refresh()
