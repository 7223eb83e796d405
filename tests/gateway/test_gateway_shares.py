"""One principal, one address keeps nobody else out: shares of sessions, connections, requests and unread answers."""

from __future__ import annotations

import contextlib
import json
import socket
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import httpx2
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.support.gateway_bounds import HELLO, JSON, _call
from tests.support.gateway_shares import people
from tests.support.tls import trusting
from truename.auth.authentication_setup import http_authentication
from truename.config import Config, Settings
from truename.gateway.gateway import Gateway
from truename.gateway.http.app import HttpApp
from truename.gateway.http.connection_limits import ConnectionLimits, Holder
from truename.gateway.http.origin_guard import OriginGuard
from truename.gateway.quota import Quota, Share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.gateway.conftest import Lab

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

TOTAL, EACH, RESERVED = 10, 5, 2
PEOPLE = st.sampled_from("abcde")


class Places(RuleBasedStateMachine):
    """Principals take and leave places in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.room = Quota(Share(TOTAL, EACH, RESERVED))
        self.held: dict[str, list[Any]] = {}

    @property
    def taken(self) -> int:
        return sum(map(len, self.held.values()))

    @rule(who=PEOPLE)
    def take(self, who: str) -> None:
        before = {name for name, places in self.held.items() if places}
        place = self.room.place(who)
        if place.__enter__():
            self.held.setdefault(who, []).append(place)
            return
        place.__exit__(None, None, None)
        # Nothing that one principal does, and nothing that all do while few have any, keeps the next one out.
        assert who in before or len(before) >= RESERVED
        assert who in before or len(before) > 1

    @precondition(lambda self: self.taken)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        who = data.draw(st.sampled_from(sorted(name for name, places in self.held.items() if places)))
        self.held[who].pop().__exit__(None, None, None)

    @invariant()
    def bounds_hold(self) -> None:
        assert self.room.taken == self.taken <= TOTAL
        assert all(len(places) <= EACH for places in self.held.values())


TestPlaces = Places.TestCase


class Fake:
    """A connection that does what a test says."""

    def __init__(self, address: str, port: int) -> None:
        self.peer = (address, port)
        self.is_waiting = True
        self.unread = 0
        self.is_dropped = False

    def drop(self) -> None:
        self.is_dropped = True

    async def drained(self) -> bool:
        return not self.is_dropped

    def on_disconnect(self, then: Callable[[], None]) -> Callable[[], None]:
        return then


class Connections(RuleBasedStateMachine):
    """Clients connect, say who they are, are answered, do not read, and go, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.limits = ConnectionLimits(Share(TOTAL, EACH, RESERVED), Share(100, 50, 10), shared=True)
        self.open: list[Fake] = []
        self.who: dict[Fake, str] = {}
        self.port = 0

    def here(self) -> list[Fake]:
        self.open = [one for one in self.open if not one.is_dropped]
        return self.open

    def one(self, data: st.DataObject) -> Fake:
        return data.draw(st.sampled_from(self.here()))

    @rule(address=st.sampled_from(["192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"]))
    def connect(self, address: str) -> None:
        before = self.here()
        own = [one for one in before if one not in self.who and Holder.at(one.peer[0]) == Holder.at(address)]
        self.port += 1
        new = Fake(address, self.port)
        self.open.append(new)
        self.limits.opened(new)
        # Whatever others do, who has no connection gets one, unless all of those nobody knows are being answered.
        assert not new.is_dropped or own or not any(one.is_waiting and one not in self.who for one in before)

    @precondition(lambda self: self.here())
    @rule(data=st.data(), who=PEOPLE)
    def identify(self, data: st.DataObject, who: str) -> None:
        one = self.one(data)
        own = [other for other in self.here() if self.who.get(other) == who and other is not one]
        busy = [other for other in own if not other.is_waiting]
        if self.limits.identified(one, who):
            self.who[one] = who
        else:
            assert len(busy) >= EACH

    @precondition(lambda self: self.here())
    @rule(data=st.data(), is_waiting=st.booleans())
    def answer(self, data: st.DataObject, is_waiting: bool) -> None:
        self.one(data).is_waiting = is_waiting

    @precondition(lambda self: self.here())
    @rule(data=st.data(), unread=st.integers(0, 40))
    def write(self, data: st.DataObject, unread: int) -> None:
        one = self.one(data)
        one.unread = unread
        self.limits.wrote(one)
        # Who has just been given something within all bounds is not cut off for others.
        assert not one.is_dropped

    @precondition(lambda self: self.here())
    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        one = self.one(data)
        self.open.remove(one)
        self.limits.closed(one)

    @invariant()
    def bounds_hold(self) -> None:
        here = self.here()
        assert len(here) <= TOTAL
        assert sum(one not in self.who for one in here) <= TOTAL - RESERVED
        for who in {self.who.get(one) for one in here} - {None}:
            assert sum(self.who.get(one) == who for one in here) <= EACH
        assert sum(one.unread for one in here) <= 100

    def teardown(self) -> None:
        for one in self.open:
            self.limits.closed(one)
        assert len(self.limits) == 0


