"""The lists of tools in the entries of several servers, joined for the one entry that stands in their place."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.clients.carrying import images
from truename.editing import KeyPath, reached, replayed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from truename.clients.carrying import Move
    from truename.clients.kept import KeptName
    from truename.clients.table import ConfigFile

__all__ = ["Leaving", "joined"]

_ONLY: Final = "only"
_ALL: Final = ["*"]
# Where an empty list offers everything; elsewhere it offers nothing.
_EMPTY_IS_ALL: Final = frozenset({"goose"})


class Leaving(NamedTuple):
    """A server that makes room for the one entry: its move, its former entry and place, and the names kept in it."""

    move: Move
    former: Any
    where: KeyPath
    names: Sequence[KeptName]

    def place(self, kept: KeptName) -> KeyPath:
        """Return where a kept name stands inside the entry."""
        return kept.where[len(self.where) :]


def joined(entry: dict[str, Any], servers: Sequence[Leaving], file: ConfigFile) -> dict[str, Any]:
    """Return the entry with the lists of tools of all these servers, under the names of the one entry.

    Where only one of them has a list of what is offered, the others offer all that they have, tool by tool.
    """
    lists = dict(_offered(servers, file))
    settings: dict[KeyPath, Any] = {}
    for server in servers:
        for kept in server.names:
            place = server.place(kept)
            if kept.is_key:
                value = reached(server.former, place)
                settings |= {(*place[:-1], wire): deepcopy(value) for wire in images(kept, server.move)}
            elif kept.effect != _ONLY:
                lists[place[:-1]] = [*lists.get(place[:-1], _listed(entry, place[:-1])), *images(kept, server.move)]
    edits = [(place, list(dict.fromkeys(texts))) for place, texts in lists.items()]
    found: dict[str, Any] = replayed(entry, [*edits, *settings.items()])
    return found


def _listed(entry: Mapping[str, Any], place: KeyPath) -> list[Any]:
    """Return the list that the one entry has already, if it was there before."""
    found = reached(entry, place)
    return found if isinstance(found, list) else []


def _offered(servers: Sequence[Leaving], file: ConfigFile) -> Iterator[tuple[KeyPath, list[str]]]:
    for kind in file.entry:
        restricting = [_restricts(reached(server.former, kind.path), file.shape) for server in servers]
        if kind.effect != _ONLY or not any(restricting):
            continue
        yield kind.path, [wire for server in servers for wire in _offers(server, kind.path, file.shape)]


def _restricts(listed: object, shape: str) -> bool:
    return isinstance(listed, list) and listed != _ALL and bool(listed or shape not in _EMPTY_IS_ALL)


def _offers(server: Leaving, place: KeyPath, shape: str) -> list[str]:
    names: Mapping[str, str] = server.move.names or {}
    if not _restricts(reached(server.former, place), shape):
        return list(names.values())
    about = [kept for kept in server.names if server.place(kept)[:-1] == place]
    return [wire for kept in about for wire in images(kept, server.move)]
