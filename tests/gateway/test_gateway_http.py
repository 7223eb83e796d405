"""Who may come in: hosts, origins, tokens, sizes, paths."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest
from mcp import MCPError

from tests.support.tls import dial
from truename.errors import ConfigError
from truename.gateway import listening
from truename.gateway.http.origin_guard import OriginGuard

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost"}, 200),
        ({"host": "[::1]:1234"}, 200),
        ({"host": "evil.example.com"}, 421),
        ({"host": "127.0.0.1.evil.example.com"}, 421),
        ({"host": "localhost:80@evil.example.com"}, 421),
        ({"host": "user@localhost"}, 421),
        ({"host": "0.0.0.0"}, 421),
        ({"host": ""}, 421),
        ({"origin": "http://localhost:3000"}, 200),
        ({"origin": "https://evil.example.com"}, 403),
        ({"origin": "http://localhost.evil.example.com"}, 403),
        ({"origin": "null"}, 403),
        ({"host": "localhost:99x"}, 421),
        ({"host": "localhost/x"}, 421),
        ({"host": "localhost?x"}, 421),
        ({"host": "localhost#x"}, 421),
        ({"origin": "http://localhost/"}, 403),
        ({"origin": "http://localhost?x"}, 403),
        ({"origin": "http://localhost#x"}, 403),
        ({"origin": "http://me@localhost"}, 403),
        ({"origin": "HTTP://localhost"}, 403),
        ({"origin": "file://"}, 403),
    ],
)
async def test_foreign_hosts_and_origins_are_refused(
    lab: Lab, raw: Callable[[str], Any], headers: dict[str, str], status: int
) -> None:
    async with lab.serving(lab.normal("w", "get")) as address, raw(address) as http:
        assert (await http.post("tools/list", {}, headers=headers)).status_code == status
        health = await http.http.get(f"{address}/healthz", headers=headers)
        assert (health.status_code, health.text) == (
            (200, '{"status":"ok"}') if status == 200 else (status, health.text)
        )


async def test_a_token_is_asked_for_where_one_is_set(lab: Lab, raw: Callable[[str], Any]) -> None:
    async with lab.serving(lab.normal("w", "get"), token="right-token") as address, raw(address) as http:
        for value, status in [
            (None, 401),
            ("Bearer wrong", 401),
            ("Bearer right-tokenx", 401),
            ("Basic right-token", 401),
            ("Bearer", 401),
            ("Bearer tökén", 401),
            ("bearer right-token", 200),
            ("Bearer right-token", 200),
        ]:
            headers = {} if value is None else {"authorization": value.encode("latin-1")}
            response = await http.post("tools/list", {}, headers=headers)
            assert (value, response.status_code) == (value, status)
        assert response.request is not None
        assert (await http.post("tools/list", {})).headers["www-authenticate"] == "Bearer"
        assert (await http.http.get(f"{address}/healthz")).status_code == 200


async def test_other_machines_are_let_in_only_with_a_token(lab: Lab, raw: Callable[[str], Any]) -> None:
    async with lab.gateway(lab.normal("w", "get")) as gateway:
        with pytest.raises(ConfigError, match="no authentication is configured") as caught:
            async with listening(gateway, "0.0.0.0"):
                pytest.fail("it listens")
        assert caught.value.key == "token"
    async with lab.gateway(lab.normal("w", "get"), token="t") as gateway, listening(gateway, "0.0.0.0") as address:
        assert address.startswith("http://127.0.0.1:")
        async with raw(address) as http:
            bearer = {"authorization": "Bearer t"}
            assert (await http.post("tools/list", {}, headers=bearer)).status_code == 200
            foreign = {**bearer, "origin": "http://evil.example.com"}
            assert (await http.post("tools/list", {}, headers=foreign)).status_code == 403


async def test_a_port_that_is_taken_is_a_readable_error(lab: Lab) -> None:
    async with lab.gateway(lab.normal("w", "get")) as gateway, listening(gateway) as address:
        with pytest.raises(ConfigError, match="cannot listen"):
            async with listening(gateway, port=int(address.rpartition(":")[2])):
                pytest.fail("it listens")


@pytest.mark.parametrize("declared", [True, False])
async def test_requests_are_bounded(lab: Lab, declared: bool) -> None:
    async with lab.serving(lab.normal("w", "get"), max_body=10_000) as address, httpx2.AsyncClient() as http:

        async def body() -> Any:
            for _ in range(20):
                yield b" " * 1000

        content: Any = b" " * 20_000 if declared else body()
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        assert (await http.post(f"{address}/mcp", content=content, headers=headers)).status_code == 413


async def test_sessions_are_bounded(lab: Lab) -> None:
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
    }
    headers = {"accept": "application/json, text/event-stream"}
    async with lab.serving(lab.normal("w", "get"), max_sessions=2) as address, httpx2.AsyncClient() as http:
        statuses = [(await http.post(f"{address}/mcp", json=hello, headers=headers)).status_code for _ in range(3)]
    assert statuses == [200, 200, 503]


async def test_sessions_are_counted_over_all_paths(lab: Lab) -> None:
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
    }
    headers = {"accept": "application/json, text/event-stream"}
    paths = ("/mcp", "/mcp/for/openai", "/mcp/only/w")
    async with lab.serving(lab.normal("w", "get"), max_sessions=2) as address, httpx2.AsyncClient() as http:
        statuses = [(await http.post(address + path, json=hello, headers=headers)).status_code for path in paths]

    assert statuses == [200, 200, 503]


async def test_subscriptions_are_counted_over_all_paths(lab: Lab, connect: Callable[..., Any]) -> None:
    async with (
        lab.serving(lab.normal("w", "get"), max_sessions=1) as address,
        connect(address + "/mcp", "2026-07-28") as one,
        connect(address + "/mcp/only/w", "2026-07-28") as other,
        one.listen(tools_list_changed=True),
    ):
        with pytest.raises(MCPError, match="Too many subscriptions"):
            async with other.listen(tools_list_changed=True):
                pytest.fail("it is listened to")


@pytest.mark.usefixtures("schemes")
@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"POST /mcp HT",
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nx: ",
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\naccept: */*\r\ncontent-length: 100\r\n\r\n{",
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\nGET /heal",
    ],
)
async def test_requests_that_are_never_finished_are_not_waited_for(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr("truename.gateway.http.web_server.HALF_SENT_SECONDS", 0.2)
    async with lab.serving(lab.normal("w", "get")) as address:
        with anyio.fail_after(4):
            async with await dial(address) as stream:
                await stream.send(sent)
                with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                    while await stream.receive():
                        pass


async def test_a_slow_answer_is_no_unfinished_request(
    lab: Lab, connect: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("truename.gateway.http.web_server.HALF_SENT_SECONDS", 0.05)
    server = lab.normal("w", "sleep", timeout=0.5)
    async with lab.serving(server) as address, connect(address + "/mcp", "2026-07-28") as client:
        result = await client.call_tool("sleep", {})

    assert "did not answer within 0.5 seconds" in str(result.content)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/", "Use /mcp"),
        ("/mcpx", "Use /mcp"),
        ("/mcp/for/curser", "Did you mean 'cursor'"),
        ("/mcp/for/", "Unknown client or provider"),
        ("/mcp/only/wether", "Did you mean 'weather'?"),
        ("/mcp/only/zzz", "Known are: data/base x, weather."),
        ("/mcp/only/%1b%5b31m", "Unknown server '\\\\x1b[31m'"),
    ],
)
async def test_unknown_paths_say_what_there_is(lab: Lab, path: str, said: str) -> None:
    servers = lab.normal("weather", "get"), lab.normal("data/base x", "get")
    async with lab.serving(*servers) as address, httpx2.AsyncClient() as http:
        response = await http.post(address + path, json={})
        assert response.status_code == 404
        assert said in response.text


async def test_awkward_server_keys_have_a_path_of_their_own(lab: Lab, raw: Callable[[str], Any]) -> None:
    async with lab.serving(lab.normal("data/base x", "get")) as address, raw(address) as http:
        for path in ("/mcp/only/data/base%20x", "/mcp/only/data%2Fbase%20x"):
            listed = await http.result("tools/list", {}, path=path)
            assert [tool["name"] for tool in listed["tools"]] == ["get"]


async def test_broken_requests_are_answered_and_end_nothing(lab: Lab, raw: Callable[[str], Any]) -> None:
    async with lab.serving(lab.normal("w", "get")) as address, raw(address) as http:
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        for content in (b"", b"{", b"[]", b"\xff", b"[" * 100_000, b'{"jsonrpc":"2.0","id":1,"method":5}'):
            for version in ({}, {"mcp-protocol-version": "2026-07-28"}):
                response = await http.http.post(f"{address}/mcp", content=content, headers={**headers, **version})
                assert 400 <= response.status_code < 500
        assert (await http.result("tools/list", {}))["tools"]


@pytest.mark.parametrize("name", [b"host", b"origin"])
def test_a_header_that_is_sent_twice_is_refused(name: bytes) -> None:
    headers = [(b"host", b"localhost"), (b"origin", b"http://localhost"), (name, b"localhost")]
    refusal = OriginGuard(loopback=True).refusal({"type": "http", "headers": headers})
    assert refusal is not None
    assert refusal.status_code == 400
