"""Runs `connect` or `disconnect` again and again, each time in a process that is killed one step later.

As a program: ``python -m tests.clients.killing DIRECTORY connect|disconnect`` leaves one home for each step in the
directory, as the kill left it, and prints how many there are. Steps are the calls that change a disk or make that last;
a process may be ended before and after each.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truename.clients import Machine, applying, find
from truename.clients.address import Address
from truename.clients.connection import Wish, plan_connection
from truename.clients.undoing import plan_disconnection
from truename.clients.upcoming import together
from truename.config import Config, ServerConfig, Settings

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FILES", "environ_of", "finish", "home_at"]

FILES = {
    ".claude.json": '{"mcpServers": {"weather": {"command": "uvx", "args": ["w"]}, "mine": {"command": "x"}}}\n',
    ".claude/settings.json": '{"permissions": {"allow": ["mcp__weather__get", "Bash(ls)"]}}\n',
}
CALLS = ("replace", "rename", "fsync", "open", "write", "mkdir", "unlink", "remove", "utime", "chmod")
WEATHER = ServerConfig(key="weather", command="uvx", args=("w",))
NAMES = together({"weather": ["get"]}, Settings(), dialect="universal")


def home_at(base: Path) -> None:
    """Make a home with two files of Claude Code."""
    for name, text in FILES.items():
        path = base / "home" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def environ_of(base: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(base / "state")}


def finish(base: Path, todo: str) -> None:
    """Do it without being killed."""
    if todo == "disconnect":
        applying.disconnect(plan_disconnection("claude-code", environ_of(base)), environ_of(base))
        return
    home = base / "home"
    machine = Machine(system="linux", home=home, environ=environ_of(base), project=home, root=base)
    config = Config(path=Path("/etc/truename.toml"), servers=(WEATHER,))
    address = Address(config=config, url="http://127.0.0.1:8750", program="/opt/truename")
    plan = plan_connection(machine, find(machine), address, Wish(client="claude-code", one=True), NAMES)
    applying.connect(plan, environ_of(base))


class _Deadly:
    """Counts steps, and ends this process at the given one."""

    def __init__(self, last: int) -> None:
        self._left = last
        for name in CALLS:
            setattr(os, name, self._around(getattr(os, name)))

    def _around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*args: Any, **kwargs: Any) -> Any:
            self._step()
            done = call(*args, **kwargs)
            self._step()
            return done

        return instead

    def _step(self) -> None:
        self._left -= 1
        if not self._left:
            os.kill(os.getpid(), signal.SIGKILL)


def _killed_at(base: Path, last: int, todo: str) -> bool:
    """Do it in a process that is killed at a step; tell whether it came so far."""
    child = os.fork()
    if not child:
        try:
            _Deadly(last)
            finish(base, todo)
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        message = f"step {last} of {todo} failed"
        raise RuntimeError(message)
    return os.WIFSIGNALED(status)


def main() -> None:
    directory, todo = Path(sys.argv[1]), sys.argv[2]
    step = 0
    while True:
        step += 1
        base = directory / str(step)
        home_at(base)
        if todo == "disconnect":
            finish(base, "connect")
        if not _killed_at(base, step, todo):
            break
    sys.stdout.write(str(step - 1))


if __name__ == "__main__":
    main()
