"""The gateway over standard input and output, with pipes of this process in their place."""

from __future__ import annotations

import asyncio
import json
import os
from itertools import count
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from tests.fuzz.judging import must
from truename.gateway import serve_stdio, stdio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.fuzz.house import House

__all__ = ["Pipe", "pipe"]

_PATIENCE: Final = 20.0
_HELLO: Final = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}


class Pipe:
    """One client that started the gateway, and said hello."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._numbers = count()
        (given, self._input), (output, taken) = os.pipe(), os.pipe()
        # They are looked up as long as it reads and writes.
        self._patch = patch.multiple(stdio, _INPUT=given, _OUTPUT=taken)
        self._patch.start()
        self.task = house.loop.create_task(serve_stdio(house.gateway))
        self._answers = asyncio.StreamReader(limit=2**24, loop=house.loop)
        house.do(self._connect(output))
        self._send({"method": "initialize", "id": "hello", "params": _HELLO})
        self._until("hello")
        self._send({"method": "notifications/initialized"})

    async def _connect(self, output: int) -> None:
        file = os.fdopen(output, "rb")
        protocol = asyncio.StreamReaderProtocol(self._answers, loop=self._house.loop)
        self._reading, _ = await self._house.loop.connect_read_pipe(lambda: protocol, file)

    def _send(self, message: dict[str, Any]) -> None:
        self._write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def _write(self, line: bytes) -> None:
        rest = memoryview(line + b"\n")
        os.set_blocking(self._input, False)
        while rest:
            try:
                rest = rest[os.write(self._input, rest) :]
            except BlockingIOError:
                self._house.do(asyncio.sleep(0.001))

    def close(self) -> None:
        """End it as a client does, by ending its input."""
        os.close(self._input)
        self._house.do(asyncio.wait({self.task}, timeout=_PATIENCE))
        self._reading.close()
        self._patch.stop()

    def said(self, lines: Sequence[bytes]) -> list[dict[str, Any]]:
        """Send lines, then an honest call; return what was answered before that was."""
        for line in lines:
            self._write(line)
        id = f"honest-{next(self._numbers)}"
        self._send({"method": "tools/call", "id": id, "params": {"name": self._house.names["read"], "arguments": {}}})
        found = self._until(id)
        must(found[-1]["result"]["content"][0]["text"] == "answer of read", "an honest call is answered")
        return found[:-1]

    def _until(self, id: str) -> list[dict[str, Any]]:
        return self._house.do(asyncio.wait_for(self._read(id), _PATIENCE))

    async def _read(self, id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while True:
            reading = asyncio.ensure_future(self._answers.readline())
            await asyncio.wait({reading, self.task}, return_when=asyncio.FIRST_COMPLETED)
            must(not self.task.done(), "the gateway goes on")
            found.append(json.loads(await reading))
            if found[-1].get("id") == id:
                return found


_ONE: Final[dict[House, Pipe]] = {}


def pipe(house: House) -> Pipe:
    """Return the pipe to a gateway; another one after a finding."""
    if house not in _ONE or _ONE[house].task.done():
        _ONE.clear()
        _ONE[house] = Pipe(house)
        house.guests[:] = [_ONE[house].close]
    return _ONE[house]
