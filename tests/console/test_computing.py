"""Many readers of pages: what takes long runs in few threads, so that calls of tools get their turn."""

from __future__ import annotations

import html
import json
import threading
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.console.conftest import forms, serving
from truename.config.trust import Trust
from truename.console import ROUTES, app, rendering
from truename.console.near_names import NearNames

if TYPE_CHECKING:
    from starlette.responses import Response

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


async def test_a_page_is_written_outside_of_the_event_loop(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    writers, write = set(), rendering.render

    def noted(*args: Any) -> Response:
        writers.add(threading.current_thread())
        return write(*args)

    monkeypatch.setattr(app, "render", noted)
    async with serving(lab) as world, world.browser("op") as browser:
        writers.clear()
        for route in ROUTES:
            if route.method == "GET" and "{" not in route.path:
                assert (await browser.get(f"/console{route.path}")).status_code == 200
        assert writers
        assert threading.current_thread() not in writers


async def test_of_large_definitions_as_many_are_on_a_page_as_a_browser_shows_at_once(lab: Lab) -> None:
    file = lab.folder / "tools.json"
    texts = [f"{name} {'<' * 120_000} the end of {name}" for name in "abcdefgh"]
    tools = [{"name": text[0], "description": text, "inputSchema": {"type": "object"}} for text in texts]
    file.write_text(json.dumps(tools))
    server = lab.script("fs", "listing", str(file))
    async with serving(lab, server, trust=Trust(first="review")) as world, world.browser("op") as browser:
        page = (await browser.get("/console/reviews")).text
        shown = [text[0] for text in texts if f"the end of {text[0]}" in page]
        # One more is the tool of the scripted server itself.
        assert "9 definitions wait" in page
        assert f"The {len(shown)} that wait longest are shown." in page
        assert 0 < len(shown) < 4
        # Each that is shown is whole, and each has its form.
        assert page.count(html.escape("<" * 120_000)) >= len(shown)
        assert len(forms(page)) == len(shown)
        for form in forms(page):
            assert (await browser.post(**form, answer="reject")).status_code == 200
        assert f"{9 - len(shown)} definitions wait" in (await browser.get("/console/reviews")).text
