"""Connecting to one of several addresses: the next one is tried where one takes long (RFC 8305)."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Final

import anyio

if TYPE_CHECKING:
    from collections.abc import Sequence
    from ipaddress import IPv4Address, IPv6Address

__all__ = ["reached"]

_HEAD_START: Final = 0.25


async def reached(addresses: Sequence[IPv4Address | IPv6Address], port: int) -> socket.socket:
    """Return a socket that is connected to one of these addresses, and to no other. Raises `OSError`."""
    won: list[socket.socket] = []
    failed: list[OSError] = []
    try:
        async with anyio.create_task_group() as tasks:

            async def attempt(address: IPv4Address | IPv6Address, over: anyio.Event) -> None:
                try:
                    won.append(await _connected(address, port))
                    tasks.cancel_scope.cancel()
                except OSError as error:
                    failed.append(error)
                finally:
                    over.set()

            for address in addresses:
                over = anyio.Event()
                tasks.start_soon(attempt, address, over)
                with anyio.move_on_after(_HEAD_START):
                    await over.wait()
    except BaseException:
        _close(won)
        raise
    if not won:
        raise failed[0]
    _close(won[1:])
    return won[0]


async def _connected(address: IPv4Address | IPv6Address, port: int) -> socket.socket:
    one = socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6)
    try:
        one.setblocking(False)
        await asyncio.get_running_loop().sock_connect(one, (str(address), port))
    except BaseException:
        one.close()
        raise
    return one


def _close(sockets: Sequence[socket.socket]) -> None:
    for one in sockets:
        one.close()
