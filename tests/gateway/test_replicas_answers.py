"""What was asked at one gateway is answered at another one, on one state database; answered at both, it counts once."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.support.gateway_holding import ABLE, ANSWER, ASK
from tests.support.gateway_questions import Handshaking
from tests.support.gateway_shares import people
from truename.config.approvals import Asking
from truename.policy import read_policy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.gateway.conftest import Lab, Raw, Upstreams
    from truename.storage import StateLocation

pytestmark = pytest.mark.anyio

ASKS = read_policy({"default": "ask"})
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


async def test_a_call_that_waits_at_one_gateway_goes_on_with_an_answer_that_reaches_another(
    lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams, place: StateLocation
) -> None:
    far = Handshaking()
    async with upstreams.serve(far.server) as url, replicas(lab, raw, place, lab.at("far", url)) as (first, second):
        asked = await first.result("tools/call", ASK)
        done = {**ASK, "requestState": asked["requestState"], "inputResponses": ANSWER}
        with anyio.fail_after(20):
            assert (await second.result("tools/call", done))["structuredContent"] == ANSWER["q1"]
        assert "No call waits with this requestState" in outcome(await second.post("tools/call", done))
        assert "No call waits with this requestState" in outcome(await first.post("tools/call", done))
    assert len(far.able) == 1
