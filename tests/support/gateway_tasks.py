"""Test support: tasks of two persons at two gateways of one state."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from tests.gateway.conftest import PATIENCE
from tests.gateway.taskers import New
from tests.support.gateway_shares import people

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.gateway.conftest import Lab
    from truename.storage import StateLocation

YES = {"q0": {"action": "accept", "content": {"ok": True}}}
OTHER_RUN = "belongs to another run of its server's program"


class Persons:
    """Ann and Bob, as clients of two gateways of one state."""

    def __init__(self, first: Any, second: Any, headers: dict[str, dict[str, str]]) -> None:
        self.ann = [New(http, headers=headers["ann"]) for http in (first, second)]
        self.bob = [New(http, headers=headers["bob"]) for http in (first, second)]


@asynccontextmanager
async def persons(
    lab: Lab, raw: Callable[[str], Any], place: StateLocation, server: Any, *, shared: bool = False
) -> AsyncIterator[Persons]:
    """Give two persons at two gateways; ``shared`` has both use one program."""
    access, headers = people("ann", "bob")
    # Who waits for a server to be there again calls it again and again.
    settings: dict[str, Any] = {"state": place.address, "access": access, "breaker_failures": 1_000}
    serve = lab.replica if shared else lab.serving
    async with (
        serve(server, **settings) as here,
        serve(server, **settings) as there,
        raw(here) as first,
        raw(there) as second,
    ):
        yield Persons(first, second, headers)


async def refused(client: New, method: str, id: str, **more: Any) -> str:
    with pytest.raises(MCPError) as found:
        await client.ask(method, taskId=id, **more)
    return str(found.value)


async def begun_anew(client: New, tool: str = "slow_compute") -> str:
    """Begin a task once the server is there again."""
    with anyio.fail_after(PATIENCE):
        while True:
            answer = await client.call(tool)
            if "taskId" in answer:
                return str(answer["taskId"])
