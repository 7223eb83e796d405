"""Run commands, show them, and stop at the first that fails."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT: Final = Path(__file__).resolve().parents[2]
CONSTRAINTS: Final = ROOT / "requirements" / "constraints.txt"
BIN: Final = Path(sys.executable).parent


def say(text: str) -> None:
    print(text, flush=True)


def fail(text: str) -> NoReturn:
    sys.exit(text)


def expect(expected: object, actual: object, what: str) -> None:
    if actual != expected:
        fail(f"{what}: expected {expected!r}, got {actual!r}")


def run(*command: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """Run a command, outside of the checkout unless told where; return what it printed, or stop with what it said."""
    say("$ " + " ".join(str(part) for part in command))
    done = subprocess.run(
        [*map(str, command)],
        check=False,
        capture_output=True,
        text=True,
        cwd=cwd or tempfile.gettempdir(),
        env=env,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        fail(f"{done.stdout}{done.stderr}\nexit status {done.returncode}")
    return done.stdout.strip()
