"""The standard input of a program, of which each byte passes a gate just before it is written.

What an event loop is given to write may wait in it, and leaves when the process goes on after a pause. Here nothing
waits behind the gate.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from truename.gateway.upstream.transport import TransportError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["GatedPipe"]


class GatedPipe:
    """A pipe to a program; ``passed`` tells whether the next bytes may be written, and may wait before it does.

    ``theirs`` is the end for the program, which is `handed_over` once the program has it. POSIX only.
    """

    def __init__(self, passed: Callable[[], Awaitable[bool]]) -> None:
        self._passed = passed
        self.theirs, self._own = os.pipe()
        os.set_blocking(self._own, False)
        self._turn = asyncio.Lock()
        self._is_closed = self._is_handed_over = False

    def handed_over(self) -> None:
        """Close the program's end in this process."""
        if not self._is_handed_over:
            self._is_handed_over = True
            os.close(self.theirs)

    async def write(self, line: bytes) -> None:
        """Write a line after those before it. Raises `TransportError` (lost)."""
        async with self._turn:
            rest = memoryview(line)
            while rest:
                if not await self._passed() or self._is_closed:
                    raise TransportError("lost")
                try:
                    rest = rest[os.write(self._own, rest) :]
                except BlockingIOError:
                    await self._writable()
                except OSError as error:
                    raise TransportError("lost") from error

    async def _writable(self) -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_writer(self._own, _resolve, ready)
        try:
            await ready
        finally:
            with suppress(OSError, ValueError):
                loop.remove_writer(self._own)

    def is_closing(self) -> bool:
        """Whether nothing can be written any more."""
        return self._is_closed

    def close(self) -> None:
        """Have the program read the end of its input."""
        self.handed_over()
        if not self._is_closed:
            self._is_closed = True
            with suppress(OSError, ValueError, RuntimeError):
                asyncio.get_running_loop().remove_writer(self._own)
            os.close(self._own)


def _resolve(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
