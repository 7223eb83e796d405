"""Test support: running, used by tests of several modules."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from mcp import Client

if TYPE_CHECKING:
    from collections.abc import Iterator

TRUENAME = str(Path(sys.executable).with_name("truename"))


class Lines:
    """The lines of a running command's stream; each is awaited for at most 30 seconds."""

    def __init__(self, stream: IO[str]) -> None:
        self.seen: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            self._lines.put(line)
        self._lines.put(None)

    def until(self, word: str) -> str:
        while True:
            line = self._lines.get(timeout=30)
            assert line is not None, self.seen
            self.seen.append(line.rstrip("\n"))
            if word in line:
                return line

    def rest(self) -> None:
        """Take all lines up to the end."""
        while (line := self._lines.get(timeout=30)) is not None:
            self.seen.append(line.rstrip("\n"))


@contextmanager
def serving(*words: object) -> Iterator[tuple[subprocess.Popen[str], Lines, Lines]]:
    command = [TRUENAME, "serve", *map(str, words)]
    pipe = subprocess.PIPE
    # Where it is set, a program that forgets to flush is not noticed.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, encoding="utf-8", env=env
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            yield process, Lines(process.stdout), Lines(process.stderr)
        finally:
            process.kill()


async def call(target: Any, name: str) -> tuple[list[str], str]:
    """Return what is listed, and what a call answers."""
    async with Client(target) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        answer = await client.call_tool(name, {})
        return listed, str(answer.content)
