"""What would become of tools without Truename: one simulation a client, told in a few words for each tool."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from truename import dialects

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from truename.catalog import Catalog
    from truename.dialects import Dialect, Simulation
    from truename.identity import ToolId

__all__ = ["Compared", "Fate", "collapses", "fates", "in_words", "manglers"]

Key = tuple[str, str]
Compared: TypeAlias = "Mapping[ToolId, Sequence[Fate]]"
_PROBE: Final = "truename_probe"
_KINDS: Final = ("client", "framework")
# The worst first: what runs another tool does harm, what is missing is merely missing.
_WORST_FIRST: Final = ("runs", "fails", "dropped", "clashes", "renamed", "falls")
_PHRASES: Final = {
    "runs": "a call runs {what} in {clients}",
    "fails": "the whole {what} fails in {clients}",
    "dropped": "dropped by {clients}",
    "clashes": "one name with another tool in {clients}",
    "renamed": "{what} in {clients}",
}


@dataclass(frozen=True, slots=True)
class Fate:
    """What a client does to a tool: ``runs`` another, ``fails``, ``dropped``, ``clashes``, ``renamed`` or ``falls``.

    One that fails takes its server or the request with it, whose other tools then fall. ``what`` is the tool run
    instead, the part that fails, or the name shown; ``confidence`` tells whether the client was run or read. What a
    client does about a clash is not always known.
    """

    client: str
    title: str
    kind: str
    what: str
    confidence: str
    winner: Key | None = None


def manglers() -> tuple[Dialect, ...]:
    """Return the clients and frameworks whose treatment of names is known to do something."""
    plain = dialects.get("inspector").mangling
    return tuple(row for row in dialects.table() if row.kind in _KINDS and row.mangling != plain)


def fates(catalog: Catalog, clients: Iterable[Dialect] | None = None) -> Mapping[ToolId, Sequence[Fate]]:
    """Return for each tool what these clients would do to it under its own name, the worst first."""
    servers: defaultdict[str, list[str]] = defaultdict(list)
    ids: dict[Key, ToolId] = {}
    for id, tool in catalog.items():
        servers[tool.origin.server_id].append(tool.origin.name)
        ids[tool.origin.server_id, tool.origin.name] = id
    found: defaultdict[ToolId, list[Fate]] = defaultdict(list)
    for client in manglers() if clients is None else clients:
        judge = _Judge(client, client.simulate_all(servers.items()))
        for key, id in ids.items():
            fate = judge.fate(key)
            if fate is not None:
                found[id].append(fate)
    for several in found.values():
        several.sort(key=_harm)
    return found


def _harm(fate: Fate) -> tuple[int, bool, bool]:
    return _WORST_FIRST.index(fate.kind), fate.confidence != "run", dialects.get(fate.client).kind != _KINDS[0]


class _Judge:
    """One client's simulation, asked tool by tool."""

    def __init__(self, client: Dialect, simulation: Simulation[Key]) -> None:
        self._client = client
        self._simulation = simulation
        self._clash = {key: text for text, keys in simulation.merged.items() for key in keys}
        self._down = {server for server, _ in simulation.refused} if simulation.scope == "server" else set()
        self._frames: dict[str, str | None] = {}

    def fate(self, key: Key) -> Fate | None:
        """Return what becomes of a tool, or None if nothing does."""
        simulation = self._simulation
        if key in simulation.refused:
            return self._told("fails", simulation.scope)
        if key[0] in self._down or simulation.scope == "request":
            return self._told("falls", simulation.scope)
        if key in simulation.shown:
            shown = simulation.shown[key]
            return None if shown in (self._plain(*key), key[1]) else self._told("renamed", shown)
        if key not in self._clash:
            return self._told("dropped", "")
        winner = simulation.winner(self._clash[key])
        return self._told("clashes", "") if winner is None else self._told("runs", _named(winner, key), winner)

    def _told(self, kind: str, what: str, winner: Key | None = None) -> Fate:
        return Fate(self._client.name, self._client.title, kind, what, self._client.confidence, winner)

    def _plain(self, server: str, name: str) -> str | None:
        """Return the name as the client shows one that it does nothing to but put its prefix in front."""
        if server not in self._frames:
            self._frames[server] = self._client.shown(server, _PROBE)
        frame = self._frames[server]
        return None if frame is None else frame.replace(_PROBE, name)


def _named(winner: Key, instead_of: Key) -> str:
    if winner[0] == instead_of[0]:
        return winner[1]
    return f"{winner[0]}'s" if winner[1] == instead_of[1] else f"{winner[1]} of {winner[0]}"


def in_words(several: Sequence[Fate], most: int = 2) -> str:
    """Return the worst of a tool's fates, with its clients, and how many others do it harm; ``*`` was only read.

    >>> in_words([Fate("a", "Ay", "dropped", "", "run"), Fate("b", "Bee", "dropped", "", "read")])
    'dropped by Ay, Bee*'
    """
    own = [fate for fate in several if fate.kind != "falls"]
    if not own:
        return ""
    worst = [fate for fate in own if (fate.kind, fate.what) == (own[0].kind, own[0].what)]
    left = len(own) - len(worst)
    more = f"; {left} more clients" if left > 1 else "; 1 more client" if left else ""
    return _PHRASES[own[0].kind].format(what=own[0].what, clients=_clients(worst, most)) + more


def _clients(group: Sequence[Fate], most: int) -> str:
    titles = [fate.title + ("" if fate.confidence == "run" else "*") for fate in group]
    return ", ".join(titles[:most]) + (f" +{len(titles) - most}" if len(titles) > most else "")


def collapses(compared: Mapping[ToolId, Sequence[Fate]], most: int = 5) -> list[str]:
    """Return a sentence for each kind of failure that takes more than its cause with it."""
    grouped: defaultdict[str, dict[str, Fate]] = defaultdict(dict)
    for several in compared.values():
        for fate in several:
            if fate.kind == "fails" and fate.what != "tool":
                grouped[fate.what].setdefault(fate.client, fate)
    told = {
        "request": "{clients} can't be used at all: the whole request fails",
        "server": "a whole server is lost in {clients}",
    }
    by_scope = {scope: list(clients.values()) for scope, clients in grouped.items()}
    return [text.format(clients=_clients(by_scope[s], most)) for s, text in told.items() if s in by_scope]
