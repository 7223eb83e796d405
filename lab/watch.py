"""`python -m lab watch`: install the newest version of each client, show it awkward servers, and note what changed.

One client after the other; one that cannot be installed or run does not stop the others. A version that was compared
with the same rules before is not run again.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

from lab import clients, drift, install, predict, runner
from lab.drift import Drifted, Watched
from truename import dialects

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lab.clients import Client
    from lab.results import Run, Trial

__all__ = ["SCENARIOS", "Outcome", "compared", "watch", "watch_all"]

# Names, keys and clashes: what a client's convention decides. The others are about behaviour.
SCENARIOS: Final = ("awkward", "duplicates", "keys", "joins", "clashes-2", "clashes-6")
_MOST: Final = 200
_NONE_SHOWN: Final = "failed"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of watching one client: ``agrees``, ``drifted``, ``failed`` (no tools) or ``error`` (``problem``).

    ``is_new`` is whether it was run now; otherwise the version was compared with the same rules before.
    """

    client: str
    version: str
    state: str
    is_new: bool = False
    problem: str = ""
    watched: Watched | None = None


def watch_all(
    chosen: Iterable[Client], *, version: str | None = None, transport: str = "http", again: bool = False
) -> list[Outcome]:
    """Watch clients one after the other, and say on stderr how it goes; nothing that fails stops the others."""
    found: list[Outcome] = []
    for client in chosen:
        _say(f"{client.title}: ", end="")
        try:
            found.append(watch(client, version=version, transport=transport, again=again))
        except (RuntimeError, LookupError, OSError, ValueError) as error:
            problem = str(error) or type(error).__name__
            found.append(Outcome(client=client.name, version=version or "", state="error", problem=problem))
        _say(_in_words(found[-1]))
    return found


def watch(client: Client, *, version: str | None = None, transport: str = "http", again: bool = False) -> Outcome:
    """Install a version of a client (default: the newest), run it bare, and note how it differs from its rules.

    Raises `RuntimeError` if it cannot be found, installed or run.
    """
    wanted = clients.at(client, version or install.newest(client))
    rules = dialects.get(f"{client.dialect}@{wanted.version}")
    names = tuple(name for name in SCENARIOS if not client.scenarios or name in client.scenarios)
    before = [one for one in drift.load(client.name) if one.version == wanted.version and one.scenarios == names]
    known = next((one for one in before if one.digest == drift.rules_digest(rules)), None)
    if known is not None and not again:
        return Outcome(client=client.name, version=wanted.version, state=_state(known), watched=known)
    if wanted.installed != wanted.version:
        install.install(wanted)
    if wanted.installed != wanted.version:
        message = f"{client.package} {wanted.version} is not there after its installation, but {wanted.installed}"
        raise RuntimeError(message)
    made: list[Trial] = []
    run = runner.run_client(wanted, names, ("bare",), made.append, transport=transport, keep=False)
    seen = compared(replace(run, trials=tuple(made)), names)
    drift.append(seen)
    return Outcome(client=client.name, version=wanted.version, state=_state(seen), is_new=True, watched=seen)


def compared(run: Run, names: Sequence[str]) -> Watched:
    """Compare a run with the rules of the dialect table for its version."""
    rules = dialects.get(f"{run.dialect}@{run.version}")
    trials = tuple(trial for trial in run.trials if predict.compared(trial))
    empty = [trial for trial in trials if _shows_nothing(trial)]
    unforeseen = [trial for trial in empty if any(predict.predicted(rules, trial).seen)]
    rest = replace(run, trials=tuple(trial for trial in trials if trial not in unforeseen))
    differences = list(predict.differences(rest))
    return Watched(
        client=run.client,
        version=run.version,
        day=run.date,
        rules=rules.name,
        ran=rules.version,
        digest=drift.rules_digest(rules),
        truename=run.truename,
        scenarios=tuple(names),
        tools=sum(len(trial.tools) for trial in rest.trials),
        differ=len(differences),
        differences=tuple(
            Drifted(
                scenario=one.scenario,
                server=one.tool[0],
                tool=one.tool[1],
                expected=tuple(sorted(one.predicted)),
                seen=tuple(sorted(one.seen)),
            )
            for one in differences[:_MOST]
        ),
        failures=tuple(f"{trial.scenario}: {trial.failure}" for trial in unforeseen),
    )


def _shows_nothing(trial: Trial) -> bool:
    return all(tool.outcome == _NONE_SHOWN for tool in trial.tools)


def _state(watched: Watched) -> str:
    return "agrees" if watched.agrees else "drifted" if watched.differ else "failed"


def _in_words(outcome: Outcome) -> str:
    seen = outcome.watched
    if seen is None:
        return f"error: {outcome.problem}"
    told = f"{seen.version}, rules of {seen.rules} ({seen.ran}): {seen.tools:,} tools compared, {seen.differ} differ"
    if seen.failures:
        told += f", {len(seen.failures)} scenarios showed no tool"
    return told if outcome.is_new else f"{told}; compared on {seen.day} already"


def _say(text: str, end: str = "\n") -> None:
    sys.stderr.write(text + end)
    sys.stderr.flush()


def document(found: Sequence[Outcome]) -> str:
    """Return what came of it as one JSON document."""
    return json.dumps({"schema": "truename.lab.watch/1", "clients": [asdict(one) for one in found]}, indent=1)
