"""`python -m lab connect`: each client as `truename connect` leaves it by default, on real catalogues drawn anew."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from lab import places, sandbox
from lab.connecting import BARE, Connected, Order, Round

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lab.clients import Client

__all__ = ["played"]

# Five runs of the client, and the commands around them.
_RUNS: Final = 5
_AROUND: Final = 120.0
_MOST_TOLD: Final = 8


def played(clients: Iterable[Client], seeds: Sequence[int], *, as_json: bool) -> int:
    """Connect these clients on the servers of these seeds; 1 if anything went wrong.

    Raises `RuntimeError` if the lab itself fails.
    """
    made = []
    for client in clients:
        for seed in seeds:
            one = _played(client, seed)
            made.append(one)
            if not as_json:
                sys.stdout.write(told(one))
                sys.stdout.flush()
    if as_json:
        document = [asdict(one) | {"right": one.is_right} for one in made]
        sys.stdout.write(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    return 0 if made and all(one.is_right for one in made) else 1


def _played(client: Client, seed: int) -> Connected:
    order = Order(client=client.name, seed=seed)
    folder = places.home() / "runs" / client.name / f"connect-{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "order.json").write_text(json.dumps(asdict(order)), encoding="utf-8")
    command = sandbox.walled([sys.executable, "-m", "lab.connecting", str(folder)])
    env = dict(os.environ) | {"PYTHONPATH": str(places.ROOT), "TRUENAME_LAB": str(places.home())}
    limit = _RUNS * client.limit + _AROUND
    ended = sandbox.run(command, env=env, cwd=places.ROOT, out=folder / "lab.out", limit=limit)
    path = folder / "connected.json"
    if not path.exists():
        said = (folder / "lab.out").read_text(encoding="utf-8", errors="replace").strip()
        raise RuntimeError(f"The run in {folder} failed (exit code {ended.code}): {said[-2000:]}")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"), object_hook=_frozen)
    return Connected(**found | {"rounds": tuple(Round(**row) for row in found["rounds"])})


def _frozen(row: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}


def told(made: Connected) -> str:
    """Return one line, and below it what went wrong."""
    bare = [one for one in made.rounds if one.name == BARE]
    others = [one for one in made.rounds if one.name != BARE]
    where = f"{made.client} {made.version}, seed {made.seed}"
    drawn = f"{made.tools} tools of {made.servers} servers, {made.refused} refused"
    without = "; ".join(f"bare: {_counts([one])}" for one in bare)
    lines = [f"{where}: {drawn}; connected, {len(others)} runs: {_counts(others)} ({without})"]
    if late := sum(len(one.late) for one in others):
        lines.append(f"  {late} calls failed in first sessions after a change, on a list that the client had kept")
    for one in others:
        wrong = [*one.lost, *one.misrouted, *one.allowed]
        lines += [f"  {one.name}: {text}" for text in wrong[:_MOST_TOLD]]
        if len(wrong) > _MOST_TOLD:
            lines.append(f"  {one.name}: ... and {len(wrong) - _MOST_TOLD} more")
        if one.said and wrong:
            lines.append(f"  {one.name}: it said: {one.said}")
    return "\n".join([*lines, *(f"  {text}" for text in made.broken)]) + "\n"


def _counts(rounds: Sequence[Round]) -> str:
    lost, misrouted, allowed = (
        sum(len(getattr(one, what)) for one in rounds) for what in ("lost", "misrouted", "allowed")
    )
    return f"lost {lost}, misrouted {misrouted}, wrongly allowed {allowed}"
