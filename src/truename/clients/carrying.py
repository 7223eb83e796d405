"""Carry the tool names that a client keeps over to new names: none means more or less than before."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename import dialects
from truename.clients.kept_names import KeptName, matches, respelled
from truename.editing import KeyPath, apply_edits, value_at
from truename.errors import UnknownDialect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from truename.clients.table import ConfigFile

__all__ = ["LeavingEntry", "NameMove", "beyond_text", "carry", "images", "joined", "with_text"]

_WHOLE_SERVER: Final = "server"
_TOOL: Final = "tool"
# Gemini CLI's policies: a rule about a server, and about one of its tools if one is named.
_RULE_SERVER: Final = "mcpName"
_RULE_TOOL: Final = "toolName"
_ALTERNATIVES: Final = "|"


@dataclass(frozen=True, kw_only=True)
class NameMove:
    """A server of a client that gets another key, or whose tools get other names.

    ``names``: the server's own name for a tool -> the name at the gateway; None if its tools are not known.
    ``stays`` says that the client also keeps a server under the old key, in another file. ``dialect`` is the client's.
    """

    key: str
    new_key: str
    names: Mapping[str, str] | None
    stays: bool = False
    dialect: str = "universal"


class CarriedNames(NamedTuple):
    """What stands in place of a kept name, several texts where one can't say it; ``problem`` is why it does not."""

    texts: tuple[str, ...]
    problem: str = ""


def carry(kept: KeptName, moves: Iterable[NameMove]) -> CarriedNames:
    """Return the texts that mean the same tools after the moves as this one did before.

    A whole server, or a glob, is spelled out tool by tool where its new spelling would take in others.
    """
    concerned = [move for move in moves if matches(kept, move.key, None)]
    same = CarriedNames((kept.text,))
    renamed = any(move.key != move.new_key for move in concerned)
    unknown = [move.key for move in concerned if move.names is None]
    if not concerned or (not renamed and (kept.tool is None or unknown)):
        return same
    if kept.spelling == _WHOLE_SERVER:
        return CarriedNames(
            _once([*_staying(kept, concerned), *(respelled(kept, one.new_key, None) for one in concerned)])
        )
    if unknown:
        return CarriedNames(same.texts, f"which tools {' and '.join(unknown)} has is not known")
    if renamed and kept.server is None and not kept.template and kept.within:
        return CarriedNames(same.texts, "it is a pattern of its own")
    return _by_tool(kept, concerned)


def _by_tool(kept: KeptName, moves: Sequence[NameMove]) -> CarriedNames:
    same = (kept.text,)
    wanted = [(move.new_key, wire) for move in moves for wire in images(kept, move)]
    if not wanted:
        return CarriedNames(same, "it matches no tool")
    if _still_means(kept, wanted, moves):
        return CarriedNames(same)
    # Left as the glob that it may be, it would take in the tools of others too.
    exact = replace(kept, tool=None)
    return CarriedNames(_once([*_staying(kept, moves), *(respelled(exact, key, wire) for key, wire in wanted)]))


def images(kept: KeptName, move: NameMove) -> list[str]:
    """Return the new names of those tools of a server that a kept name means."""
    names = move.names or {}
    if kept.tool is None and kept.server is not None:
        return list(names.values())
    # A tool of exactly this name is what is meant, or its neighbour of nearly the same name would be let in too.
    if kept.tool is not None and kept.tool in names and matches(kept, move.key, kept.tool):
        return [names[kept.tool]]
    return [wire for upstream, wire in names.items() if matches(kept, move.key, upstream, _shown(move, upstream))]


@lru_cache(maxsize=4096)
def _as_shown(dialect: str, server: str, tool: str) -> str | None:
    try:
        return dialects.get(dialect).shown(server, tool)
    except UnknownDialect:
        return None


def _shown(move: NameMove, tool: str) -> str | None:
    return _as_shown(move.dialect, move.key, tool)


def _still_means(kept: KeptName, wanted: Sequence[tuple[str, str]], moves: Sequence[NameMove]) -> bool:
    """Tell whether the text, left as it is, means these tools under their new names and no others."""
    if any(move.key != move.new_key for move in moves):
        return False
    everything = [(move, wire) for move in moves for wire in (move.names or {}).values()]
    meant = [(move.new_key, wire) for move, wire in everything if matches(kept, move.key, wire, _shown(move, wire))]
    return sorted(meant) == sorted(wanted)


def _staying(kept: KeptName, moves: Sequence[NameMove]) -> list[str]:
    return [kept.text] if any(move.stays for move in moves) else []


