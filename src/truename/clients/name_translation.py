"""Translate the tool names in a client's files to new names, so that each list means the same tools as before."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from truename import dialects
from truename.clients.kept_names import KeptName, matches, respell
from truename.editing import KeyPath, apply_edits, value_at
from truename.errors import UnknownDialect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from truename.clients.table import ConfigFile

__all__ = ["LeavingEntry", "NameMove", "carry", "join_lists", "new_names", "replace_name", "why_not_respelled"]

_WHOLE_SERVER: Final = "server"
_TOOL: Final = "tool"
# Fields of a rule in Gemini CLI's policies: its server and, optionally, one tool of that server.
_RULE_SERVER: Final = "mcpName"
_RULE_TOOL: Final = "toolName"
_ALTERNATIVES: Final = "|"


@dataclass(frozen=True, kw_only=True)
class NameMove:
    """A change of a client's server: a new key, or new names for its tools.

    ``names`` maps the server's own tool names to the names at the gateway; None if its tools are unknown. ``stays``
    is true if another file of the client keeps a server under the old key. ``dialect`` is the client's.
    """

    key: str
    new_key: str
    names: Mapping[str, str] | None
    stays: bool = False
    dialect: str = "universal"


class CarriedNames(NamedTuple):
    """The texts that replace a kept name; ``problem`` says why it cannot be replaced ("" if it can)."""

    texts: tuple[str, ...]
    problem: str = ""


def carry(kept: KeptName, moves: Iterable[NameMove]) -> CarriedNames:
    """Return the texts that match the same tools after the moves as a kept name did before.

    A name for a whole server, or a glob, becomes a list of tools where its new spelling would match other tools too.
    """
    concerned = [move for move in moves if matches(kept, move.key, None)]
    same = CarriedNames((kept.text,))
    renamed = any(move.key != move.new_key for move in concerned)
    unknown = [move.key for move in concerned if move.names is None]
    if not concerned or (not renamed and (kept.tool is None or unknown)):
        return same
    if kept.spelling == _WHOLE_SERVER:
        return CarriedNames(
            _unique([*_unchanged_text(kept, concerned), *(respell(kept, one.new_key, None) for one in concerned)])
        )
    if unknown:
        return CarriedNames(same.texts, f"the tools of {' and '.join(unknown)} are unknown")
    if renamed and kept.server is None and not kept.template and kept.within:
        return CarriedNames(same.texts, "it is a pattern that is not tied to one server")
    return _by_tool(kept, concerned)


def _by_tool(kept: KeptName, moves: Sequence[NameMove]) -> CarriedNames:
    same = (kept.text,)
    wanted = [(move.new_key, wire) for move in moves for wire in new_names(kept, move)]
    if not wanted:
        return CarriedNames(same, "it matches no tool")
    if _still_means(kept, wanted, moves):
        return CarriedNames(same)
    # Without a tool, so that a glob is not reused: under the new names it could match tools of other servers.
    exact = replace(kept, tool=None)
    return CarriedNames(_unique([*_unchanged_text(kept, moves), *(respell(exact, key, wire) for key, wire in wanted)]))


def new_names(kept: KeptName, move: NameMove) -> list[str]:
    """Return the new names of the tools of a server that a kept name matches."""
    names = move.names or {}
    if kept.tool is None and kept.server is not None:
        return list(names.values())
    # An exact match excludes the tools whose names become equal only after the client replaces characters.
    if kept.tool is not None and kept.tool in names and matches(kept, move.key, kept.tool):
        return [names[kept.tool]]
    return [
        wire
        for upstream, wire in names.items()
        if matches(kept, move.key, upstream, _shown_name(move.dialect, move.key, upstream))
    ]


@lru_cache(maxsize=4096)
def _shown_name(dialect: str, server: str, tool: str) -> str | None:
    try:
        return dialects.get(dialect).shown(server, tool)
    except UnknownDialect:
        return None


def _still_means(kept: KeptName, wanted: Sequence[tuple[str, str]], moves: Sequence[NameMove]) -> bool:
    """Return whether the unchanged text matches exactly these tools under their new names."""
    if any(move.key != move.new_key for move in moves):
        return False
    everything = [(move, wire) for move in moves for wire in (move.names or {}).values()]
    meant = [
        (move.new_key, wire)
        for move, wire in everything
        if matches(kept, move.key, wire, _shown_name(move.dialect, move.key, wire))
    ]
    return sorted(meant) == sorted(wanted)


def _unchanged_text(kept: KeptName, moves: Sequence[NameMove]) -> list[str]:
    return [kept.text] if any(move.stays for move in moves) else []


def _unique(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


def why_not_respelled(kept: KeptName, value: object) -> str:
    """Return why replacing the text alone cannot move a name to its server's new key; "" if it can."""
    if kept.spelling == _TOOL and kept.server in kept.where[:-1]:
        return f"it is stored under the key {kept.server}, which no server has any more"
    rule = value_at(value, kept.where[:-1])
    if kept.where[-1:] == (_RULE_SERVER,) and isinstance(rule, dict) and _RULE_TOOL not in rule:
        return "it is a rule for a whole server, and would become a rule for all servers of the gateway"
    return ""


