"""Translate a client's lists of tools to rules of the gateway."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.clients.carrying import NameMove, images
from truename.clients.connection_notes import restricted
from truename.clients.gateway_address import client_of
from truename.clients.kept_names import matches
from truename.clients.plan import PlanNote
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from truename.clients.find import FoundFile
    from truename.clients.kept_names import KeptName

__all__ = ["GatewayTool", "ProposedRules", "proposed_rules"]

# What a permission is as a rule. A list that allows is none: a rule that allows would ask about all other tools.
_OUTCOMES: Final = {"deny": "deny", "without": "deny", "ask": "ask"}
_WILD: Final = frozenset("*?[")


@dataclass(frozen=True)
class ProposedRules:
    """Rules, as the settings have them (`policy.rules`), and what of the lists could not become one."""

    rules: tuple[Mapping[str, Any], ...]
    notes: tuple[PlanNote, ...]


class GatewayTool(NamedTuple):
    """A server of the gateway behind a client's entry.

    ``key`` is the client's key of the entry, ``upstream`` the gateway's of the server. ``names`` are the names by which
    the client's lists know the server's tools, each with the server's own.
    """

    key: str
    upstream: str
    names: Mapping[str, str]


def proposed_rules(mine: Sequence[FoundFile], servers: Iterable[GatewayTool], dialect: str) -> ProposedRules:
    """Return rules that say what a client's lists say of its servers.

    A list of all that a server offers becomes a rule that denies the others: those that it has now, since a rule can't
    tell which will come.
    """
    rules: list[dict[str, Any]] = []
    notes: list[PlanNote] = []
    for key, upstream, names in servers:
        move = NameMove(key=key, new_key=key, names=names, dialect=dialect)
        kept = [name for found in mine for name in found.kept if matches(name, key, None)]
        for name in kept:
            if name.effect in _OUTCOMES:
                rules += _rule(_OUTCOMES[name.effect], upstream, name, move, notes)
        offered = [name for name in kept if name.effect == "only"]
        if offered or any(restricted(found, one) for found in mine for one in found.servers if one.server.key == key):
            rules += _only(upstream, offered, move, notes)
    client = client_of(dialect)
    whose = {} if client is None else {"clients": [client]}
    return ProposedRules(tuple({**rule, **whose} for rule in _joined(rules)), tuple(dict.fromkeys(notes)))


def _rule(
    outcome: str, upstream: str, kept: KeptName, move: NameMove, notes: list[PlanNote]
) -> Iterator[dict[str, Any]]:
    reason = f"{kept.text} in {kept.path.name}"
    if kept.tool is None and not kept.opaque:
        yield {"outcome": outcome, "servers": [upstream], "reason": reason}
    elif meant := images(kept, move):
        yield {"outcome": outcome, "servers": [upstream], "upstream": meant, "reason": reason}
    elif kept.tool is not None and not move.names and not _WILD & set(kept.tool):
        yield {"outcome": outcome, "servers": [upstream], "upstream": [kept.tool], "reason": reason}
    else:
        fact = f"{excerpt(kept.text)} in {kept.path} means no tool of {excerpt(move.key)} that is known"
        notes.append(PlanNote(kind="names", subject=kept.text, fact=fact, advice="Look at it by hand."))


def _only(
    upstream: str, offered: Sequence[KeptName], move: NameMove, notes: list[PlanNote]
) -> Iterator[dict[str, Any]]:
    if not move.names:
        fact = f"A list says which tools {excerpt(move.key)} offers, and which it has is not known"
        advice = "Start the gateway once (`truename serve`), or give a list of them (--catalog DUMP)."
        notes.append(PlanNote(kind="names", subject=move.key, fact=fact, advice=advice))
        return
    wanted = {name for kept in offered for name in images(kept, move)}
    if others := [own for own in move.names.values() if own not in wanted]:
        reason = f"{move.key} offers {len(wanted)} of its {len(move.names)} tools there"
        yield {"outcome": "deny", "servers": [upstream], "upstream": others, "reason": reason}


def _joined(rules: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield each rule once: one list often stands in several files."""
    yield from {repr({**rule, "reason": ""}): rule for rule in reversed(rules)}.values()
