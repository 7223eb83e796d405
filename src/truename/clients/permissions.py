"""Translate a client's lists of tools into policy rules of the gateway."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.clients.connection_notes import limits_offered_tools
from truename.clients.gateway_address import client_of
from truename.clients.kept_names import matches
from truename.clients.name_translation import NameMove, new_names
from truename.clients.plan import PlanNote
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from truename.clients.find import FoundFile
    from truename.clients.kept_names import KeptName

__all__ = ["GatewayTool", "ProposedRules", "proposed_rules"]

# The outcome of a rule for each effect. Allow lists become no rule: an allow rule would make all other tools ask.
_OUTCOMES: Final = {"deny": "deny", "without": "deny", "ask": "ask"}
_WILD: Final = frozenset("*?[")


@dataclass(frozen=True)
class ProposedRules:
    """Rules for `policy.rules` of the settings, and notes about names that could not become a rule."""

    rules: tuple[Mapping[str, object], ...]
    notes: tuple[PlanNote, ...]


class GatewayTool(NamedTuple):
    """A server of the gateway behind a client's entry.

    ``key`` is the client's key of the entry, ``upstream`` the gateway's key of the server; ``names`` maps the tool
    names in the client's lists to the server's own.
    """

    key: str
    upstream: str
    names: Mapping[str, str]


def proposed_rules(client_files: Sequence[FoundFile], servers: Iterable[GatewayTool], dialect: str) -> ProposedRules:
    """Return rules with the same effect as a client's lists.

    A list of offered tools becomes a rule that denies the other tools that the server has now; tools that it adds
    later are not covered.
    """
    rules: list[dict[str, object]] = []
    notes: list[PlanNote] = []
    for key, upstream, names in servers:
        move = NameMove(key=key, new_key=key, names=names, dialect=dialect)
        kept = [name for found in client_files for name in found.kept if matches(name, key, None)]
        for name in kept:
            if name.effect in _OUTCOMES:
                rules += _rule(_OUTCOMES[name.effect], upstream, name, move, notes)
        offered = [name for name in kept if name.effect == "only"]
        if offered or any(
            limits_offered_tools(found, one) for found in client_files for one in found.servers if one.server.key == key
        ):
            rules += _only(upstream, offered, move, notes)
    client = client_of(dialect)
    whose = {} if client is None else {"clients": [client]}
    # The same list is often in several files: of rules that differ only in their reason, one is kept.
    once = {repr({**rule, "reason": ""}): rule for rule in reversed(rules)}
    return ProposedRules(tuple({**rule, **whose} for rule in once.values()), tuple(dict.fromkeys(notes)))


def _rule(
    outcome: str, upstream: str, kept: KeptName, move: NameMove, notes: list[PlanNote]
) -> Iterator[dict[str, object]]:
    reason = f"{kept.text} in {kept.path.name}"
    if kept.tool is None and not kept.opaque:
        yield {"outcome": outcome, "servers": [upstream], "reason": reason}
    elif meant := new_names(kept, move):
        yield {"outcome": outcome, "servers": [upstream], "upstream": meant, "reason": reason}
    elif kept.tool is not None and not move.names and not _WILD & set(kept.tool):
        yield {"outcome": outcome, "servers": [upstream], "upstream": [kept.tool], "reason": reason}
    else:
        fact = f"{excerpt(kept.text)} in {kept.path} matches no known tool of {excerpt(move.key)}"
        notes.append(PlanNote(kind="names", subject=kept.text, fact=fact, advice="Check it by hand."))


def _only(
    upstream: str, offered: Sequence[KeptName], move: NameMove, notes: list[PlanNote]
) -> Iterator[dict[str, object]]:
    if not move.names:
        fact = f"A list limits the tools of {excerpt(move.key)}, and its tools are unknown"
        advice = "Start the gateway once (`truename serve`), or pass a list of them (--catalog DUMP)."
        notes.append(PlanNote(kind="names", subject=move.key, fact=fact, advice=advice))
        return
    wanted = {name for kept in offered for name in new_names(kept, move)}
    if others := [own for own in move.names.values() if own not in wanted]:
        reason = f"the client's list offers {len(wanted)} of {len(move.names)} tools of {move.key}"
        yield {"outcome": "deny", "servers": [upstream], "upstream": others, "reason": reason}
