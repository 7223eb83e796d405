"""`python -m bench.gateway_cost [--short] [--memory] [--sight] [--json]`: fails on no time, only on a wrong answer."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
import tempfile
from collections import Counter, defaultdict
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, Final

from bench.gateway_cost.load import ERAS, Era, Load, Wrong
from bench.gateway_cost.watched import Watched, free_port

_PROXIES: Final = "bench.gateway_cost.proxies"
_UPSTREAM: Final = "bench.gateway_cost.upstream"
_SINK: Final = "bench.gateway_cost.sink"
_OURS: Final = "truename"
# The same with everything on that looks at calls: a policy, pins, the audit journal, metrics, and traces that are sent.
_SIGHT: Final = "truename+sight"
# With one of these on and the others off.
_ALONE: Final = ("policy", "pins", "audit", "metrics", "traces")
_RULES: Final = [
    {"name": "no deleting", "outcome": "deny", "tools": ["*/delete*", "*/drop*"]},
    {"name": "look first", "outcome": "ask", "tools": ["*/pay*"]},
    {"name": "the rest", "outcome": "allow", "tools": ["*"]},
]
_SIZES: Final = (10, 10_000)
_WAYS: Final = ("http", "stdio")
_CLIENTS: Final = 8
_SECONDS: Final = 2.0
# A round's calls are made in so many turns: what else the machine does in a second falls on all alike.
_TURNS: Final = 5


@dataclass(frozen=True)
class Case:
    """What is measured: which proxy, in front of how many tools, reached how, called in which era."""

    kind: str
    tools: int
    way: str
    era: Era


@dataclass
class Run:
    """One run: all processes stand at once, and are called in turns, so that a busy machine is busy for all."""

    calls: int
    rounds: int
    folder: Path
    stack: ExitStack
    turns: int = _TURNS
    seconds: float = _SECONDS
    upstreams: dict[int, str] = field(default_factory=dict)
    sink: int = 0

    def target(self, tools: int, way: str) -> list[str]:
        """Return the address of a server with so many tools, or the command that starts one."""
        if way == "stdio":
            return [sys.executable, "-m", _UPSTREAM, str(tools)]
        if tools not in self.upstreams:
            port = free_port()
            self.stack.enter_context(Watched(port, _UPSTREAM, str(tools), str(port)))
            self.upstreams[tools] = f"http://127.0.0.1:{port}/mcp"
        return [self.upstreams[tools]]

    def proxy(self, kind: str, tools: int, way: str) -> Watched:
        """Start what is measured."""
        port, target = free_port(), self.target(tools, way)
        if not kind.startswith(_OURS):
            return self.stack.enter_context(Watched(port, _PROXIES, kind, str(port), *target))
        name = f"{kind}-{tools}-{way}"
        more = self._seen(kind.removeprefix(_OURS).removeprefix("+"), name)
        command = ("serve", str(self._config(name, target, more)), "--http", f"127.0.0.1:{port}")
        return self.stack.enter_context(Watched(port, "truename", *command, env=self._spans()))

    def _seen(self, what: str, name: str) -> dict[str, Any]:
        """Return the settings with one thing on that looks at calls, with all of them (``sight``) or with none."""
        settings: dict[str, dict[str, dict[str, Any]]] = {
            "policy": {"policy": {"default": "allow", "rules": _RULES}},
            "pins": {"trust": {"pins": str(self.folder / f"{name}.pins")}},
            "audit": {"audit": {"path": str(self.folder / f"{name}.audit")}},
            "metrics": {"telemetry": {"metrics": True}},
            "traces": {"telemetry": {"traces": True}},
        }
        found: dict[str, Any] = {"trust": {"pins": "memory"}}
        for one in _ALONE if what == "sight" else filter(None, [what]):
            for table, values in settings[one].items():
                found[table] = (found.get(table) or {}) | values
        return found

    def _spans(self) -> dict[str, str]:
        """Return where spans go: to a process that is not measured."""
        if not self.sink:
            self.sink = free_port()
            self.stack.enter_context(Watched(self.sink, _SINK, str(self.sink)))
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.sink}"}

    def _config(self, name: str, target: list[str], more: dict[str, Any]) -> Path:
        root = str(Path(__file__).resolve().parents[2])
        by_command = {"command": target[0], "args": target[1:], "env": {"PYTHONPATH": root}}
        server = {"url": target[0], "type": "http"} if len(target) == 1 else by_command
        # All tools are listed, as the others do; what is kept beside the calls is kept in a file, as it is in use.
        ours: dict[str, Any] = {
            "state": str(self.folder / f"{name}.ledger"),
            "tool_search": "off",
            "max_tools": max(_SIZES),
        }
        ours |= more
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps({"mcpServers": {"cheap": server}, "truename": ours}))
        return path


async def _costs(run: Run, kinds: list[str], sizes: tuple[int, ...]) -> dict[Case, list[float]]:
    """Return the processor seconds of one call, once for each round."""
    loads = {}
    for kind, tools, way in product(kinds, sizes, _WAYS):
        process = run.proxy(kind, tools, way)
        for era in ERAS:
            load = await Load(process.port, "/mcp", era, _CLIENTS).open()
            loads[Case(kind, tools, way, era)] = process, load
            await load.run(run.calls // 4, run.seconds)
    found = defaultdict(list)
    for number in range(run.rounds):
        spent, made = defaultdict[Case, float](float), Counter[Case]()
        for _, (case, (process, load)) in product(range(run.turns), loads.items()):
            _progress(f"round {number + 1}: {case}")
            before = process.processor_seconds()
            made[case] += await load.run(run.calls // run.turns, run.seconds)
            spent[case] += process.processor_seconds() - before
        for case in loads:
            found[case].append(spent[case] / made[case])
    for _, load in loads.values():
        await load.end()
    return dict(found)


async def _memory(run: Run, marks: tuple[int, ...]) -> dict[int, int]:
    """Return what the gateway holds after so many calls, half of them in each era, by new sessions each time."""
    process = run.proxy(_OURS, _SIZES[0], "http")
    found, done = {}, 0
    for mark in marks:
        while done < mark:
            for era in ERAS:
                load = await Load(process.port, "/mcp", era, _CLIENTS).open()
                done += await load.run(min(1_000, mark - done), 600)
                await load.end()
            _progress(f"{done:,} calls, {process.resident_bytes() / 2**20:.0f} MB")
        found[mark] = process.resident_bytes()
    return found


def main() -> int:
    """Measure, and print a table or one JSON document."""
    parser = argparse.ArgumentParser(prog="python -m bench.gateway_cost", description="What a call costs the gateway.")
    parser.add_argument("--short", action="store_true", help="one round of few calls: to see that it works")
    parser.add_argument("--ours", action="store_true", help="only the gateway, not the proxies beside it")
    parser.add_argument("--sight", action="store_true", help="only what policy, pins, audit, metrics and traces cost")
    parser.add_argument("--each", action="store_true", help="with --sight: also what each of these costs alone")
    parser.add_argument("--memory", action="store_true", help="only memory: after 10,000 calls and after 100,000")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured, in turns")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    if not sys.platform.startswith("linux"):
        sys.stderr.write("This reads the clocks that Linux has for processes. Nothing was measured.\n")
        return 0
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        root = Path(folder)
        short = Run(40, 1, root, stack, turns=1, seconds=0.5)
        run = short if options.short else Run(1_000, options.rounds, root, stack)
        try:
            record = asyncio.run(_measured(run, options))
        except Wrong as error:
            sys.stderr.write(f"\na wrong answer: {error}\n")
            return 1
    print(json.dumps(record, indent=2) if options.json else _shown(record))
    return 0


async def _measured(run: Run, options: argparse.Namespace) -> dict[str, Any]:
    record: dict[str, Any] = {
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} processors",
    }
    if not options.memory:
        record["costs"] = [
            {**vars(case), "microseconds": [round(1e6 * one, 1) for one in times]}
            for case, times in (await _costs(run, _kinds(options), _SIZES[:1] if options.sight else _SIZES)).items()
        ]
    if options.memory or not (options.short or options.ours or options.sight):
        record["resident_bytes"] = await _memory(run, (1_000, 3_000) if options.short else (10_000, 100_000))
    _progress("")
    return record


def _kinds(options: argparse.Namespace) -> list[str]:
    if options.sight:
        return [_OURS, *(f"{_OURS}+{one}" for one in _ALONE if options.each), _SIGHT]
    others = ["sdk", *(["fastmcp"] if find_spec("fastmcp") else [])]
    return [_OURS, *([] if options.ours else others)]


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")


def _shown(record: dict[str, Any]) -> str:
    lines = [f"Python {record['python']}, {record['machine']}"]
    if costs := record.get("costs"):
        lines += [
            "",
            f"{'processor time of a call':18}{'server':>8}{'tools':>8}{'era':>12}{'median':>11}  least to most",
        ]
        for one in costs:
            times = one["microseconds"]
            lines.append(
                f"{one['kind']:18}{one['way']:>8}{one['tools']:>8,}{one['era']:>12}"
                f"{statistics.median(times):>8,.0f} us  {min(times):,.0f} to {max(times):,.0f}"
            )
        lines += ["", *_growth(costs), *_price(costs)]
    for calls, size in record.get("resident_bytes", {}).items():
        lines.append(f"memory after {calls:>7,} calls: {size / 2**20:.1f} MB")
    return "\n".join(lines)


def _price(costs: list[dict[str, Any]]) -> list[str]:
    """Say what looking costs: the median of the rounds' own ratios, for rounds differ more than what is compared."""
    by_case = {(one["way"], one["era"], one["kind"]): one["microseconds"] for one in costs if one["tools"] == _SIZES[0]}
    found = []
    for (way, era, kind), seen in by_case.items():
        plain = by_case.get((way, era, _OURS), [])
        if kind.startswith(f"{_OURS}+") and plain:
            ratios = [one / other for one, other in zip(seen, plain, strict=True)]
            more = statistics.median(one - other for one, other in zip(seen, plain, strict=True))
            found.append(f"{kind}, {way}, {era}: {statistics.median(ratios):.2f} of {_OURS}, {more:+,.0f} us")
    return found


def _growth(costs: list[dict[str, Any]]) -> list[str]:
    """Say for the gateway what the large catalogue costs over the small one, in this run."""
    ours = {
        (one["way"], one["era"], one["tools"]): statistics.median(one["microseconds"])
        for one in costs
        if one["kind"] == _OURS
    }
    small, large = _SIZES
    if not any(tools == large for *_, tools in ours):
        return []
    return [
        f"{_OURS}, {way}, {era}: {large:,} tools cost {ours[way, era, large] / ours[way, era, small]:.2f} of {small}"
        for way, era in product(_WAYS, ERAS)
    ]


if __name__ == "__main__":
    sys.exit(main())
