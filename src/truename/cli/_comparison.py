"""Simulate how each client would treat the tools without Truename, and describe the result."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from truename import dialects
from truename.cli._rendering import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from truename.catalog import Catalog
    from truename.clients.prediction import Key
    from truename.clients.prediction import ToolFate as Predicted
    from truename.dialects import Dialect
    from truename.identity import ToolId

__all__ = ["ClientOutcome", "Compared", "client_outcomes", "collapses", "in_words", "losses"]

Compared: TypeAlias = "Mapping[ToolId, Sequence[ClientOutcome]]"
_FAILURES: Final = {"refused": "fails", "falls": "falls"}
_KINDS: Final = ("client", "framework")
# The worst first: running another tool does harm; a missing tool is only missing.
_WORST_FIRST: Final = ("runs", "fails", "dropped", "clashes", "renamed", "falls")
_PHRASES: Final = {
    "runs": "a call runs {what} in {clients}",
    "fails": "the whole {what} fails in {clients}",
    "dropped": "dropped by {clients}",
    "clashes": "one name with another tool in {clients}",
    "renamed": "{what} in {clients}",
}


@dataclass(frozen=True, slots=True)
class ClientOutcome:
    """The treatment of a tool by a client: ``runs``, ``fails``, ``dropped``, ``clashes``, ``renamed`` or ``falls``.

    ``runs``: a call runs another tool. A tool that ``fails`` makes its server or the request fail, and the others fall.
    ``what`` is the tool that runs instead, the part that fails, or the name shown. ``clashes``: it shares a name with
    another tool, and it is unknown which one is kept. ``confidence`` is ``run`` or ``read``. ``is_uncertain``: a call
    may run this tool or another one; ``truename doctor`` counts such tools apart from those that cannot be called.
    """

    client: str
    title: str
    kind: str
    what: str
    confidence: str
    winner: Key | None = None
    is_uncertain: bool = False


def manglers() -> tuple[Dialect, ...]:
    """Return the clients and frameworks that are known to change names."""
    plain = dialects.get("inspector").mangling
    return tuple(row for row in dialects.table() if row.kind in _KINDS and row.mangling != plain)


def client_outcomes(
    catalog: Catalog, clients: Iterable[Dialect] | None = None
) -> Mapping[ToolId, Sequence[ClientOutcome]]:
    """Return for each tool how these clients would treat it under its own name, the worst first."""
    from truename.clients.prediction import Prediction, Roster  # noqa: PLC0415 - costs 30 ms, and most commands compare nothing

    ids: dict[Key, ToolId] = {(tool.origin.server_id, tool.origin.name): id for id, tool in catalog.items()}
    servers: defaultdict[str, list[str]] = defaultdict(list)
    for server, name in ids:
        servers[server].append(name)
    roster = Roster(servers.items())
    found: defaultdict[ToolId, list[ClientOutcome]] = defaultdict(list)
    for client in manglers() if clients is None else clients:
        prediction = Prediction(client, roster)
        for one in (*prediction.lost, *prediction.changed):
            found[ids[one.key]].append(_told(client, one, clashing=one.key in prediction.clashing))
    for several in found.values():
        several.sort(key=_harm)
    return found


def _harm(fate: ClientOutcome) -> tuple[int, bool, bool]:
    return _WORST_FIRST.index(fate.kind), fate.confidence != "run", dialects.get(fate.client).kind != _KINDS[0]


def _told(client: Dialect, one: Predicted, *, clashing: bool) -> ClientOutcome:
    """Convert a predicted fate to an outcome."""
    winner = one.reaches if one.loss else None
    if winner is not None:
        server, name = winner
        other = f"{server}'s" if name == one.key[1] else f"{name} of {server}"
        kind, what = "runs", name if server == one.key[0] else other
    elif one.loss in _FAILURES:
        kind, what = _FAILURES[one.loss], one.scope
    elif one.loss:
        kind, what = "clashes" if clashing else "dropped", ""
    else:
        kind, what = "renamed", one.shown or ""
    uncertain = one.loss == "unknown"
    return ClientOutcome(client.name, client.title, kind, what, client.confidence, winner, uncertain)


def in_words(several: Sequence[ClientOutcome], most: int = 2) -> str:
    """Describe a tool's worst outcome and its clients, and count the other clients; ``*`` marks clients only read.

    >>> in_words([ClientOutcome("a", "Ay", "dropped", "", "run"), ClientOutcome("b", "Bee", "dropped", "", "read")])
    'dropped by Ay, Bee*'
    """
    own = [fate for fate in several if fate.kind != "falls"]
    if not own:
        return ""
    worst = [fate for fate in own if (fate.kind, fate.what) == (own[0].kind, own[0].what)]
    left = len(own) - len(worst)
    more = f"; {left} more clients" if left > 1 else "; 1 more client" if left else ""
    return _PHRASES[own[0].kind].format(what=own[0].what, clients=_clients(worst, most)) + more


def _clients(group: Sequence[ClientOutcome], most: int) -> str:
    titles = [fate.title + ("" if fate.confidence == "run" else "*") for fate in group]
    return ", ".join(titles[:most]) + (f" +{len(titles) - most}" if len(titles) > most else "")


def losses(catalog: Catalog, clients: Iterable[Dialect]) -> list[str]:
    """Return a sentence for each client that could not call all tools of the catalogue; worst first.

    It counts as `truename doctor` does, but as if the client had all servers of the catalogue.
    """
    lost: defaultdict[str, list[ClientOutcome]] = defaultdict(list)
    for several in client_outcomes(catalog, clients).values():
        for fate in several:
            if fate.kind != "renamed":
                lost[fate.title].append(fate)
    number = len({tool.origin.server_id for tool in catalog.values()})
    having = "this server" if number == 1 else f"all {number:,} servers"
    sentences: list[str] = []
    for title, several in sorted(lost.items(), key=lambda one: -len(one[1])):
        others = sum(fate.kind == "runs" for fate in several)
        more = f", and would run another tool instead of {others:,} of them" if others else ""
        uncertain = sum(fate.is_uncertain for fate in several)
        unsure = f", {uncertain:,} uncertain" if uncertain else ""
        of_all = f"{len(several) - uncertain:,} of {count(len(catalog), 'tool')}"
        sentences.append(f"{title} with {having} could not call {of_all}{more}{unsure}")
    return sentences


def collapses(compared: Mapping[ToolId, Sequence[ClientOutcome]], most: int = 5) -> list[str]:
    """Return a sentence for each kind of failure that affects a whole server or request."""
    grouped: defaultdict[str, dict[str, ClientOutcome]] = defaultdict(dict)
    for several in compared.values():
        for fate in several:
            if fate.kind == "fails" and fate.what != "tool":
                grouped[fate.what].setdefault(fate.client, fate)
    told = {
        "request": "{clients} cannot be used at all: the whole request fails",
        "server": "a whole server is lost in {clients}",
    }
    by_scope = {scope: list(clients.values()) for scope, clients in grouped.items()}
    return [text.format(clients=_clients(by_scope[s], most)) for s, text in told.items() if s in by_scope]
