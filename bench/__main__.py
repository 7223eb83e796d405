"""`python -m bench [--short] [--json]`: never fails on a time; each run is kept as a line of .cache/bench.jsonl.

`python -m bench names-quality [--short] [--report]` compares names instead (`bench/names_quality/comparison.py`).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bench.cases import cases
from bench.measure import RUNS, Result, measured, shown
from bench.names import real_pairs
from bench.names_quality import comparison

_ROOT: Final = Path(__file__).resolve().parent.parent
_HISTORY: Final = _ROOT / ".cache" / "bench.jsonl"


def main() -> int:
    """Measure, print and keep; 0 unless the collection of names is missing in CI."""
    if sys.argv[1:2] == ["names-quality"]:
        return comparison.main(sys.argv[2:])
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure Truename beside plain dictionaries.",
        epilog="python -m bench names-quality: the quality of names, beside those of gateways and clients",
    )
    parser.add_argument("--short", action="store_true", help="1,000 names and three runs: to see that it works")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    try:
        pairs = real_pairs(1_000 if options.short else 10_000)
    except FileNotFoundError as error:
        sys.stderr.write(f"{error.filename} is not there; set TRUENAME_SHARED. Nothing was measured.\n")
        return 1 if os.environ.get("CI") == "true" else 0
    results = []
    for case in cases(pairs):
        sys.stderr.write(f"\r\x1b[K{case.name}" if sys.stderr.isatty() else "")
        results.append(measured(case, 3 if options.short else RUNS))
    sys.stderr.write("\r\x1b[K" if sys.stderr.isatty() else "")
    record = _record(results, short=options.short)
    _HISTORY.parent.mkdir(exist_ok=True)
    with _HISTORY.open("a", encoding="utf-8") as history:
        history.write(json.dumps(record) + "\n")
    print(json.dumps(record, indent=2) if options.json else shown(results))
    return 0


def _record(results: list[Result], *, short: bool) -> dict[str, Any]:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=_ROOT, capture_output=True, text=True, check=False
    )
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit.stdout.strip(),
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} processors",
        "short": short,
        "results": [asdict(one) | {"ratio": one.ratio, "met": one.met} for one in results],
    }


if __name__ == "__main__":
    sys.exit(main())
