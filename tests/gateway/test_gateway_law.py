"""The law of resolution through running gateways, in short: calls over HTTP while lists change and operators rename."""

from __future__ import annotations

import random

import pytest

from tests.laws.through_gateway import judged_through_a_gateway

pytestmark = pytest.mark.anyio


async def test_no_text_runs_a_wrong_tool_through_a_gateway() -> None:
    seed = random.SystemRandom().randrange(2**32)

    count, broken = await judged_through_a_gateway(seed, 400)

    assert broken == [], "\n".join([f"seed {seed}", *broken])
    assert count.total() >= 400
