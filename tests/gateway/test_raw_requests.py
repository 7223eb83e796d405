"""Raw requests over HTTP, right and wrong, in every version: each is answered as on record.

The record was made by the SDK's server, and changed since where the CHANGELOG says so. Write it anew with
``TRUENAME_WRITE_ANSWERS=1 python -m pytest tests/gateway/test_raw_requests.py``.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import httpx2
import pytest

from tests.support.tls import dial

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.gateway.conftest import Lab

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("schemes")]

RECORD: Final = Path("tests/data/gateway_answers.jsonl")
HEADERS: Final = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
STATELESS: Final = "2026-07-28"
SAID: Final = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
CALLS: Final[tuple[tuple[str, Any], ...]] = (
    ("ping", None),
    ("tools/list", None),
    ("tools/list", {}),
    ("tools/list", {"cursor": "x"}),
    ("tools/list", {"cursor": 5}),
    ("tools/list", {"_meta": {"progressToken": 1}}),
    ("tools/list", {"_meta": 5}),
    ("prompts/list", None),
    ("resources/list", None),
    ("resources/templates/list", None),
    ("tools/call", {"name": "get"}),
    ("tools/call", {"name": "nope"}),
    ("tools/call", {}),
    ("tools/call", {"name": 5}),
    ("tools/call", {"name": "x", "arguments": []}),
    ("tools/call", None),
    ("nope", None),
    ("server/discover", {}),
    ("subscriptions/listen", {}),
    ("resources/read", {}),
    ("resources/read", {"uri": "x:y"}),
    ("prompts/get", {"name": "x"}),
    ("logging/setLevel", {"level": "info"}),
    ("logging/setLevel", {"level": "loud"}),
    ("completion/complete", {}),
    ("initialize", {}),
    ("tasks/list", {}),
    ("tasks/get", {"taskId": "x"}),
    ("resources/subscribe", {"uri": "x:y"}),
    ("resources/unsubscribe", {"uri": "x:y"}),
)
IDS: Final = ("a", 7.5, None, True, [1], 2**70, -1)
RAW: Final = (
    b"",
    b"{",
    b"[]",
    b"[{}]",
    b"5",
    b'"x"',
    b"null",
    b"\xff\xfe",
    b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
    b'{"id":1,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1}',
    b'{"jsonrpc":"2.0","id":1,"method":5}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","x":1}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
    b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}',
    b'{"jsonrpc":"2.0","id":1,"error":{}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\ud83d"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":NaN}}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping"} x',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","id":2}',
    b"[" * 5_000,
    b'{"jsonrpc":"2.0","method":"notifications/nope"}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
)
ODD_HEADERS: Final[tuple[dict[str, str | None], ...]] = (
    {"accept": "application/json"},
    {"accept": None},
    {"accept": "*/*"},
    {"accept": "text/*, application/*"},
    {"content-type": "text/plain"},
    {"content-type": None},
    {"content-type": "application/json; charset=utf-8"},
    {"mcp-session-id": "nope"},
    {"mcp-session-id": None},
    {"mcp-protocol-version": "2025-06-18"},
    {"mcp-protocol-version": "nope"},
)
WRONG: Final[tuple[tuple[str, dict[str, str | None], Any], ...]] = (
    ("no meta", {}, None),
    ("meta that is no object", {}, 5),
    ("meta without a version", {}, {}),
    ("another version in the body", {}, {**SAID, "io.modelcontextprotocol/protocolVersion": "x"}),
    (
        "a version that nobody knows",
        {"mcp-protocol-version": "2030-01-01"},
        {**SAID, "io.modelcontextprotocol/protocolVersion": "2030-01-01"},
    ),
    ("another method in the header", {"mcp-method": "ping"}, SAID),
    ("no method in the header", {"mcp-method": None}, SAID),
    ("another name in the header", {"mcp-name": "other"}, SAID),
    ("only JSON accepted", {"accept": "application/json"}, SAID),
    ("nothing accepted", {"accept": None}, SAID),
    ("text", {"content-type": "text/plain"}, SAID),
    ("a session", {"mcp-session-id": "x"}, SAID),
)


class Asking:
    """Sends raw requests and notes the answers."""

    def __init__(self, http: httpx2.AsyncClient, url: str) -> None:
        self._http = http
        self._url = url
        self.answers: list[list[Any]] = []

    async def send(
        self, about: str, body: object, headers: dict[str, str | None] | None = None, method: str = "POST"
    ) -> httpx2.Response:
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        sent = {name: value for name, value in {**HEADERS, **(headers or {})}.items() if value is not None}
        response = await self._http.request(method, self._url, content=content, headers=sent)
        has_session = "mcp-session-id" in response.headers
        told = [response.headers.get("allow"), has_session, *_messages(response)]
        self.answers.append([about, response.status_code, *told])
        return response


def _messages(response: httpx2.Response) -> Iterator[Any]:
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        lines = (line.removeprefix("data:").strip() for line in response.text.splitlines() if line.startswith("data:"))
        yield from (json.loads(line) for line in lines if line)
    elif response.headers.get("content-type") == "application/json" and response.text:
        yield response.json()
    elif response.text:
        yield response.text


def _request(method: str, params: Any, id: Any = 2) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, **({} if params is None else {"params": params})}


async def _session(asking: Asking) -> None:
    for version in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "1999-01-01"):
        offered = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        response = await asking.send(f"initialize {version}", _request("initialize", offered))
    session: dict[str, str | None] = {"mcp-session-id": response.headers["mcp-session-id"]}
    await asking.send("initialized", {"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
    for method, params in CALLS:
        await asking.send(f"session: {method} {json.dumps(params)}", _request(method, params), session)
    for id in IDS:
        await asking.send(f"session: id {id!r}", _request("ping", None, id), session)
    for raw in RAW:
        await asking.send(f"session: {raw[:80]!r}", raw, session)
    for odd in ODD_HEADERS:
        await asking.send(f"session: headers {odd}", _request("ping", None), {**session, **odd})
    for verb in ("PUT", "HEAD", "OPTIONS"):
        await asking.send(f"session: {verb}", None, session, verb)
    await asking.send("GET without events", None, {**session, "accept": "application/json"}, "GET")
    await asking.send("GET without a session", None, {}, "GET")
    await asking.send("GET after an unknown event", None, {**session, "last-event-id": "x"}, "GET")
    await asking.send("DELETE without a session", None, {}, "DELETE")
    await asking.send("a list without a session", _request("tools/list", None))
    await asking.send("a handshake without parameters", _request("initialize", {}))
    await asking.send("DELETE", None, session, "DELETE")
    await asking.send("after DELETE", _request("ping", None), session)


async def _stateless(asking: Asking) -> None:
    async def send(about: str, method: str, params: Any, headers: dict[str, str | None], meta: Any) -> None:
        params = dict(params or {})
        name = params.get("name") or params.get("uri")
        own = {"mcp-protocol-version": STATELESS, "mcp-method": method}
        own |= {"mcp-name": name} if isinstance(name, str) else {}
        params |= {} if meta is None else {"_meta": meta}
        await asking.send(about, _request(method, params), {**own, **headers})

    for method, params in CALLS:
        await send(f"stateless: {method} {json.dumps(params)}", method, params, {}, SAID)
    for about, headers, meta in WRONG:
        await send(f"stateless: {about}", "tools/call", {"name": "get"}, headers, meta)
    await send("stateless: listen for JSON", "subscriptions/listen", {}, {"accept": "application/json"}, SAID)
    for raw in RAW:
        await asking.send(f"stateless: {raw[:80]!r}", raw, {"mcp-protocol-version": STATELESS, "mcp-method": "ping"})
    for verb in ("GET", "DELETE", "PUT"):
        await asking.send(f"stateless: {verb}", None, {"mcp-protocol-version": STATELESS}, verb)


async def test_raw_requests_are_answered_as_on_record(lab: Lab) -> None:
    async with lab.serving(lab.normal("w", "get", "set")) as address, httpx2.AsyncClient(timeout=10) as http:
        asking = Asking(http, f"{address}/mcp")
        await _session(asking)
        await _stateless(asking)
    if os.environ.get("TRUENAME_WRITE_ANSWERS"):
        RECORD.write_text("".join(json.dumps(answer, ensure_ascii=False) + "\n" for answer in asking.answers))
    expected = [json.loads(line) for line in RECORD.read_text().splitlines()]
    assert [answer[0] for answer in asking.answers] == [answer[0] for answer in expected]
    differing = [pair for pair in zip(asking.answers, expected, strict=True) if pair[0] != pair[1]]
    assert differing == []


async def _exchange(address: str, request: bytes) -> bytes:
    async with await dial(address) as stream:
        with suppress(anyio.BrokenResourceError):
            await stream.send(request)
        answer = b""
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError), anyio.move_on_after(10):
            while b"\r\n\r\n" not in answer:
                answer += await stream.receive()
        return answer


CHUNKED: Final = (
    b"POST /mcp HTTP/1.1\r\nhost: %s\r\ncontent-type: application/json\r\n"
    b"accept: application/json, text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n%s\r\n"
)


async def test_what_trailers_say_is_not_part_of_the_head(lab: Lab) -> None:
    asked = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    body = json.dumps(_request("initialize", asked)).encode()
    async with lab.serving(lab.normal("w", "get")) as address:
        host = httpx2.URL(address).netloc
        sent = CHUNKED % (host, len(body), body, b"origin: http://evil.example\r\nmcp-session-id: nope\r\n")
        assert (await _exchange(address, sent)).startswith(b"HTTP/1.1 200 ")
        endless = b"x: y\r\n" * 200_000
        assert (await _exchange(address, CHUNKED % (host, len(body), body, endless))).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("target", [b"http://a", b"http://a:99999/"])
async def test_a_target_that_is_no_address_is_refused_without_a_log_line(
    lab: Lab, target: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with lab.serving(lab.normal("w", "get")) as address:
        answer = await _exchange(address, b"GET %s HTTP/1.1\r\nhost: a\r\n\r\n" % target)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert [record for record in caplog.records if record.name == "asyncio"] == []
