"""A name that comes back, in any form and era, reaches exactly one tool under its own name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.conftest import Lab

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

FORMS = [
    ("/mcp", "weather_get_data", "Weather:get_data"),
    ("/mcp", "database_get_data", "Database:get_data"),
    ("/mcp", "Weather:get_data", "Weather:get_data"),
    ("/mcp", "weather@1/get_data@1", "Weather:get_data"),
    ("/mcp", "Weather@v1/GET_DATA", "Weather:get_data"),
    ("/mcp", "weather/get_data", "Weather:get_data"),
    ("/mcp", "weather%401~get_data%401", "Weather:get_data"),
    ("/mcp", "database_fs_list", "Database:fs.list"),
    ("/mcp", "database/fs.list", "Database:fs.list"),
    ("/mcp", "fs.list", "Database:fs.list"),
    ("/mcp/for/cursor", "weather_get_data", "Weather:get_data"),
    ("/mcp/for/native", "weather@1/get_data@1", "Weather:get_data"),
    ("/mcp/for/claude-code", "database_fs_list", "Database:fs.list"),
    ("/mcp/only/Weather", "get_data", "Weather:get_data"),
    ("/mcp/only/Database", "get_data", "Database:get_data"),
    ("/mcp/only/Database", "database@1/get_data", "Database:get_data"),
]


async def test_every_form_of_a_name_reaches_its_tool(
    lab: Lab, era: str, connect: Callable[..., Any], said: Callable[[Any], str]
) -> None:
    servers = lab.normal("Weather", "get_data"), lab.normal("Database", "get_data", "fs.list")
    async with lab.serving(*servers) as address:
        for path, name, expected in FORMS:
            async with connect(address + path, era) as client:
                result = await client.call_tool(name, {"text": "x"})
                assert (name, said(result)) == (name, expected)


async def test_a_gateway_over_stdio_serves_both_eras(
    lab: Lab, era: str, connect: Callable[..., Any], said: Callable[[Any], str]
) -> None:
    target = lab.over_stdio(lab.normal("Weather", "get_data"), lab.normal("Database", "get_data"))
    async with connect(target, era) as client:
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == ["weather_get_data", "database_get_data"]
        assert said(await client.call_tool("database/get_data", {})) == "Database:get_data"
        assert (await client.call_tool("nonsense", {})).is_error


async def test_arguments_and_meta_arrive_as_they_were_sent(lab: Lab, raw: Callable[[str], Any]) -> None:
    arguments = {"none": None, "deep": [{"z": 1, "a": None}], "big": 12345678901234567890123, "text": "天\u200b"}
    async with lab.serving(lab.normal("w", "tell")) as address, raw(address) as http:
        result = await http.result(
            "tools/call",
            {"name": "tell", "arguments": arguments, "vendor": {"a": None}, "_meta": {"claudecode/toolUseId": "t1"}},
        )
    assert result["structuredContent"]["params"] == {
        "name": "tell",
        "arguments": arguments,
        "vendor": {"a": None},
        "_meta": {"claudecode/toolUseId": "t1"},
    }
    assert result["resultType"] == "complete"


async def test_wrong_names_are_answered_with_a_result_that_says_what_to_do(
    lab: Lab, era: str, connect: Callable[..., Any], said: Callable[[Any], str]
) -> None:
    servers = lab.normal("Weather", "get_data"), lab.normal("Database", "get_data", "query_table")
    async with lab.serving(*servers) as address, connect(address + "/mcp", era) as client:
        for name, expected in [
            ("database_query_tabel", "Did you mean 'database_query_table'"),
            ("get_data", "is not unique: 'database_get_data' and 'weather_get_data'"),
            ("weather@7/get_data@1", "does not exist"),
            ("a/b/c", "is not a valid tool name"),
            ("%zz", "is not a valid tool name"),
            ("x" * 20_000, "is not a valid tool name"),
        ]:
            result = await client.call_tool(name, {})
            assert result.is_error
            assert expected in said(result)
            assert len(said(result)) < 1000


async def test_the_third_identical_wrong_call_in_a_row_is_told_to_stop(
    lab: Lab, era: str, connect: Callable[..., Any], said: Callable[[Any], str]
) -> None:
    async with lab.serving(lab.normal("Weather", "get_data")) as address, connect(address + "/mcp", era) as client:
        texts = [said(await client.call_tool("get_dato", {})) for _ in range(3)]
        assert "Do not repeat this call" not in texts[1]
        assert "Do not repeat this call; keep using tools: get_data" in texts[2]
        await client.call_tool("get_data", {})
        assert "Do not repeat" not in said(await client.call_tool("get_dato", {}))


async def test_errors_of_the_server_pass_as_they_are(lab: Lab, era: str, connect: Callable[..., Any]) -> None:
    async with lab.serving(lab.normal("w", "boom")) as address, connect(address + "/mcp", era) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("boom", {})
    error = caught.value
    assert (error.code, error.message, error.data) == (-32002, "boom", {"why": None, "n": [1]})


async def test_malformed_calls_are_protocol_errors(lab: Lab, raw: Callable[[str], Any]) -> None:
    async with lab.serving(lab.normal("w", "tell")) as address, raw(address) as http:
        for params in ({}, {"name": "tell", "arguments": [1]}):
            answer = (await http.post("tools/call", {**params}, headers={"mcp-name": "tell"})).json()
            assert "error" in answer
        answer = (await http.post("tools/list", {"cursor": "forged"})).json()
        assert answer["error"]["code"] == -32602


async def test_headers_have_to_say_what_the_body_says(lab: Lab, raw: Callable[[str], Any]) -> None:
    async with lab.serving(lab.normal("w", "tell")) as address, raw(address) as http:
        response = await http.post("tools/call", {"name": "tell"}, headers={"mcp-name": "other"})
        assert (response.status_code, response.json()["error"]["code"]) == (400, -32020)
        response = await http.post("tools/call", {"name": "tell"}, headers={"mcp-name": "=?base64?dGVsbA==?="})
        assert response.status_code == 200


async def test_progress_is_relayed(lab: Lab, era: str, connect: Callable[..., Any]) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async with lab.serving(lab.normal("w", "progress")) as address, connect(address + "/mcp", era) as client:
        await client.call_tool("progress", {}, progress_callback=on_progress)
    assert sorted(seen) == [(1.0, 2.0, "step 1"), (2.0, 2.0, "step 2")]


async def test_a_cancelled_call_is_cancelled_upstream(
    lab: Lab, era: str, connect: Callable[..., Any], said: Callable[[Any], str]
) -> None:
    async with lab.serving(lab.normal("w", "sleep", "cancelled")) as address, connect(address + "/mcp", era) as client:
        with anyio.move_on_after(0.3):
            await client.call_tool("sleep", {})
        with anyio.fail_after(10):
            while not (text := said(await client.call_tool("cancelled", {}))):
                await anyio.sleep(0.02)
        assert text == "caller cancelled"


async def test_a_call_that_takes_too_long_ends_with_a_text(
    lab: Lab, era: str, connect: Callable[..., Any], said: Callable[[Any], str]
) -> None:
    server = lab.normal("w", "sleep", "tell", tool_timeouts={"sleep": 0.2})
    async with lab.serving(server) as address, connect(address + "/mcp", era) as client:
        result = await client.call_tool("sleep", {})
        assert result.is_error
        assert "did not answer within 0.2 seconds" in said(result)
        assert said(await client.call_tool("tell", {})) == "w:tell"
