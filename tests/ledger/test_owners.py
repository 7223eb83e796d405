"""URIs of resources belong to the server that first had them, over restarts and for every gateway on one ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.ledger.stories import show
from truename import Ledger
from truename.errors import LedgerError

if TYPE_CHECKING:
    from pathlib import Path


def number(path: Path) -> int:
    return int(path.read_bytes().split()[1])


def test_the_first_owner_stays_whoever_comes_and_is_known_again_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger, other = Ledger.open(path), Ledger.open(path)
    ledger.own([("file:///a", "disk"), ("file:///a", "copy")])
    other.own([("file:///a", "copy"), ("file:///b", "copy")])
    ledger.refresh()

    assert dict(ledger.owners) == dict(Ledger.open(path).owners) == {"file:///a": "disk", "file:///b": "copy"}


def test_nothing_new_writes_nothing_and_a_ledger_without_uris_stays_readable_to_older_programs(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.open(path)
    show(ledger, "a/b", style="on-conflict")
    ledger.own([])
    assert number(path) == 1

    ledger.own([("file:///a", "disk")])
    assert number(path) == 3
    size = path.stat().st_size
    ledger.own([("file:///a", "copy")])
    assert path.stat().st_size == size


def test_of_one_server_so_many_are_remembered_and_none_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truename.ledger.owners._MOST", 3)
    ledger = Ledger.memory()
    ledger.own([("x" * 2_049, "a"), ("x" * 2_048, "a")])
    ledger.own([(f"file:///{number}", server) for number in range(4) for server in ("a", "b")])

    kept = dict(ledger.owners)
    assert [list(kept.values()).count(server) for server in ("a", "b")] == [3, 2]
    assert "x" * 2_048 in kept
    ledger.own([("file:///9", "b"), ("file:///10", "b")])
    assert ledger.owners["file:///9"] == "b"
    assert "file:///10" not in ledger.owners


def test_a_file_put_in_its_place_that_forgot_an_owner_is_refused(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger")
    ledger.own([("file:///a", "disk")])
    Ledger.open(tmp_path / "other").own([("file:///a", "copy")])
    (tmp_path / "other").replace(tmp_path / "ledger")

    with pytest.raises(LedgerError) as caught:
        ledger.refresh()
    assert caught.value.code == "corrupt"


def test_what_two_programs_wrote_at_once_is_the_first_ones(tmp_path: Path) -> None:
    # A journal may hold both: whoever is first in it has it.
    ledger = Ledger.open(tmp_path / "ledger")
    ledger.own([("file:///a", "disk")])
    (event,) = ledger._core.state.events
    ledger.record([type(event)(uri="file:///a", server="copy")])  # type: ignore[call-arg]
    assert dict(Ledger.open(tmp_path / "ledger").owners) == {"file:///a": "disk"}
