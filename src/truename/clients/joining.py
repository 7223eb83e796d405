"""The lists of tools in the entries of several servers, joined for the one entry that stands in their place."""

from __future__ import annotations

from collections import defaultdict
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

from truename.clients.carrying import images
from truename.clients.editing import replayed
from truename.clients.merging import ABSENT, Where, reached

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from truename.clients.carrying import Move
    from truename.clients.kept import KeptName

__all__ = ["joined"]

_ONLY: Final = "only"
_ALL: Final = ["*"]


def joined(
    entry: dict[str, Any], servers: Sequence[tuple[Move, Mapping[str, Any], Sequence[KeptName], Where]]
) -> dict[str, Any]:
    """Return the entry with the lists of tools of all these servers, under the names of the one entry.

    Each server comes with its former entry, the names that it keeps, and its place in the file. Where only one has a
    list of what is offered, the others offer all that they have, tool by tool.
    """
    lists: dict[Where, list[str]] = {}
    effects: dict[Where, str] = {}
    settings: dict[Where, Any] = {}
    listed: defaultdict[Where, set[int]] = defaultdict(set)
    for number, (move, former, names, where) in enumerate(servers):
        for kept in names:
            place = kept.where[len(where) :]
            if kept.is_key:
                value = reached(former, place)
                settings |= {(*place[:-1], wire): deepcopy(value) for wire in images(kept, move)}
                continue
            lists.setdefault(place[:-1], []).extend(images(kept, move))
            effects[place[:-1]] = kept.effect
            listed[place[:-1]].add(number)
    for place, effect in effects.items():
        if effect == _ONLY:
            free = [one for number, one in enumerate(servers) if number not in listed[place] and not _has(one, place)]
            lists[place] += [wire for move, *_ in free for wire in (move.names or {}).values()]
    _everything(entry, lists, servers)
    edits = [(place, list(dict.fromkeys(texts))) for place, texts in lists.items()]
    found: dict[str, Any] = replayed(entry, [*edits, *settings.items()])
    return found


def _has(server: tuple[Move, Mapping[str, Any], Sequence[KeptName], Where], place: Where) -> bool:
    # An empty list of what is offered offers nothing, and has no name in it that could be found.
    return reached(server[1], place) is not ABSENT


def _everything(entry: dict[str, Any], lists: dict[Where, list[str]], servers: Sequence[Any]) -> None:
    """Leave out a list that says no more than the entry does by itself: all tools (Copilot CLI writes ``["*"]``)."""
    for place in [place for place in lists if reached(entry, place) == _ALL]:
        if all(reached(former, place) in (ABSENT, _ALL) for _, former, *_ in servers):
            del lists[place]
