"""Accept connections at a socket that several processes share, so that each process gets about as many.

Each takes one connection at a time, and the one with the most connections lets the others go first. A process that
hangs takes none, and one that dies loses none that it has not taken: they wait in the one queue of the socket. With a
socket for each process (``SO_REUSEPORT``) the kernel would divide connections without asking who is alive, and drop
the queue of a process that dies.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import mmap
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["ConnectionCounts", "SharedListener"]

log: Final = logging.getLogger("truename.gateway")

_WIDTH: Final = 4
# Seconds for which others may go first, and until another try where there are no descriptors left.
_TURN: Final = 0.002
_RETRY: Final = 1.0
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class ConnectionCounts:
    """How many connections each of ``count`` processes has, in a file that all map; this one is ``number``.

    The counts only order who goes first: a wrong one, as of a process that died, costs two milliseconds.
    """

    def __init__(self, path: Path, number: int, count: int) -> None:
        self._own_place = _place(number)
        self._places = [_place(other) for other in range(1, count + 1) if other != number]
        path.touch(mode=0o600)
        with path.open("r+b") as file:
            file.truncate(count * _WIDTH)
            self._shared = mmap.mmap(file.fileno(), count * _WIDTH)
        self._own = 0
        self._put()

    def add(self, change: int) -> None:
        """Count connections of this process that were opened, or closed."""
        self._own += change
        self._put()

    @property
    def is_most(self) -> bool:
        """Whether another process that accepts connections has fewer."""
        # One more than there are: 0 stands for a process that has not begun.
        return any(0 < int.from_bytes(self._shared[place], "big") <= self._own for place in self._places)

    def _put(self) -> None:
        self._shared[self._own_place] = (self._own + 1).to_bytes(_WIDTH, "big")


def _place(number: int) -> slice:
    return slice((number - 1) * _WIDTH, number * _WIDTH)


class SharedListener:
    """Accepts connections for ``make`` until `close`, as a server of the event loop does."""

    def __init__(
        self, bound: socket.socket, make: Callable[[], asyncio.Protocol], counts: ConnectionCounts, backlog: int
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._make = make
        self._counts = counts
        # A copy, since whoever gave it may close it first.
        self._socket = bound.dup()
        self._socket.setblocking(False)
        self._socket.listen(backlog)
        self._opening: set[asyncio.Task[None]] = set()
        self._later: asyncio.TimerHandle | None = None
        self._watch()

    def _watch(self) -> None:
        self._loop.add_reader(self._socket.fileno(), self._connection_waits)

    def _connection_waits(self) -> None:
        if self._counts.is_most:
            self._pause(_TURN)
        else:
            self._accept()

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._socket.fileno())
        self._later = self._loop.call_later(seconds, self._go_on)

    def _go_on(self) -> None:
        self._later = None
        self._watch()
        self._accept()

    def _accept(self) -> None:
        try:
            accepted, _ = self._socket.accept()
        except (BlockingIOError, ConnectionError):
            # Another process was faster, or the client has gone.
            return
        except OSError as error:
            if error.errno not in _EXHAUSTED:
                raise
            log.warning("Cannot accept a connection (%s); the next attempt is in %g s.", error.strerror, _RETRY)
            self._loop.remove_reader(self._socket.fileno())
            self._later = self._later or self._loop.call_later(_RETRY, self._go_on)
            return
        accepted.setblocking(False)
        with suppress(OSError):
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._counts.add(1)
        task = self._loop.create_task(self._open(accepted))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _open(self, accepted: socket.socket) -> None:
        # From here on its protocol counts it.
        try:
            await self._loop.connect_accepted_socket(self._make, accepted)
        except OSError:
            # The client has gone.
            accepted.close()
        finally:
            self._counts.add(-1)

    def close(self) -> None:
        """Accept no more connections."""
        if self._socket.fileno() < 0:
            return
        if self._later is not None:
            self._later.cancel()
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()

    async def wait_closed(self) -> None:
        """Wait until the connections that were being opened are open."""
        if self._opening:
            await asyncio.wait(self._opening)
