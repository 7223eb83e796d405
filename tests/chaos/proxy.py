"""A TCP proxy that can be told to be slow, to refuse, and to reset what is open."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["FaultProxy"]

_ABORT: Final = struct.pack("ii", 1, 0)
_CHUNK: Final = 65_536


class FaultProxy:
    """Stands before ``target``, a port of this machine."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.delay = 0.0
        self.refuses = False
        self.port = 0
        self._open: set[asyncio.StreamWriter] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()
            self.reset()

    def reset(self) -> int:
        """Reset every connection, so that a read there fails; returns how many there were."""
        open_now, self._open = self._open, set()
        for writer in open_now:
            found = writer.get_extra_info("socket")
            if found is not None and not writer.is_closing():
                found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
            writer.transport.abort()
        return len(open_now)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        other: asyncio.StreamWriter | None = None
        try:
            if self.refuses:
                return
            far, other = await asyncio.open_connection("127.0.0.1", self.target)
            self._open.add(other)
            await asyncio.gather(self._pump(reader, other), self._pump(far, writer))
        except OSError:
            pass
        finally:
            for one in (writer, other):
                if one is not None:
                    self._open.discard(one)
                    one.transport.abort()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while chunk := await source.read(_CHUNK):
            await asyncio.sleep(self.delay)
            sink.write(chunk)
            await sink.drain()
        raise ConnectionResetError
