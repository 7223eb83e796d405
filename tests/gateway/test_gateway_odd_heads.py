"""Servers whose answers over HTTP have heads that no library would write: their calls end, with an answer."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from tests.fuzz.house import Hostile, upstream
from tests.gateway.conftest import raw_client

if TYPE_CHECKING:
    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio

BODY = b'{"jsonrpc":"2.0","id":@ID@,"result":{"content":[{"type":"text","text":"x"}]}}'
HEADS = {
    "letters that are no ASCII": b"x-a: \xdb\x20\xff",
    "a session of no ASCII": b"mcp-session-id: \xe5\xa4\xa9",
}


@pytest.mark.parametrize("what", HEADS)
async def test_a_call_is_answered_whatever_the_head_says(lab: Lab, caplog: pytest.LogCaptureFixture, what: str) -> None:
    caplog.set_level(logging.ERROR)
    lines = (b"HTTP/1.1 200 OK", b"content-type: application/json", b"connection: close", HEADS[what], b"", b"")
    server = Hostile(tools=("read",))
    async with upstream(server) as url, lab.serving(lab.at("far", url)) as address, raw_client(address) as http:
        server.raw = b"\r\n".join(lines) + BODY
        answer = await http.result("tools/call", {"name": "far_read", "arguments": {}})
        server.raw = None
        again = await http.result("tools/call", {"name": "far_read", "arguments": {}})
    assert answer["content"] == [{"type": "text", "text": "x"}]
    assert again["content"][0]["text"] == "answer of read"
    assert caplog.records == []
