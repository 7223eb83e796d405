"""Lists odd tools: unknown fields, nulls, names that are illegal, huge or twice there, entries that are none."""

from typing import Any

from tests.gateway.servers.fake import Fake, tool

ODD: list[Any] = [
    tool(
        "plain",
        title="Plain",
        annotations={"readOnlyHint": True, "x-mine": None},
        outputSchema={"type": "object", "properties": {"a": {"type": "integer", "default": None}}},
        icons=[{"src": "data:,", "vendor": 1}],
        execution={"taskSupport": "optional"},
        vendorField={"deep": [None, {"z": 1, "a": 2}]},
        _meta={"anthropic/alwaysLoad": True, "vendor/x": None},
    ),
    tool("plain", description="second of the name"),
    tool("Create Page/v2"),
    tool("天気取得"),
    tool("h" * 10_000_000),
    tool("zero\u200bwidth"),
    tool("esc\x1b[31m"),
    tool(""),
    {"name": 5},
    "just text",
    None,
    {"description": "nameless"},
]
Fake("odd", ODD).run()
