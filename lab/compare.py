"""`python -m lab compare`: where the dialect table says something else than the lab saw.

Without options, of the results that are kept. With ``--drawn``, of real catalogues that are drawn anew and shown to the
clients now; with ``--note`` what came of it is noted in `lab/drawn.json`.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

from lab import places, predict, results, runner, scenarios

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lab.clients import Client
    from lab.results import Run, Trial

__all__ = ["NOTES", "Note", "kept", "noted", "played"]

NOTES: Final = places.ROOT / "lab" / "drawn.json"


@dataclass(frozen=True, kw_only=True)
class Note:
    """One client's version before the catalogues of one seed, and how much of it was predicted otherwise."""

    client: str
    version: str
    seed: int
    date: str
    servers: int
    trials: int
    tools: int
    differ: int


def kept(names: Sequence[str]) -> int:
    """Compare the results that are kept, of these clients or of all; 1 if anything differs."""
    chosen = [run for run in results.load_all() if not names or run.client in names]
    return 1 if sum([_told(run) for run in chosen]) else 0


def played(clients: Iterable[Client], seeds: Sequence[int], modes: Sequence[scenarios.Mode], *, note: bool) -> int:
    """Show the catalogues of these seeds to these clients, and compare; 1 if anything differs."""
    found = 0
    for client in clients:
        for seed in seeds:
            name = f"{scenarios.DRAWN}/{seed}"
            whole = runner.run_client(client, [name], modes, _unsaid, keep=False)
            run = replace(whole, trials=tuple(one for one in whole.trials if one.scenario.startswith(name)))
            differ = _told(run, f" on seed {seed}")
            found += differ
            if note and run.trials:
                _note(run, seed, differ)
    return 1 if found else 0


def _unsaid(_: Trial) -> None:
    pass


def _compared(run: Run) -> int:
    return sum(len(trial.tools) for trial in run.trials if predict.compared(trial))


def _told(run: Run, where: str = "") -> int:
    differences = list(predict.differences(run))
    said = f"{_compared(run):,} tools compared, {len(differences)} differ"
    sys.stdout.write(f"{run.client} {run.version}{where}: {said}\n")
    sys.stdout.writelines(f"  {one}\n" for one in differences)
    sys.stdout.flush()
    return len(differences)


def noted() -> tuple[Note, ...]:
    """Return what came of the catalogues that were drawn, by client and seed."""
    rows = json.loads(NOTES.read_text(encoding="utf-8")) if NOTES.is_file() else []
    return tuple(Note(**row) for row in rows)


def _note(run: Run, seed: int, differ: int) -> None:
    servers = len(scenarios.scenario(f"{scenarios.DRAWN}/{seed}").servers)
    note = Note(
        client=run.client,
        version=run.version,
        seed=seed,
        date=run.date,
        servers=servers,
        trials=len(run.trials),
        tools=_compared(run),
        differ=differ,
    )
    by_key = {(one.client, one.seed): one for one in (*noted(), note)}
    rows = (json.dumps(asdict(by_key[key]), ensure_ascii=False) for key in sorted(by_key))
    NOTES.write_text("[\n " + ",\n ".join(rows) + "\n]\n", encoding="utf-8")
