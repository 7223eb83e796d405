"""Many readers of pages: what takes long runs in few threads, so that calls of tools get their turn."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import anyio
import pytest

from tests.console.conftest import serving
from truename.console.near_names import NearNames

if TYPE_CHECKING:
    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio


async def test_of_many_pages_at_once_two_are_computed(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    three, met = threading.Barrier(3), []

    def of(*_: object) -> list[object]:
        try:
            met.append(three.wait(timeout=0.5))
        except threading.BrokenBarrierError:
            three.reset()
        return []

    monkeypatch.setattr(NearNames, "of", of)
    async with serving(lab) as world, world.browser("op") as browser:
        statuses: list[int] = []

        async def read() -> None:
            statuses.append((await browser.get("/console/budgets")).status_code)

        async with anyio.create_task_group() as tasks:
            for _ in range(6):
                tasks.start_soon(read)
        assert statuses == [200] * 6
        assert met == []
