"""A gateway that is ended and started again on the same state and address, here or as `truename serve`."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio

from tests.gateway.conftest import PATIENCE, ROOT
from truename.config import Config, ServerConfig, Settings
from truename.gateway import Gateway, listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from anyio.abc import Process


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Place:
    """A configuration with a state of its own; each start of it is another gateway."""

    def __init__(self, folder: Path, *servers: ServerConfig, **settings: Any) -> None:
        self.port = free_port()
        self.config = Config(path=folder / "mcp.json", servers=servers, settings=Settings(**settings))

    @property
    def record(self) -> Path:
        path = self.config.state_location().path
        assert path is not None
        return path

    @asynccontextmanager
    async def gateway(self, **settings: Any) -> AsyncIterator[str]:
        """Run a gateway here."""
        config = self.config
        if settings:
            config = Config(path=config.path, servers=config.servers, settings=Settings(**settings))
        async with Gateway(config) as gateway, listening(gateway, port=self.port) as address:
            yield address


@asynccontextmanager
async def served(config: Path, port: int, state: Path) -> AsyncIterator[Process]:
    """Run `truename serve` until the block ends; it is killed then, if it runs still."""
    command = [sys.executable, "-m", "truename", "serve", str(config), "--http", f"127.0.0.1:{port}", "--json"]
    paths = os.pathsep.join((str(ROOT), str(ROOT / "src")))
    env = {**os.environ, "PYTHONPATH": paths, "XDG_STATE_HOME": str(state)}
    async with await anyio.open_process(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as one:
        try:
            with anyio.fail_after(2 * PATIENCE):
                while not await _listens(port):
                    await anyio.sleep(0.02)
            yield one
        finally:
            if one.returncode is None:
                one.kill()


async def _listens(port: int) -> bool:
    try:
        stream = await anyio.connect_tcp("127.0.0.1", port)
    except OSError:
        return False
    await stream.aclose()
    return True
