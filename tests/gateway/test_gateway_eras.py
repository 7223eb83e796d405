"""Between the eras: what one has and the other lacks arrives, or is answered in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mcp_types as types
import pytest
from mcp.server.lowlevel.server import Server

from truename.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.conftest import Lab, Upstreams

pytestmark = pytest.mark.anyio

HEADED = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
WRONGLY_HEADED = {"type": "object", "properties": {"rate": {"type": "number", "x-mcp-header": "Rate"}}}


def _asking() -> Server[Any]:
    """A server of the stateless era that asks its user, and tells which headers and capabilities it was sent."""

    async def list_tools(ctx: Any, params: object) -> types.ListToolsResult:
        schemas: dict[str, dict[str, Any]] = {"ask": {"type": "object"}, "head": HEADED, "wrong": WRONGLY_HEADED}
        return types.ListToolsResult(tools=[types.Tool(name=n, input_schema=s) for n, s in schemas.items()])

    async def call_tool(
        ctx: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        if params.name == "ask" and params.input_responses is None:
            form = types.ElicitRequestFormParams(message="Sure?", requested_schema={"type": "object", "properties": {}})
            question = types.ElicitRequest(params=form)
            return types.InputRequiredResult(input_requests={"q": question}, request_state="state-1")
        headers = {k: v for k, v in ctx.request.headers.items() if k.startswith("mcp-")}
        told = {
            "headers": headers,
            "capabilities": (ctx.meta or {}).get("io.modelcontextprotocol/clientCapabilities"),
            "state": params.request_state,
        }
        return types.CallToolResult(content=[], structured_content=told)

    return Server("asking", on_list_tools=list_tools, on_call_tool=call_tool)


async def test_questions_to_the_user_go_back_and_forth(
    lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams
) -> None:
    async with upstreams.serve(_asking()) as url, lab.serving(lab.at("far", url)) as address, raw(address) as http:
        mine: dict[str, Any] = {"_meta": {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}}
        asked = await http.result("tools/call", {"name": "ask", **mine})
        assert asked["resultType"] == "input_required"
        assert asked["requestState"] == "state-1"
        assert asked["inputRequests"]["q"]["params"]["message"] == "Server 'far' asks: Sure?"
        answers = {"q": {"action": "accept", "content": {}}}
        again = {"name": "ask", "inputResponses": answers, "requestState": "state-1", **mine}
        done = await http.result("tools/call", again)
    assert done["structuredContent"]["state"] == "state-1"
    assert done["structuredContent"]["capabilities"] == {"elicitation": {"form": {}}}


async def test_a_client_that_cannot_be_asked_is_told_so(
    lab: Lab, connect: Callable[..., Any], said: Callable[[Any], str], upstreams: Upstreams
) -> None:
    async with (
        upstreams.serve(_asking()) as url,
        lab.serving(lab.at("far", url)) as address,
        connect(address + "/mcp", "legacy") as client,
    ):
        result = await client.call_tool("ask", {})
        assert result.is_error
        assert "wants to ask the user" in said(result)


async def test_routing_headers_say_the_servers_own_names(
    lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams
) -> None:
    async with (
        upstreams.serve(_asking()) as url,
        lab.serving(lab.at("far", url), lab.normal("w", "get")) as address,
        raw(address) as http,
    ):
        called = {"name": "far_head", "arguments": {"region": "天"}}
        encoded = {"mcp-param-region": "=?base64?5aSp?="}
        done = await http.result("tools/call", called, headers=encoded)
        assert done["structuredContent"]["headers"] == {
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/call",
            "mcp-name": "head",
            **encoded,
        }
        refused = await http.post("tools/call", called, headers={"mcp-param-region": "elsewhere"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32020)


async def test_a_handshake_client_needs_no_headers_for_a_stateless_server(
    lab: Lab, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    async with (
        upstreams.serve(_asking()) as url,
        lab.serving(lab.at("far", url)) as address,
        connect(address + "/mcp", "legacy") as client,
    ):
        result = await client.call_tool("head", {"region": "eu"})
        assert result.structured_content["headers"]["mcp-param-region"] == "eu"
        assert result.structured_content["capabilities"] == {}


async def test_tools_with_invalid_header_marks_are_left_out(
    lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams, caplog: pytest.LogCaptureFixture
) -> None:
    async with upstreams.serve(_asking()) as url, lab.serving(lab.at("far", url)) as address, raw(address) as http:
        names = [tool["name"] for tool in (await http.result("tools/list", {}))["tools"]]
    assert names == ["ask", "head"]
    assert any("1 tool is omitted; the first: 'wrong'" in message for message in caplog.messages)


async def test_names_that_were_changed_or_withdrawn_are_answered(
    lab: Lab, era: str, connect: Callable[..., Any], said: Callable[[Any], str]
) -> None:
    ledger = Ledger.memory()
    async with lab.serving(lab.normal("w", "get", "set"), ledger=ledger) as address:
        ledger.redirect("fetch_it", "w@1/get@1")
        ledger.retire("set", "get")
        async with connect(address + "/mcp", era) as client:
            assert said(await client.call_tool("fetch_it", {})) == "w:get"
            retired = await client.call_tool("set", {})
            assert retired.is_error
            assert "was retired on" in said(retired)
            assert "nothing was run. Call 'get'." in said(retired)
