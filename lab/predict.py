"""What the dialect table predicts for a trial, beside what the lab saw: the two must be the same.

The prediction is :meth:`truename.dialects.Dialect.simulate_all`, the same that ``truename doctor`` uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lab.scenarios import scenario
from lab.through import KEY
from truename import dialects

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lab.results import Run, SeenTool, Trial
    from truename.dialects import Simulation

__all__ = ["Difference", "Pair", "compared", "differences", "predicted", "seen"]

Pair = tuple[str, str]  # a server's key and the name that it lists


@dataclass(frozen=True)
class Difference:
    """One tool for which the table and the lab disagree: what each of them says."""

    scenario: str
    mode: str
    tool: Pair | str
    predicted: frozenset[str]
    seen: frozenset[str]

    def __str__(self) -> str:
        said = ("; ".join(sorted(side)) or "not shown" for side in (self.predicted, self.seen))
        return f"{self.scenario}, {self.mode}, {self.tool}: predicted {next(said)}, seen {next(said)}"


def compared(trial: Trial) -> bool:
    """Say whether a trial can be compared: it has a list of tools that stays the same."""
    return bool(trial.tools) and scenario(trial.scenario).plan != "rename"


def _pair(tool: SeenTool, mode: str) -> Pair:
    """Return the server and the name as the client was given them."""
    return (KEY if mode == "through" else tool.server, tool.upstream if tool.listed is None else tool.listed)


def predicted(run: Run, trial: Trial) -> Simulation[Pair]:
    """Return what the run's dialect says of a trial's lists, in the order in which the client was given them."""
    pairs = [_pair(tool, trial.mode) for tool in trial.tools if trial.mode == "bare" or tool.listed is not None]
    lists: dict[str, list[str]] = {}
    # Truename lists a tool once, however often its server does.
    for server, name in pairs if trial.mode == "bare" else dict.fromkeys(pairs):
        lists.setdefault(server, []).append(name)
    return dialects.get(run.dialect).simulate_all(lists.items())


_UNCALLED: Final = ("", "")


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


def seen(trial: Trial) -> Mapping[Pair, frozenset[str]]:
    """Return what the lab saw of each tool that the model was shown: the shown name, and what a call of it ran."""
    sweep = scenario(trial.scenario).plan == "sweep"
    given = {(tool.server, tool.upstream): _pair(tool, trial.mode) for tool in trial.tools}
    said: dict[Pair, set[str]] = {}
    for tool in trial.tools:
        if tool.shown is None:
            continue
        own = _pair(tool, trial.mode)
        other = None if tool.reached is None else given.get(tool.reached, tool.reached)
        reached = {"misrouted": other, "unreachable": None, "uncalled": _UNCALLED if sweep else own}.get(
            tool.outcome, own
        )
        said.setdefault(own, set()).add(_said(tool.shown, own, reached))
    return {pair: frozenset(texts) for pair, texts in said.items()}


def _failed(trial: Trial) -> bool:
    return all(tool.outcome == "failed" for tool in trial.tools)


def differences(run: Run) -> Iterable[Difference]:
    """Yield every tool of a run for which the table says something else than the lab saw."""
    for trial in filter(compared, run.trials):
        found = predicted(run, trial)
        by_table, by_lab = _by_table(found), seen(trial)
        if _failed(trial) and not by_table:
            continue
        for pair in dict.fromkeys(_pair(tool, trial.mode) for tool in trial.tools):
            expected, actual = by_table.get(pair, frozenset()), by_lab.get(pair, frozenset())
            if expected != actual:
                yield Difference(trial.scenario, trial.mode, pair, expected, actual)
