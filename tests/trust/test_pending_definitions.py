"""The definitions that are pending, as the console reads them: oldest first, only as many as asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from truename import ToolId
from truename.identity import definition_digest
from truename.trust import PinnedTool, PinStore

if TYPE_CHECKING:
    from pathlib import Path

    from truename.storage import StateLocation


def seen(name: str, description: str) -> PinnedTool:
    content = {"name": name, "description": description}
    id = ToolId.parse(f"git@1/{name}@1")
    return PinnedTool(id=id, server="git", name=name, digest=definition_digest(content), content=content, at="")


def names(book: PinStore, most: int = 10) -> list[tuple[str, str]]:
    return [(one.name, one.content["description"]) for one in book.pending(most)]


def test_what_waits_is_listed_oldest_first_by_each_process(place: StateLocation) -> None:
    times = iter(f"2026-01-01T00:00:0{second}+00:00" for second in range(10))
    with PinStore(place, now=lambda: next(times)) as one, PinStore(place) as other:
        assert other.pending(10) == []
        one.trust([seen("push", "Push.")])
        one.note([seen("push", "Push 2."), seen("pull", "Pull 2.")])
        one.note([seen("push", "Push 3.")])
        one.note([seen("fetch", "Fetch 2.")], "rejected", by="ann")
        other.refresh()
        waiting = [("push", "Push 2."), ("pull", "Pull 2."), ("push", "Push 3.")]
        assert names(one) == names(other) == waiting
        assert names(other, 1) == [waiting[0], waiting[2]]
        one.trust([seen("push", "Push 3.")], by="ann")
        other.refresh()
        assert names(other) == [waiting[1]]
        assert one.waiting == 1


@pytest.mark.parametrize("where", [None, "pins.db"])
def test_only_what_waits_is_read(tmp_path: Path, where: str | None) -> None:
    with PinStore(None if where is None else tmp_path / where) as book:
        book.trust([seen(f"tool_{number}", "It.") for number in range(50)])
        book.note([seen("tool_7", "Other.")])
        assert names(book) == [("tool_7", "Other.")]
        assert book.about("git@1/tool_7@1").pin is not None
