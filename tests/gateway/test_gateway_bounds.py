"""Whatever a client sends, it harms itself only: what cannot be sent on is refused, and everything has a bound."""

from __future__ import annotations

import contextlib
import json
import subprocess
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import AsyncMock

import anyio
import httpx2
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from tests.gateway.conftest import ERAS
from tests.support.gateway_bounds import JSON, _answer, _call, _headers
from tests.support.tls import dial
from truename.config import Settings
from truename.gateway.elicitation.progress_limit import ProgressLimit
from truename.gateway.endpoint.resource_subscriptions import ResourceSubscriptions
from truename.gateway.mcp.messages import error, notification, response
from truename.gateway.protocol.envelopes import Envelope, read_envelope
from truename.gateway.protocol.errors import MCPError
from truename.gateway.quota import Share
from truename.gateway.rate_limited_log import RateLimitedLog
from truename.gateway.stdio import OpenRequests
from truename.gateway.upstream.following import Follower
from truename.gateway.upstream.server_connection import ServerConnection
from truename.gateway.upstream.session import ServerSession
from truename.gateway.upstream.transport import Receiver, Transport
from truename.gateway.upstream.watching import Watching
from truename.gateway.upstream_errors import Tail, UpstreamError
from truename.gateway.views.view import ViewSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio


UNWRITABLE = [
    ('{"x": "\\ud83d"}', "contain half of a character"),
    ('{"\\udc00": 1}', "contain half of a character"),
    ('{"x": NaN}', "contain a number that JSON does not have"),
    ('{"x": [-Infinity]}', "contain a number that JSON does not have"),
    ('{"x": ' + "[" * 99 + "]" * 99 + "}", "nested deeper than the 100 levels of max_depth"),
    ('{"x": ' + "[" * 800 + "]" * 800 + "}", "nested deeper than the 100 levels of max_depth"),
]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("arguments", "expected"), UNWRITABLE)
async def test_what_no_server_could_read_is_refused_and_the_connection_that_all_share_stays(
    lab: Lab, raw: Callable[[str], Any], arguments: str, expected: str, era: str
) -> None:
    async with lab.serving(lab.normal("w", "echo")) as address, raw(address) as http:
        headers = await _headers(http, era)
        refused = await http.http.post(f"{address}/mcp", content=_call(arguments), headers=headers)
        after = await http.http.post(f"{address}/mcp", content=_call('{"x": "NaN"}'), headers=headers)

    if refused.status_code == 200:
        text = _answer(refused.text)["result"]["content"][0]["text"]
        assert text.startswith("Invalid call: params ")
        assert expected in text
    else:
        assert (refused.status_code, _answer(refused.text)["error"]["code"]) == (400, -32700)
    assert _answer(after.text)["result"]["content"][0]["text"] == "w:echo"
    assert not [event for event in lab.events if event.kind == "lost"]


@pytest.mark.parametrize("declared", [True, False])
async def test_all_requests_together_are_bounded(lab: Lab, declared: bool) -> None:
    async def body() -> Any:
        yield b"{"
        begun.set()
        await anyio.sleep_forever()

    begun, sending = anyio.Event(), anyio.CancelScope()
    settings = {"max_body": 10_000, "max_incoming": 15_000}
    async with (
        lab.serving(lab.normal("w", "echo"), **settings) as address,
        httpx2.AsyncClient(timeout=20) as http,
        anyio.create_task_group() as tasks,
    ):
        length = {"content-length": "10000"} if declared else {}

        async def send() -> None:
            with sending:
                await http.post(f"{address}/mcp", content=body(), headers={**JSON, **length})

        async def status() -> int:
            answer = await http.post(f"{address}/mcp", content=b" " * 6_000, headers=JSON)
            return int(answer.status_code)

        tasks.start_soon(send)
        with anyio.fail_after(15):
            await begun.wait()
            assert await status() == 503
            assert (await http.get(f"{address}/healthz")).status_code == 200
            sending.cancel()
            while await status() == 503:
                await anyio.sleep(0.01)


def _asked(intake: OpenRequests, id: str | int, size: int = 10) -> str | None:
    refused = intake.refusal({"jsonrpc": "2.0", "id": id, "method": "tools/call"}, size)
    return None if refused is None else f"{refused['id']}: {refused['error']['message']}"


