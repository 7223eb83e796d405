"""How soon a server is tried again: often while calls want it, ever less often while none does."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from truename.gateway.upstream.backoff import Backoff
from truename.gateway.upstream_errors import UpstreamError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Slept:
    """Takes the place of anyio's clock: sleeping takes no time and is added up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
        self.clock = clock
        monkeypatch.setattr("truename.gateway.upstream.backoff.anyio.sleep", self.sleep)
        monkeypatch.setattr("truename.gateway.upstream.backoff.anyio.move_on_after", self.move_on_after)

    async def sleep(self, seconds: float) -> None:
        self.clock.now += seconds

    def move_on_after(self, seconds: float) -> anyio.CancelScope:
        # Nobody hurries meanwhile.
        self.clock.now += seconds
        scope = anyio.CancelScope()
        scope.cancel()
        return scope


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Slept:
    return Slept(monkeypatch, clock)


@pytest.mark.usefixtures("slept")
async def test_while_a_call_wants_the_server_it_is_tried_again_within_half_a_second(clock: Clock) -> None:
    patience = Backoff(clock)
    broken = UpstreamError(server="s", kind="missing", problem="", remedy="")
    for _ in range(20):
        patience.begin()
        await patience.pause(broken)
    assert clock.now > 1_100.0

    patience.begin()
    patience.hurry()
    for attempt in range(4):
        before = clock.now
        await patience.pause(broken)
        patience.begin()
        assert clock.now - before < 0.5, attempt


async def test_a_call_that_waits_since_the_last_attempt_is_not_forgotten_at_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("truename.gateway.upstream.backoff.FIRST_ATTEMPT", 0.01)
    patience = Backoff()
    patience.hurry()
    patience.begin()

    with pytest.raises(TimeoutError, match=r"0\.01"):
        await patience.answered(anyio.sleep_forever())


async def test_an_attempt_has_some_times_what_the_last_good_one_took_and_more_after_some_that_were_cut_off(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("truename.gateway.upstream.backoff.SHORTEST_ATTEMPT", 0.005)
    patience = Backoff(clock)

    async def good(seconds: float) -> None:
        clock.now += seconds

    for seconds, limit in ((2.0, 6.0), (0.001, 0.005)):
        patience.begin()
        await patience.answered(good(seconds))
        assert patience.limit == pytest.approx(limit)
    patience.hurry()
    for _ in range(5):
        with pytest.raises(TimeoutError):
            await patience.answered(anyio.sleep_forever())
    assert patience.limit == pytest.approx(0.01)


class BlackHole:
    """An address where connections are accepted and never answered, until it is opened."""

    def __init__(self) -> None:
        self.asked = 0

    async def serve(self, stream: Any) -> None:
        self.asked += 1
        async with stream:
            await anyio.sleep_forever()


async def test_a_server_that_answers_nothing_is_asked_anew_while_a_call_waits(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, connect: Callable[..., Any], said: Callable[[Any], str]
) -> None:
    monkeypatch.setattr("truename.gateway.upstream.backoff.FIRST_ATTEMPT", 0.05)
    hole = BlackHole()
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, hole.serve)
        server = lab.at("hole", f"http://127.0.0.1:{port}/mcp")
        async with lab.gateway(server, startup_timeout=0.5) as gateway:
            upstream = gateway.registry.pool["hole"]
            began = time.monotonic()
            with anyio.fail_after(10):
                while hole.asked < 4:
                    with pytest.raises(UpstreamError, match="is not available now"):
                        await upstream.request("tools/call", {"name": "x"}, capabilities={}, on_progress=None)
        assert time.monotonic() - began < 5
        tasks.cancel_scope.cancel()
