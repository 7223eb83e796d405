"""Servers that misbehave without end: what is said of them, and what is done for them, is bounded."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from truename.gateway.calls.repeats import Repeats
from truename.gateway.endpoint.audience import Audience
from truename.gateway.mcp.connection import ClientConnection
from truename.gateway.protocol.callers import PRINCIPAL_KEY
from truename.gateway.rate_limited_log import RateLimitedLog
from truename.gateway.upstream.backoff import FlapDamping
from truename.gateway.views.view import ViewSpec
from truename.policy.principal import Principal

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.conftest import Lab


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_finding_is_told_once_and_again_only_when_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    news = RateLimitedLog(clock)
    for text in ("a", "a", "b"):
        clock.now += 10
        news.tell("server", text)
        news.tell("server", text)

    assert caplog.messages == ["a", "b"]


def test_findings_that_change_all_the_time_are_told_ever_less_often(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    news = RateLimitedLog(clock)
    for second in range(1_000):
        clock.now = float(second)
        news.tell("server", f"text {second}")

    assert len(caplog.messages) <= 11


def test_subjects_without_end_take_no_room() -> None:
    news = RateLimitedLog()
    for number in range(5_000):
        news.tell(number, "x", level=0)

    assert len(news._told) == 1_000


def test_a_server_that_never_ceases_to_announce_is_asked_ever_less_often() -> None:
    clock = Clock()
    calm = FlapDamping(clock)
    asked = 0
    while clock.now < 300:
        clock.now += calm.delay()
        asked += 1
    clock.now += 100

    assert asked < 25
    assert calm.delay() == 0.05


def _request(session: ClientConnection | None = None, host: str = "127.0.0.1", principal: str = "ann") -> Any:
    connection = ClientConnection.of_request("2026-07-28") if session is None else session
    request = SimpleNamespace(
        client=SimpleNamespace(host=host, port=1),
        headers={"x-forwarded-for": str(id(object()))},
        scope={"state": {PRINCIPAL_KEY: Principal(name=principal)}},
    )
    return SimpleNamespace(connection=connection, http=request)


def _session() -> ClientConnection:
    return ClientConnection()


VIEW = ViewSpec("universal")


def test_wrong_names_of_a_lasting_session_are_counted_in_a_row() -> None:
    repeats, one, other = Repeats(Clock()), _session(), _session()
    repeats.over(_request(one), VIEW)
    repeats.over(_request(other), VIEW)

    counted = [repeats.again(_request(one), VIEW, name) for name in ("x", "x", "y", "x", "x")]

    assert counted == [1, 2, 1, 1, 2]
    assert repeats.again(_request(other), VIEW, "x") == 1


@pytest.mark.parametrize("session", [lambda: None, _session], ids=["stateless", "a session for each call"])
def test_where_no_session_lasts_a_principal_on_one_machine_is_one_caller(
    session: Callable[[], ClientConnection | None],
) -> None:
    clock = Clock()
    repeats = Repeats(clock)

    assert [repeats.again(_request(session()), VIEW, "x") for _ in range(3)] == [1, 2, 3]
    assert repeats.again(_request(session(), host="10.0.0.2"), VIEW, "x") == 1
    assert repeats.again(_request(session(), principal="ben"), VIEW, "x") == 1
    assert repeats.again(_request(session()), ViewSpec("openai"), "x") == 1
    assert repeats.again(_request(session()), VIEW, "y") == 1
    clock.now += 61
    assert repeats.again(_request(session()), VIEW, "x") == 1


def test_callers_and_names_without_end_take_no_room() -> None:
    repeats = Repeats(Clock())
    for number in range(2_000):
        repeats.again(_request(host=str(number)), VIEW, "x")
        repeats.again(_request(), VIEW, str(number))

    assert len(repeats._wrong) <= 1_000
    assert max(map(len, repeats._wrong.values())) <= 50


@pytest.mark.anyio
async def test_tools_that_are_left_out_are_told_in_one_line_a_server_and_cause(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    async with lab.gateway(lab.script("m", "malformed"), lab.script("odd", "odd")) as gateway:
        gateway.registry.rebuild()
        gateway.registry.rebuild()
    told = [message for message in caplog.messages if "omitted" in message or "twice" in message]

    assert [message[:49] for message in told if "'m'" in message] == [
        "server 'm': 9 tools are omitted; the first: 'sche"
    ]
    assert len([message for message in told if "'odd'" in message]) <= 3


@pytest.mark.anyio
async def test_one_endpoint_tells_its_clients_one_thing_at_a_time(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[frozenset[ViewSpec]] = []
    release = anyio.Event()

    async def slow(_: object, changed: frozenset[ViewSpec]) -> None:
        told.append(changed)
        await release.wait()

    async with lab.gateway(lab.normal("w", "get")) as gateway, anyio.create_task_group() as tasks:
        endpoint = gateway.endpoint()
        monkeypatch.setattr(Audience, "_tell_all", slow)
        for number in range(10):
            tasks.start_soon(endpoint.notify, frozenset({ViewSpec(str(number))}))
        await anyio.wait_all_tasks_blocked()
        release.set()

    assert [len(changed) for changed in told] == [1, 9]
