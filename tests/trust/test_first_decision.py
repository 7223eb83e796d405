"""Of two people who decide at once in two processes, one does: the decision that is stored first counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.trust_pending import call, wanted
from truename import ToolId
from truename.config import Config
from truename.identity import definition_digest
from truename.trust import PinnedTool, PinStore, SeenDefinition
from truename.trust.approval_decisions import ApprovalDecisions
from truename.trust.approval_queue import ApprovalQueue
from truename.trust.rename_matching import RenameMatch
from truename.trust.renames import RenameStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from truename.policy import Scope
    from truename.storage import StateLocation
    from truename.trust.renames import ArrivedTool


@pytest.mark.parametrize("first", ["call", "arguments", "always"])
@pytest.mark.parametrize("second", ["call", "arguments", "always"])
def test_a_call_is_decided_on_once(tmp_path: Path, first: Scope, second: Scope) -> None:
    (tmp_path / "truename.toml").write_text('[mcpServers.git]\ncommand = "git"\n')
    config = Config(path=tmp_path / "truename.toml")
    with ApprovalQueue(config.state_location()) as queue:
        key = queue.ask(wanted(call(x=1)), most=10, lasts=600.0).key
    with ApprovalDecisions(config) as one, ApprovalDecisions(config) as other:
        seen, also_seen = one.pending(key), other.pending(key)
        assert seen is not None
        assert also_seen is not None
        assert one.decide(seen, first, approved=False, by="ann", message="no") is not None
        assert other.decide(also_seen, second, approved=True, by="ben") is None
        (kept,) = other.decisions()
        assert (kept.by, kept.state, kept.scope) == ("ann", "rejected", first)
        assert one.waiting() == other.waiting() == []
    with ApprovalQueue(config.state_location()) as queue:
        # The decision on a single call is found by its key; after another one the next such call waits anew.
        assert (queue.ask(wanted(call(x=1)), most=10, lasts=600.0).key == key) is (first == "call")


def test_a_call_that_waits_again_is_decided_on_again(tmp_path: Path) -> None:
    (tmp_path / "truename.toml").write_text('[mcpServers.git]\ncommand = "git"\n')
    config = Config(path=tmp_path / "truename.toml")
    with ApprovalQueue(config.state_location()) as queue, ApprovalDecisions(config) as decisions:
        for _ in range(3):
            waiting = queue.ask(wanted(call(x=1)), most=10, lasts=600.0)
            made = decisions.decide(waiting, "call", approved=True, by="ann")
            assert made is not None
            decisions.revoke(made.key)


def definition(text: str, name: str = "push") -> PinnedTool:
    content = {"name": name, "description": text}
    id = ToolId.parse(f"git@1/{name}@1")
    return PinnedTool(id=id, server="git", name=name, digest=definition_digest(content), content=content, at="")


@pytest.mark.parametrize("is_accepted", [True, False])
@pytest.mark.parametrize("answers_otherwise", [True, False])
def test_a_definition_is_reviewed_once(place: StateLocation, *, is_accepted: bool, answers_otherwise: bool) -> None:
    new = definition("Push it.")
    with PinStore(place) as one, PinStore(place) as other:
        one.trust([definition("Push.")])
        one.note([new])
        other.refresh()
        (seen,), (also_seen,) = one.pending(10), other.pending(10)
        assert one.review(seen, accepted=is_accepted, by="ann")
        assert not other.review(also_seen, accepted=is_accepted is not answers_otherwise, by="ben")
        other.refresh()
        for book in (one, other):
            pin = book.pins()["git@1/push@1"]
            assert (pin.digest == new.digest) is is_accepted
            assert {seen.by for seen in book.seen().values()} == (set() if is_accepted else {"ann"})
            assert book.pending(10) == []


@pytest.mark.parametrize("is_accepted", [True, False])
@pytest.mark.parametrize("answers_otherwise", [True, False])
def test_what_was_rejected_or_trusted_is_reviewed_again_once(
    place: StateLocation, *, is_accepted: bool, answers_otherwise: bool
) -> None:
    with PinStore(place) as one, PinStore(place) as other:
        one.trust([definition("Push.")])
        if is_accepted:
            one.note([definition("Push it.")], "rejected", by="eve")
        other.refresh()
        known, also_known = (
            next(iter(book.seen().values())) if is_accepted else book.pins()["git@1/push@1"] for book in (one, other)
        )
        assert one.review(known, accepted=is_accepted, by="ann")
        assert not other.review(also_known, accepted=is_accepted is not answers_otherwise, by="ben")
        assert one.pins()["git@1/push@1"].by == ("ann" if is_accepted else "")
        assert [seen.by for seen in one.seen().values()] == ([] if is_accepted else ["ann"])


def test_of_several_definitions_those_are_reviewed_that_are_on_record_as_they_were_read(place: StateLocation) -> None:
    names = ("push", "pull", "tag")
    with PinStore(place) as one, PinStore(place) as other:
        one.note([definition("It.", name) for name in names])
        other.refresh()
        read = other.pending(10)
        one.forget(["git@1/pull@1"])
        one.note([definition("Another.", "pull")])
        assert other.review_all(read, accepted=True, by="ann") == [True, False, True]
        assert {pin.name for pin in other.pins().values()} == {"push", "tag"}
        assert [seen.content["description"] for seen in other.pending(10)] == ["Another."]


def test_a_definition_that_nobody_saw_is_not_reviewed(place: StateLocation) -> None:
    unknown = definition("Push.")
    with PinStore(place) as book:
        assert not book.review(SeenDefinition(**vars(unknown)), accepted=True, by="ann")
        assert not book.review(unknown, accepted=False, by="ann")
        assert not book.pins()
        assert not book.seen()


READ, PAGE = ToolId.parse("fs@1/read@1"), ToolId.parse("fs@1/page@1")
RENAMED: dict[str, Callable[[RenameStore, ArrivedTool, str], ArrivedTool | None]] = {
    "accept": lambda book, one, by: book.accept(PAGE, READ, by=by, shown=one),
    "reject": lambda book, one, by: book.reject(PAGE, by=by, shown=one),
}


def renamed(book: RenameStore) -> None:
    """Have a server drop a tool and bring another one, which it probably was."""
    said = {READ: "sha256:old", PAGE: "sha256:new"}
    for present in (READ, PAGE):
        book.note("fs", bound={READ: "read"}, present={present: present.tool}, digest=said.__getitem__)
    found = RenameMatch(old=READ, new=PAGE, is_certain=True, score=1.0, reasons=("equal",))
    book.propose([PAGE], [found], said.__getitem__)


@pytest.mark.parametrize("first", RENAMED)
@pytest.mark.parametrize("second", RENAMED)
def test_a_rename_is_decided_on_once(place: StateLocation, first: str, second: str) -> None:
    with RenameStore(place) as one, RenameStore(place) as other:
        renamed(one)
        other.refresh()
        seen, also_seen = one.arrived[PAGE], other.arrived[PAGE]
        assert RENAMED[first](one, seen, "ann") is not None
        assert RENAMED[second](other, also_seen, "ben") is None
        assert (other.arrived[PAGE].word, other.arrived[PAGE].by) == (f"{first}ed", "ann")


@pytest.mark.parametrize("first", RENAMED)
def test_a_setting_accepts_no_rename_on_which_a_person_decided(place: StateLocation, first: str) -> None:
    with RenameStore(place) as book:
        renamed(book)
        assert RENAMED[first](book, book.arrived[PAGE], "ann") is not None
        assert book.accept(PAGE, READ, by="") is None
        assert book.arrived[PAGE].by == "ann"


@pytest.mark.parametrize("second", RENAMED)
def test_what_a_setting_accepted_a_person_decides_on_who_saw_it(place: StateLocation, second: str) -> None:
    with RenameStore(place) as book:
        renamed(book)
        before = book.arrived[PAGE]
        assert book.accept(PAGE, READ, by="") is not None
        assert RENAMED[second](book, before, "ann") is None
        assert (RENAMED[second](book, book.arrived[PAGE], "ann") is None) is (second == "reject")
