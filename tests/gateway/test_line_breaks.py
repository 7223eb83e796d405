"""A line break between the values of a message is no end of the message, to whatever side it is passed on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec
import pytest

from truename.gateway.mcp.messages import encode, parse
from truename.gateway.protocol.envelopes import read_envelope, result_of_call

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio

BREAKS = ("\n", "\r", "\r\n")


async def test_a_line_within_the_arguments_of_a_call_is_no_message_to_a_server_over_stdio(
    lab: Lab, raw: Callable[[str], Any], tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    hidden = {"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": {"name": "delete", "arguments": {}}}
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "read", "arguments": {"a": 1}, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    body = body.replace('{"a": 1}', f'{{"a":\n{json.dumps(hidden)}\n}}')
    headers = {
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "read",
    }

    async with lab.serving(lab.script("j", "journal", str(ran), "read", "delete")) as address, raw(address) as client:
        response = await client.http.post(address + "/mcp", content=body, headers=headers)
        again = await client.result("tools/call", {"name": "read", "arguments": {}})

    assert "error" not in response.json(), response.text
    assert not again.get("isError")
    assert [line.split()[0] for line in ran.read_text().splitlines()] == ["read", "read"]


@pytest.mark.parametrize("line_break", BREAKS)
def test_arguments_and_results_that_came_in_several_lines_are_passed_on_in_one(line_break: str) -> None:
    value = f'{{"a":{line_break}{{"text": "\\n\\r"{line_break}}}{line_break}}}'
    call = f'{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {{"name": "x", "arguments": {value}}}}}'
    _, message = parse(call.encode())
    found = read_envelope(f'{{"jsonrpc": "2.0",{line_break}"id": 1, "result": {{"content": {value}}}}}'.encode())
    assert found is not None

    for written in (encode(message), msgspec.json.encode({"result": result_of_call(found)})):
        assert not {b"\n", b"\r"} & {bytes([one]) for one in written}
        assert b'"\\n\\r"' in written


@pytest.mark.parametrize("line_break", BREAKS)
def test_a_line_break_within_a_text_stays_a_fault_of_the_message(line_break: str) -> None:
    assert read_envelope(f'{{"jsonrpc": "2.0", "id": 1, "result": {{"a": "x{line_break}y"}}}}'.encode()) is None
