"""One input schema that breaks the specification takes no other tool away, and its own only if it must."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from truename.gateway import Gateway

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio


async def test_every_client_can_read_a_list_with_a_schema_of_no_type(
    lab: Lab, era: str, connect: Callable[..., Any]
) -> None:
    servers = (lab.script("m", "malformed"), lab.normal("n", "get"))
    async with lab.serving(*servers) as address, connect(f"{address}/mcp", era) as client:
        schemas = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
        answer = await client.call_tool("m_untold", {"a": "b"})

    assert sorted(schemas) == ["m_good", "m_untold", "n_get"]
    assert answer.content[0].text == "malformed:untold"
    assert schemas["m_untold"] == {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "required": ["a"],
        "type": "object",
    }


async def test_what_is_known_of_the_tool_is_the_servers_own_definition(lab: Lab) -> None:
    async with lab.gateway(lab.script("m", "malformed")) as gateway:
        assert isinstance(gateway, Gateway)
        await gateway.settle()
        (tool,) = [tool for tool in gateway.catalog.values() if tool.origin.name == "untold"]

    assert "type" not in tool.definition["inputSchema"]


async def test_those_that_cannot_be_completed_are_left_out_and_told(
    lab: Lab, raw: Callable[[str], Any], caplog: pytest.LogCaptureFixture
) -> None:
    async with lab.serving(lab.script("m", "malformed")) as address, raw(address) as http:
        tools = (await http.result("tools/list", {}))["tools"]

    assert [tool["name"].removeprefix("m_") for tool in tools] == ["good", "untold"]
    assert "9 tools are omitted" in caplog.text
