"""The book of pins: shared by processes, whole after any kill, and never begun anew over what was trusted."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from truename import ToolId
from truename.errors import StoreError
from truename.identity import definition_digest
from truename.storage import StateLocation
from truename.storage.sqlite import SqliteDatabase
from truename.trust import PinnedTool, PinStore
from truename.trust.pins import KeptDefinitions, check_pins, digest_of

if TYPE_CHECKING:
    from pathlib import Path

PUSH = ToolId.parse("git@1/push@1")


def pin(description: str = "Push.", id: ToolId | None = PUSH) -> PinnedTool:
    content: Any = {"name": "push", "description": description} if id else description
    digest = definition_digest(content) if id else digest_of(content)
    return PinnedTool(id=id, server="git", name="push", digest=digest, content=content, at="")


def test_what_is_trusted_is_found_by_other_processes(place: StateLocation) -> None:
    with PinStore(place) as one, PinStore(place) as other:
        one.trust([pin(), pin("How to use it.", None)], by="ann")
        assert other.refresh()
        assert {key: (found.by, found.content) for key, found in other.pins().items()} == {
            "git@1/push@1": ("ann", {"name": "push", "description": "Push."}),
            "server:git": ("ann", "How to use it."),
        }
        assert not other.refresh()


def test_of_two_gateways_that_see_a_tool_first_one_pins_it_and_neither_overrules_a_person(place: StateLocation) -> None:
    with PinStore(place) as one, PinStore(place) as other:
        one.trust([pin("As one sees it.")])
        other.trust([pin("As the other sees it."), pin("How to use it.", None)])
        assert [found.content for found in other.pins().values()] == [pin("As one sees it.").content, "How to use it."]
        # What came meanwhile is news still.
        assert other.refresh()
        one.note([pin("Worse.")], "rejected", by="ann")
        other.trust([pin("Worse.")])
        assert other.pins()["git@1/push@1"].content == pin("As one sees it.").content
        assert [found.word for found in other.seen().values()] == ["rejected"]
        assert other.refresh()
        other.trust([pin("Worse.")], by="bob")
        assert (other.pins()["git@1/push@1"].by, other.seen()) == ("bob", {})


def test_what_is_trusted_waits_no_longer(place: StateLocation) -> None:
    with PinStore(place) as book:
        book.trust([pin()])
        book.note([pin("Pushes and tells.")])
        assert [one.word for one in book.seen().values()] == ["waiting"]
        book.trust([pin("Pushes and tells.")])
        assert book.pins()["git@1/push@1"].content["description"] == "Pushes and tells."
        assert book.seen() == {}


def test_a_no_stays_a_no_when_it_is_seen_again(place: StateLocation) -> None:
    with PinStore(place) as book:
        book.note([pin("Worse.")], "rejected", by="ann")
        book.note([pin("Worse.")])
        assert [(one.word, one.by) for one in book.seen().values()] == [("rejected", "ann")]


def test_a_server_with_ever_new_definitions_fills_no_disk_and_a_no_is_kept(place: StateLocation) -> None:
    with PinStore(place) as book:
        book.note([pin("rejected")], "rejected")
        for number in range(100):
            book.note([pin(f"number {number}")])
        assert len(book.seen()) == 20
        assert "rejected" in {one.word for one in book.seen().values()}
        assert any(one.content["description"] == "number 99" for one in book.seen().values())


def test_what_is_forgotten_is_new_again(place: StateLocation) -> None:
    with PinStore(place) as book:
        book.trust([pin()])
        book.note([pin("Other.")])
        book.forget(["git@1/push@1"])
        assert (book.pins(), book.seen()) == ({}, {})


def test_a_definition_too_large_to_keep_is_known_by_its_digest(place: StateLocation) -> None:
    with PinStore(place) as book:
        large = pin("x" * 2_000_000)
        book.trust([large])
        assert (book.pins()["git@1/push@1"].content, book.pins()["git@1/push@1"].digest) == (None, large.digest)


@pytest.mark.parametrize("digits", ['{"a": NaN}', '{"a": 1e400}'])
def test_a_definition_that_is_no_plain_json_is_known_by_its_digest(place: StateLocation, digits: str) -> None:
    number = float("nan") if "NaN" in digits else float("inf")
    content = {"name": "push", "inputSchema": {"maximum": number}}
    odd = PinnedTool(id=PUSH, server="git", name="push", digest=definition_digest(content), content=content, at="")
    with PinStore(place) as book:
        book.trust([odd])
        assert book.pins()["git@1/push@1"].digest == odd.digest


def tampered(path: Path, change: str) -> None:
    """Change a file as no version of this program does."""
    data = sqlite3.connect(path)
    data.execute(change)
    data.commit()
    data.close()


@pytest.mark.parametrize("change", ["content = replace(content, 'Push', 'Pull')", "content = '{'"])
@pytest.mark.parametrize("table", ["pin", "pin_seen"])
def test_a_pin_that_is_not_what_was_trusted_is_refused_when_it_is_read_and_stays(
    tmp_path: Path, change: str, table: str
) -> None:
    path = tmp_path / "pins"
    pull = replace(pin("Pull."), id=ToolId.parse("git@1/pull@1"), name="pull")
    with PinStore(path) as book:
        book.trust([pin(), pull])
        book.note([pin("Push, and tell.")])
    tampered(path, f"UPDATE {table} SET {change} WHERE key = 'git@1/push@1'")
    with PinStore(path) as book:
        for read in (
            lambda: book.pins()["git@1/push@1"],
            lambda: book.seen().get(("git@1/push@1", "sha256:0")),
            lambda: list(book.pins()),
            lambda: len(book.seen()),
        ):
            with pytest.raises(StoreError) as refused:
                read()
            assert refused.value.code == "corrupt"
        assert [*book.expect(["git@1/pull@1", "git@1/push@1"])] == ["git@1/push@1"]
        assert book.pins()["git@1/pull@1"].content == pull.content
        # Nobody's first sight replaces it.
        book.trust([pin("Pull.")])
        assert [*book.expect(["git@1/push@1"])] == ["git@1/push@1"]
    (problem,) = check_pins(StateLocation(path))
    assert "git@1/push@1" in problem


def test_a_key_that_is_none_is_found_when_all_is_read(tmp_path: Path) -> None:
    path = tmp_path / "pins"
    with PinStore(path) as book:
        book.trust([pin()])
    tampered(path, "UPDATE pin SET key = 'no id'")
    (problem,) = check_pins(StateLocation(path))
    assert "'no id'" in problem
    with PinStore(path) as book, pytest.raises(StoreError):
        dict(book.pins())


def test_a_start_reads_no_pin_and_a_list_those_of_its_tools_in_one_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [ToolId.parse(f"git@1/push{number}@1") for number in range(300)]
    with PinStore(tmp_path / "pins") as book:
        book.trust([pin(id=id) for id in ids])
        book.note([pin("Other.", id=id) for id in ids])
    read: list[int] = []
    rows = SqliteDatabase.rows

    def counted(data: SqliteDatabase, query: str, *values: object) -> list[tuple[object, ...]]:
        found = rows(data, query, *values)
        read.append(len(found))
        return found

    monkeypatch.setattr(SqliteDatabase, "rows", counted)
    with PinStore(tmp_path / "pins") as book:
        assert (book.waiting, sum(read)) == (300, 1)
        read.clear()
        keys = [*map(str, ids[:50]), "git@1/new@1"]
        assert book.expect(keys) == {}
        assert read == [100]
        assert sum(book.pins().get(key) is not None for key in keys) == 50
        assert book.seen()[keys[0], pin("Other.").digest].word == "waiting"
        assert read == [100]


def test_what_is_written_after_all_was_read_is_there_too(place: StateLocation) -> None:
    with PinStore(place) as book:
        assert (len(book.pins()), len(book.seen())) == (0, 0)
        book.take_changes()
        book.trust([pin()])
        book.note([pin("How to use it.", None)])
        assert ([*book.pins()], [one.key for one in book.seen().values()]) == (["git@1/push@1"], ["server:git"])
        assert [before for before, _ in book.take_changes()] == [KeptDefinitions()] * 2
        assert book.pins().get("git@1/pull@1") is None


def test_changes_are_told_once_with_what_was_there_before(place: StateLocation) -> None:
    with PinStore(place) as book, PinStore(place) as other:
        assert book.take_changes() == []
        book.expect(["git@1/push@1", "server:git"])
        other.trust([pin()], by="ann")
        assert book.take_changes() == []
        book.refresh()
        ((before, now),) = book.take_changes()
        assert (before.pin, now.pin and now.pin.by, book.take_changes()) == (None, "ann", [])
        book.note([pin("How to use it.", None)])
        ((before, now),) = book.take_changes()
        assert ([*before.seen], [one.word for one in now.seen.values()]) == ([], ["waiting"])


def test_pins_and_noes_follow_their_tools_to_new_ids_and_replace_nothing_there(place: StateLocation) -> None:
    new, other = ToolId.parse("git@2/push@1"), ToolId.parse("git@2/pull@1")
    rejected = pin("Push, and tell.")
    with PinStore(place) as book:
        book.trust([pin(), pin("Pull.", other)], by="ann")
        book.note([rejected], "rejected", by="ann")

        book.follow([(PUSH, new), (PUSH, other)])

        assert book.pins()[str(PUSH)] == replace(book.pins()[str(new)], id=PUSH)
        assert book.pins()[str(other)].digest == pin("Pull.").digest
        assert book.seen()[str(new), rejected.digest].word == "rejected"
