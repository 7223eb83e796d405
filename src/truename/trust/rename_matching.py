"""Propose which tool of a server became which: the matching of `truename diff`, for one server's old and new list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from truename.migration.lock import Pin
from truename.migration.matching import ToolSides, proven_matches, suggest_matches
from truename.naming.words import words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from truename.identity import ToolId

__all__ = ["RenameMatch", "is_opposite", "propose_renames"]

_EQUAL: Final = "the definitions are equal except for the name, and no other tool has this one"
_OPPOSITE: Final = "the definitions are equal, but the names say the opposite"
_OPPOSITES: Final[dict[str, frozenset[str]]] = {}
for _pair in (
    "start begin launch run resume|stop end halt kill terminate pause abort cancel",
    "open|close shut",
    "add insert append create attach|remove delete drop erase detach",
    "enable activate on|disable deactivate off",
    "allow grant accept approve permit|deny revoke reject refuse forbid block",
    "lock|unlock",
    "mount|unmount",
    "install|uninstall",
    "subscribe follow|unsubscribe unfollow",
    "mute|unmute",
    "pin star like|unpin unstar unlike",
    "archive|unarchive",
    "publish|unpublish",
    "connect join login|disconnect leave logout",
    "read get load import download pull receive|write set save export upload push send",
    "up|down",
    "left|right",
    "next|previous",
    "first|last",
    "increase increment raise|decrease decrement lower",
    "encrypt encode|decrypt decode",
    "buy|sell",
    "show|hide",
    "undo|redo",
    "backup|restore",
    "deposit|withdraw",
    "before|after",
    "min|max",
    "source|target",
):
    _one, _other = (side.split() for side in _pair.split("|"))
    for _these, _those in ((_one, _other), (_other, _one)):
        for _word in _these:
            _OPPOSITES[_word] = _OPPOSITES.get(_word, frozenset()) | frozenset(_those)


@dataclass(frozen=True, kw_only=True)
class RenameMatch:
    """A tool that left, and the new one of the same server that it certainly or probably became."""

    old: ToolId
    new: ToolId
    is_certain: bool
    score: float
    reasons: tuple[str, ...]


def is_opposite(old: str, new: str) -> bool:
    """Return whether two names differ by words that mean the opposite; then an equal definition proves nothing.

    >>> is_opposite("start_vm", "stop_vm"), is_opposite("mute", "unmute"), is_opposite("get_vm", "fetch_vm")
    (True, True, False)
    """
    one, other = frozenset(words(old)), frozenset(words(new))
    return any(not _OPPOSITES.get(word, frozenset()).isdisjoint(other - one) for word in one - other)


def propose_renames(
    before: Mapping[ToolId, Pin],
    now: Mapping[ToolId, Pin],
    gone: Collection[ToolId],
    come: Collection[ToolId],
    *,
    similar_to: Collection[ToolId] | None = None,
) -> list[RenameMatch]:
    """Return the proposals for one server; no tool is in two of them.

    ``before`` are its tools with the definitions last known, those that left included, ``now`` those of its new list;
    ``gone`` are the ids that left, ``come`` those that are new. A proposal is certain only if both have the same
    distinctive definition, no other tool of the server had or has it, and the names do not say the opposite.
    With ``similar_to``, only these of ``gone`` are proposed by similarity.
    """
    sides = ToolSides({_key(pin): pin for pin in before.values()}, {_key(pin): pin for pin in now.values()})
    olds = {_key(before[id]): id for id in gone if id in before and id not in now}
    news = {_key(now[id]): id for id in come if id in now}
    proven = {old: new for old, new in proven_matches(sides).items() if old in olds and new in news}
    found = [_proven(olds[old], news[new], sides.old[old].name, sides.new[new].name) for old, new in proven.items()]
    compared = olds if similar_to is None else {key: id for key, id in olds.items() if id in similar_to}
    left = _without(compared, sides.old, proven)
    right = _without(news, sides.new, proven.values())
    for match in suggest_matches(left, right):
        likeness = match.likeness
        found.append(
            RenameMatch(
                old=olds[_key(match.old)],
                new=news[_key(match.new)],
                is_certain=False,
                score=likeness.score,
                reasons=likeness.reasons,
            )
        )
    return sorted(found, key=lambda one: (not one.is_certain, -one.score, one.old))


def _key(pin: Pin) -> tuple[str, str]:
    # One server alone: its key plays no part.
    return "", pin.name


def _without(
    ids: Mapping[tuple[str, str], ToolId], pins: Mapping[tuple[str, str], Pin], used: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], Pin]:
    rest = ids.keys() - set(used)
    # The server's part of a pin's key would tell moves between servers, of which there are none here.
    return {key: Pin(pins[key].name, "", pins[key].definition, pins[key].parameters) for key in sorted(rest)}


def _proven(old: ToolId, new: ToolId, was: str, is_now: str) -> RenameMatch:
    is_certain = not is_opposite(was, is_now)
    return RenameMatch(
        old=old, new=new, is_certain=is_certain, score=1.0, reasons=(_EQUAL if is_certain else _OPPOSITE,)
    )