def replace_name(value: object, kept: KeptName, texts: Sequence[str]) -> object:
    """Return a copy of a value with a kept name replaced by these texts: an item of a list, a key, or a single value.

    An item or key may become several; for a single value, the enclosing list item is repeated for each text. Raises
    `ValueError` if the name is not at its path, or a single value has no enclosing list item.
    """
    where, current = kept.where, value_at(value, kept.where)
    holder = value_at(value, where[:-1])
    if kept.is_key and isinstance(holder, dict) and where[-1] in holder:
        old = str(where[-1])
        # An existing key overrides a renamed one.
        names = [text for text in texts if text == old or text not in holder]
        renamed = {name: item for key, item in holder.items() for name in (names if key == old else [key])}
        return apply_edits(value, [(where[:-1], renamed)])
    if kept.within and isinstance(current, str) and kept.text in current.split(_ALTERNATIVES):
        pieces = current.split(_ALTERNATIVES)
        place = pieces.index(kept.text)
        pieces[place : place + 1] = [text for text in texts if text == kept.text or text not in pieces]
        return apply_edits(value, [(where, _ALTERNATIVES.join(pieces))])
    if current != kept.text:
        message = "the name is no longer in the file"
        raise ValueError(message)
    if isinstance(holder, list):
        at = int(where[-1])
        others = [item for place, item in enumerate(holder) if place != at]
        items = [*holder[:at], *(text for text in texts if text not in others), *holder[at + 1 :]]
        return apply_edits(value, [(where[:-1], items)])
    return apply_edits(value, [(where, texts[0])]) if len(texts) == 1 else _repeat_item(value, where, texts)


def _repeat_item(value: object, where: KeyPath, texts: Sequence[str]) -> object:
    for length in range(len(where) - 1, 0, -1):
        items = value_at(value, where[: length - 1])
        if isinstance(items, list):
            place = int(where[length - 1])
            copies = [apply_edits(items[place], [(where[length:], text)]) for text in texts]
            return apply_edits(value, [(where[: length - 1], [*items[:place], *copies, *items[place + 1 :]])])
    message = "this field can hold only one name"
    raise ValueError(message)


_ONLY: Final = "only"
_ALL: Final = ["*"]
# Clients in which an empty list of offered tools offers all of them; in the others it offers none.
_EMPTY_IS_ALL: Final = frozenset({"goose"})


class LeavingEntry(NamedTuple):
    """A server whose entry is replaced by a common one: its move, its former entry and path, and the names in it."""

    move: NameMove
    former: object
    where: KeyPath
    names: Sequence[KeptName]

    def place(self, kept: KeptName) -> KeyPath:
        """Return the path of a kept name relative to the entry."""
        return kept.where[len(self.where) :]


def join_lists(entry: dict[str, object], servers: Sequence[LeavingEntry], file: ConfigFile) -> dict[str, object]:
    """Return the common entry with the lists of tools of all these servers, under their names at the gateway.

    If one server limits the tools that it offers, the common list names all tools of the servers that do not.
    """
    lists = dict(_offered_lists(servers, file))
    settings: dict[KeyPath, object] = {}
    for server in servers:
        for kept in server.names:
            place = server.place(kept)
            if kept.is_key:
                value = value_at(server.former, place)
                settings |= {(*place[:-1], wire): deepcopy(value) for wire in new_names(kept, server.move)}
            elif kept.effect != _ONLY:
                # An existing common entry may already have this list.
                there = value_at(entry, place[:-1])
                before = lists.get(place[:-1], there if isinstance(there, list) else [])
                lists[place[:-1]] = [*before, *new_names(kept, server.move)]
    edits = [(place, list(dict.fromkeys(texts))) for place, texts in lists.items()]
    joined: dict[str, object] = apply_edits(entry, [*edits, *settings.items()])
    return joined


def _offered_lists(servers: Sequence[LeavingEntry], file: ConfigFile) -> Iterator[tuple[KeyPath, list[str]]]:
    for kind in file.entry:
        former = [value_at(server.former, kind.path) for server in servers]
        restricting = [
            isinstance(listed, list) and listed != _ALL and bool(listed or file.shape not in _EMPTY_IS_ALL)
            for listed in former
        ]
        if kind.effect != _ONLY or not any(restricting):
            continue
        offered: list[str] = []
        for server, is_restricting in zip(servers, restricting, strict=True):
            if is_restricting:
                about = [kept for kept in server.names if server.place(kept)[:-1] == kind.path]
                offered += [wire for kept in about for wire in new_names(kept, server.move)]
            else:
                offered += (server.move.names or {}).values()
        yield kind.path, offered
