"""`python -m bench.doctor`: how long `truename doctor` takes for the dumps of 100 real servers; never fails on it."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.names import Pairs, real_pairs

_ALL: Final = 8_000
_SERVERS: Final = 100
_AIM: Final = 5.0


def main() -> int:
    """Measure the first hundred servers of the collection and its hundred largest, each in a process of its own."""
    try:
        pairs = real_pairs(_ALL)
    except FileNotFoundError as error:
        sys.stderr.write(f"{error.filename} is not there; set TRUENAME_SHARED. Nothing was measured.\n")
        return 0
    largest = sorted(pairs, key=lambda pair: len(pair[1]), reverse=True)
    for title, servers in (("the first", pairs[:_SERVERS]), ("the largest", largest[:_SERVERS])):
        wall, processor = _measured(servers)
        tools = sum(len(tools) for _, tools in servers)
        met = "within" if wall <= _AIM else "over"
        print(
            f"{title} {len(servers)} servers, {tools:,} tools: "
            f"{wall:.1f} s, {processor:.1f} s of processor ({met} {_AIM:.0f} s)"
        )
    return 0


def _measured(servers: Pairs) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dump.jsonl"
        path.write_text("".join(json.dumps({"server": key, "tools": tools}) + "\n" for key, tools in servers), "utf-8")
        used, begun = _processor(), time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "truename", "doctor", str(path)], stdout=subprocess.DEVNULL, cwd=folder, check=False
        )
        return time.perf_counter() - begun, _processor() - used


def _processor() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    sys.exit(main())
