"""Test support: two gateways on one state, and calls that are made at both."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio

from tests.support.gateway_holding import ABLE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.gateway.conftest import Lab, Raw
    from truename.storage import StateLocation

WRITE: dict[str, Any] = {"name": "write", "arguments": {"text": "x"}, **ABLE}


def decision(word: str) -> dict[str, Any]:
    return {"approval": {"action": "accept", "content": {"decision": word}}}


@asynccontextmanager
async def replicas(
    lab: Lab, raw: Callable[[str], Any], place: StateLocation, *servers: Any, **more: Any
) -> AsyncIterator[tuple[Raw, Raw]]:
    settings = {"state": place.address, **more}
    async with (
        lab.serving(*servers, **settings) as here,
        lab.serving(*servers, **settings) as there,
        raw(here) as first,
        raw(there) as second,
    ):
        yield first, second


def outcome(answer: Any) -> str:
    said = answer.json()
    return str(said["error"]["message"]) if "error" in said else "ran"


async def at_both(first: Raw, second: Raw, params: dict[str, Any], **more: Any) -> list[str]:
    outcomes: list[str] = []

    async def call(http: Raw) -> None:
        outcomes.append(outcome(await http.post("tools/call", params, **more)))

    async with anyio.create_task_group() as tasks:
        for http in (first, second):
            tasks.start_soon(call, http)
    return sorted(outcomes)