def _once(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


def beyond_text(kept: KeptName, value: Any) -> str:
    """Say why a name can't follow its server to another key by its text alone; "" if it can."""
    if kept.spelling == _TOOL and kept.server in kept.where[:-1]:
        return f"it stands under {kept.server}, and that key is no server's any more"
    rule = value_at(value, kept.where[:-1])
    if kept.where[-1:] == (_RULE_SERVER,) and isinstance(rule, dict) and _RULE_TOOL not in rule:
        return "as a rule for a whole server it would be one for all servers of the gateway"
    return ""


def with_text(value: Any, kept: KeptName, texts: Sequence[str]) -> Any:
    """Return a tree with these texts in place of a kept name: an item of a list, a key of an object, or a value.

    Several items or keys stand in place of one; where a value can be only one, the item around it is repeated for each.
    Raises `ValueError` where the name is not, or no item is around it.
    """
    where, current = kept.where, value_at(value, kept.where)
    holder = value_at(value, where[:-1])
    if kept.is_key and isinstance(holder, dict) and where[-1] in holder:
        return _put(value, where[:-1], _with_keys(holder, str(where[-1]), texts))
    if kept.within and isinstance(current, str) and kept.text in current.split(_ALTERNATIVES):
        pieces = current.split(_ALTERNATIVES)
        place = pieces.index(kept.text)
        pieces[place : place + 1] = [text for text in texts if text == kept.text or text not in pieces]
        return _put(value, where, _ALTERNATIVES.join(pieces))
    if current != kept.text:
        message = "the name is not at its place"
        raise ValueError(message)
    if isinstance(holder, list):
        at = int(where[-1])
        others = [item for place, item in enumerate(holder) if place != at]
        items = [*holder[:at], *(text for text in texts if text not in others), *holder[at + 1 :]]
        return _put(value, where[:-1], items)
    return _put(value, where, texts[0]) if len(texts) == 1 else _repeated(value, where, texts)


def _with_keys(holder: Mapping[str, Any], old: str, texts: Sequence[str]) -> dict[str, Any]:
    renamed: dict[str, Any] = {}
    for key, item in holder.items():
        # What already stands under a new name goes before what would come there.
        names = [text for text in texts if text == old or text not in holder] if key == old else [key]
        renamed |= dict.fromkeys(names, item)
    return renamed


def _repeated(value: Any, where: KeyPath, texts: Sequence[str]) -> Any:
    for length in range(len(where) - 1, 0, -1):
        items = value_at(value, where[: length - 1])
        if isinstance(items, list):
            place = int(where[length - 1])
            copies = [_put(items[place], where[length:], text) for text in texts]
            return _put(value, where[: length - 1], [*items[:place], *copies, *items[place + 1 :]])
    message = "only one name has room there"
    raise ValueError(message)


def _put(value: Any, where: KeyPath, new: Any) -> Any:
    if not where:
        return new
    key, rest = where[0], where[1:]
    if isinstance(value, list):
        return [_put(item, rest, new) if place == key else item for place, item in enumerate(value)]
    return {name: _put(item, rest, new) if name == key else item for name, item in value.items()}


_ONLY: Final = "only"
_ALL: Final = ["*"]
# Where an empty list offers everything; elsewhere it offers nothing.
_EMPTY_IS_ALL: Final = frozenset({"goose"})


class LeavingEntry(NamedTuple):
    """A server that makes room for the one entry: its move, its former entry and place, and the names kept in it."""

    move: NameMove
    former: Any
    where: KeyPath
    names: Sequence[KeptName]

    def place(self, kept: KeptName) -> KeyPath:
        """Return where a kept name stands inside the entry."""
        return kept.where[len(self.where) :]


def joined(entry: dict[str, Any], servers: Sequence[LeavingEntry], file: ConfigFile) -> dict[str, Any]:
    """Return the entry with the lists of tools of all these servers, under the names of the one entry.

    Where only one of them has a list of what is offered, the others offer all that they have, tool by tool.
    """
    lists = dict(_offered(servers, file))
    settings: dict[KeyPath, Any] = {}
    for server in servers:
        for kept in server.names:
            place = server.place(kept)
            if kept.is_key:
                value = value_at(server.former, place)
                settings |= {(*place[:-1], wire): deepcopy(value) for wire in images(kept, server.move)}
            elif kept.effect != _ONLY:
                lists[place[:-1]] = [*lists.get(place[:-1], _listed(entry, place[:-1])), *images(kept, server.move)]
    edits = [(place, list(dict.fromkeys(texts))) for place, texts in lists.items()]
    found: dict[str, Any] = apply_edits(entry, [*edits, *settings.items()])
    return found


def _listed(entry: Mapping[str, Any], place: KeyPath) -> list[Any]:
    """Return the list that the one entry has already, if it was there before."""
    found = value_at(entry, place)
    return found if isinstance(found, list) else []


def _offered(servers: Sequence[LeavingEntry], file: ConfigFile) -> Iterator[tuple[KeyPath, list[str]]]:
    for kind in file.entry:
        restricting = [_restricts(value_at(server.former, kind.path), file.shape) for server in servers]
        if kind.effect != _ONLY or not any(restricting):
            continue
        yield kind.path, [wire for server in servers for wire in _offers(server, kind.path, file.shape)]


def _restricts(listed: object, shape: str) -> bool:
    return isinstance(listed, list) and listed != _ALL and bool(listed or shape not in _EMPTY_IS_ALL)


def _offers(server: LeavingEntry, place: KeyPath, shape: str) -> list[str]:
    names: Mapping[str, str] = server.move.names or {}
    if not _restricts(value_at(server.former, place), shape):
        return list(names.values())
    about = [kept for kept in server.names if server.place(kept)[:-1] == place]
    return [wire for kept in about for wire in images(kept, server.move)]
