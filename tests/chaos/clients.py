"""Twenty clients of both eras that call everything, one call after the other each."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.chaos.check import Call
from tests.chaos.world import SERVERS
from truename.gateway.views.descriptors import META_PREFIX

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.chaos.world import Ask

__all__ = ["CLIENTS", "all_called", "asking"]

CLIENTS: Final = 20
_ERAS: Final = ("2026-07-28", "legacy")
_TOOLS: Final = {"shifting": ("echo", "left", "right")}
_LONGEST_CALL: Final = 60.0


async def all_called(address: str, total: int, seed: str) -> list[Call]:
    """Make so many calls, all clients at a time, and return them."""
    made: list[Call] = []
    async with asyncio.TaskGroup() as tasks:
        for number in range(CLIENTS):
            share = total // CLIENTS + (number < total % CLIENTS)
            tasks.create_task(_calls(address, f"{seed}-{number}", share, _ERAS[number % 2], made))
    return made


async def _calls(address: str, name: str, share: int, era: str, made: list[Call]) -> None:
    choose = random.Random(name)
    async with Client(f"{address}/mcp", mode=era) as client:
        for number in range(share):
            server = choose.choice(SERVERS)
            tool = choose.choice(_TOOLS.get(server, ("echo", "slow")))
            made.append(await _call(client, server, tool, f"{name}-{number}"))


@asynccontextmanager
async def asking(address: str, made: list[Call]) -> AsyncIterator[Ask]:
    """Give a function that calls a server's echo once; whoever asks may be cancelled, the call itself ends."""
    async with Client(f"{address}/mcp", mode=_ERAS[0]) as client, asyncio.TaskGroup() as running:
        numbers = count()

        async def call(server: str) -> Call:
            # Its number is one that makes no server loud.
            made.append(one := await _call(client, server, "echo", f"asked-{next(numbers)}-9"))
            return one

        async def ask(server: str) -> Call:
            return await asyncio.shield(running.create_task(call(server)))

        yield ask


async def _call(client: Client, server: str, tool: str, nonce: str) -> Call:
    at = time.monotonic()
    try:
        async with asyncio.timeout(_LONGEST_CALL):
            result = await client.call_tool(f"{server}_{tool}", {"text": nonce})
    except MCPError as error:
        ended: dict[str, Any] = {"text": error.error.message, "code": str(error.error.code)}
    except Exception as error:  # noqa: BLE001 - whatever else a client meets is a fault that is told
        ended = {"broken": f"{type(error).__name__}: {error}"[:300]}
    else:
        ended = {"text": "".join(getattr(block, "text", "") for block in result.content)}
        if result.is_error:
            code = (result.meta or {}).get(f"{META_PREFIX}error")
            ended |= {"code": str(code)} if code else {"broken": f"an error without a code: {ended['text'][:200]}"}
    return Call(server=server, tool=tool, nonce=nonce, at=at, seconds=time.monotonic() - at, **ended)
