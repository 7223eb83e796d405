"""A run: the scenarios of one client in all modes, each trial inside walls of its own, put together as its results."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from lab import places, results, sandbox, scenarios
from lab.results import Run, Trial, read_trial
from lab.trial import Order

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from lab.clients import Client

__all__ = ["played", "run_client"]

# Beyond the client's own limit: servers and the gateway are started and ended too.
_AROUND: Final = 60.0
_MOST_ENDINGS: Final = 20


def run_client(
    client: Client,
    names: Sequence[str],
    modes: Sequence[scenarios.Mode],
    tell: Callable[[Trial], None],
    *,
    transport: str = "http",
    keep: bool = True,
) -> Run:
    """Play the scenarios that are named in these modes; trials that were made before and are not now are kept.

    With ``keep`` the results are saved after each scenario, so that a failure loses no more than one. Raises
    `RuntimeError` if the lab itself fails.
    """
    run = _begun(client)
    for name in names:
        made: list[Trial] = []
        for mode in modes:
            if _applies(client, name, mode):
                order = Order(
                    client=client.name,
                    scenario=name,
                    mode=mode,
                    transport=transport,
                    limit=client.limit,
                    version=client.version,
                )
                for trial in _trials(order):
                    tell(trial)
                    made.append(trial)
        run = _with(run, made)
        if keep:
            results.save(run)
    return run


def _applies(client: Client, scenario: str, mode: scenarios.Mode) -> bool:
    wanted = not client.scenarios or scenario.partition("/")[0] in client.scenarios
    return wanted and mode in scenarios.scenario(scenario).modes


def _trials(order: Order) -> list[Trial]:
    if scenarios.scenario(order.scenario).plan == "probes":
        return [_probed(order)]
    whole = played(order)
    if whole.failure is None:
        return [whole]
    # One name took all others with it: each part alone says which.
    return [whole, *(played(replace(order, scenario=part)) for part in scenarios.parts(order.scenario))]


def _probed(order: Order) -> Trial:
    """Play the probes; where the run ends before the last one, begin again.

    With the probe that ended it if others came before, since some clients end after several mistakes in a row, and
    behind it if it was the first.
    """
    trial = last = played(order)
    probes = list(trial.probes)
    for _ in range(_MOST_ENDINGS):
        if last.failure is None or not last.probes:
            break
        if len(last.probes) > 1:
            probes.pop()
        last = played(replace(order, start=len(probes)))
        probes += last.probes
    return replace(trial, probes=tuple(probes))


def played(order: Order) -> Trial:
    """Play one trial in a process of its own, inside walls. Raises `RuntimeError` if the lab itself fails."""
    folder = _folder(order)
    (folder / "order.json").write_text(json.dumps(asdict(order)), encoding="utf-8")
    command = sandbox.walled([sys.executable, "-m", "lab.trial", str(folder)])
    env = dict(os.environ) | {"PYTHONPATH": str(places.ROOT), "TRUENAME_LAB": str(places.home())}
    ended = sandbox.run(command, env=env, cwd=places.ROOT, out=folder / "lab.out", limit=order.limit + _AROUND)
    made = folder / "trial.json"
    if not made.exists():
        said = (folder / "lab.out").read_text(encoding="utf-8", errors="replace").strip()
        raise RuntimeError(f"The trial in {folder} failed (exit code {ended.code}): {said[-2000:]}")
    return read_trial(json.loads(made.read_text(encoding="utf-8")))


def _folder(order: Order) -> Path:
    scenario = order.scenario.replace("/", "-")
    folder = places.home() / "runs" / order.client / f"{scenario}-{order.mode}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _begun(client: Client) -> Run:
    path = results.path_of(client.name, client.version)
    return Run(
        client=client.name,
        title=client.title,
        version=client.version,
        dialect=client.dialect,
        packages=client.packages,
        date=datetime.now(UTC).date().isoformat(),
        truename=version("truename"),
        walls=sandbox.walls(),
        trials=results.load(path).trials if path.exists() else (),
    )


def _with(run: Run, made: Sequence[Trial]) -> Run:
    """Return the run with these trials instead of those of the same scenarios and modes."""
    now = {_key(trial) for trial in made}
    kept = [trial for trial in run.trials if _key(trial) not in now and not _replaced(trial, now)]
    return replace(run, trials=tuple(sorted([*kept, *made], key=_place)))


def _key(trial: Trial) -> tuple[str, str]:
    return trial.scenario, trial.mode


def _replaced(trial: Trial, made: set[tuple[str, str]]) -> bool:
    """Say whether the trial is a part of one that was made again."""
    whole, _, part = trial.scenario.partition("/")
    return bool(part) and (whole, trial.mode) in made


def _place(trial: Trial) -> tuple[int, int, str]:
    names = [*(one.name for one in scenarios.SCENARIOS), scenarios.DRAWN]
    whole = trial.scenario.partition("/")[0]
    return names.index(whole), scenarios.MODES.index(trial.mode), trial.scenario
