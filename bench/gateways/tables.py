"""Which tables a run's figures make: a summary, one for each workload, and one over each size that grows."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bench.gateways.cases import HANDSHAKE, MODERN, Workload
from bench.gateways.figures import BASELINE, DIRECT, Case, Figures, median_of
from bench.gateways.peers import ALL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["Scale", "Table", "missing", "of_scale", "of_setup", "scales", "setups", "summary", "title_of"]

_NOTHING: Final = "-"
_SMALL: Final = 10
# The set-ups of one row each in a table over a size: `tools-1000`.
_GROWING: Final = {"tools": "Tools in all, over 10 servers", "servers": "Servers with 10 tools each"}


@dataclass(frozen=True)
class Table:
    """A title, the names of columns, and for each gateway its cells; a single cell is a remark over all columns."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Scale:
    """Cases that differ in one size alone."""

    name: str
    title: str
    # Each size, with the set-up and the workload that have it.
    steps: tuple[tuple[int, str, Workload], ...]


def title_of(gateway: str) -> str:
    return ALL[gateway].title if gateway in ALL else gateway


def setups(figures: Figures) -> list[str]:
    return list(dict.fromkeys(case.setup for case in figures.cases()))


def _number(value: float | None, digits: int = 0) -> str:
    return _NOTHING if value is None else f"{value:,.{digits}f}"


def _thousandth(value: float | None, digits: int = 2) -> str:
    return _number(None if value is None else value / 1_000, digits)


def _megabytes(value: float | None) -> str:
    return _number(None if value is None else value / 1e6)


def _times(value: float | None) -> str:
    return _number(value, 2 if value is not None and value < _SMALL else 0)


def _to_baseline(figures: Figures, case: Case) -> float | None:
    # The direct figure is the processor time of the servers, not of a gateway.
    return None if case.gateway == DIRECT else figures.ratio(case, "cpu_us", BASELINE)


def _to_same_bytes(figures: Figures, case: Case) -> float | None:
    own, direct = figures.value(case, "p50_us"), figures.value(case, "direct_p50_us")
    return own / direct if own and direct else None


def _start(figures: Figures, gateway: str, setup: str, key: str) -> str:
    return _number(median_of(figures.starts.get((gateway, setup), ()), key), 2)


def _idle(figures: Figures, gateway: str, setup: str) -> str:
    return _megabytes(median_of(figures.starts.get((gateway, setup), ()), "resident_bytes"))


_CALL: Final[dict[str, Callable[[Figures, Case], str]]] = {
    "CPU, us a call": lambda figures, case: _number(figures.value(case, "cpu_us")),
    "x Envoy": lambda figures, case: _times(_to_baseline(figures, case)),
    "calls/s": lambda figures, case: _number(figures.value(case, "calls_per_second")),
    "x direct": lambda figures, case: _times(figures.ratio(case, "calls_per_second", DIRECT)),
    "p50, us": lambda figures, case: _number(figures.value(case, "p50_us")),
    "added, us": lambda figures, case: _number(figures.added(case, "p50_us")),
    "p99, us": lambda figures, case: _number(figures.value(case, "p99_us")),
}
_LIST: Final[dict[str, Callable[[Figures, Case], str]]] = {
    "time, ms": lambda figures, case: _thousandth(figures.value(case, "p50_us")),
    "same bytes directly, ms": lambda figures, case: _thousandth(figures.value(case, "direct_p50_us")),
    "x direct": lambda figures, case: _times(_to_same_bytes(figures, case)),
    "CPU, ms": lambda figures, case: _thousandth(figures.value(case, "cpu_us")),
    "KB": lambda figures, case: _thousandth(figures.value(case, "list_bytes"), 0),
    "pages": lambda figures, case: _number(figures.value(case, "list_pages")),
}
_START: Final[dict[str, Callable[[Figures, str, str], str]]] = {
    "first answer, s": lambda figures, gateway, setup: _start(figures, gateway, setup, "first_answer_s"),
    "all tools, s": lambda figures, gateway, setup: _start(figures, gateway, setup, "ready_s"),
    "CPU of the start, s": lambda figures, gateway, setup: _start(figures, gateway, setup, "start_cpu_s"),
    "idle, MB": _idle,
    "after load, MB": lambda figures, gateway, setup: _megabytes(
        median_of(figures.loaded.get((gateway, setup), ()), "resident_bytes")
    ),
}


