"""Answers that no parser takes, ids that are none, floods: a call ends with its answer or a clear error, at once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.gateway.conftest import text_of
from tests.gateway.servers.extreme import FLOODS, IDS, VALUES
from tests.support.gateway_answers import odd_server
from truename.gateway.mcp.messages import encode, notification, response

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio

UNREADABLE = frozenset({"deeper", "deepest", "longest"})
# What JSON has no number for cannot be sent on as one.
CHANGED = {"nan": None, "infinite": None, "half": "\N{REPLACEMENT CHARACTER}", "twice": 2}
PROBLEM = "(a malformed response)"


async def test_what_no_parser_takes_is_told_at_once_and_all_else_is_answered(
    lab: Lab, connect: Callable[..., Any], era: str
) -> None:
    async with (
        lab.serving(lab.script("x", "extreme"), tool_search="off") as address,
        connect(address + "/mcp", era) as client,
    ):
        with anyio.fail_after(20):
            found = {name: await client.call_tool(f"x_{name}", {}) for name in (*VALUES, *IDS)}

    assert {name for name, result in found.items() if result.is_error} == UNREADABLE
    assert "more than 190 nested levels" in text_of(found["deeper"])
    assert all(PROBLEM in text_of(found[name]) for name in UNREADABLE - {"deeper"})
    assert {text_of(found[name]) for name in found.keys() - UNREADABLE} == {"answered"}
    assert {name: found[name].structured_content["x"] for name in CHANGED} == CHANGED
    assert not [event for event in lab.events if event.kind == "lost"]


@pytest.mark.parametrize("flood", FLOODS)
async def test_a_server_may_say_what_it_wants_and_its_answer_comes_through(
    lab: Lab, connect: Callable[..., Any], flood: str
) -> None:
    async with (
        lab.serving(lab.script("x", "extreme"), tool_search="off") as address,
        connect(address + "/mcp", "legacy") as client,
    ):
        with anyio.fail_after(30):
            result = await client.call_tool(f"x_{flood}", {})

    assert text_of(result) == "answered"
    assert not [event for event in lab.events if event.kind == "lost"]


OVER_HTTP = [
    ("[" * 150 + "]" * 150, "answered"),
    ("[" * 250 + "]" * 250, "more than 190 nested levels|a malformed response"),
    ("[" * 100_000 + "]" * 100_000, "violated the protocol"),
    ("9" * 4_000, "answered"),
    ("9" * 5_000, "violated the protocol"),
    ("NaN", "answered"),
    ('"\\ud83d"', "answered"),
    ('"\\uD83D"', "answered"),
]


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
@pytest.mark.parametrize(("value", "expected"), OVER_HTTP, ids=[value[:5] for value, _ in OVER_HTTP])
async def test_over_http_too(lab: Lab, connect: Callable[..., Any], kind: str, value: str, expected: str) -> None:
    result = f'{{"content": [{{"type": "text", "text": "answered"}}], "structuredContent": {{"x": {value}}}}}'
    body = f'{{"jsonrpc": "2.0", "id": ID, "result": {result}}}'
    sent = body if kind == "application/json" else f"data: {body}\n\n"
    async with (
        odd_server("200 OK", kind, sent.encode()) as url,
        lab.serving(lab.at("far", url)) as address,
        connect(address + "/mcp", "legacy") as client,
    ):
        with anyio.fail_after(10):
            found = [text_of(await client.call_tool("get", {})) for _ in range(2)]

    assert found[0] == found[1]
    assert any(part in found[0] for part in expected.split("|")), found


def test_an_answer_that_can_not_be_written_is_an_error_of_its_request_alone() -> None:
    half = {"content": [{"type": "text", "text": "\ud83d"}]}
    told = json.loads(encode(response(7, half)))
    unasked = json.loads(encode(notification("notifications/message", half)))

    assert (told["id"], unasked["id"]) == (7, None)
    assert told["error"]["message"] == "The response cannot be serialised as JSON."
