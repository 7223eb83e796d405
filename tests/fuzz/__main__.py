"""`python -m tests.fuzz [--seconds N] [--seed S] [--target T] [--case I]`: ends with 1 on a finding."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import time
import traceback
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random, SystemRandom
from typing import TYPE_CHECKING, Final

from tests.fuzz.targets import TARGETS, Broken
from truename.errors import TruenameError

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATIENCE: Final = 5.0
_MOST_FINDINGS: Final = 20


class TooSlow(BaseException):
    """A call took longer than it may."""


@dataclass(frozen=True)
class Finding:
    target: str
    case: int
    text: str
    key: str = ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Feed random input to all that reads.")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**9))
    parser.add_argument("--target", choices=sorted(TARGETS), help="this one only")
    parser.add_argument("--case", type=int, help="this one case only, as a finding names it")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    names = [options.target] if options.target else list(TARGETS)
    if options.case is not None:
        findings = [one for name in names if (one := tried(name, options.seed, options.case))]
        counts = dict.fromkeys(names, 1)
    else:
        findings, counts = _run(names, options.seed, options.seconds)
    _report(findings, counts, options.seed)
    return 1 if findings else 0


def _run(names: list[str], seed: int, seconds: float) -> tuple[list[Finding], dict[str, int]]:
    findings: list[Finding] = []
    counts = dict.fromkeys(names, 0)
    end = time.monotonic() + seconds
    while time.monotonic() < end and len(findings) < _MOST_FINDINGS:
        # Each target gets the same time, not the same number of cases.
        name = min(names, key=lambda name: _spent[name])
        start = time.monotonic()
        found = tried(name, seed, counts[name])
        _spent[name] += time.monotonic() - start
        counts[name] += 1
        if found is not None and found.key not in {one.key for one in findings}:
            findings.append(found)
    return findings, counts


_spent: Final = dict.fromkeys(TARGETS, 0.0)


def tried(name: str, seed: int, case: int) -> Finding | None:
    try:
        with _patience():
            TARGETS[name](Random(f"{seed}:{name}:{case}"))
    except TooSlow:
        return Finding(name, case, f"took longer than {_PATIENCE:g} s", f"{name} slow")
    except Exception as error:  # noqa: BLE001
        return None if _allowed(error) else Finding(name, case, *_told(error))
    return None


def _allowed(error: Exception) -> bool:
    if isinstance(error, ExceptionGroup):
        return all(_allowed(one) for one in error.exceptions)
    # An error that can't be told is no good error.
    return isinstance(error, TruenameError) and bool(str(error)) and len(str(error)) < 20_000


def _told(error: Exception) -> tuple[str, str]:
    """Return what happened, and what two findings have in common that are one fault."""
    while isinstance(error, ExceptionGroup):
        error = next(one for one in error.exceptions if not _allowed(one))
    frames = traceback.extract_tb(error.__traceback__)
    where = " < ".join(f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in reversed(frames[-3:]))
    kind, said = type(error).__name__, str(error)
    text = f"{kind}: {ascii(said)[:300]} ({len(said):,} characters) at {where or 'no place'}"
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ascii(said)[:40]
    return text, f"{kind} {place} {said if isinstance(error, Broken) else ''}"


@contextmanager
def _patience() -> Iterator[None]:
    def ring(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, _PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _report(findings: list[Finding], counts: dict[str, int], seed: int) -> None:
    lines = [f"seed {seed}: {sum(counts.values()):,} cases, {len(findings)} findings"]
    lines += [f"  {name:16}{count:9,}" for name, count in counts.items()]
    for one in findings:
        lines += [
            "",
            f"{one.target}: {one.text}",
            f"  python -m tests.fuzz --seed {seed} --target {one.target} --case {one.case}",
        ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
