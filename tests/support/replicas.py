"""Several real gateways on one state, and a balancer before them that sends each request to another one."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from truename.storage import StateLocation

__all__ = ["Replicas", "balancer"]

ROOT: Final = Path(__file__).parents[2]
_PATIENCE: Final = 60.0


class Replicas:
    """Gateways (`truename serve`) of one configuration and state, by their number."""

    def __init__(
        self, folder: Path, place: StateLocation, servers: dict[str, Any], count: int, **settings: Any
    ) -> None:
        self.folder = folder
        self.ports = [_free_port() for _ in range(count)]
        self.processes: list[subprocess.Popen[bytes] | None] = [None] * count
        self._config = folder / "mcp.json"
        state = place.address
        self._config.write_text(json.dumps({"mcpServers": servers, "truename": {"state": state, **settings}}))

    def address(self, number: int) -> str:
        return f"http://127.0.0.1:{self.ports[number]}"

    def start(self, *numbers: int) -> None:
        """Start gateways, all of them unless some are named, and wait until they are ready."""
        chosen = numbers or tuple(range(len(self.ports)))
        for number in chosen:
            command = [sys.executable, "-m", "truename", "serve", str(self._config)]
            options = ["--http", f"127.0.0.1:{self.ports[number]}", "--json"]
            paths = os.pathsep.join((str(ROOT), str(ROOT / "src")))
            env = {**os.environ, "PYTHONPATH": paths, "XDG_STATE_HOME": str(self.folder / "own")}
            with (self.folder / f"log-{number}").open("ab") as log:
                self.processes[number] = subprocess.Popen([*command, *options], env=env, stdout=log, stderr=log)
        until = time.monotonic() + _PATIENCE
        for number in chosen:
            while not self._is_ready(number):
                assert time.monotonic() < until, self.log(number)
                time.sleep(0.05)

    def log(self, number: int) -> str:
        return (self.folder / f"log-{number}").read_text()

    def _is_ready(self, number: int) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.ports[number]), timeout=5) as one:
            one.sendall(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            return one.recv(64).startswith(b"HTTP/1.1 200")
        return False

    def pid(self, number: int) -> int:
        process = self.processes[number]
        assert process is not None
        return process.pid

    def signal(self, number: int, what: signal.Signals) -> None:
        os.kill(self.pid(number), what)

    def kill(self, number: int) -> None:
        process = self.processes[number]
        assert process is not None
        process.kill()
        process.wait()

    def restart_dead(self) -> None:
        """Start those that were killed."""
        dead = [number for number, one in enumerate(self.processes) if one is None or one.poll() is not None]
        if dead:
            self.start(*dead)

    def end(self) -> None:
        for process in self.processes:
            if process is not None and process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self.processes:
            if process is not None:
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class _Balancer:
    """Sends each request on a connection of its own to the next gateway, and to the one after if that is refused."""

    def __init__(self, ports: list[int]) -> None:
        self._ports = ports
        self._turn = 0
        self.sent = [0] * len(ports)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there: asyncio.StreamWriter | None = None
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            lines = [line for line in head.split(b"\r\n")[:-2] if not line.lower().startswith(b"connection:")]
            length = next((int(line[15:]) for line in lines if line.lower().startswith(b"content-length:")), 0)
            body = await reader.readexactly(length)
            answers, there = await self._connected()
            there.write(b"\r\n".join((*lines, b"connection: close", b"", b"")) + body)
            gone = asyncio.ensure_future(reader.read(1))
            while True:
                more = asyncio.ensure_future(answers.read(65536))
                await asyncio.wait((gone, more), return_when=asyncio.FIRST_COMPLETED)
                if not more.done():
                    more.cancel()
                    break
                if not (data := more.result()):
                    break
                writer.write(data)
                await writer.drain()
            gone.cancel()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            for one in (there, writer):
                if one is not None:
                    one.transport.abort() if one is there else one.close()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        for _ in self._ports:
            number, self._turn = self._turn, (self._turn + 1) % len(self._ports)
            with suppress(ConnectionRefusedError):
                found = await asyncio.open_connection("127.0.0.1", self._ports[number])
                self.sent[number] += 1
                return found
        raise ConnectionRefusedError


@asynccontextmanager
async def balancer(replicas: Replicas) -> AsyncIterator[str]:
    """Balance over all gateways, round robin; gives the address."""
    server = await asyncio.start_server(_Balancer(replicas.ports).serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
