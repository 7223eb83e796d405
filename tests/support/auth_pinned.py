"""Test support: pinned, used by tests of several modules."""

from __future__ import annotations

from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from ipaddress import IPv4Address, IPv6Address

    from anyio.abc import SocketStream


class Names:
    """A name service that gives the next answer each time it is asked, and the last one for ever."""

    def __init__(self, *answers: tuple[str, ...]) -> None:
        self._answers: Iterator[tuple[str, ...]] = iter(answers)
        self._last: tuple[str, ...] = ()
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> tuple[IPv4Address | IPv6Address, ...]:
        self.asked.append(f"{host}:{port}")
        self._last = next(self._answers, self._last)
        return tuple(map(ip_address, self._last))


@asynccontextmanager
async def listening(host: str = "127.0.0.1") -> AsyncIterator[tuple[int, list[str]]]:
    """Answer each request, and note the Host that was asked for."""
    hosts: list[str] = []

    async def answer(stream: SocketStream) -> None:
        async with stream:
            head = await stream.receive(65_536)
            hosts.extend(line[6:].decode() for line in head.split(b"\r\n") if line.lower().startswith(b"host: "))
            await stream.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok")

    async with await anyio.create_tcp_listener(local_host=host) as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, answer)
        yield listener.extra(anyio.abc.SocketAttribute.local_port), hosts
        tasks.cancel_scope.cancel()
