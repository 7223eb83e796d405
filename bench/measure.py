"""Measuring: a case is run five times beside its plain loop; a miss is named with the top of a profile."""

from __future__ import annotations

import cProfile
import gc
import io
import pstats
import re
import statistics
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["RUNS", "Case", "Result", "measured", "profiled", "shown", "timed"]

RUNS: Final = 5
_ROW: Final = re.compile(r"\s*\S+\s+[\d.]+\s+[\d.]+\s+[\d.]+\s+[\d.]+\s+.+")


@dataclass(frozen=True, kw_only=True)
class Case:
    """Something to be measured: ``run`` does ``count`` operations, ``plain`` the same with dictionaries only.

    ``prepare`` makes what one run uses up. ``aim`` is seconds an operation, None where no aim was set. ``seconds``,
    ``plain_seconds`` and ``explain`` replace timing and profile where they are had otherwise, as of other processes.
    """

    name: str
    count: int = 1
    aim: float | None = None
    prepare: Callable[[], Any] = lambda: None
    run: Callable[[Any], object] = lambda _: None
    plain: Callable[[], object] | None = None
    seconds: Callable[[], float] | None = None
    plain_seconds: Callable[[], float] | None = None
    explain: Callable[[], tuple[str, ...]] | None = None


@dataclass(frozen=True, kw_only=True)
class Result:
    """Seconds an operation: median, least and most of the runs, and of the plain loop."""

    name: str
    count: int
    aim: float | None
    median: float
    least: float
    most: float
    plain: float | None
    profile: tuple[str, ...] = ()

    @property
    def met(self) -> bool | None:
        """Whether the aim is met, None without one."""
        return None if self.aim is None else self.median <= self.aim

    @property
    def ratio(self) -> float | None:
        """How many times the plain loop it takes."""
        return None if not self.plain else self.median / self.plain


def timed(action: Callable[[], object]) -> float:
    """Return the seconds that one call takes, without the collector in between."""
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        action()
        return time.perf_counter() - start
    finally:
        gc.enable()


def measured(case: Case, runs: int = RUNS) -> Result:
    """Run a case and its plain loop in turns, so that a busy machine slows both."""
    times: list[float] = []
    plain: list[float] = []
    for _ in range(runs):
        if case.seconds is not None:
            times.append(case.seconds())
        else:
            ready = case.prepare()
            times.append(timed(lambda ready=ready: case.run(ready)) / case.count)  # type: ignore[misc]
        if case.plain_seconds is not None:
            plain.append(case.plain_seconds())
        elif case.plain is not None:
            plain.append(timed(case.plain) / case.count)
    result = Result(
        name=case.name,
        count=case.count,
        aim=case.aim,
        median=statistics.median(times),
        least=min(times),
        most=max(times),
        plain=statistics.median(plain) if plain else None,
    )
    if result.met is not False:
        return result
    return replace(result, profile=profiled(case) if case.explain is None else case.explain())


def profiled(case: Case, top: int = 10) -> tuple[str, ...]:
    """Return the functions that take most of the time themselves."""
    ready = case.prepare()
    profile = cProfile.Profile()
    profile.runcall(case.run, ready)
    text = io.StringIO()
    pstats.Stats(profile, stream=text).strip_dirs().sort_stats("tottime").print_stats(top)
    return tuple(line.rstrip() for line in text.getvalue().splitlines() if _ROW.fullmatch(line))


def shown(results: Sequence[Result]) -> str:
    """Return the results as a table, misses below with their profiles."""
    head = f"{'what':34}{'median':>11}{'least':>11}{'most':>11}{'plain':>11}{'ratio':>8}{'aim':>10}"
    lines = [head, "-" * (len(head) + 8)]
    for one in results:
        verdict = {None: "", True: "  met", False: "  MISSED"}[one.met]
        plain, ratio = (_unit(one.plain), f"{one.ratio:.1f}x") if one.plain and one.ratio else ("", "")
        aim = _unit(one.aim) if one.aim else ""
        times = "".join(f"{_unit(value):>11}" for value in (one.median, one.least, one.most))
        lines.append(f"{one.name:34}{times}{plain:>11}{ratio:>8}{aim:>10}{verdict}")
    for one in results:
        if one.profile:
            lines += ["", f"{one.name} missed its aim; most of its time goes here:", *one.profile]
    return "\n".join(lines)


def _unit(seconds: float) -> str:
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "us")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"
