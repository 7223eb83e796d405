"""`python -m tests.mutants [--module M] [--short] [--again]`: ends with 1 on a mutant that nothing kills or names.

Everything happens below ``.cache/mutants``: a directory for each target, with copies of the sources and the tests.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from tests.mutants.report import JUDGED, report
from tests.mutants.survivors import Mutant, mutant, named
from tests.mutants.targets import SHORT, TARGETS
from tests.shared import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.mutants.report import Found
    from tests.mutants.targets import Target

_PLACE: Final = ROOT / ".cache" / "mutants"
# With CI set, hypothesis draws the same each time, and keeps nothing: a mutant is not judged by what another one met.
_ENVIRONMENT: Final = {"CI": "mutants", "PYTHONDONTWRITEBYTECODE": "1"}
_LINKED: Final = ("src", "tests", "docs", "examples", "README.md")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description="Change what decides; the tests notice."
    )
    parser.add_argument("--module", action="append", default=[], help="this one only; may stand there several times")
    parser.add_argument("--short", action="store_true", help="two small modules only")
    parser.add_argument("--again", action="store_true", help="only what survived last time, after tests were added")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    wanted = (*options.module, *(SHORT if options.short else ()))
    known = {module for target in TARGETS for module in target.modules}
    if strange := set(wanted) - known:
        parser.error(f"{min(strange)} is no target; there are {', '.join(sorted(known))}")
    found: Found = {}
    for target in TARGETS:
        modules = tuple(module for module in target.modules if not wanted or module in wanted)
        if modules:
            found |= _ran(target, modules, processes=options.processes, again=options.again)
    lines, errors = report(found, named())
    print("\n".join([*lines, *errors]))  # noqa: T201 - it is a command
    return 1 if errors else 0


def _ran(target: Target, modules: tuple[str, ...], *, processes: int, again: bool) -> Found:
    place = _PLACE / target.name
    rerun: list[str] = []
    if again:
        before = json.loads((place / "mutants.json").read_text("utf-8"))
        rerun = [name for name, said in before.items() if said["code"] not in JUDGED]
        shutil.rmtree(place / "mutants" / "tests")
        (place / "mutants" / "mutmut-stats.json").unlink()
    else:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        for name in _LINKED:
            (place / name).symlink_to(ROOT / name)
    if not again or rerun:
        (place / "pyproject.toml").write_text("\n".join(_settings(target, modules)) + "\n", "utf-8")
        sys.stderr.write(f"{target.name}: {', '.join(modules)}\n")
        script = ROOT / "tests" / "mutants" / "tool.py"
        command = [sys.executable, "-P", str(script), "--max-children", str(processes), *rerun]
        environment = {"TRUENAME_SHARED": str(ROOT.parent / "shared"), **os.environ, **_ENVIRONMENT}
        subprocess.run(command, cwd=place, env=environment, check=True)
    return _read(place, modules)


def _settings(target: Target, modules: tuple[str, ...]) -> Iterator[str]:
    """Write what mutmut reads: pytest's own settings, and what to change with which tests."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    mutmut = {
        "source_paths": ["src"],
        "only_mutate": [f"src/{module.replace('.', '/')}.py" for module in modules],
        "also_copy": [name for name in _LINKED if name != "src"],
        "pytest_add_cli_args": ["-p", "no:cacheprovider"],
        "pytest_add_cli_args_test_selection": list(target.tests),
        # Workers come from a process in which no test ran: nothing is remembered that a mutant would say otherwise.
        "process_isolation": "forkserver",
        # A mutant is given up after half as much processor time again as its tests take, and 15 seconds.
        "timeout_multiplier": 0.75,
        "timeout_constant": 10.0,
        "track_dependencies": False,
        "use_git_change_detection": False,
        "on_dependency_change": "ignore",
    }
    # A test that stands still ends sooner than elsewhere: that is how many a mutant is noticed.
    pytest = {**project["tool"]["pytest"]["ini_options"], "faulthandler_timeout": 60}
    for table, content in (("pytest.ini_options", pytest), ("mutmut", mutmut)):
        yield f"[tool.{table}]"
        # What JSON writes of texts, lists, numbers and booleans is TOML too.
        yield from (f"{key} = {json.dumps(value)}" for key, value in content.items())


def _read(place: Path, modules: tuple[str, ...]) -> Found:
    said: dict[str, dict[str, Any]] = json.loads((place / "mutants.json").read_text("utf-8"))
    found: Found = {module: [] for module in modules}
    met = Counter[Mutant]()
    for name, one in said.items():
        read = mutant(name, one["diff"])
        met[read] += 1
        again = f" ({met[read]})" if met[read] > 1 else ""
        found[read.module].append((one["code"], read._replace(text=read.text + again)))
    return found


if __name__ == "__main__":
    sys.exit(main())
