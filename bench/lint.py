"""`python -m bench.lint [--short]`: how long all real catalogues take to lint; never fails on it.

The plain loop beside it reads the same file and looks at every string once, which is the least that linting could do.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.measure import RUNS, Case, measured, profiled, shown
from bench.names import SHARED
from truename.conventions import Declaration, lint

if TYPE_CHECKING:
    from collections.abc import Iterator

_CORPUS: Final = SHARED / "corpus" / "open.jsonl.gz"
_AIM: Final = 3.0
_SHORT: Final = 100


def main() -> int:
    """Measure the library and the command; 0 also where the collection is missing."""
    parser = argparse.ArgumentParser(prog="python -m bench.lint", description="Measure linting all real catalogues.")
    parser.add_argument("--short", action="store_true", help="100 servers and three runs: to see that it works")
    options = parser.parse_args()
    if not _CORPUS.exists():
        sys.stderr.write(f"{_CORPUS} is not there; set TRUENAME_SHARED. Nothing was measured.\n")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "dump.jsonl"
        rows = _rows()[: _SHORT if options.short else None]
        dump.write_text("".join(json.dumps({"server": one["id"], "tools": one["tools"]}) + "\n" for one in rows))
        cases = _cases(dump, sum(len(row["tools"]) for row in rows))
        results = [measured(case, 3 if options.short else RUNS) for case in cases]
        print(shown(results))
        print("\nmost of the time of linting goes here:")
        print("\n".join(profiled(next(_cases(dump, 0)), top=15)))
    return 0


def _cases(dump: Path, tools: int) -> Iterator[Case]:
    yield Case(
        name=f"read and lint {tools:,} tools",
        aim=_AIM,
        run=lambda _: lint(_declared(_read(dump))),
        plain=lambda: [_looked_at(row) for row in _read(dump)],
        explain=tuple,
    )
    yield Case(
        name="  linting alone",
        prepare=lambda: _declared(_read(dump)),
        run=lint,
        plain=lambda: [_looked_at(row) for row in _read(dump)],
    )
    yield Case(name="  the command, with its start", aim=_AIM, run=lambda _: _command(dump), explain=tuple)


def _rows() -> list[dict[str, Any]]:
    with gzip.open(_CORPUS, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _read(dump: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in dump.read_text("utf-8").splitlines()]


def _declared(rows: list[dict[str, Any]]) -> list[Declaration]:
    return [
        Declaration(name=tool["name"], server=row["server"], definition=tool) for row in rows for tool in row["tools"]
    ]


def _looked_at(value: Any) -> int:
    if isinstance(value, str):
        return value.count("ignore")
    if isinstance(value, dict):
        return sum(_looked_at(one) for one in value.values())
    return sum(_looked_at(one) for one in value) if isinstance(value, list) else 0


def _command(dump: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "truename", "lint", str(dump)], stdout=subprocess.DEVNULL, cwd=dump.parent, check=False
    )


if __name__ == "__main__":
    sys.exit(main())
