"""What one client would make of the tools of its servers: for each tool what the model sees and what a call runs.

A prediction can be laid beside what was seen when the client was run: tool by tool, `Fate.shown` is the name in the
request, `Fate.reaches` the tool that ran, `Fate.loss` why a tool can't be called.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from truename.dialects import simulation
from truename.dialects.mangling import machine

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from truename.dialects import Dialect, Simulation

__all__ = ["LOSSES", "Fate", "Key", "Prediction", "effect", "predict"]

Key: TypeAlias = tuple[str, str]
# The worst first: what takes others along, what runs another tool, what is merely missing.
LOSSES: Final = ("refused", "falls", "misrouted", "merged", "dropped", "unknown")
_PROBE: Final = "truename_probe"
_OTHERS_RUN: Final = ("both-first", "both-last", "same")


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

    @cached_property
    def by_name(self) -> Mapping[str, Fate]:
        """The tool that a call of each shown name runs."""
        return {fate.shown: fate for fate in self.fates if fate.shown is not None and not fate.loss}


def effect(dialect: Dialect) -> tuple[object, ...]:
    """Return all of a dialect that has an effect on a prediction: dialects that agree in it share one."""
    rules = (dialect.mangling, dialect.chars, dialect.first, dialect.last, dialect.words, dialect.max_length)
    return (*rules, dialect.reserved, dialect.unknown, dialect.kind == "provider")


def predict(dialect: Dialect, servers: Iterable[tuple[str, Iterable[str]]]) -> Prediction:
    """Return what this client, framework or provider does with the tools of these servers, in their order.

    A name that a server lists twice counts once. A provider knows no servers: all tools stand in one request.

    >>> from truename import dialects
    >>> seen = predict(dialects.get("google-adk"), [("one", ["search"]), ("two", ["search"])])
    >>> [(fate.server, fate.shown, fate.loss, fate.reaches) for fate in seen.fates]
    [('one', 'search', 'misrouted', ('two', 'search')), ('two', 'search', '', ('two', 'search'))]
    """
    provider = dialect.kind == "provider"
    listed = [(server, name) for server, names in servers for name in names]
    entries = [simulation.Entry((server, name), "" if provider else server, name) for server, name in listed]
    judge = _Judge(dialect, simulation.run(dialect, entries))
    fates = tuple(judge.fate(key) for key in dict.fromkeys(listed))
    groups = {text: tuple(dict.fromkeys(keys)) for text, keys in judge.simulation.merged.items()}
    groups |= _namesakes(listed) if provider else {}
    return Prediction(
        fates=fates,
        scope=judge.simulation.scope,
        groups={text: keys for text, keys in groups.items() if len(keys) > 1},
    )


def _namesakes(listed: Iterable[Key]) -> dict[str, tuple[Key, ...]]:
    """Group the tools that have one name; where such names are refused, the simulation has no group of them."""
    groups: defaultdict[str, dict[Key, None]] = defaultdict(dict)
    for key in listed:
        groups[key[1]][key] = None
    return {name: tuple(keys) for name, keys in groups.items()}


class _Judge:
    """One simulation, asked tool by tool."""

    def __init__(self, dialect: Dialect, outcome: Simulation[Key]) -> None:
        self.simulation = outcome
        self._dialect = dialect
        self._engine = machine(dialect.mangling)
        self._clash = {key: text for text, keys in outcome.merged.items() for key in keys}
        self._down = {server for server, _ in outcome.refused} if outcome.scope == "server" else set()
        self._frames: dict[str, str | None] = {}

    def fate(self, key: Key) -> Fate:
        outcome, (server, tool) = self.simulation, key
        if key in outcome.refused:
            return self._lost(key, "refused", scope=outcome.scope)
        if server in self._down or outcome.scope == "request":
            return self._lost(key, "falls", scope=outcome.scope)
        if key in outcome.shown:
            shown = outcome.shown[key]
            return Fate(server=server, tool=tool, shown=shown, reaches=key, change=self._change(key, shown))
        if key in self._clash:
            return self._clashing(key, self._clash[key])
        shown_in_vain = self._dialect.shown(server, tool) if self._dialect.mangling.equal == "same" else None
        return self._lost(key, "dropped" if shown_in_vain is None else "misrouted", shown_in_vain)

    def _clashing(self, key: Key, text: str) -> Fate:
        winner = self.simulation.winner(text)
        mode = self._mode(text)
        if mode in _OTHERS_RUN:
            return self._lost(key, "misrouted", text, winner)
        return self._lost(key, "unknown" if winner is None else "merged", None, winner)

    def _mode(self, text: str) -> str:
        """Return what the client does with names that became equal, of one server or of several."""
        rules = self._dialect.mangling
        servers = Counter(server for server, _ in self.simulation.merged[text])
        apart = rules.across and max(servers.values()) == 1
        return rules.across if apart else rules.equal

    @staticmethod
    def _lost(key: Key, loss: str, shown: str | None = None, reaches: Key | None = None, scope: str = "") -> Fate:
        return Fate(server=key[0], tool=key[1], shown=shown, reaches=reaches, loss=loss, scope=scope)

    def _change(self, key: Key, shown: str) -> str:
        server, tool = key
        if shown == tool or shown == self._plain(server, tool):
            return ""
        limit = self._dialect.known_length
        cut = limit is not None and self._engine.spell(server, tool).size > limit
        return "cut" if cut else "respelled"

    def _plain(self, server: str, tool: str) -> str | None:
        """Return the name as the client shows one that it does nothing to but put its prefix in front."""
        if server not in self._frames:
            self._frames[server] = self._dialect.shown(server, _PROBE)
        frame = self._frames[server]
        return None if frame is None else frame.replace(_PROBE, tool)