def test_what_a_client_over_a_pipe_has_open_is_bounded_in_number_and_bytes() -> None:
    intake = OpenRequests(most=2, most_bytes=100)
    assert _asked(intake, 1, 1_000) is None
    assert "as max_incoming allows (100)" in str(_asked(intake, 2))
    intake.gone(error(1, 1, "x"))

    assert (_asked(intake, 2), _asked(intake, "2")) == (None, None)
    assert str(_asked(intake, 3)).startswith("3: This client has as many open requests as max_requests allows (2)")
    intake.gone(notification("notifications/progress"))
    taken_back = {"requestId": "2", "reason": "x"}
    intake.refusal(notification("notifications/cancelled", taken_back), 10)
    assert (_asked(intake, 3), _asked(intake, 2)) == (None, f"None: {IN_USE}")
    intake.refusal(notification("notifications/cancelled", {"requestId": []}), 10)
    assert str(_asked(intake, 4)).startswith("4: ")
    assert intake.refusal(response(3, {}), 10) is None


IN_USE = "A request with this id is still running; nothing was run. Give each request its own id."


async def test_a_client_over_stdio_that_asks_without_end_is_refused_and_no_id_is_answered_twice(lab: Lab) -> None:
    params = lab.over_stdio(lab.normal("w", "echo", "sleep"), max_requests=3)

    def call(id: int, name: str) -> bytes:
        return f"{_call('{}', str(id)).replace('w_echo', name)}\n".encode()

    async with await anyio.open_process(
        [params.command, *params.args], env=params.env, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        lines = BufferedByteReceiveStream(process.stdout)

        async def said() -> Any:
            return json.loads(await lines.receive_until(b"\n", 1_000_000))

        with anyio.fail_after(30):
            await process.stdin.send(b"".join(call(id, "w_sleep") for id in (1, 1, 2, 3, 4)))
            answers = [await said(), await said()]
            assert [answer["id"] for answer in answers] == [None, 4]
            assert answers[0]["error"]["message"] == IN_USE
            taken_back = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
            await process.stdin.send(json.dumps(taken_back).encode() + b"\n" + call(5, "w_echo"))
            assert (await said())["id"] == 5
            await process.stdin.aclose()
            await process.wait()


class Pipe(Transport):
    """A transport that keeps what is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[dict[str, Any]] = []

    def begin(self, receiver: Receiver) -> None:
        """Take nobody: the test says what comes."""

    async def request(self, number: int, message: bytes, headers: bytes) -> None:  # noqa: ARG002 - a `Transport`
        self.sent.append(json.loads(message))

    async def notify(self, message: bytes, headers: bytes) -> None:  # noqa: ARG002 - a `Transport`
        self.sent.append(json.loads(message))


def message(**said: Any) -> Envelope:
    found = read_envelope(json.dumps({"jsonrpc": "2.0", **said}).encode())
    assert found is not None
    return found


async def test_a_server_that_floods_its_client_is_not_heard_for_a_while_but_for_its_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("truename.gateway.upstream.session.MOST_AT_ONCE", 20)

    async def never(*_: Any) -> Any:
        await anyio.sleep_forever()

    questions: Any = SimpleNamespace(relay=never, declares={})
    pipe = Pipe()
    async with ServerSession.over(pipe, {"name": "t", "version": "1"}, never, questions) as session:
        answers: list[dict[str, Any]] = []

        async def ask() -> None:
            answers.append(await session.send("ping", {}))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            for number in range(50):
                session.receive(message(method="notifications/tools/list_changed", params={"n": number}))
                session.receive(message(id=number, method="elicitation/create"))
            session.receive(message(id=pipe.sent[0]["id"], result={"ok": True}))

        assert answers == [{"ok": True}]
        assert session.dropped == 80


async def test_progress_for_somebody_who_does_not_read_is_dropped() -> None:
    told: list[float] = []
    reads = anyio.Event()

    async def tell(progress: float, total: float | None = None, message: str | None = None) -> None:
        await reads.wait()
        told.append(progress)

    sparing = ProgressLimit(tell)
    async with anyio.create_task_group() as tasks:
        for number in range(150):
            tasks.start_soon(sparing, number)
        await anyio.wait_all_tasks_blocked()
        reads.set()
    await sparing(1000)

    assert told == [*range(100), 1000]


@pytest.mark.usefixtures("schemes")
@pytest.mark.parametrize(
    "headers", [{"x-long": "x" * 1_000_000}, {f"x-{number}": "x" * 100 for number in range(9_000)}]
)
async def test_heads_of_requests_are_bounded(lab: Lab, headers: dict[str, str]) -> None:
    async with lab.serving(lab.normal("w", "echo")) as address:
        port = int(address.rpartition(":")[2])
        async with await dial(address) as stream:
            lines = [f"{name}: {value}" for name, value in {"host": f"127.0.0.1:{port}", **headers}.items()]
            with contextlib.suppress(anyio.BrokenResourceError):
                await stream.send("\r\n".join(["GET /healthz HTTP/1.1", *lines, "", ""]).encode())
            answer = b""
            with anyio.fail_after(10), contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                while True:
                    answer += await stream.receive()
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 431")) or not answer


@pytest.mark.parametrize(
    ("uri", "problem"),
    [("x://" + "y" * 9_000, "longer than 8,192 characters"), ("x://\ud83d", "contain half of a character")],
)
async def test_addresses_that_are_watched_are_bounded_and_can_be_written(uri: str, problem: str) -> None:
    def find(_: Any, __: str) -> Any:
        pytest.fail("it is looked for")

    registry: Any = None
    request: Any = SimpleNamespace(params={"uri": uri}, connection=SimpleNamespace(state={}))
    with pytest.raises(MCPError, match=problem):
        await ResourceSubscriptions(registry, find, lambda _: ViewSpec("universal")).subscribe(request)


async def test_cursors_count_as_what_a_server_lists() -> None:
    pages = [{"tools": [], "nextCursor": f"{number}{'x' * 400}"} for number in range(10)]
    session: Any = SimpleNamespace(send=AsyncMock(side_effect=pages), modern=False)
    transport: Any = SimpleNamespace(tail=Tail())
    connection = ServerConnection("far", transport, session, RateLimitedLog(), Settings(max_result=1_000))

    with pytest.raises(UpstreamError, match="lists more than max_result allows"):
        await connection.list_tools()
    assert session.send.await_count < 5


async def test_who_does_not_confirm_subscriptions_is_not_remembered_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truename.gateway.upstream.following.SUBSCRIBE_TIMEOUT", 0.01)
    follower = Follower("far", lambda: None)
    follower._session = cast("ServerSession", SimpleNamespace(modern=True))
    for number in range(5):
        with pytest.raises(MCPError, match="did not confirm"):
            await follower.watch(f"x://{number}")

    assert follower._opening == []


async def test_changes_of_a_resource_are_told_once_more_however_many_come_and_the_slow_are_left_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("truename.gateway.upstream.watching.TELL_TIMEOUT", 0.05)
    told: list[str] = []
    upstream: Any = SimpleNamespace(
        key="far", follower=SimpleNamespace(watch=AsyncMock(), unwatch=lambda _: None), awake=AsyncMock()
    )
    watching = Watching({"far": upstream}, Share(10, 5, 1))

    async def quick() -> None:
        told.append("quick")

    await watching.add(upstream, "x://a", "slow", anyio.sleep_forever, None)
    await watching.add(upstream, "x://a", "quick", quick, None)
    async with anyio.create_task_group() as tasks:
        for number in range(200):
            tasks.start_soon(watching._updated, "far", f"x://a/{number}")

    assert told == ["quick", "quick"]


async def test_the_resources_that_one_user_watches_keep_no_other_out() -> None:
    upstream: Any = SimpleNamespace(
        key="far", follower=SimpleNamespace(watch=AsyncMock(), unwatch=lambda _: None), awake=AsyncMock()
    )
    watching = Watching({"far": upstream}, Share(10, 5, 1))
    for number in range(5):
        await watching.add(upstream, f"x://{number}", "eve's", AsyncMock(), "eve")

    with pytest.raises(MCPError, match="Too many resource"):
        await watching.add(upstream, "x://5", "eve's", AsyncMock(), "eve")
    await watching.add(upstream, "x://5", "ann's", AsyncMock(), "ann")

    watching.remove(upstream, "x://0", "eve's")
    watching.remove(upstream, "x://0", "eve's")
    await watching.add(upstream, "x://5", "eve's", AsyncMock(), "eve")
