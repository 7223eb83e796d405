"""Servers whose streams break off before the answer: the gateway comes back for it, and calls nothing twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.gateway.conftest import connected, text_of
from tests.support.gateway_asking import Person
from tests.support.gateway_broken_answers import EVENTS, Breaking

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from tests.gateway.conftest import Lab, Upstreams

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("name", ["poll", "tear"])
async def test_an_answer_whose_stream_breaks_off_is_fetched(
    name: str, lab: Lab, upstreams: Upstreams, era: str
) -> None:
    app = Breaking()
    async with (
        upstreams.app(app) as url,
        lab.serving(lab.at("far", url + "/mcp", headers={"x-key": "secret"})) as address,
        connected(address + "/mcp", era) as client,
    ):
        assert text_of(await client.call_tool(name, {})) == f"far:{name}"
    assert app.posted[name] == 1
    assert app.resumed[name] == {"poll": 6, "tear": 1}[name]
    for headers in app.headers:
        assert headers["mcp-session-id"] == "s1"
        assert headers["x-key"] == "secret"
        assert headers["mcp-protocol-version"] == "2025-11-25"


@pytest.mark.parametrize(("name", "tries"), [("plain", range(1)), ("refuse", range(1, 5))])
async def test_what_can_not_be_fetched_is_lost_and_nothing_is_called_again(
    name: str, tries: range, lab: Lab, upstreams: Upstreams
) -> None:
    app = Breaking()
    async with (
        upstreams.app(app) as url,
        lab.serving(lab.at("far", url + "/mcp")) as address,
        connected(address + "/mcp", "2026-07-28") as client,
    ):
        lost = await client.call_tool(name, {})
        assert lost.is_error
        assert "closed the connection before it answered" in text_of(lost)
        assert text_of(await client.call_tool("get", {})) == "far:get"
    assert app.posted[name] == 1
    assert app.resumed[name] in tries


@pytest.mark.parametrize("name", ["endless", "silent", "slow"])
async def test_a_server_that_never_answers_is_asked_no_longer_than_a_call_may_take(
    name: str, lab: Lab, upstreams: Upstreams
) -> None:
    app = Breaking()
    async with (
        upstreams.app(app) as url,
        lab.serving(lab.at("far", url + "/mcp"), call_timeout=0.7) as address,
        connected(address + "/mcp", "2026-07-28") as client,
    ):
        result = await client.call_tool(name, {})
        assert result.is_error
        tries = app.resumed[name]
        assert tries <= 20
        assert text_of(await client.call_tool("get", {})) == "far:get"
        await anyio.sleep(0.3)
        assert app.resumed[name] == tries
    assert app.posted[name] == 1


async def test_a_question_that_comes_after_that_is_asked_of_who_called(lab: Lab, upstreams: Upstreams) -> None:
    app, ada, bob = Breaking(), Person("ada"), Person("bob")
    async with (
        upstreams.app(app) as url,
        lab.serving(lab.at("far", url + "/mcp")) as address,
        connected(address + "/mcp", "legacy", **bob.answering) as other,
        connected(address + "/mcp", "legacy", **ada.answering) as client,
    ):
        assert text_of(await other.call_tool("get", {})) == "far:get"
        assert text_of(await client.call_tool("ask", {})) == "far:ask"
    assert app.answers[99]["content"] == {"name": "ada"}
    assert bob.asked == []


async def test_a_server_that_has_its_stream_opened_again_and_again_keeps_nobody_busy(
    lab: Lab, upstreams: Upstreams
) -> None:
    class Restless(Breaking):
        followed = 0

        async def follow(self, send: Send) -> None:
            self.followed += 1
            await self._send(send, 200, b"retry: 0\ndata:\n\n", EVENTS)

    app = Restless()
    async with upstreams.app(app) as url, lab.gateway(lab.at("far", url + "/mcp")):
        await anyio.sleep(1.0)
    assert 1 <= app.followed <= 3


async def test_a_redirect_within_a_server_is_followed(lab: Lab, upstreams: Upstreams) -> None:
    class Moved(Breaking):
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http" and not scope["path"].endswith("/"):
                await self._send(send, 307, b"", (b"location", scope["path"].encode() + b"/"))
            else:
                await super().__call__(scope, receive, send)

    app = Moved()
    async with (
        upstreams.app(app) as url,
        lab.serving(lab.at("far", url + "/mcp")) as address,
        connected(address + "/mcp", "2026-07-28") as client,
    ):
        assert text_of(await client.call_tool("get", {})) == "far:get"


class Prim(Breaking):
    """Takes its time over the end of the greeting, and notes what comes meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.early: list[str] = []
        self._came = anyio.Event()
        self._is_greeted = False

    async def _post(self, message: dict[str, Any], send: Send) -> None:
        if message["method"] == "notifications/initialized":
            with anyio.move_on_after(0.3):
                await self._came.wait()
            self._is_greeted = True
        elif message["method"] not in {"server/discover", "initialize"} and not self._is_greeted:
            self.early.append(message["method"])
            self._came.set()
        await super()._post(message, send)


async def test_nothing_is_asked_before_a_server_has_been_told_that_it_was_greeted(
    lab: Lab, upstreams: Upstreams
) -> None:
    app = Prim()
    async with (
        upstreams.app(app) as url,
        lab.serving(lab.at("far", url + "/mcp")) as address,
        connected(address + "/mcp", "legacy") as client,
    ):
        assert text_of(await client.call_tool("get", {})) == "far:get"
    assert app.early == []
