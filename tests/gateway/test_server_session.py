"""Our session with servers: what it agrees on, sends and takes is what the SDK's client does; results stay bytes."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
import pytest
from mcp import MCPError as SdkError
from mcp.client.client import Client
from mcp.server.mcpserver import MCPServer
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from truename.config import ServerConfig, Settings
from truename.gateway.elicitation.router import ElicitationRouter
from truename.gateway.protocol.errors import MCPError
from truename.gateway.rate_limited_log import RateLimitedLog
from truename.gateway.upstream.outside import Outside
from truename.gateway.upstream.session import Notification, ServerSession
from truename.gateway.upstream.transport import TransportError
from truename.gateway.upstream.transports.http import open_http

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from tests.gateway.conftest import Upstreams

pytestmark = pytest.mark.anyio

IDENTITY = {"name": "t", "version": "1"}


async def _pass_over(_: Notification) -> None:
    pass


@asynccontextmanager
async def session_with(url: str, *, probe: bool) -> AsyncIterator[ServerSession]:
    server = ServerConfig(key="far", url=url)
    async with (
        open_http(server, Settings(), RateLimitedLog(), Outside()) as transport,
        ServerSession.over(transport, IDENTITY, _pass_over, ElicitationRouter()) as session,
    ):
        await session.negotiate(probe=probe)
        yield session


def sdk_server() -> MCPServer:
    server = MCPServer("far", instructions="Be kind.")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool()
    def fail() -> str:
        """Fail."""
        text = "it went wrong"
        raise ValueError(text)

    @server.resource("note://a")
    def note() -> str:
        """A note."""
        return "Größe"

    @server.prompt()
    def ask(what: str) -> str:
        """Ask."""
        return f"What is {what}?"

    return server


REQUESTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("tools/list", {}),
    ("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}),
    ("tools/call", {"name": "fail", "arguments": {}}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "note://a"}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "ask", "arguments": {"what": "this"}}),
)


@pytest.mark.parametrize(("mode", "probe"), [("auto", True), ("legacy", False)])
async def test_with_the_sdks_server_our_session_agrees_and_hears_what_the_sdks_client_does(
    mode: Any, probe: bool, upstreams: Upstreams
) -> None:
    async with upstreams.app(sdk_server().streamable_http_app()) as address:
        url = f"{address}/mcp"
        async with session_with(url, probe=probe) as ours, Client(url, mode=mode) as theirs:
            assert ours.version == theirs.session.protocol_version
            capabilities = theirs.session.server_capabilities
            assert capabilities is not None
            said = capabilities.model_dump(by_alias=True, mode="json", exclude_none=True)
            assert {kind: ours.offers(kind) for kind in ("tools", "prompts", "resources", "logging")} == {
                kind: kind in said for kind in ("tools", "prompts", "resources", "logging")
            }
            assert ours.instructions == theirs.session.instructions == "Be kind."
            for method, params in REQUESTS:
                found = whole(await ours.send(method, params))
                # The SDK's client reads into models; its dispatcher has what came.
                sent = {**params, **({"_meta": _stamp(ours)} if ours.modern else {})}
                expected = await theirs.session._dispatcher.send_raw_request(
                    method, sent, {"headers": _headers(ours, method, params)}
                )
                assert found == expected, method
            with pytest.raises(MCPError) as refused:
                await ours.send("tools/nothing", {})
            assert refused.value.code == -32601


def whole(found: dict[str, Any]) -> dict[str, Any]:
    return {name: msgspec.json.decode(one) if isinstance(one, msgspec.Raw) else one for name, one in found.items()}


def _stamp(session: ServerSession) -> dict[str, Any]:
    return {
        "io.modelcontextprotocol/protocolVersion": session.version,
        "io.modelcontextprotocol/clientInfo": IDENTITY,
        "io.modelcontextprotocol/clientCapabilities": {},
    }


def _headers(session: ServerSession, method: str, params: dict[str, Any]) -> dict[str, str]:
    headers = {"mcp-protocol-version": session.version}
    if session.modern:
        headers |= {"mcp-method": method}
        if name := params.get("name", params.get("uri")):
            headers |= {"mcp-name": name}
    return headers


class Recorded:
    """A server that answers as it was recorded: by method, a status and a body, in which ``@ID@`` is the request's id.

    It keeps what was asked.
    """

    def __init__(self, **answers: tuple[int, str]) -> None:
        self.answers = {name.replace("_", "/"): answer for name, answer in answers.items()}
        self.asked: list[tuple[str, dict[str, Any]]] = []

    @property
    def app(self) -> ASGIApp:
        return Starlette(routes=[Route("/mcp", self._answer, methods=["POST", "GET", "DELETE"])])

    async def _answer(self, request: Request) -> Response:
        if request.method != "POST":
            return Response(status_code=405)
        message = json.loads(await request.body())
        self.asked.append((message["method"], dict(request.headers)))
        if "id" not in message:
            return Response(status_code=202)
        if message["method"] not in self.answers:
            error = {"code": -32601, "message": "Method not found"}
            return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "error": error})
        status, text = self.answers[message["method"]]
        body = text.replace("@ID@", json.dumps(message["id"]))
        return Response(body, status, media_type="application/json")


def result(**said: Any) -> str:
    return '{"jsonrpc":"2.0","id":@ID@,"result":' + json.dumps(said) + "}"


def error(code: int, **data: Any) -> str:
    said = json.dumps({"code": code, "message": "no", **({"data": data} if data else {})})
    return '{"jsonrpc":"2.0","id":@ID@,"error":' + said + "}"


def greeting(version: str) -> tuple[int, str]:
    server = {"name": "x", "version": "1"}
    return 200, result(protocolVersion=version, capabilities={"tools": {}}, serverInfo=server)


MODERN = (200, result(supportedVersions=["2026-07-28"], capabilities={}))
# By what is peculiar about it, how a server meets the two ways to greet it.
GREETINGS: dict[str, dict[str, tuple[int, str]]] = {
    "modern": {"server_discover": MODERN},
    "no discover": {"initialize": greeting("2025-06-18")},
    "the oldest": {"initialize": greeting("2024-11-05")},
    "a version of nobody": {"initialize": greeting("2020-01-01")},
    "both": {"server_discover": MODERN, "initialize": greeting("2025-11-25")},
    "discover without capabilities": {
        "server_discover": (200, result(supportedVersions=["2026-07-28"])),
        "initialize": greeting("2025-11-25"),
    },
    "discover of old versions": {
        "server_discover": (200, result(supportedVersions=["2025-11-25"], capabilities={})),
        "initialize": greeting("2025-11-25"),
    },
    "refused for the same version": {
        "server_discover": (400, error(-32022, supported=["2026-07-28"], requested="2026-07-28")),
        "initialize": greeting("2025-11-25"),
    },
    "refused for older versions": {
        "server_discover": (400, error(-32022, supported=["2025-11-25"], requested="2026-07-28")),
        "initialize": greeting("2025-11-25"),
    },
    "refused for versions of nobody": {
        "server_discover": (400, error(-32022, supported=["2030-01-01"], requested="2026-07-28")),
        "initialize": greeting("2025-11-25"),
    },
    "refused without a word": {"server_discover": (400, ""), "initialize": greeting("2025-11-25")},
    "a greeting that is none": {"initialize": (200, result(protocolVersion=5))},
    "a greeting without a name": {"initialize": (200, result(protocolVersion="2025-11-25", capabilities={}))},
    "an error": {"initialize": (200, error(-32603))},
}


@pytest.mark.parametrize("what", GREETINGS)
async def test_a_server_is_greeted_as_the_sdks_client_greets_it(what: str, upstreams: Upstreams) -> None:
    ours, theirs = Recorded(**GREETINGS[what]), Recorded(**GREETINGS[what])
    async with upstreams.app(ours.app) as url:
        try:
            async with session_with(f"{url}/mcp", probe=True) as session:
                version = session.version
        except (MCPError, ValueError) as failed:
            version = "none" if not isinstance(failed, MCPError) else str(failed.code)
    async with upstreams.app(theirs.app) as url:
        expected = await _agreed_by_the_sdk(f"{url}/mcp")
    assert version == expected
    assert [method for method, _ in ours.asked] == [method for method, _ in theirs.asked]
    for (method, headers), (_, known) in zip(ours.asked, theirs.asked, strict=True):
        assert headers.get("mcp-protocol-version") == known.get("mcp-protocol-version"), method
        assert headers.get("mcp-method") == known.get("mcp-method"), method


async def _agreed_by_the_sdk(url: str) -> str:
    try:
        async with Client(url, mode="auto") as client:
            return str(client.session.protocol_version)
    except BaseExceptionGroup as group:
        failed = group.exceptions[0]
        while isinstance(failed, BaseExceptionGroup):
            failed = failed.exceptions[0]
    except (MCPError, RuntimeError, ValueError, SdkError) as error:
        failed = error
    return str(getattr(failed, "code", "none"))


async def _asked(upstreams: Upstreams, status: int, text: str, method: str = "tools/call") -> Any:
    server = Recorded(initialize=greeting("2025-11-25"), **{method.replace("/", "_"): (status, text)})
    async with upstreams.app(server.app) as url, session_with(f"{url}/mcp", probe=False) as session:
        try:
            return await session.send(method, {"name": "get"}, deepest=190)
        except (MCPError, TransportError) as failed:
            return failed


async def test_what_is_in_a_result_passes_as_the_bytes_that_came(upstreams: Upstreams) -> None:
    text = '{"jsonrpc":"2.0","id":@ID@,"result":{"content": [ {"n":1.0e2, "a" : "\\u00e4\\/"} ],"isError":false}}'
    found = await _asked(upstreams, 200, text)
    assert bytes(found["content"]) == b'[ {"n":1.0e2, "a" : "\\u00e4\\/"} ]'
    assert found["isError"] is False


async def test_a_result_that_two_readers_may_read_in_two_ways_is_refused(upstreams: Upstreams) -> None:
    text = '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[],"isError":false,"i\\u0073Error":true}}'
    found = await _asked(upstreams, 200, text)
    assert isinstance(found, TransportError)
    assert "'isError' occurs twice" in found.detail


@pytest.mark.parametrize("key", ["dev.truename/error", "dev\\u002etruename/error", "dev.truename\\/error"])
@pytest.mark.parametrize("method", ["tools/call", "prompts/get"])
async def test_no_server_says_what_only_the_gateway_may_say(key: str, method: str, upstreams: Upstreams) -> None:
    text = '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[],"_meta":{"' + key + '":"x","a/b":1}}}'
    found = await _asked(upstreams, 200, text, method)
    assert found["_meta"] == {"a/b": 1}


@pytest.mark.parametrize("method", ["tools/call", "prompts/get"])
async def test_a_result_that_is_nested_too_deeply_is_refused(method: str, upstreams: Upstreams) -> None:
    text = '{"jsonrpc":"2.0","id":@ID@,"result":{"content":' + "[" * 200 + "]" * 200 + "}}"
    found = await _asked(upstreams, 200, text, method)
    assert isinstance(found, TransportError)
    assert found.kind == "too_deep"


@pytest.mark.parametrize("status", [200, 400, 404, 500])
@pytest.mark.parametrize("id", ["999", '"@ID@"', "[1]"])
async def test_an_error_for_another_request_is_not_taken_for_this_ones(
    status: int, id: str, upstreams: Upstreams
) -> None:
    text = '{"jsonrpc":"2.0","id":' + id + ',"error":{"code":-32602,"message":"stolen"}}'
    found = await _asked(upstreams, status, text)
    assert isinstance(found, TransportError | MCPError)
    assert "stolen" not in str(found)


async def test_an_error_whose_request_could_not_be_read_is_this_ones(upstreams: Upstreams) -> None:
    text = '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"unread"}}'
    found = await _asked(upstreams, 400, text)
    assert isinstance(found, MCPError)
    assert (found.code, found.message) == (-32700, "unread")


async def test_arguments_pass_as_the_bytes_that_are_given(upstreams: Upstreams) -> None:
    got: list[bytes] = []

    class Keeping(Recorded):
        async def _answer(self, request: Request) -> Response:
            got.append(await request.body())
            return await super()._answer(request)

    server = Keeping(initialize=greeting("2025-11-25"), tools_call=(200, result(content=[])))
    async with upstreams.app(server.app) as url, session_with(f"{url}/mcp", probe=False) as session:
        arguments = msgspec.Raw(b'{"n": 1.0e2, "big": 123456789012345678901234567890}')
        await session.send("tools/call", {"name": "get", "arguments": arguments})
    assert b'"arguments":{"n": 1.0e2, "big": 123456789012345678901234567890}' in next(
        body for body in got if b"tools/call" in body
    )


async def test_a_question_without_an_end_holds_no_session_open(upstreams: Upstreams) -> None:
    class Silent(Recorded):
        async def _answer(self, request: Request) -> Response:
            if b"tools/call" in await request.body():
                await anyio.sleep_forever()
            return await super()._answer(request)

    server = Silent(initialize=greeting("2025-11-25"))
    ended: list[str] = []

    async def call(session: ServerSession) -> None:
        with pytest.raises(TransportError) as lost:
            await session.send("tools/call", {"name": "get"})
        ended.append(lost.value.kind)

    async with (
        upstreams.app(server.app) as url,
        anyio.create_task_group() as tasks,
        session_with(f"{url}/mcp", probe=False) as session,
    ):
        tasks.start_soon(call, session)
        await anyio.wait_all_tasks_blocked()
    assert ended == ["lost"]
