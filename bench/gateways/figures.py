"""Figures of a run: the medians of its rounds, and their ratios to Envoy's and to the direct answer."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from bench.gateways.cases import HANDSHAKE, Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["BASELINE", "DIRECT", "Case", "Figures", "median_of"]

BASELINE: Final = "envoy"
DIRECT: Final = "direct"
_REMARK: Final = 120


@dataclass(frozen=True)
class Case:
    """One workload through one gateway in one set-up."""

    gateway: str
    setup: str
    workload: Workload


@dataclass
class Figures:
    """All that a run has recorded, by case."""

    header: dict[str, Any] = field(default_factory=dict)
    # The records of the rounds.
    measured: dict[Case, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    starts: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    loaded: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    # Why a case was not measured; it can have been in another round.
    absent: dict[Case, str] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Iterable[Mapping[str, Any]]) -> Figures:
        found = cls()
        for record in map(dict, records):
            kind = record["kind"]
            if kind == "run":
                found.header = record
            elif kind in {"start", "loaded"}:
                kept = found.starts if kind == "start" else found.loaded
                kept[record["gateway"], record["setup"]].append(record)
            else:
                case = Case(record["gateway"], record["setup"], Workload(**record["workload"]))
                if kind == "measured":
                    found.measured[case].append(record)
                else:
                    found.absent.setdefault(case, record["reason"])
        return found

    def cases(self) -> list[Case]:
        """Return all cases of the run, measured or not."""
        return [*self.measured, *self.absent]

    def gateways(self) -> list[str]:
        """Return the gateways in the order in which they were measured first."""
        known = {case.gateway for case in self.cases()}
        return [name for name in self.header.get("versions", known) if name in known]

    def workloads(self, setup: str) -> list[Workload]:
        """Return what was asked in a set-up, in order, whoever could answer it."""
        return list(dict.fromkeys(case.workload for case in self.cases() if case.setup == setup))

    def wrong(self, case: Case) -> int:
        """Return how many answers were wrong or failed, in all rounds."""
        return sum(one["wrong"] + one["failed"] for one in self.measured.get(case, ()))

    def remark(self, case: Case) -> str:
        """Return how many answers were wrong or failed, and the first of them; empty if all were right."""
        if not (wrong := self.wrong(case)):
            return ""
        first = next(one["first_failure"] for one in self.measured[case] if one["first_failure"])
        return f"void: {wrong:,} wrong or failed answers, as {' '.join(first.split())[:_REMARK]}"

    def value(self, case: Case, key: str) -> float | None:
        """Return the median of the rounds; None if nothing was measured, or an answer was wrong."""
        if self.wrong(case):
            return None
        return median_of(self.measured.get(case, ()), key)

    def ratio(self, case: Case, key: str, other: str) -> float | None:
        """Return the median of the rounds' own ratios to another gateway in the same round.

        Rounds differ more from each other than gateways within one: the machine is not always as fast.
        """
        return self._beside(case, key, other, lambda own, beside: own / beside)

    def added(self, case: Case, key: str) -> float | None:
        """Return the median of what the rounds' own figures are above the direct ones."""
        return self._beside(case, key, DIRECT, lambda own, beside: own - beside)

    def _beside(self, case: Case, key: str, other: str, compared: Callable[[float, float], float]) -> float | None:
        peer = self._peer(case, other)
        if peer is None or self.wrong(case) or self.wrong(peer):
            return None
        beside = {one["round"]: one[key] for one in self.measured[peer]}
        found = [
            compared(one[key], beside[one["round"]]) for one in self.measured.get(case, ()) if beside.get(one["round"])
        ]
        return statistics.median(found) if found else None

    def _peer(self, case: Case, other: str) -> Case | None:
        """Return what a case is compared with: the same, else in the handshake version; for stdio, else over HTTP."""
        handshake = replace(case.workload, version=HANDSHAKE)
        peers = [Case(other, case.setup, case.workload), Case(other, case.setup, handshake)]
        if case.setup.partition("-")[0] == "stdio":
            peers.append(Case(other, "base", handshake))
        return next((peer for peer in peers if peer in self.measured), None)


def median_of(records: Iterable[Mapping[str, Any]], key: str) -> float | None:
    values = [one[key] for one in records]
    return statistics.median(values) if values else None
