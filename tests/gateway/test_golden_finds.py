"""What the golden run found: small differences from before that nobody had meant."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import anyio
import httpx2
import pytest

from tests.support.gateway_audit import records
from truename.config import Config, Settings
from truename.config.audit import Audit
from truename.gateway import Gateway, listening
from truename.gateway.mcp.messages import parse
from truename.gateway.mcp.methods import announced
from truename.gateway.protocol.envelopes import read_envelope
from truename.gateway.protocol.errors import MCPError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio

STATELESS: Final = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "note",
}
SAID: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def call(**params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "note", "_meta": SAID, **params}}


@pytest.mark.parametrize("text", ['{"a": "🚀"}', "\\ud83d", "🚀 \\", "\\\\ud83d"])
@pytest.mark.parametrize("separators", [(", ", ": "), (",", ":")])
def test_what_looks_like_half_of_a_character_within_a_text_is_none(text: str, separators: tuple[str, str]) -> None:
    result = {"content": [{"type": "text", "text": json.dumps(text)}]}
    message = {"jsonrpc": "2.0", "id": 1, "result": result}
    found = read_envelope(json.dumps(message, ensure_ascii=False, separators=separators).encode())

    assert found is not None
    assert json.loads(bytes(found.result)) == result


def test_a_number_of_more_digits_than_parsers_take_is_an_error_of_the_message() -> None:
    with pytest.raises(MCPError, match="out of range"):
        parse(
            json.dumps(call(arguments={})).replace('"arguments": {}', f'"arguments": {{"n": {"9" * 4_400}}}').encode()
        )
    assert parse(json.dumps(call(arguments={"n": "9" * 4_400})).encode())[0] == "request"


async def test_blanks_behind_a_header_are_no_part_of_it(lab: Lab) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": SAID}}).encode()
    lines = [f"{name}: {value} \t" for name, value in {**STATELESS, "mcp-method": "tools/list"}.items()]
    head = "\r\n".join(("POST /mcp HTTP/1.1", "host: localhost", f"content-length: {len(body)}", *lines, "", ""))
    async with lab.serving(lab.normal("w", "get")) as address:
        url = httpx2.URL(address)
        async with await anyio.connect_tcp(url.host, url.port or 80) as stream:
            await stream.send(head.encode() + body)
            assert (await stream.receive()).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "HEAD"])
async def test_a_method_that_no_session_has_is_not_allowed_without_one_either(lab: Lab, method: str) -> None:
    async with lab.serving(lab.normal("w", "get")) as address, httpx2.AsyncClient() as http:
        response = await http.request(method, f"{address}/mcp")
    assert (response.status_code, response.headers["allow"]) == (405, "GET, POST, DELETE")


@pytest.mark.parametrize(
    ("media_type", "status"),
    [("Application/JSON", 200), ("application/json ; charset=utf-8", 200), ("application/jsonx", 400), ("", 400)],
)
async def test_the_media_type_is_compared_whole_and_without_case(lab: Lab, media_type: str, status: int) -> None:
    headers = {**STATELESS, "content-type": media_type, "mcp-name": "get"}
    async with lab.serving(lab.normal("w", "get")) as address, httpx2.AsyncClient() as http:
        response = await http.post(f"{address}/mcp", json=call(name="get"), headers=headers)
    assert response.status_code == status


async def test_the_audit_log_has_the_arguments_of_a_call_that_is_refused_for_something_else(
    lab: Lab, tmp_path: Path
) -> None:
    place = tmp_path / "audit"
    body = call(arguments={"a": 1}, _meta={**SAID, "progressToken": 1.5})
    server = lab.script("j", "journal", str(tmp_path / "ran"), "note")
    settings = Settings(state="memory", audit=Audit(path=str(place), arguments="redacted"))
    async with (
        Gateway(Config(servers=(server,), settings=settings)) as gateway,
        listening(gateway) as address,
        httpx2.AsyncClient() as http,
    ):
        response = await http.post(f"{address}/mcp", json=body, headers=STATELESS)
    (record,) = records(place, "call")
    assert response.json()["error"]["code"] == -32602
    assert (record["outcome"], record["arguments"]) == ("protocol_error", {"a": 1})


def test_a_gateway_that_relays_log_messages_says_so_in_every_version() -> None:
    assert "logging" in announced({"logging"}.__contains__)
