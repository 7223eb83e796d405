"""gateway.py CONFIG TRACE [SABOTAGE]: a gateway over HTTP that prints its address, and its counts for each line.

``SABOTAGE`` puts a fault in on purpose, to see whether the checker finds it.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio

from tests.chaos.trace import trace_supervisors
from truename.config import load
from truename.gateway import Gateway, listening
from truename.gateway.shown import ShownTools
from truename.gateway.upstream.server_connection import ServerConnection

if TYPE_CHECKING:
    from collections.abc import Callable

_EVERY: Final = 50
# More than tasks come and go with the server that is restarted.
_LEAKS: Final = 10
_LEAKED: Final[list[Any]] = []


def twice() -> None:
    """Send one call in fifty a second time."""
    sent, count = ServerConnection.request, itertools.count(1)

    async def request(self: ServerConnection, method: str, params: Any, **more: Any) -> dict[str, Any]:
        if next(count) % _EVERY == 0:
            await sent(self, method, params, **more)
        return await sent(self, method, params, **more)

    ServerConnection.request = request  # type: ignore[method-assign]


def elsewhere() -> None:
    """Send one call in fifty to another server."""
    found, count = ShownTools.origin, itertools.count(1)

    def origin(self: ShownTools, view: Any, id: Any) -> Any:
        upstream, name = found(self, view, id)
        return (self.pool["steady"], name) if next(count) % _EVERY == 0 else (upstream, name)

    ShownTools.origin = origin  # type: ignore[method-assign]


def leak() -> None:
    """Leave a task and a file open behind one call in ten."""
    sent, count = ServerConnection.request, itertools.count(1)

    async def request(self: ServerConnection, method: str, params: Any, **more: Any) -> dict[str, Any]:
        if next(count) % _LEAKS == 0:
            _LEAKED.append((asyncio.create_task(asyncio.sleep(3600)), Path(os.devnull).open()))  # noqa: SIM115
        return await sent(self, method, params, **more)

    ServerConnection.request = request  # type: ignore[method-assign]


SABOTAGES: Final[dict[str, Callable[[], None]]] = {"twice": twice, "elsewhere": elsewhere, "leak": leak}


def counts() -> dict[str, int]:
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    return {
        "tasks": len(asyncio.all_tasks()),
        "threads": threading.active_count(),
        "file descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "processes": len(children.read_text(encoding="utf-8").split()),
    }


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def main(config: str, trace: str) -> None:
    trace_supervisors(Path(trace))
    async with Gateway(load(config)) as gateway, listening(gateway) as address:
        _tell(address)
        lines = anyio.wrap_file(sys.stdin)
        async for _ in lines:
            _tell(json.dumps(counts()))


if __name__ == "__main__":
    for sabotage in sys.argv[3:]:
        SABOTAGES[sabotage]()
    anyio.run(main, sys.argv[1], sys.argv[2])
