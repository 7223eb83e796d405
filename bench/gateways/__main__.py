"""`python -m bench.gateways [--short] [--report] [--json]`: fails on no time, only on a wrong answer of Truename."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.gateways import cases, report
from bench.gateways.certificate import Certificate
from bench.gateways.environments import NotInstalled, install
from bench.gateways.peers import ALL, SHORT
from bench.gateways.processes import Process, end_children, free_port
from bench.gateways.run import Run, blocks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.gateways.peers.base import Peer
    from bench.gateways.run import Block

_HERE: Final = Path(__file__).resolve().parent
_ROOT: Final = _HERE.parents[1]
_RESULTS: Final = _HERE / "results"
_ENVIRONMENTS: Final = _ROOT / ".cache" / "bench-gateways"


def main() -> int:
    """Install what is compared, measure, and print a table or one JSON document."""
    parser = argparse.ArgumentParser(prog="python -m bench.gateways", description="MCP gateways side by side.")
    parser.add_argument("--short", action="store_true", help="direct, Truename and Envoy; one round of short cases")
    parser.add_argument("--report", action="store_true", help="write the figures into docs/measurements/benchmarks.md")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--rounds", type=int, help="how often everything is measured, in turns (3; short: 1)")
    parser.add_argument("--seconds", type=float, help="how long one case is measured (2; short: 1)")
    parser.add_argument("--gateway", action="append", choices=ALL, help="only this gateway; may be repeated")
    names = [setup.name for setup in cases.FULL]
    parser.add_argument("--setup", action="append", choices=names, help="only this set-up; may be repeated")
    parser.add_argument("--results", type=Path, default=_RESULTS, help="folder into which the figures are written")
    options = parser.parse_args()
    if not sys.platform.startswith("linux"):
        sys.stderr.write("This reads the clocks that Linux has for processes. Nothing was measured.\n")
        return 0
    # Processes are ended where their blocks end: an order to stop has to come as an exception.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        records, failures = _measured(options)
    except KeyboardInterrupt:
        sys.stderr.write("\nThe run was stopped; no process of it is left.\n")
        return 130
    finally:
        end_children()
    print(json.dumps(records) if options.json else report.table(records))
    if options.report:
        report.write_page(records, _ROOT / "docs" / "measurements")
    for failure in failures:
        sys.stderr.write(f"wrong: {failure}\n")
    return 1 if failures else 0


def _measured(options: argparse.Namespace) -> tuple[list[dict[str, Any]], list[str]]:
    suite = cases.SHORT if options.short else cases.FULL
    suite = {setup: work for setup, work in suite.items() if not options.setup or setup.name in options.setup}
    peers = [ALL[name] for name in dict.fromkeys(options.gateway or (SHORT if options.short else ALL))]
    rounds = options.rounds or (1 if options.short else 3)
    seconds = options.seconds or (1.0 if options.short else 2.0)
    installed: dict[str, Path | str] = {}
    versions: dict[str, str] = {}
    for peer in peers:
        installed[peer.name], versions[peer.name] = _installed(peer)
    options.results.mkdir(parents=True, exist_ok=True)
    now = dt.datetime.now(dt.UTC)
    path = options.results / f"{now:%Y-%m-%dT%H%M%S}.jsonl"
    records: list[dict[str, Any]] = []
    with path.open("a") as lines, tempfile.TemporaryDirectory() as folder:

        def record(found: dict[str, Any]) -> None:
            records.append(found)
            lines.write(json.dumps(found) + "\n")
            lines.flush()

        record(_header(now, rounds, seconds, versions))
        port = free_port()
        sink = (sys.executable, "-m", "bench.gateway_cost.sink", str(port))
        with Process(sink, env=_with_root(), log=Path(folder) / "sink.log"):
            made = Certificate.make(Path(folder))
            clock = _Clock(blocks(suite, peers, rounds))
            run = Run(Path(folder), made, installed, seconds, port, record, clock.say)
            for block in clock:
                run.measure(block)
    _say(f"written: {os.path.relpath(path)}")
    return records, run.failures


@dataclass
class _Clock:
    """The blocks in order, and how long the others will take: as long as those of the same gateway took so far."""

    order: Sequence[Block]
    _done: int = 0
    _left: str = ""
    # How long the blocks of each gateway took.
    _took: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def __iter__(self) -> Iterator[Block]:
        for done, block in enumerate(self.order):
            self._done, began = done, time.monotonic()
            yield block
            self._took[block.peer.name].append(time.monotonic() - began)
            known = [seconds for took in self._took.values() for seconds in took]
            seconds = sum(statistics.mean(self._took.get(later.peer.name) or known) for later in self.order[done + 1 :])
            self._left = f", about {seconds / 60:.0f} min left"

    def say(self, text: str) -> None:
        _say(f"[{self._done + 1} of {len(self.order)}{self._left}] {text}")


def _installed(peer: Peer) -> tuple[Path | str, str]:
    if peer.environment is None:
        return _ROOT, _own_version()
    # Peers that share their packages share their folder.
    folder = _ENVIRONMENTS / peer.environment.packages[0].partition("=")[0].partition("[")[0].partition("@")[0]
    _say(f"{peer.title}: {' '.join(peer.environment.packages)} in {folder.relative_to(_ROOT)}")
    try:
        return folder, install(peer.environment, folder)
    except NotInstalled as error:
        _say(f"{peer.title}: {error}")
        return str(error), ""


def _own_version() -> str:
    shown = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=_ROOT, capture_output=True, text=True, check=False
    )
    return " ".join(filter(None, (version("truename"), shown.stdout.strip())))


def _with_root() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(_ROOT), os.environ.get("PYTHONPATH", "")))}


def _header(now: dt.datetime, rounds: int, seconds: float, versions: dict[str, str]) -> dict[str, Any]:
    return {
        "kind": "run",
        "date": f"{now:%Y-%m-%d}",
        "machine": _machine(),
        "python": platform.python_version(),
        "rounds": rounds,
        "seconds": seconds,
        "load_average": os.getloadavg()[0],
        "versions": versions,
    }


def _machine() -> str:
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{model}, {os.cpu_count()} processors, {memory:.0f} GiB, Linux {platform.release()}"


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
