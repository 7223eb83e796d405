"""Asking upstreams beside the gateway: a server is back when it answers that, whatever its start took."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["answers_at", "answers_http", "began", "door_of", "open_door", "until_back"]

_ONCE: Final = 0.25
_LOOK: Final = 0.02
_GIVE_UP: Final = 60.0
_HELLO: Final = b"GET /hello HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"


def door_of(journal: Path) -> Path:
    """Return where a server on standard input and output is asked."""
    return journal.with_suffix(".door")


def open_door(path: Path) -> None:
    """Answer whoever comes to this door, while the program runs."""
    path.unlink(missing_ok=True)
    door = socket.socket(socket.AF_UNIX)
    door.bind(str(path))
    door.listen()
    threading.Thread(target=_answer, args=(door,), daemon=True).start()


def _answer(door: socket.socket) -> None:
    while True:
        guest, _ = door.accept()
        with guest, suppress(OSError):
            guest.sendall(b"1")


async def answers_at(path: Path) -> bool:
    """Tell whether somebody answers at a door."""
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        return bool(await reader.read(1))
    finally:
        writer.transport.abort()


async def answers_http(port: int) -> bool:
    """Tell whether an HTTP server answers there, whatever it says."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(_HELLO)
        return (await reader.read(5)).startswith(b"HTTP")
    finally:
        writer.transport.abort()


async def until_back(ask: Callable[[], Awaitable[bool]]) -> float:
    """Ask until there is an answer, and return when that was."""
    until = time.monotonic() + _GIVE_UP
    while time.monotonic() < until:
        with suppress(OSError, TimeoutError):
            if await asyncio.wait_for(ask(), _ONCE):
                return time.monotonic()
        await asyncio.sleep(_LOOK)
    message = "A server that was tormented never came back."
    raise TimeoutError(message)


def began(pid: int) -> float:
    """Return when a program was started, on the monotonic clock."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")
