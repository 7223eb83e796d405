"""Of two people who decide at once in two processes, one does: the decision that is stored first counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.trust_pending import call, wanted
from truename import ToolId
from truename.config import Config
from truename.identity import definition_digest
from truename.trust import PinnedTool, PinStore
from truename.trust.approval_decisions import ApprovalDecisions
from truename.trust.approval_queue import ApprovalQueue

if TYPE_CHECKING:
    from pathlib import Path

    from truename.policy import Scope
    from truename.storage import StateLocation


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


def definition(text: str) -> PinnedTool:
    content = {"name": "push", "description": text}
    id = ToolId.parse("git@1/push@1")
    return PinnedTool(id=id, server="git", name="push", digest=definition_digest(content), content=content, at="")


@pytest.mark.parametrize("is_accepted", [True, False])
@pytest.mark.parametrize("answers_otherwise", [True, False])
def test_a_definition_is_reviewed_once(place: StateLocation, *, is_accepted: bool, answers_otherwise: bool) -> None:
    new = definition("Push it.")
    with PinStore(place) as one, PinStore(place) as other:
        one.trust([definition("Push.")])
        one.note([new])
        other.refresh()
        assert one.review(new, accepted=is_accepted, by="ann")
        assert not other.review(new, accepted=is_accepted is not answers_otherwise, by="ben")
        other.refresh()
        for book in (one, other):
            pin = book.pins()["git@1/push@1"]
            assert (pin.digest == new.digest) is is_accepted
            assert {seen.by for seen in book.seen().values()} == (set() if is_accepted else {"ann"})
            assert book.pending(10) == []


def test_a_definition_that_nobody_saw_is_not_reviewed(place: StateLocation) -> None:
    with PinStore(place) as book:
        assert not book.review(definition("Push."), accepted=True, by="ann")
        assert not book.pins()
