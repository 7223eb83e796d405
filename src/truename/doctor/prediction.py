"""What one client would make of the tools of its servers: for each tool what the model sees and what a call runs.

A prediction can be laid beside what was seen when the client was run: tool by tool, `Fate.shown` is the name in the
request, `Fate.reaches` the tool that ran, `Fate.loss` why a tool can't be called.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from truename.dialects import simulation
from truename.dialects.mangling import machine

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from truename.dialects import Dialect, Simulation

__all__ = ["Fate", "Key", "Prediction", "effect", "predict"]

Key: TypeAlias = tuple[str, str]
# The worst first: what takes others along, what runs another tool, what is merely missing.
_NOWHERE: Final[Mapping[str, str]] = MappingProxyType({})
LOSSES: Final = ("refused", "falls", "misrouted", "merged", "dropped", "unknown")


class Fate(NamedTuple):
    """What becomes of one tool.

    ``shown`` is the name under which the model sees it, None if it doesn't. ``reaches`` is the tool (server, name)
    that a call of this name runs, None if it runs nothing. ``loss`` is empty for a tool that can be called, else why
    not: ``refused`` (its name makes ``scope``, a tool, server or request, fail), ``falls`` (along with that),
    ``misrouted`` (shown, but a call runs another tool or none), ``merged`` (another tool took its name), ``dropped``
    (left out), ``unknown`` (one name with another; what the client does then is not known). ``change`` says what
    happened to a name that can be called: ``cut``, ``respelled``, or nothing but the client's prefix.
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
        """The tool: its server's key and its name there."""
        return self.server, self.tool


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """One client's treatment of a set of tools; ``groups`` are the tools that share a name, by that name."""

    fates: tuple[Fate, ...]
    scope: str = ""
    groups: Mapping[str, tuple[Key, ...]] = field(default_factory=dict)

    @cached_property
    def lost(self) -> tuple[Fate, ...]:
        """The tools that can't be called."""
        return tuple(fate for fate in self.fates if fate.loss)

    @cached_property
    def changed(self) -> tuple[Fate, ...]:
        """The tools that can be called, but under a name that was cut or spelled otherwise."""
        return tuple(fate for fate in self.fates if fate.change and not fate.loss)

    @cached_property
    def by_key(self) -> Mapping[Key, Fate]:
        """Each fate by its tool."""
        return {fate.key: fate for fate in self.fates}


def effect(dialect: Dialect) -> tuple[object, ...]:
    """Return all of a dialect that has an effect on a prediction: dialects that agree in it share one."""
    rules = (dialect.mangling, dialect.chars, dialect.first, dialect.last, dialect.words, dialect.max_length)
    return (*rules, dialect.reserved, dialect.unknown, dialect.kind == "provider")


def predict(
    dialect: Dialect, servers: Iterable[tuple[str, Iterable[str]]], addresses: Mapping[str, str] = _NOWHERE
) -> Prediction:
    """Return what this client, framework or provider does with the tools of these servers, in their order.

    A name that a server lists twice counts once. A provider knows no servers: all tools stand in one request. Some
    clients know a server by its address; ``addresses`` are those of servers, by key, as far as they are known.

    >>> from truename import dialects
    >>> seen = predict(dialects.get("google-adk"), [("one", ["search"]), ("two", ["search"])])
    >>> [(fate.server, fate.shown, fate.loss, fate.reaches) for fate in seen.fates]
    [('one', 'search', 'misrouted', ('two', 'search')), ('two', 'search', '', ('two', 'search'))]
    """
    provider = dialect.kind == "provider"
    listed = [(server, name) for server, names in servers for name in names]
    known = addresses if dialect.mangling.part == "address" else _NOWHERE
    entries = [
        simulation.Entry((server, name), "" if provider else known.get(server, server), name) for server, name in listed
    ]
    judge = _Judge(_joining(dialect, len({entry.server for entry in entries})), simulation.run(dialect, entries), known)
    if provider and dialect.mangling.duplicate == "unknown":
        judge.uncertain = {key for keys in _namesakes(listed).values() if len(keys) > 1 for key in keys}
    fates = tuple(judge.fate(key) for key in dict.fromkeys(listed))
    groups = {text: tuple(dict.fromkeys(keys)) for text, keys in judge.simulation.merged.items()}
    groups |= _namesakes(listed) if provider else {}
    return Prediction(
        fates=fates,
        scope=judge.simulation.scope,
        groups={text: keys for text, keys in groups.items() if len(keys) > 1},
    )


def _joining(dialect: Dialect, servers: int) -> Dialect:
    """Return the dialect as it joins names of so many servers."""
    rules = dialect.mangling
    if not rules.several or servers < 2:
        return dialect
    return replace(dialect, mangling=replace(rules, join=rules.several))


def _namesakes(listed: Iterable[Key]) -> dict[str, tuple[Key, ...]]:
    """Group the tools that have one name; where such names are refused, the simulation has no group of them."""
    groups: defaultdict[str, dict[Key, None]] = defaultdict(dict)
    for key in listed:
        groups[key[1]][key] = None
    return {name: tuple(keys) for name, keys in groups.items()}


class _Judge:
    """One simulation, asked tool by tool."""

    def __init__(self, dialect: Dialect, outcome: Simulation[Key], known: Mapping[str, str]) -> None:
        self.simulation = outcome
        self._known = known
        self._limit = dialect.known_length
        self._engine = machine(dialect.mangling)
        self._behind = dialect.mangling.join.startswith("{tool}") and dialect.mangling.join != "{tool}"
        self._clash = {key: text for text, keys in outcome.merged.items() for key in keys}
        self._seen = {key: text for text, keys in outcome.seen.items() for key in keys}
        self.uncertain: set[Key] = set()
        self._down = {server for server, _ in outcome.refused} if outcome.scope == "server" else set()

    def fate(self, key: Key) -> Fate:
        outcome = self.simulation
        if key in outcome.shown:
            shown = outcome.shown[key]
            return Fate(key[0], key[1], shown, key, change=self._change(key, shown))
        if key in outcome.refused:
            return Fate(key[0], key[1], None, None, "refused", outcome.scope)
        if key[0] in self._down or outcome.scope == "request":
            return Fate(key[0], key[1], None, None, "falls", outcome.scope)
        if key in self._seen:
            text = self._seen[key]
            return Fate(key[0], key[1], text, outcome.winner(text), "misrouted")
        return self._unseen(key)

    def _unseen(self, key: Key) -> Fate:
        text = self._clash.get(key)
        if text is None:
            return Fate(key[0], key[1], None, None, "unknown" if key in self.uncertain else "dropped")
        known = self.simulation.seen.get(text)
        return Fate(key[0], key[1], None, self.simulation.winner(text), "merged" if known else "unknown")

    def _change(self, key: Key, shown: str) -> str:
        """Tell what happened to the tool's own part of the name; what is put in front or behind is no change."""
        server, tool = key
        if shown.endswith(tool) or (self._behind and shown.startswith(tool)):
            return ""
        cut = self._limit is not None and self._engine.spell(self._known.get(server, server), tool).size > self._limit
        return "cut" if cut else "respelled"
