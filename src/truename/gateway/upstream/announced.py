"""What a server announced of its lists, and whether they were read since."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["Announced"]


class Announced:
    """Counts the changes that one connection announced; its lists are read by one reader at a time."""

    def __init__(self) -> None:
        self._changes = 0
        self._read = 0
        self._changed_event = anyio.Event()
        self._reading = anyio.Lock()
        self._read_event = anyio.Event()

    @property
    def is_read(self) -> bool:
        """Whether the lists were read after the last change that was announced."""
        return self._read == self._changes

    def change(self) -> None:
        """Note that the server announced a change."""
        self._changes += 1
        self._changed_event.set()

    async def changed(self) -> None:
        """Wait for a change."""
        await self._changed_event.wait()

    def follow(self) -> None:
        """Have `changed` wait for the next change."""
        self._changed_event = anyio.Event()

    async def read(self) -> None:
        """Wait until the lists were read after the last change that was announced."""
        while not self.is_read:
            await self._read_event.wait()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Note, when the block ends well, that the lists were read as they were announced when it began."""
        async with self._reading:
            seen = self._changes
            yield
            self._read = seen
            self._read_event.set()
            self._read_event = anyio.Event()
