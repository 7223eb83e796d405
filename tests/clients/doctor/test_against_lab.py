"""What the doctor predicts for a client is what the lab saw when it ran that client: tool by tool."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from lab.predict import address_of, compared
from lab.results import load_all
from truename import dialects
from truename.clients.doctor import ClientCase, ExaminedServer, Prediction, ServerLists, ToolFate, examine, predict

if TYPE_CHECKING:
    from lab.results import Run, SeenTool, Trial
    from truename.dialects import Dialect

RUNS = sorted(load_all(), key=lambda run: run.client)
LOST_BY_RULE = {"request_fails", "server_fails", "tool_refused", "tool_dropped", "tools_merged", "wrong_tool"}


def lists_of(trial: Trial) -> dict[str, list[str]]:
    lists: dict[str, list[str]] = {}
    for tool in trial.tools:
        lists.setdefault(tool.server, []).append(tool.upstream)
    return lists


def addresses(dialect: Dialect, trial: Trial) -> dict[str, str]:
    return {server: address_of(dialect, trial, server) for server in lists_of(trial)}


def bare_trials(run: Run) -> list[Trial]:
    return [trial for trial in run.trials if trial.mode == "bare" and compared(trial)]


def agrees(fate: ToolFate, tool: SeenTool, *, twice: bool, run_by_another: bool) -> bool:
    # Of a name that is listed twice one entry is predicted; what becomes of the other is the simulation's matter.
    if twice:
        return bool(fate.loss) is (tool.outcome == "failed")
    if fate.loss == "unknown":
        # One of several is kept, and which one is a race.
        return tool.outcome in {"right", "missing"}
    if tool.outcome == "missing" and run_by_another and not fate.loss:
        # The model sees another tool's description under its name, and a call runs this one.
        return True
    if tool.outcome in {"missing", "failed"}:
        return bool(fate.loss) and fate.shown is None
    if fate.shown != tool.shown:
        return False
    if tool.outcome == "misrouted":
        return fate.loss == "misrouted" and fate.reaches == tool.reached
    if tool.outcome == "unreachable":
        return fate.loss == "misrouted" and fate.reaches is None
    return tool.outcome == "uncalled" or not fate.loss


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run.client}-{run.version}")
def test_every_tool_has_the_fate_that_was_seen(run: Run) -> None:
    dialect = dialects.get(run.dialect)
    wrong = []
    for trial in bare_trials(run):
        seen: Prediction = predict(dialect, lists_of(trial).items(), addresses(dialect, trial))
        listed = Counter((tool.server, tool.upstream) for tool in trial.tools)
        run_by_another = {tool.reached for tool in trial.tools if tool.outcome == "misrouted"}
        for tool in trial.tools:
            key = tool.server, tool.upstream
            if not agrees(seen.by_key[key], tool, twice=listed[key] > 1, run_by_another=key in run_by_another):
                wrong.append((trial.scenario, tool, seen.by_key[key]))

    assert wrong == []


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run.client}-{run.version}")
def test_every_lost_tool_is_told_in_a_finding_and_no_other(run: Run) -> None:
    dialect = dialects.get(run.dialect)
    for trial in bare_trials(run):
        lists = ServerLists(ExaminedServer.listing(key, names) for key, names in lists_of(trial).items())
        (diagnosis,) = examine([ClientCase(dialect=dialect, lists=lists)]).diagnoses
        told = {name for one in diagnosis.findings if one.rule.name in LOST_BY_RULE for name in one.tools}
        ignored = {one.server for one in diagnosis.findings if one.rule.name == "server_ignored"}
        fell = {fate.key for fate in diagnosis.case.direct.fates if fate.loss == "falls"}
        lost = {fate.key for fate in diagnosis.case.direct.lost if fate.loss != "unknown"}

        assert {tool for server, tool in lost - fell if server not in ignored} <= told
        assert bool(lost) is bool(told or ignored)
