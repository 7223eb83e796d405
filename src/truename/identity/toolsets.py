"""Detect name conflicts in the set of tools that one model sees, and resolve those that have a rule.

Every kind of tool counts: a handoff, an agent used as a tool and a custom tool are called by a name too, and a
provider refuses two tools with one name whatever their kind.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from truename.errors import DuplicateTool, TruenameError, excerpt
from truename.identity.keys import is_reserved

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from truename.identity.keys import ToolNames

__all__ = ["Kind", "ToolSetClash", "ToolSetKept", "ToolSetMember", "check", "clashes", "collisions"]

Kind = Literal["function", "agent_tool", "handoff", "custom", "hosted"]
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ToolSetMember:
    """A tool of a set: its names, its kind, and its owner (for messages)."""

    names: ToolNames
    kind: Kind = "function"
    owner: str = ""

    def __str__(self) -> str:
        deferred = "deferred " if self.names.is_deferred_top_level else ""
        space = f" in namespace {excerpt(self.names.namespace)}" if self.names.namespace else ""
        owner = f" of {excerpt(self.owner)}" if self.owner else ""
        return f"{deferred}{self.kind.replace('_', ' ')} {excerpt(self.names.name)}{space}{owner}"


@dataclass(frozen=True, slots=True)
class ToolSetClash:
    """Members with the same lookup key: the winner keeps the name, the losers cannot be called."""

    winner: ToolSetMember
    losers: tuple[ToolSetMember, ...]

    @property
    def members(self) -> tuple[ToolSetMember, ...]:
        """All members of the clash, the winner last."""
        return (*self.losers, self.winner)


@dataclass(frozen=True, slots=True)
class ToolSetKept:
    """The remaining members of a set, in their order, and the clashes that were resolved."""

    members: tuple[ToolSetMember, ...]
    clashes: tuple[ToolSetClash, ...] = ()

    @property
    def losers(self) -> tuple[ToolSetMember, ...]:
        """The members that were removed, which models cannot call."""
        return tuple(loser for clash in self.clashes for loser in clash.losers)


def check(members: Iterable[ToolSetMember]) -> None:
    """Raise `DuplicateTool` for a conflict that no collision policy resolves; several as an `ExceptionGroup`.

    ``reserved_namespace``: a namespace that equals its tool's name, which marks deferred loading.
    ``duplicate_deferred``: one deferred name twice. ``duplicate_name``: one name in one namespace twice.
    ``ambiguous_qualified_name``: two keys with one qualified name, as a tool ``n.x`` and ``x`` in namespace ``n``.

    >>> from truename.identity import ToolNames
    >>> plain, spaced = ToolNames(name="n.x"), ToolNames(name="x", namespace="n")
    >>> check([ToolSetMember(plain), ToolSetMember(spaced)])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    truename.errors.DuplicateTool: function 'n.x' and function 'x' in namespace 'n' both have the name 'n.x'. ...
    """
    given = tuple(members)
    _refuse([*_reserved(given), *_repeated_deferred(given), *_alike(given)], "these tools conflict with each other")


def clashes(members: Iterable[ToolSetMember]) -> tuple[ToolSetClash, ...]:
    """Return the groups of members with the same lookup key, in order of first appearance.

    The winner is the last handoff, or else the last tool: a tool that the caller adds later is meant to replace an
    earlier one.
    """
    groups = _grouped((member.names.lookup_key, member) for member in members)
    return tuple(_resolved(group) for group in groups if len(group) > 1)


def collisions(members: Iterable[ToolSetMember], policy: Literal["error", "warn"] = "error") -> ToolSetKept:
    """Run `check`, then apply the collision policy, and return the members that a model is shown.

    Errors that `check` finds are raised under both policies. With ``error``, each clash raises a `DuplicateTool` that
    names both owners (several: an `ExceptionGroup`). With ``warn``, the last handoff of a clash keeps the name, else
    its last member; the losers are removed, logged and listed in `ToolSetKept.losers`.

    >>> from truename.identity import ToolNames
    >>> sales = ToolSetMember(ToolNames(name="transfer_to_sales"), "handoff")
    >>> collisions([sales, ToolSetMember(ToolNames(name="transfer_to_sales"), "custom")], "warn").members == (sales,)
    True
    """
    given = tuple(members)
    check(given)
    found = clashes(given)
    if policy == "error":
        _refuse([_duplicate(clash.members) for clash in found], "several tools have one name")
    for clash in found:
        _LOG.warning("%s cannot be called: %s has the name", " and ".join(map(str, clash.losers)), clash.winner)
    return ToolSetKept(tuple(_without(given, [loser for clash in found for loser in clash.losers])), found)


def _without(members: Iterable[ToolSetMember], losers: Iterable[ToolSetMember]) -> Iterator[ToolSetMember]:
    # Compare by identity and count: equal members, or one object given twice, are two members, and one of them stays.
    gone = Counter(map(id, losers))
    for member in members:
        if gone[id(member)]:
            gone[id(member)] -= 1
        else:
            yield member


def _resolved(group: Sequence[ToolSetMember]) -> ToolSetClash:
    handoffs = [place for place, member in enumerate(group) if member.kind == "handoff"]
    won = handoffs[-1] if handoffs else len(group) - 1
    return ToolSetClash(group[won], (*group[:won], *group[won + 1 :]))


def _reserved(members: Iterable[ToolSetMember]) -> Iterator[TruenameError]:
    for member in members:
        if is_reserved(member.names.name, member.names.namespace):
            deferred = f"the deferred form of {excerpt(member.names.name)}"
            name = member.names.qualified_name or ""
            yield DuplicateTool(existing=deferred, duplicate=str(member), name=name, code="reserved_namespace")


def _repeated_deferred(members: Iterable[ToolSetMember]) -> Iterator[TruenameError]:
    deferred = (member for member in members if member.names.is_deferred_top_level)
    for group in _grouped((member.names.lookup_key, member) for member in deferred):
        if len(group) > 1:
            yield _duplicate(group, "duplicate_deferred")


def _alike(members: Iterable[ToolSetMember]) -> Iterator[TruenameError]:
    for group in _grouped((member.names.qualified_name, member) for member in members):
        if len(group) > 1 and any(member.names.namespace for member in group):
            one = len({member.names.lookup_key for member in group}) == 1
            yield _duplicate(group, "duplicate_name" if one else "ambiguous_qualified_name")


def _grouped(pairs: Iterable[tuple[Hashable, ToolSetMember]]) -> list[list[ToolSetMember]]:
    groups: defaultdict[Hashable, list[ToolSetMember]] = defaultdict(list)
    for key, member in pairs:
        if key is not None:
            groups[key].append(member)
    return list(groups.values())


def _duplicate(group: Sequence[ToolSetMember], code: str = "duplicate_name") -> TruenameError:
    first, *_, last = group
    return DuplicateTool(existing=str(first), duplicate=str(last), name=last.names.qualified_name or "", code=code)


def _refuse(errors: list[TruenameError], what: str) -> None:
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ExceptionGroup(what, errors)
