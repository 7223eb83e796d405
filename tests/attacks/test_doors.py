"""Attacks at the door, and on the way: who asks, for whom, and where servers may lead."""

from __future__ import annotations

from asyncio.selector_events import BaseSelectorEventLoop
from typing import TYPE_CHECKING, Any

import pytest
from starlette.applications import Starlette
from starlette.responses import RedirectResponse
from starlette.routing import Route

from tests.attacks.conftest import Source, call, tool
from tests.attacks.plain import Plain
from tests.gateway.conftest import raw_client
from tests.support.auth_entrance import ACCEPT, HELLO, bearer, known
from tests.support.gateway_addresses import names as service

if TYPE_CHECKING:
    from tests.attacks.conftest import Bench
    from tests.support.gateway_addresses import Service

pytestmark = pytest.mark.anyio
names = service

FOREIGN = [
    ({"host": "evil.example.com"}, 421),
    ({"host": "127.0.0.1.evil.example.com"}, 421),
    ({"origin": "https://evil.example.com"}, 403),
    ({"origin": "null"}, 403),
]


async def test_foreign_hosts_and_origins(bench: Bench) -> None:
    """DNS rebinding: a page of somebody else's asks the gateway of who looks at it."""
    fs = Source("fs", tool("read"))
    async with bench.plain(fs) as http:
        for headers, _ in FOREIGN:
            assert (await http.post("tools/call", {"name": "fs_read"}, headers=headers)).status_code == 200
    fs.called.clear()
    async with bench.here(fs) as http:
        for headers, status in FOREIGN:
            assert (await http.post("tools/call", {"name": "fs_read"}, headers=headers)).status_code == status
    assert fs.called == []


async def test_headers_that_say_something_else_than_the_body(bench: Bench) -> None:
    """Who guards by headers, in front, lets through what the body asks for."""
    fs = Source("fs", tool("read"), tool("delete"))
    said = {"mcp-name": "fs_read"}
    async with bench.plain(fs) as http:
        assert (await http.post("tools/call", {"name": "fs_delete"}, headers=said)).status_code == 200
    assert [one["name"] for one in fs.called] == ["delete"]
    async with bench.here(fs) as http:
        for headers in (said, {"mcp-method": "tools/list"}, {"mcp-name": "=?base64?ZnNfcmVhZA==?="}):
            answer = await http.post("tools/call", {"name": "fs_delete"}, headers=headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020)
    assert len(fs.called) == 1


async def test_a_token_that_is_passed_on(bench: Bench) -> None:
    """Token passthrough: a server that got it could be anybody to others."""
    tokens, access = known("ann")
    fs = Source("fs", tool("read"))
    shown = {**bearer(tokens["ann"]), "cookie": "session=1"}
    async with bench.plain(fs) as http:
        http.http.headers.update(shown)
        assert await call(http, "fs_read") == "fs:read"
    assert {one.get("authorization") for one in fs.heads} == {shown["authorization"]}
    fs.heads.clear()
    async with bench.here(fs, access=access) as http:
        http.http.headers.update(shown)
        assert await call(http, "fs_read") == "fs:read"
    assert fs.heads
    assert not [one for one in fs.heads if {"authorization", "cookie"} & one.keys()]


async def test_the_credential_of_another(bench: Bench) -> None:
    """The confused deputy: one connection for all, logged in by whoever came first."""
    tokens, access = known("ann", "bob")
    fs = Source("fs", tool("read"))
    async with bench.plain(fs) as http:
        for who in ("ann", "bob"):
            http.http.headers.update(bearer(tokens[who]))
            assert await call(http, "fs_read") == "fs:read"
    assert {one.get("authorization") for one in fs.heads} == {f"Bearer {tokens['ann']}"}
    fs.heads.clear()
    async with bench.here(fs, access=access) as http:
        for who in ("ann", "bob"):
            http.http.headers.update(bearer(tokens[who]))
            assert await call(http, "fs_read") == "fs:read"
        http.http.headers.update(bearer("nobody's"))
        assert (await http.post("tools/call", {"name": "fs_read"})).status_code == 401
    assert not [one for one in fs.heads if tokens["ann"] in str(one)]


async def test_a_session_of_another(bench: Bench) -> None:
    """Session hijack: who knows the id is whoever opened it."""
    tokens, access = known("ann", "bob")
    fs = Source("fs", tool("read"))
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
    async with bench.plain(fs) as http:
        await http.post("tools/list", {}, headers={"mcp-session-id": "anns", **bearer(tokens["ann"])})
        headers = {"mcp-session-id": "anns", **ACCEPT, **bearer(tokens["bob"])}
        assert (await http.http.post(f"{http.address}/mcp", json=listing, headers=headers)).status_code == 200
    assert fs.heads[-1]["authorization"] == f"Bearer {tokens['ann']}"
    async with bench.here(fs, access=access) as http:
        opened = await http.http.post(f"{http.address}/mcp", json=HELLO, headers={**ACCEPT, **bearer(tokens["ann"])})
        session = {**ACCEPT, "mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-06-18"}
        told = {}
        for who in ("bob", "ann"):
            headers = {**session, **bearer(tokens[who])}
            told[who] = (await http.http.post(f"{http.address}/mcp", json=listing, headers=headers)).status_code
    assert told == {"bob": 404, "ann": 200}


async def test_a_redirect_to_somewhere_inside(bench: Bench) -> None:
    """SSRF: the server is far, and what it redirects to is near to the gateway only."""
    secrets = Source("far", tool("read"))
    async with bench.upstreams.app(secrets.app) as inside:
        away = Starlette(routes=[Route("/mcp", lambda _: RedirectResponse(f"{inside}/mcp", 307), methods=["POST"])])
        async with bench.upstreams.app(away) as url:
            async with bench.upstreams.app(Plain({"far": f"{url}/mcp"}).app) as address, raw_client(address) as http:
                assert await call(http, "far_read") == "far:read"
            secrets.heads.clear()
            async with bench.lab.gateway(bench.lab.at("far", f"{url}/mcp")) as gateway:
                told = gateway.status().servers[0].error or ""
    assert "another address" in told or "redirect to" in told
    assert secrets.heads == []


async def test_a_name_that_leads_to_a_metadata_service(
    bench: Bench, names: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SSRF by DNS: who owns a name says where it leads."""
    gone: list[str] = []

    async def connect(_: object, __: object, address: tuple[Any, ...]) -> None:
        gone.append(address[0])
        raise ConnectionRefusedError

    names.last = "169.254.169.254"
    url = "http://tools.example:8000/mcp"
    with monkeypatch.context() as patch:
        async with bench.upstreams.app(Plain({"far": url}).app) as address, raw_client(address) as http:
            kept = BaseSelectorEventLoop.sock_connect

            async def judged(loop: Any, sock: Any, where: Any) -> None:
                await (connect if where[0] == names.last else kept)(loop, sock, where)

            patch.setattr(BaseSelectorEventLoop, "sock_connect", judged)
            assert (await http.post("tools/list", {})).status_code == 500
            assert gone == [names.last]
        gone.clear()
        async with bench.lab.gateway(bench.lab.at("far", url)) as gateway:
            told = gateway.status().servers[0].error or ""
    assert "which is a metadata service" in told
    assert gone == []
