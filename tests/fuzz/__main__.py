"""`python -m tests.fuzz [--seconds N] [--seed S] [--target T] [--case I]`: ends with 1 on a finding."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, Final

from tests.fuzz.chance import Fed, seeded
from tests.fuzz.guided import Guided, guided, is_installed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.fuzz.judging import Finding

_MOST_FINDINGS: Final = 20
# Of the time; the rest is for the guided part, which is slower and finds more.
_SEEDED: Final = 0.4


@dataclass
class Ran:
    """What was run of the targets, and what was found: each finding with how it is had again."""

    counts: dict[str, int] = field(default_factory=dict)
    guided: dict[str, Guided] = field(default_factory=dict)
    findings: list[tuple[str, str, str]] = field(default_factory=list)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Feed hostile input to all that reads.")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**9))
    parser.add_argument("--target", action="append", default=[], help="this one only; may stand there several times")
    parser.add_argument("--case", type=int, help="this one case only, as a finding names it")
    parser.add_argument("--bytes", help="this one guided case only: hexadecimal, or a file that holds it")
    options = parser.parse_args()
    ran = Ran()
    if options.case is not None or options.bytes is not None:
        _again(ran, options.target, options.seed, options.case, options.bytes)
    else:
        # First: no thread runs in this process yet, and nothing of Truename was imported without its instruments.
        guided_seconds = options.seconds * (1 - _SEEDED) if is_installed() else 0.0
        if guided_seconds:
            ran.guided = guided(options.target, guided_seconds, options.seed)
        _seeded(ran, options.target, options.seed, options.seconds - guided_seconds)
    _report(ran, options.seed)
    return 1 if ran.findings or any(one.findings for one in ran.guided.values()) else 0


def _again(ran: Ran, names: Sequence[str], seed: int, case: int | None, given: str | None) -> None:
    from tests.fuzz.judging import judged  # noqa: PLC0415 - after what is guided
    from tests.fuzz.targets import TARGETS  # noqa: PLC0415 - as above

    for name in names or TARGETS:
        ran.counts[name] = 1
        chance = seeded(seed, name, case or 0) if given is None else Fed(_bytes(given))
        if (found := judged(name, TARGETS[name], chance)) is not None:
            ran.findings.append((name, found.text, ""))


def _bytes(given: str) -> bytes:
    try:
        return bytes.fromhex(given)
    except ValueError:
        return bytes.fromhex(Path(given).read_text())


def _seeded(ran: Ran, names: Sequence[str], seed: int, seconds: float) -> None:
    from tests.fuzz import house  # noqa: PLC0415 - as above
    from tests.fuzz.judging import judged  # noqa: PLC0415 - as above
    from tests.fuzz.targets import TARGETS  # noqa: PLC0415 - as above

    spent = dict.fromkeys(names or TARGETS, 0.0)
    ran.counts = dict.fromkeys(spent, 0)
    keys: set[str] = set()
    end = time.monotonic() + seconds
    while time.monotonic() < end and len(ran.findings) < _MOST_FINDINGS:
        # Each target gets the same time, not the same number of cases.
        name = min(spent, key=lambda name: spent[name])
        start, case = time.monotonic(), ran.counts[name]
        found: Finding | None = judged(name, TARGETS[name], seeded(seed, name, case))
        spent[name] += time.monotonic() - start
        ran.counts[name] += 1
        if found is not None and found.key not in keys:
            keys.add(found.key)
            ran.findings.append((name, found.text, f"--seed {seed} --target {name} --case {case}"))
    house.close()


def _report(ran: Ran, seed: int) -> None:
    again = [*ran.findings]
    again += [
        (name, text, f"--target {name} --bytes {raw}")
        for name, one in ran.guided.items()
        for text, _, raw in one.findings
    ]
    cases = sum(ran.counts.values()) + sum(one.cases for one in ran.guided.values())
    lines = [
        f"seed {seed}: {cases:,} cases, {len(again)} findings",
        "",
        f"  {'target':20}{'random':>10}{'guided':>10}{'places':>8}",
    ]
    for name in {**ran.counts, **ran.guided}:
        one = ran.guided.get(name, Guided(0, 0))
        lines.append(f"  {name:20}{ran.counts.get(name, 0):10,}{one.cases:10,}{one.covered:8,}")
    for name, text, how in again:
        lines += ["", f"{name}: {text}", f"  python -m tests.fuzz {how}"]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
