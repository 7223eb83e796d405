"""Answers of servers over HTTP that are none: each becomes a text that says which server, what, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.gateway.conftest import text_of
from tests.support.gateway_answers import odd_server

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio

WRONG_ANSWERS = [
    (("200 OK", "text/html", b"<html>log in</html>"), "content of type text/html"),
    (("200 OK", "", b"{}"), "content of type nothing"),
    (("202 Accepted", "application/json", b""), "HTTP 202 instead of an answer"),
    (("204 No Content", "", b""), "HTTP 204 instead of an answer"),
    (("304 Not Modified", "", b""), "HTTP 304 instead of an answer"),
    (("200 OK", "application/json", b"[1]"), "a body that is not a JSON-RPC object"),
    (("200 OK", "application/json", b"nonsense"), "a body that is not a JSON-RPC object"),
    (("200 OK", "application/json", b'{"ok": true}'), "a body that is not a JSON-RPC object"),
    (("200 OK", "application/json", b'{"jsonrpc": "2.0", "id": ID, "result": [1]}'), "a result that is not an object"),
    (
        ("200 OK", "application/json", b'{"jsonrpc": "2.0", "id": "other", "result": {}}'),
        "the answer to another request",
    ),
]


@pytest.mark.parametrize(("answer", "expected"), WRONG_ANSWERS)
async def test_what_is_no_answer_names_the_server_and_what_to_do(
    lab: Lab, connect: Callable[..., Any], answer: tuple[str, str, bytes], expected: str
) -> None:
    async with (
        odd_server(*answer) as url,
        lab.serving(lab.at("far", url)) as address,
        connect(address + "/mcp", "legacy") as client,
    ):
        result = await client.call_tool("get", {})
    said = text_of(result)

    assert result.is_error
    assert said.startswith(f"Server 'far' violated the protocol ({expected})")
    assert said.endswith("Check that it is an MCP server, or report it to its authors.")


async def test_an_answer_of_a_wrong_shape_is_not_waited_for_over_stdio(lab: Lab, connect: Callable[..., Any]) -> None:
    async with (
        lab.serving(lab.normal("w", "shapeless", "get")) as address,
        connect(address + "/mcp", "legacy") as client,
    ):
        result = await client.call_tool("shapeless", {})
        assert text_of(await client.call_tool("get", {})) == "w:get"

    assert result.is_error
    assert "Server 'w' violated the protocol (a malformed response)" in text_of(result)