def summary(figures: Figures) -> Table:
    """Return the figures that are compared first, of three servers over HTTP."""
    one, many, modern = Workload(connections=1), Workload(), Workload(version=MODERN)
    columns: dict[str, Callable[[str], str]] = {
        f"CPU, us a call, {HANDSHAKE}": lambda name: _CALL["CPU, us a call"](figures, Case(name, "base", many)),
        "x Envoy": lambda name: _CALL["x Envoy"](figures, Case(name, "base", many)),
        f"CPU, us a call, {MODERN}": lambda name: _CALL["CPU, us a call"](
            figures, Case(name, "base", Workload(version=MODERN))
        ),
        "the same x Envoy": lambda name: _CALL["x Envoy"](figures, Case(name, "base", modern)),
        "calls/s": lambda name: _CALL["calls/s"](figures, Case(name, "base", many)),
        "x direct": lambda name: _CALL["x direct"](figures, Case(name, "base", many)),
        "added p50, us": lambda name: _CALL["added, us"](figures, Case(name, "base", one)),
        "start, s": lambda name: _start(figures, name, "base", "first_answer_s"),
        "idle, MB": lambda name: _idle(figures, name, "base"),
    }
    rows = [(title_of(name), tuple(column(name) for column in columns.values())) for name in figures.gateways()]
    rows = [(name, cells) for name, cells in rows if set(cells) != {_NOTHING}]
    title = "Three servers over HTTP, 32 connections; the added p50 with one connection"
    return Table(title, tuple(columns), tuple(rows))


def of_setup(figures: Figures, setup: str) -> list[Table]:
    """Return a table for each workload of a set-up, and one of start and memory."""
    found = []
    for workload in figures.workloads(setup):
        columns = _LIST if workload.kind == "list" else _CALL
        rows: list[tuple[str, tuple[str, ...]]] = []
        for name in figures.gateways():
            case = Case(name, setup, workload)
            if remark := figures.remark(case):
                rows.append((title_of(name), (remark,)))
            elif case in figures.measured:
                rows.append((title_of(name), tuple(column(figures, case) for column in columns.values())))
        if rows:
            found.append(Table(str(workload), tuple(columns), tuple(rows)))
    starts = [
        (title_of(name), tuple(column(figures, name, setup) for column in _START.values()))
        for name in figures.gateways()
        if (name, setup) in figures.starts
    ]
    return [*found, Table("start and memory", tuple(_START), tuple(starts))] if starts else found


def scales(figures: Figures) -> list[Scale]:
    """Return the sizes that grow in a run: bytes of messages, tools, servers."""
    messages = tuple((one.size, "messages", one) for one in figures.workloads("messages"))
    found = [Scale("messages", "Bytes of a message, both ways", messages)] if messages else []
    for name, title in _GROWING.items():
        grown = [setup for setup in setups(figures) if re.fullmatch(rf"{name}-\d+", setup)]
        asked = dict.fromkeys(workload for setup in grown for workload in figures.workloads(setup))
        found += [
            Scale(name, title, tuple((int(setup.partition("-")[2]), setup, workload) for setup in grown))
            for workload in asked
        ]
    return found


def of_scale(figures: Figures, scale: Scale) -> Table:
    """Return a row for each gateway and a column for each size."""
    _, _, workload = scale.steps[0]
    is_list = workload.kind == "list"

    def cell(case: Case) -> str:
        if figures.wrong(case):
            return "void"
        if is_list:
            return f"{_thousandth(figures.value(case, 'p50_us'))} ({_times(_to_same_bytes(figures, case))})"
        return f"{_number(figures.value(case, 'cpu_us'))} ({_times(_to_baseline(figures, case))})"

    rows = []
    for name in figures.gateways():
        cases = [Case(name, setup, workload) for _, setup, workload in scale.steps]
        if any(case in figures.measured for case in cases):
            rows.append((title_of(name), tuple(cell(case) if case in figures.measured else _NOTHING for case in cases)))
    counted = "ms a list (times the direct answer of as many bytes)" if is_list else "CPU, us a call (times Envoy's)"
    asked = workload.version if is_list else f"{workload.connections} connections, {workload.version}"
    return Table(f"{scale.title}: {counted}; {asked}", tuple(f"{size:,}" for size, *_ in scale.steps), tuple(rows))


def of_growing_starts(figures: Figures, scale: Scale) -> Table:
    """Return when all tools were shown, and the memory then, for each size."""
    names = [name for name in figures.gateways() if any((name, setup) in figures.starts for _, setup, _ in scale.steps)]
    rows = [
        (
            title_of(name),
            tuple(
                f"{_start(figures, name, setup, 'ready_s')} ({_idle(figures, name, setup)})"
                for _, setup, _ in scale.steps
            ),
        )
        for name in names
    ]
    title = f"{scale.title}: s until all tools are shown (MB idle)"
    return Table(title, tuple(f"{size:,}" for size, *_ in scale.steps), tuple(rows))


def missing(figures: Figures, chosen: Iterable[str]) -> list[str]:
    """Return a line for each gateway and reason why cases of these set-ups were not measured."""
    asked: Sequence[str] = list(chosen)
    cases = [case for case in figures.absent if case.setup in asked and case not in figures.measured]
    counted = Counter((case.gateway, figures.absent[case]) for case in cases)
    total = sum(len(figures.workloads(setup)) for setup in asked)
    return [
        f"{title_of(gateway)}, {number} of {total} cases: {reason}" for (gateway, reason), number in counted.items()
    ]