TestConnections = Connections.TestCase


async def test_one_users_sessions_keep_no_other_out(lab: Lab) -> None:
    access, headers = people("ann", "ben", "eve")
    async with (
        lab.serving(lab.normal("w", "get"), access=access, max_sessions=10) as address,
        httpx2.AsyncClient(timeout=60) as http,
    ):

        async def begin(who: str, path: str = "/mcp") -> int:
            return (await http.post(address + path, json=HELLO, headers={**JSON, **headers[who]})).status_code

        eve = [await begin("eve", path) for path in ("/mcp", "/mcp/for/openai") for _ in range(4)]
        ben = [await begin("ben") for _ in range(6)]
        ann = [await begin("ann") for _ in range(2)]

    assert eve == [200] * 5 + [503] * 3
    assert ben == [200] * 4 + [503] * 2
    assert ann == [200, 503]


async def test_one_users_paths_keep_no_other_out(lab: Lab) -> None:
    access, headers = people("ann", "eve")
    clients = ("openai", "cursor", "claude-code", "codex", "windsurf", "gemini-cli")
    async with (
        lab.serving(lab.normal("w", "get"), access=access, max_views=4) as address,
        httpx2.AsyncClient(timeout=60) as http,
    ):

        async def begin(who: str, path: str) -> int:
            return (await http.post(address + path, json=HELLO, headers={**JSON, **headers[who]})).status_code

        eve = [await begin("eve", f"/mcp/for/{client}") for client in clients]
        ann = [await begin("ann", path) for path in ("/mcp", f"/mcp/for/{clients[-1]}")]

    assert eve == [200] * 2 + [503] * 4
    assert ann == [200] * 2


@contextlib.contextmanager
def _sockets(address: str, count: int, sent: bytes) -> Iterator[list[socket.socket]]:
    scheme, _, place = address.partition("://")
    host, _, port = place.rpartition(":")
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(count):
            one = stack.enter_context(socket.socket())
            # What the system keeps for a client that does not read is none of the gateway's.
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            one.settimeout(60)
            one.connect((host, int(port)))
            if scheme == "https":
                one = stack.enter_context(trusting().wrap_socket(one, server_hostname=host))
            one.sendall(sent)
            found.append(one)
        yield found


