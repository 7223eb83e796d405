"""The order in which APIs want turns: results right after their calls, in the order of the calls."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from truename.adapters.turns import ToolCall, ToolResult, Turn

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from truename.adapters.turns import Role

__all__ = ["grouped"]


def grouped(turns: Sequence[Turn], joined: Collection[Role]) -> list[Turn]:
    """Return the turns with every result right behind its call, and neighbours of the ``joined`` roles made one."""
    results = {part.call_id: part for turn in turns for part in turn.parts if isinstance(part, ToolResult)}
    bare = [_without_results(turn) for turn in turns]
    # A turn that held results only is empty now, and still parts what was said before from what was said after.
    assistants = [turn for turn in _joined(bare, {"assistant"}) if turn.parts]
    return list(_joined(_answered(assistants, results), joined))


def _without_results(turn: Turn) -> Turn:
    return replace(turn, parts=tuple(part for part in turn.parts if not isinstance(part, ToolResult)))


def _answered(turns: Iterable[Turn], results: dict[str, ToolResult]) -> Iterator[Turn]:
    for turn in turns:
        yield turn
        asked = (part.call_id for part in turn.parts if isinstance(part, ToolCall))
        found = tuple(results[call_id] for call_id in asked if call_id in results)
        if found:
            yield Turn("user", found, turn.where)


def _joined(turns: Iterable[Turn], roles: Collection[Role]) -> Iterator[Turn]:
    last: Turn | None = None
    for turn in turns:
        if last is not None and turn.role == last.role and turn.role in roles:
            last = replace(last, parts=last.parts + turn.parts)
            continue
        if last is not None:
            yield last
        last = turn
    if last is not None:
        yield last
