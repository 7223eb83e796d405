"""A call through call_tool goes the one way that all calls go: same rights, same answers, same counts, same records."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from mcp.shared.exceptions import MCPError

from truename.policy import Context, read_policy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.gateway.conftest import Lab

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

TOOLS = ["read", "secret", "delete_all", "write", "boom", "big", "sleep", "shapeless", "get_data"]
HIDDEN: dict[str, dict[str, Any]] = {"files/secret": {"is_for_llm": False}}
POLICY = {
    "default": "allow",
    "rules": [
        {"name": "no deleting", "outcome": "deny", "tools": ["files/delete*"]},
        {"name": "look first", "outcome": "ask", "tools": ["files/write"]},
    ],
}
CASES: list[tuple[str, dict[str, Any] | None]] = [
    ("read", {"text": "x"}),
    ("read", {}),
    ("read", None),
    ("files@1/read@1", {"none": None, "big": 12345678901234567890123, "text": "天\u200b"}),
    ("READ", {}),
    ("files/read", {"name": "read", "arguments": {"name": "call_tool"}}),
    ("mcp__truename__read", {}),
    ("reed", {}),
    ("get_data", {}),
    ("nothing at all", {}),
    ("a/b/c", {}),
    ("x" * 20_000, {}),
    ("", {}),
    ("secret", {}),
    ("delete_all", {}),
    ("files%401~delete_all", {}),
    ("write", {}),
    ("boom", {}),
    ("big", {"size": 200_000}),
    ("sleep", {}),
    ("shapeless", {}),
    ("describe_tools", {"names": ["read"]}),
    ("search_tools", {"query": "read"}),
]


async def _outcome(client: Any, name: str, arguments: dict[str, Any] | None, *, through: bool) -> Any:
    inner = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
    steps: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total, message))

    try:
        called, given = ("call_tool", inner) if through else (name, arguments)
        result = await client.call_tool(called, given, progress_callback=on_progress)
    except MCPError as error:
        return error.code, error.message, error.data
    body = result.model_dump(by_alias=True, mode="json")
    # The number of the request is the progress token.
    params = (body.get("structuredContent") or {}).get("params", {})
    params.pop("_meta", None)
    # A request for an approval has a key of its own each time.
    if (key := (body.get("_meta") or {}).pop("dev.truename/approval", None)) is not None:
        assert re.fullmatch("[0-9a-f]{16}", key)
        for block in body["content"]:
            block["text"] = block["text"].replace(key, "KEY")
    return body


@pytest.mark.parametrize("path", ["/mcp", "/mcp/for/cursor", "/mcp/in/phone", "/mcp/only/files"])
async def test_a_call_through_call_tool_has_the_outcome_of_the_direct_call(
    lab: Lab, connect: Any, era: str, tmp_path: Path, path: str
) -> None:
    outcomes: list[list[Any]] = []
    for through in (False, True):
        recording = tmp_path / f"{through}.jsonl"
        servers = (
            lab.normal("files", *TOOLS, tool_timeouts={"sleep": 0.3}),
            lab.normal("other", "get_data"),
        )
        settings = {
            "tool_search": "on",
            "policy": read_policy(POLICY),
            "metadata": {**HIDDEN, "files/get_data": {"platforms": ["android"]}},
            "contexts": {"phone": Context(platform="ios")},
            "recording": str(recording),
            "protocol": "0.3",
            "max_result": 100_000,
        }
        async with lab.serving(*servers, **settings) as address, connect(address + path, era) as client:
            told = [await _outcome(client, *case, through=through) for case in CASES]
        lines = [json.loads(line) for line in recording.read_text().splitlines()]
        told.append([{key: line[key] for key in ("id", "name", "arguments", "context")} for line in lines])
        outcomes.append(told)
    direct, through_call_tool = outcomes
    for case, one, other in zip([*CASES, "recorded"], direct, through_call_tool, strict=True):
        assert (case, one) == (case, other)
    assert {line["name"] for line in direct[-1]} >= {"read", "READ", "files/read"}


@pytest.mark.parametrize("through", [False, True])
async def test_progress_comes_back_either_way(lab: Lab, connect: Any, era: str, *, through: bool) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    call = ("call_tool", {"name": "progress", "arguments": {}}) if through else ("progress", {})
    server = lab.normal("w", "progress")
    async with lab.serving(server, tool_search="on") as address, connect(address + "/mcp", era) as client:
        await client.call_tool(*call, progress_callback=on_progress)
    assert sorted(seen) == [(1.0, 2.0, "step 1"), (2.0, 2.0, "step 2")]


@pytest.mark.parametrize("through", [False, True])
async def test_repeats_are_counted_either_way_and_the_search_is_named(
    lab: Lab, connect: Any, said: Any, era: str, *, through: bool
) -> None:
    async with (
        lab.serving(lab.normal("Weather", "get_data"), tool_search="on") as address,
        connect(address + "/mcp", era) as client,
    ):
        call = ("call_tool", {"name": "get_dato", "arguments": {}}) if through else ("get_dato", {})
        texts = [said(await client.call_tool(*call)) for _ in range(3)]
        assert texts[0].endswith("Did you mean 'get_data'? Call it exactly. Or find a tool with search_tools.")
        assert "keep using tools: get_data. Or find a tool with search_tools." in texts[2]
        await client.call_tool("search_tools", {"query": "data"})
        assert "Do not repeat" not in said(await client.call_tool(*call))


async def test_all_that_stands_beside_the_arguments_arrives(lab: Lab, raw: Callable[[str], Any]) -> None:
    beside = {"vendor": {"a": None}, "_meta": {"claudecode/toolUseId": "t1"}}
    inner = {"name": "tell", "arguments": {"x": [1, None]}}
    async with lab.serving(lab.normal("w", "tell"), tool_search="on") as address, raw(address) as http:
        result = await http.result("tools/call", {"name": "call_tool", "arguments": inner, **beside})
    assert result["structuredContent"]["params"] == {**inner, **beside}
