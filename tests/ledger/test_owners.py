"""URIs of resources belong to the server that first had them, over restarts and for every gateway on one ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from truename import Ledger, ToolId
from truename.errors import LedgerError
from truename.ledger.events import Own

if TYPE_CHECKING:
    from pathlib import Path


def test_the_first_owner_stays_whoever_comes_and_is_known_again_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger, other = Ledger.open(path), Ledger.open(path)
    ledger.own([("file:///a", "disk"), ("file:///a", "copy")])
    other.own([("file:///a", "copy"), ("file:///b", "copy")])
    ledger.refresh()

    assert dict(ledger.owners) == dict(Ledger.open(path).owners) == {"file:///a": "disk", "file:///b": "copy"}


def test_nothing_new_writes_nothing(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger")
    ledger.own([("file:///a", "disk")])
    before = ledger.revision

    ledger.own([])
    ledger.own([("file:///a", "copy")])

    assert ledger.revision == before


def test_of_one_server_so_many_are_remembered_and_none_that_is_too_long(ledger: Ledger) -> None:
    ledger.own([("x" * 2_049, "a"), ("x" * 2_048, "a")])
    ledger.own([(f"file:///{number}", server) for number in range(3_999) for server in ("ab"[number % 2],)])
    ledger.own([("file:///y", "a"), ("file:///y", "b"), ("file:///z", "b")])

    kept = dict(ledger.owners)
    assert [list(kept.values()).count(server) for server in ("a", "b")] == [2_000, 2_000]
    assert ("x" * 2_048 in kept, "x" * 2_049 in kept) == (True, False)
    assert (ledger.owners["file:///y"], "file:///z" in ledger.owners) == ("b", False)


def test_a_file_put_in_its_place_that_forgot_an_owner_is_refused(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger")
    ledger.own([("file:///a", "disk")])
    Ledger.open(tmp_path / "other").own([("file:///a", "copy")])
    (tmp_path / "other").replace(tmp_path / "ledger")

    with pytest.raises(LedgerError) as caught:
        ledger.refresh()
    assert caught.value.code == "unusable"
    ledger.close()
    # What was committed since the last checkpoint stands in the log beside the file, which was not replaced.
    assert dict(Ledger.open(tmp_path / "ledger").owners) == {"file:///a": "disk"}


def test_what_two_programs_wrote_at_once_is_the_first_ones(ledger: Ledger) -> None:
    # A journal may hold both: whoever is first in it has it.
    ledger.record([Own(uri="file:///a", server="disk"), Own(uri="file:///a", server="copy")])

    assert dict(ledger.owners) == {"file:///a": "disk"}


def test_what_a_ledger_returns_is_a_mapping_that_shows_itself(ledger: Ledger) -> None:
    id = ToolId.parse("fs/list")
    ledger.own([("file:///a", "fs")])
    ledger.remember(None, (), [("fs", "list", id)])

    assert repr(ledger.owners) == "{'file:///a': 'fs'}"
    assert repr(ledger.held("universal")) == "{}"
    with pytest.raises(KeyError):
        ledger.held("universal")[id]
    with pytest.raises(KeyError):
        ledger.origins()[ToolId.parse("fs/other")]
