"""Predict, for each tool of a client's servers, which name the model sees and which tool a call runs.

A prediction can be compared with a run of the client: `ToolFate.shown` is the name in the request to the model,
`ToolFate.reaches` the tool that runs, `ToolFate.loss` the reason why a tool cannot be called.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from truename.dialects.dialect import SimulatedTool, simulate_lists
from truename.dialects.transformation import compile_transformation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from truename.dialects import Dialect

__all__ = ["Key", "Prediction", "Roster", "ToolFate", "affecting_fields", "predict"]

Key: TypeAlias = tuple[str, str]
_NOWHERE: Final[Mapping[str, str]] = MappingProxyType({})


class ToolFate(NamedTuple):
    """The treatment of one tool by a client.

    ``shown`` is the name that the model sees, None if it sees none. ``reaches`` is the tool (server, name) that a call
    of this name runs, None if it runs nothing. ``loss`` is "" for a tool that can be called, otherwise: ``refused``
    (its name makes the ``scope``, a tool, server or request, fail), ``falls`` (it fails together with another tool),
    ``misrouted`` (shown, but a call runs another tool or none), ``merged`` (another tool keeps the shared name),
    ``dropped`` (left out), ``unknown`` (it shares a name, and it is unknown which tool the client keeps). ``change``
    is ``cut`` or ``respelled`` if the name differs by more than the client's prefix.
    """

    server: str
    tool: str
    shown: str | None
    reaches: Key | None
    loss: str = ""
    scope: str = ""
    change: str = ""

    @property
    def key(self) -> Key:
        """The tool as (server key, tool name)."""
        return self.server, self.tool


class Roster:
    """The tools of several servers in order, and the indexes that all clients share."""

    def __init__(self, servers: Iterable[tuple[str, Iterable[str]]], addresses: Mapping[str, str] = _NOWHERE) -> None:
        self.listed: tuple[Key, ...] = tuple((server, name) for server, names in servers for name in names)
        self.keys = tuple(dict.fromkeys(self.listed))
        self.addresses = addresses

    @cached_property
    def _by_key(self) -> tuple[SimulatedTool[Key], ...]:
        return tuple(SimulatedTool(key, *key) for key in self.listed)

    @cached_property
    def _by_nobody(self) -> tuple[SimulatedTool[Key], ...]:
        return tuple(SimulatedTool(key, "", key[1]) for key in self.listed)

    @cached_property
    def _by_address(self) -> tuple[SimulatedTool[Key], ...]:
        known = self.addresses
        return tuple(SimulatedTool(key, known.get(key[0], key[0]), key[1]) for key in self.listed)

    def entries(self, dialect: Dialect) -> tuple[SimulatedTool[Key], ...]:
        """Return the tools by their server as the client identifies it: by key, by URL, or (a provider) not at all."""
        if dialect.kind == "provider":
            return self._by_nobody
        return self._by_address if dialect.mangling.part == "address" and self.addresses else self._by_key

    @cached_property
    def namesakes(self) -> Mapping[str, tuple[Key, ...]]:
        """The tools with equal names; where a client refuses them, the simulation reports no group."""
        groups: defaultdict[str, list[Key]] = defaultdict(list)
        for key in self.keys:
            groups[key[1]].append(key)
        return {name: tuple(keys) for name, keys in groups.items() if len(keys) > 1}


class Prediction:
    """The treatment of a set of tools by one client."""

    def __init__(self, dialect: Dialect, roster: Roster) -> None:
        self._roster = roster
        self._judge = _SimulatedServer(dialect, roster)
        self.scope = self._judge.simulation.scope

    @cached_property
    def groups(self) -> Mapping[str, tuple[Key, ...]]:
        """The tools that share a name in this client, by that name."""
        merged = self._judge.simulation.merged
        groups = {text: tuple(dict.fromkeys(keys)) for text, keys in merged.items()}
        if self._judge.provider:
            groups |= self._roster.namesakes
        return {text: keys for text, keys in groups.items() if len(keys) > 1}

    @cached_property
    def clashing(self) -> frozenset[Key]:
        """The tools that share a name with another."""
        return frozenset(key for keys in self.groups.values() for key in keys)

    @cached_property
    def fates(self) -> tuple[ToolFate, ...]:
        """The fate of each tool, in the order of the lists."""
        return tuple(map(self._judge.fate, self._roster.keys))

    @cached_property
    def lost(self) -> tuple[ToolFate, ...]:
        """The tools that cannot be called."""
        shown = self._judge.simulation.shown.keys()
        return tuple(map(self._judge.fate, [key for key in self._roster.keys if key not in shown]))

    @cached_property
    def changed(self) -> tuple[ToolFate, ...]:
        """The tools that can be called, but under a name that was cut or respelled."""
        shown = self._judge.simulation.shown
        odd = (key for key, text in shown.items() if not text.endswith(key[1]))
        return tuple(fate for fate in map(self._judge.fate, odd) if fate.change)

    @cached_property
    def by_key(self) -> Mapping[Key, ToolFate]:
        """Each fate by its tool."""
        return {fate.key: fate for fate in self.fates}


def affecting_fields(dialect: Dialect) -> tuple[object, ...]:
    """Return the fields of a dialect that affect a prediction: dialects with equal fields share one."""
    rules = (dialect.mangling, dialect.chars, dialect.first, dialect.last, dialect.words, dialect.max_length)
    return (*rules, dialect.reserved, dialect.unknown, dialect.kind == "provider")


def predict(
    dialect: Dialect, servers: Iterable[tuple[str, Iterable[str]]], addresses: Mapping[str, str] = _NOWHERE
) -> Prediction:
    """Predict how a client, framework or provider treats the tools of these servers.

    A name that a server lists twice counts once. For a provider all tools are in one request, without servers.
    ``addresses`` are the known URLs of servers by key, for clients that identify a server by its URL.

    >>> from truename import dialects
    >>> seen = predict(dialects.get("google-adk"), [("one", ["search"]), ("two", ["search"])])
    >>> [(fate.server, fate.shown, fate.loss, fate.reaches) for fate in seen.fates]
    [('one', 'search', 'misrouted', ('two', 'search')), ('two', 'search', '', ('two', 'search'))]
    """
    return Prediction(dialect, Roster(servers, addresses))


class _SimulatedServer:
    """A simulation of one client that answers for single tools."""

    def __init__(self, dialect: Dialect, roster: Roster) -> None:
        entries = roster.entries(dialect)
        rules = dialect.mangling
        if rules.several and len({entry.server for entry in entries}) > 1:
            # The client joins server and tool names in another way if there are several servers.
            rules = replace(rules, join=rules.several)
            dialect = replace(dialect, mangling=rules)
        self.provider = dialect.kind == "provider"
        self.simulation = outcome = simulate_lists(dialect, entries)
        self._refused = frozenset(outcome.refused)
        self._known = roster.addresses if rules.part == "address" else _NOWHERE
        self._limit = dialect.known_length
        self._engine = compile_transformation(rules)
        self._behind = rules.join.startswith("{tool}") and rules.join != "{tool}"
        equal = roster.namesakes.values() if self.provider and rules.duplicate == "unknown" else ()
        self._uncertain = {key for keys in equal for key in keys}
        self._down = {server for server, _ in outcome.refused} if outcome.scope == "server" else set()

    @cached_property
    def _clash(self) -> Mapping[Key, str]:
        return {key: text for text, keys in self.simulation.merged.items() for key in keys}

    @cached_property
    def _seen(self) -> Mapping[Key, str]:
        return {key: text for text, keys in self.simulation.seen.items() for key in keys}

    def fate(self, key: Key) -> ToolFate:
        outcome = self.simulation
        if key in outcome.shown:
            shown = outcome.shown[key]
            return ToolFate(key[0], key[1], shown, key, change=self._change(key, shown))
        if key in self._refused:
            return ToolFate(key[0], key[1], None, None, "refused", outcome.scope)
        if key[0] in self._down or outcome.scope == "request":
            return ToolFate(key[0], key[1], None, None, "falls", outcome.scope)
        if key in self._seen:
            seen = self._seen[key]
            return ToolFate(key[0], key[1], seen, outcome.winner(seen), "misrouted")
        text = self._clash.get(key)
        if text is None:
            return ToolFate(key[0], key[1], None, None, "unknown" if key in self._uncertain else "dropped")
        return ToolFate(key[0], key[1], None, outcome.winner(text), "merged" if outcome.seen.get(text) else "unknown")

    def _change(self, key: Key, shown: str) -> str:
        """Return how the tool's own name was changed ("cut", "respelled" or ""), ignoring prefixes and suffixes."""
        server, tool = key
        if shown.endswith(tool) or (self._behind and shown.startswith(tool)):
            return ""
        cut = self._limit is not None and self._engine.spell(self._known.get(server, server), tool).size > self._limit
        return "cut" if cut else "respelled"
