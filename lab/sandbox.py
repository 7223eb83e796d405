"""A trial's walls: a network with loopback only and its own processes where the machine allows it; a time limit."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["Ended", "Walls", "run", "walls"]

Walls = Literal["namespaces", "none"]
_UNSHARE: Final = ("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
# In a user namespace the same works for those who are not root, where the system lets them.
_FORMS: Final = (_UNSHARE, ("unshare", "--user", "--map-root-user", *_UNSHARE[1:]))
_INSIDE: Final = ("sh", "-c", 'ip link set lo up && exec "$@"', "sh")


@dataclass(frozen=True)
class Ended:
    """How a command ended; ``code`` is None when it was ended by the time limit."""

    code: int | None


@cache
def _form() -> tuple[str, ...]:
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        return ()
    for form in _FORMS:
        tried = subprocess.run([*form, *_INSIDE, "true"], capture_output=True, check=False, timeout=20)
        if tried.returncode == 0:
            return (*form, *_INSIDE)
    return ()


def walls() -> Walls:
    """Say what keeps a trial apart: without namespaces clients could reach the network, so results say so."""
    return "namespaces" if _form() else "none"


def walled(command: Sequence[str]) -> list[str]:
    """Return the command that runs this one inside the walls."""
    return [*_form(), *command]


def run(
    command: Sequence[str], *, env: Mapping[str, str], cwd: Path, out: Path, limit: float, stdin: str | None = None
) -> Ended:
    """Run a command in a process group of its own, output into a file; what is left of the group is ended after."""
    with out.open("wb") as output:
        started = subprocess.Popen(
            list(command),
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            started.communicate(None if stdin is None else stdin.encode(), timeout=limit)
        except subprocess.TimeoutExpired:
            return Ended(None)
        finally:
            _end_group(started.pid)
            started.wait()
    return Ended(started.returncode)


def _end_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