HALF = [
    b"",
    b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nx: ",
    b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n{",
]


@pytest.mark.usefixtures("schemes")
@pytest.mark.parametrize("sent", HALF)
@pytest.mark.parametrize("asks", [False, True])
async def test_requests_that_are_half_sent_keep_nobody_out(lab: Lab, sent: bytes, asks: bool) -> None:
    access, headers = people("ann")
    settings: dict[str, Any] = {"access": access} if asks else {}
    who = headers["ann"] if asks else {}
    async with lab.serving(lab.normal("w", "echo"), max_sessions=1, **settings) as address:

        def flood() -> list[int]:
            with _sockets(address, 200, sent), httpx2.Client(timeout=60) as http:
                return [
                    http.post(f"{address}/mcp", content=_call("{}"), headers={**_modern(), **who}).status_code
                    for _ in range(3)
                ]

        with anyio.fail_after(60):
            assert await anyio.to_thread.run_sync(flood) == [200] * 3


def _modern() -> dict[str, str]:
    return {**JSON, "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "w_echo"}


@pytest.mark.usefixtures("schemes")
async def test_one_users_large_requests_keep_no_other_out(lab: Lab) -> None:
    access, headers = people("ann", "eve")
    size = 10_000
    head = f"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: {size}\r\n".encode()
    head += f"authorization: {headers['eve']['authorization']}\r\ncontent-type: application/json\r\n\r\n{{".encode()
    bounds = {"max_body": size, "max_incoming": 3 * size, "max_sessions": 100}
    async with lab.serving(lab.normal("w", "echo"), access=access, **bounds) as address:

        def flood() -> list[int]:
            with _sockets(address, 8, head), httpx2.Client(timeout=60) as http:
                return [
                    http.post(
                        f"{address}/mcp", content=_call("{}").ljust(size - 100), headers={**_modern(), **headers[who]}
                    ).status_code
                    for who in ("eve", "ann")
                ]

        with anyio.fail_after(60):
            assert await anyio.to_thread.run_sync(flood) == [503, 200]


@pytest.mark.usefixtures("schemes")
async def test_answers_that_nobody_reads_are_bounded_in_sum_and_whoever_does_not_read_is_named(
    lab: Lab, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    access, headers = people("ann", "eve")
    kept: list[int] = []
    plain = ConnectionLimits.wrote

    def wrote(self: ConnectionLimits, connection: Any) -> None:
        plain(self, connection)
        kept.append(sum(one.unread for one in self._holders))

    monkeypatch.setattr(ConnectionLimits, "wrote", wrote)
    size, most = 8_000_000, 40_000_000
    head = "".join(f"{name}: {value}\r\n" for name, value in {**_modern(), **headers["eve"]}.items())
    body = _call(json.dumps({"size": size})).replace("w_echo", "w_big")
    head = f"POST /mcp HTTP/1.1\r\nhost: localhost\r\n{head}content-length: {len(body)}\r\n\r\n"
    sent = head.replace("w_echo", "w_big").encode() + body.encode()
    async with lab.serving(lab.normal("w", "big"), access=access, max_unread=most) as address:
        with contextlib.ExitStack() as stack:
            # In a thread: a handshake needs both sides.
            clients = await anyio.to_thread.run_sync(stack.enter_context, _sockets(address, 8, sent))
            with anyio.fail_after(60):
                while not any("does not read" in one.message for one in caplog.records):
                    await anyio.sleep(0.01)

                def ask() -> str:
                    asked = {**_modern(), "mcp-name": "w_big", **headers["ann"]}
                    with httpx2.Client(timeout=60) as http:
                        return http.post(f"{address}/mcp", content=body, headers=asked).text

                assert len(await anyio.to_thread.run_sync(ask)) > size
            assert len(clients) == 8

    assert max(kept) < most // 2 + 2 * size
    assert all("'eve' at 127.0.0.1" in one.message for one in caplog.records if "does not read" in one.message)
    found = next(one.message for one in caplog.records if "does not read" in one.message)
    text = "The bytes pending for one principal exceed the 20,000,000 that principal_share of max_unread allows."
    assert text in found


@pytest.mark.parametrize("port", [1, 2])
async def test_a_request_of_a_client_that_went_instead_of_reading_is_not_answered(tmp_path: Path, port: int) -> None:
    class Gone(Fake):
        async def drained(self) -> bool:
            return False

    sent = list[Any]()

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request"}

    config = Config(path=tmp_path / "truename.toml", settings=Settings(state=str(tmp_path / "state.db")))
    limits = ConnectionLimits(Share(9, 9, 1), Share(9, 9, 1), shared=True)
    limits.opened(Gone("127.0.0.1", 1))
    limits.opened(Fake("127.0.0.1", 2))
    async with http_authentication(config, "http://127.0.0.1:9") as front:
        app = HttpApp(Gateway(config), OriginGuard.of(config.settings, "127.0.0.1"), front, limits)
        scope = {"type": "http", "method": "GET", "path": "/healthz", "headers": [(b"host", b"127.0.0.1:9")]}
        await app({**scope, "client": ("127.0.0.1", port)}, receive, send)

    assert bool(sent) is (port == 2)
