"""The book of pins: shared by processes, whole after any kill, and never begun anew over what was trusted."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from truename import ToolId
from truename.errors import StoreError
from truename.identity import definition_digest
from truename.trust import PinnedTool, PinStore
from truename.trust.pins import digest_of

if TYPE_CHECKING:
    from pathlib import Path

    from truename.storage import StateLocation

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


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE pin SET content = replace(content, 'Push', 'Pull')",
        "UPDATE pin SET key = 'no id'",
        "UPDATE pin SET content = '{'",
    ],
)
def test_a_pin_that_is_not_what_was_trusted_is_refused_and_stays(tmp_path: Path, change: str) -> None:
    path = tmp_path / "pins"
    with PinStore(path) as book:
        book.trust([pin()])
    data = sqlite3.connect(path)
    data.execute(change)
    data.commit()
    data.close()
    before = path.read_bytes()
    with pytest.raises(StoreError) as refused:
        PinStore(path)
    assert (refused.value.code, path.read_bytes()) == ("corrupt", before)


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
