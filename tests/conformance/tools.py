"""The suite's tools that answer at once, or after a while of telling how far they are."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import anyio
from mcp.server.context import ServerRequestContext
from mcp_types import CallToolResult, ContentBlock

from tests.conformance.contents import embedded, picture, sound, text

__all__ = ["SCHEMAS", "TOOLS", "Call", "answered"]

Request = ServerRequestContext[Any, Any]
Call = Callable[[Request, Mapping[str, Any]], Awaitable[CallToolResult]]

_A_MOMENT: Final = 0.05

# Every kind of keyword that a gateway might drop; the suite looks for each.
_ADDRESS: Final = {
    "$anchor": "addressDef",
    "type": "object",
    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
}
_CONTACT: Final = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": _ADDRESS},
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
_REGION: Final = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "replicas": {"type": "integer"},
    },
    "required": ["region"],
}

# Tools with arguments; all others take none.
SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "json_schema_2020_12_tool": _CONTACT,
    "test_region_header": _REGION,
    "test_sampling": {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]},
    "test_elicitation": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
}


def answered(*content: ContentBlock, is_error: bool = False) -> CallToolResult:
    return CallToolResult(content=list(content), is_error=is_error)


def _saying(*content: ContentBlock, is_error: bool = False) -> Call:
    async def call(request: Request, arguments: Mapping[str, Any]) -> CallToolResult:
        return answered(*content, is_error=is_error)

    return call


async def _repeat(request: Request, arguments: Mapping[str, Any]) -> CallToolResult:
    return answered(text(json.dumps(arguments)))


async def _log(request: Request, arguments: Mapping[str, Any]) -> CallToolResult:
    for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await request.session.send_log_message("info", said, related_request_id=request.request_id)
        await anyio.sleep(_A_MOMENT)
    return answered(text("Logged three times."))


async def _advance(request: Request, arguments: Mapping[str, Any]) -> CallToolResult:
    for done in (0, 50, 100):
        await request.session.report_progress(done, 100)
        await anyio.sleep(_A_MOMENT)
    return answered(text("Went from 0 to 100."))


async def _hang_up(request: Request, arguments: Mapping[str, Any]) -> CallToolResult:
    """End the stream before the answer is there: the client has to come back for it."""
    if request.close_sse_stream is not None:
        await request.close_sse_stream()
    await anyio.sleep(2 * _A_MOMENT)
    return answered(text("Welcome back."))


TOOLS: Final[Mapping[str, Call]] = {
    "test_simple_text": _saying(text("This is a simple text response for testing.")),
    "test_image_content": _saying(picture()),
    "test_audio_content": _saying(sound()),
    "test_embedded_resource": _saying(embedded("test://embedded-resource", "This is an embedded resource content.")),
    "test_multiple_content_types": _saying(
        text("Multiple content types test:"),
        picture(),
        embedded("test://mixed-content-resource", json.dumps({"test": "data", "value": 123}), "application/json"),
    ),
    "test_error_handling": _saying(text("This tool intentionally returns an error for testing"), is_error=True),
    "test_tool_with_logging": _log,
    "test_logging_tool": _log,
    "test_tool_with_progress": _advance,
    "test_reconnection": _hang_up,
    "json_schema_2020_12_tool": _repeat,
    "test_region_header": _repeat,
}
