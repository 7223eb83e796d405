"""What the dialect table predicts for a trial, beside what the lab saw: the two must be the same.

The prediction is :meth:`truename.dialects.Dialect.simulate_all`, the same that ``truename doctor`` uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lab.scenarios import scenario
from lab.through import KEY
from truename import dialects
from truename.clients.gateway_address import alone_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lab.results import Run, SeenTool, Trial
    from truename.dialects import Dialect, Simulation

__all__ = ["Difference", "Pair", "address_of", "compared", "differences", "predicted", "seen"]

Pair = tuple[str, str]  # a server, as the client knows it, and the name that it lists
_UNCALLED: Final = ("", "")
# Where a trial puts the gateway; the awkward servers stand on the ports behind it.
_GATEWAY: Final = 47100


@dataclass(frozen=True)
class Difference:
    """One tool for which the table and the lab disagree: what each of them says."""

    scenario: str
    mode: str
    tool: Pair
    predicted: frozenset[str]
    seen: frozenset[str]

    def __str__(self) -> str:
        said = ("; ".join(sorted(side)) or "not shown" for side in (self.predicted, self.seen))
        return f"{self.scenario}, {self.mode}, {self.tool}: predicted {next(said)}, seen {next(said)}"


def compared(trial: Trial) -> bool:
    """Say whether a trial can be compared: it has a list of tools that stays the same."""
    return bool(trial.tools) and scenario(trial.scenario).plan != "rename"


def address_of(dialect: Dialect, trial: Trial, server: str) -> str:
    """Return the address at which the client of a trial has a server, the ports being those of every run."""
    if trial.mode != "bare":
        path = alone_path(server, dialect.name) if trial.mode == "only" else "/mcp"
        return f"http://127.0.0.1:{_GATEWAY}{path}"
    place = [one.key for one in scenario(trial.scenario).servers].index(server)
    return f"http://127.0.0.1:{_GATEWAY + 1 + place}/mcp"


def _given(dialect: Dialect, trial: Trial, tool: SeenTool) -> Pair:
    """Return the server and the name as the client was given them."""
    name = tool.upstream if tool.listed is None else tool.listed
    if dialect.mangling.part == "address":
        return address_of(dialect, trial, tool.server), name
    return KEY if trial.mode == "through" else tool.server, name


def predicted(dialect: Dialect, trial: Trial) -> Simulation[Pair]:
    """Return what a dialect says of a trial's lists, in the order in which the client was given them."""
    bare = trial.mode == "bare"
    pairs = [_given(dialect, trial, tool) for tool in trial.tools if bare or tool.listed is not None]
    lists: dict[str, list[str]] = {}
    # Truename lists a tool once, however often its server does.
    for server, name in pairs if bare else dict.fromkeys(pairs):
        lists.setdefault(server, []).append(name)
    return dialect.simulate_all(lists.items())


def _said(shown: str, own: Pair, reached: Pair | None) -> str:
    if reached == _UNCALLED:
        return f"{shown!r} was not called"
    ends = "runs it" if reached == own else "runs nothing" if reached is None else f"runs {reached}"
    return f"{shown!r} {ends}"


def _by_table(found: Simulation[Pair]) -> Mapping[Pair, frozenset[str]]:
    said: dict[Pair, set[str]] = {}
    for shown, pairs in found.seen.items():
        for pair in pairs:
            said.setdefault(pair, set()).add(_said(shown, pair, found.reaches.get(shown)))
    return {pair: frozenset(texts) for pair, texts in said.items()}


def seen(dialect: Dialect, trial: Trial) -> Mapping[Pair, frozenset[str]]:
    """Return what the lab saw of each tool that the model was shown: the shown name, and what a call of it ran."""
    given = {(tool.server, tool.upstream): _given(dialect, trial, tool) for tool in trial.tools}
    said: dict[Pair, set[str]] = {}
    for tool in trial.tools:
        if tool.shown is None:
            continue
        own = _given(dialect, trial, tool)
        other = None if tool.reached is None else given.get(tool.reached, tool.reached)
        ended = {"misrouted": other, "unreachable": None, "uncalled": _UNCALLED}
        said.setdefault(own, set()).add(_said(tool.shown, own, ended.get(tool.outcome, own)))
    return {pair: frozenset(texts) for pair, texts in said.items()}


def _raced(dialect: Dialect, found: Simulation[Pair]) -> Iterable[tuple[tuple[str, ...], tuple[Pair, ...]]]:
    """Yield the shown names that several servers have, and their tools: the server that is ready first has them."""
    if dialect.mangling.across != "race" or found.scope == "request":
        return
    for text, group in found.merged.items():
        if text not in found.reaches:
            yield (text,), group
    for winner in set(found.reaches.values()):
        texts = tuple(text for text, pair in found.reaches.items() if pair == winner)
        group = tuple(pair for text in texts for pair in found.seen[text])
        if len({server for server, _ in group}) > 1:
            yield texts, group


def _won(
    dialect: Dialect, found: Simulation[Pair], by_lab: Mapping[Pair, frozenset[str]]
) -> Mapping[Pair, frozenset[str]]:
    """Return what is predicted of those who raced: one of them runs, the one that the lab saw or else the first."""
    won: dict[Pair, frozenset[str]] = {}
    for texts, group in _raced(dialect, found):
        ran = [pair for pair in group if any(text.endswith(" runs it") for text in by_lab.get(pair, ()))]
        first = ran[0] if ran else group[0]
        if len(texts) == 1:
            won[first] = frozenset({_said(texts[0], first, first)})
        else:
            won |= {pair: frozenset({_said(text, pair, first)}) for text, pair in zip(texts, group, strict=True)}
    return won


def _not_meant_to_be_called(dialect: Dialect, trial: Trial) -> frozenset[Pair]:
    """Return the tools of whose shown names no more is known than that they were shown."""
    if scenario(trial.scenario).plan == "sweep":
        return frozenset()
    return frozenset(_given(dialect, trial, tool) for tool in trial.tools if tool.outcome == "uncalled")


def differences(run: Run) -> Iterable[Difference]:
    """Yield every tool of a run for which the table says something else than the lab saw."""
    dialect = dialects.get(f"{run.dialect}@{run.version}")
    for trial in filter(compared, run.trials):
        found, by_lab = predicted(dialect, trial), seen(dialect, trial)
        uncalled = _not_meant_to_be_called(dialect, trial)
        by_table = {**_by_table(found), **_won(dialect, found, by_lab)}
        for pair in dict.fromkeys(_given(dialect, trial, tool) for tool in trial.tools):
            expected, actual = by_table.get(pair, frozenset()), by_lab.get(pair, frozenset())
            if pair in uncalled:
                expected = frozenset(_said(text, pair, _UNCALLED) for text, own in found.seen.items() if pair in own)
            if expected != actual:
                yield Difference(trial.scenario, trial.mode, pair, expected, actual)
