"""Fuzzing by coverage, with atheris: bytes that reach a new line of Truename are kept and changed further.

The code is instrumented as it is imported, once; each target then runs in a process of its own, forked from that one.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.fuzz.chance import Fed, seeded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.fuzz.judging import Finding

__all__ = ["Guided", "guided", "is_installed"]

_LONGEST: Final = 4_096
_FIRST: Final = 64
_DIED: Final = "died-"
# How long a case may take is judged by us; of none at all the engine makes one second, and ends the run.
_NO_LIMIT: Final = "-timeout=86400"
_COVERED: Final = re.compile(rb"cov: (\d+)")


@dataclass(frozen=True)
class Guided:
    """What one target's process brought: cases, places of the code that were reached, findings with their bytes."""

    cases: int
    covered: int
    findings: tuple[tuple[str, str, str], ...] = ()


def is_installed() -> bool:
    """Tell whether there is an atheris for this Python."""
    try:
        importlib.import_module("atheris")
    except ImportError:
        return False
    return True


def guided(names: Iterable[str], seconds: float, seed: int) -> dict[str, Guided]:
    """Run targets (none: all), each for the same part of the time; as many as there is a second for, chosen by chance.

    To import all that is instrumented takes some of the time too.
    """
    end = time.monotonic() + seconds
    atheris = importlib.import_module("atheris")
    with _silent(), atheris.instrument_imports(include=["truename"]):
        targets = importlib.import_module("tests.fuzz.targets").TARGETS
        judged = importlib.import_module("tests.fuzz.judging").judged
    chosen = list(names) or list(targets)
    most = max(1, int(end - time.monotonic()))
    if most < len(chosen):
        chosen = seeded(seed, "guided", 0).sample(chosen, most)
    found = {}
    for number, name in enumerate(chosen):
        share = max(1, round((end - time.monotonic()) / (len(chosen) - number)))
        found[name] = _forked(atheris, judged, name, targets[name], seconds=share, seed=seed)
    return found


class _silent:  # noqa: N801 - a context
    """Keeps what atheris says of each module from standard error."""

    def __enter__(self) -> None:
        self._kept = os.dup(2)
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)

    def __exit__(self, *_: object) -> None:
        os.dup2(self._kept, 2)
        os.close(self._kept)


def _forked(atheris: Any, judged: Callable[..., Any], name: str, target: Any, *, seconds: int, seed: int) -> Guided:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        child = os.fork()
        if child == 0:
            options = [f"-max_total_time={seconds}", f"-seed={seed or 1}", f"-artifact_prefix={place / _DIED}"]
            _run(atheris, lambda chance: judged(name, target, chance), place, options, seed)
        os.waitpid(child, 0)
        return _read(place)


def _run(atheris: Any, judged: Callable[[Fed], Finding | None], place: Path, options: list[str], seed: int) -> None:
    """Fuzz until the time is over; the process ends with it."""
    with (place / "log").open("wb") as log:
        os.dup2(log.fileno(), 2)
        os.dup2(log.fileno(), 1)
    corpus = place / "corpus"
    corpus.mkdir()
    for number in range(_FIRST):
        chance = seeded(seed, place.name, number)
        (corpus / str(number)).write_bytes(chance.randbytes(chance.choice((16, 64, 256, 1_024))))
    keys: set[str] = set()

    def one(raw: bytes) -> None:
        finding = judged(Fed(raw))
        if finding is not None and finding.key not in keys:
            keys.add(finding.key)
            with (place / "findings").open("a") as file:
                file.write(json.dumps([*asdict(finding).values(), raw.hex()]) + "\n")

    atheris.Setup(["fuzz", str(corpus), f"-max_len={_LONGEST}", _NO_LIMIT, "-rss_limit_mb=0", *options], one)
    atheris.Fuzz()
    os._exit(0)


def _read(place: Path) -> Guided:
    log = (place / "log").read_bytes()
    runs = re.findall(rb"#(\d+)\s", log)
    covered = _COVERED.findall(log)
    kept = (place / "findings").read_text().splitlines() if (place / "findings").exists() else []
    rows = [json.loads(line) for line in kept]
    findings = tuple((text, key, raw) for _, text, key, raw in rows)
    # What no judge could catch: the interpreter fell, or was ended.
    for fell in place.glob(f"{_DIED}*"):
        findings += (("its process died: " + ascii(log[-400:]), "died", fell.read_bytes().hex()),)
    if not runs or not covered:
        findings += (("it did not run, or nothing was instrumented: " + ascii(log[-400:]), "no run", ""),)
    return Guided(max(map(int, runs), default=0), max(map(int, covered), default=0), findings)


if __name__ == "__main__":
    found = guided(sys.argv[2:], float(sys.argv[1]), 1)
    sys.stdout.write(json.dumps({name: asdict(one) for name, one in found.items()}, indent=1) + "\n")
