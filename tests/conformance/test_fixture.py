"""The fixture answers alike in both eras, whichever way it has for asking the client."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CreateMessageResult,
    ElicitResult,
    InputRequiredResult,
    ListRootsResult,
    Root,
    TextContent,
)
from pydantic import FileUrl

from tests.conformance.asking import ASKING_TOOLS
from tests.conformance.fixture import Everything

pytestmark = [
    pytest.mark.anyio,
    # The suite asks for logging, sampling and roots, which the newest revision gives up.
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

ERAS = ("legacy", "2026-07-28")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def _elicited(context: object, params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content=dict.fromkeys(params.requested_schema["properties"], "yes"))


async def _sampled(context: object, params: object) -> CreateMessageResult:
    return CreateMessageResult(role="assistant", content=TextContent(type="text", text="Paris"), model="none")


async def _rooted(context: object) -> ListRootsResult:
    return ListRootsResult(roots=[Root(uri=FileUrl("file:///here"))])


def _client(era: str) -> Client:
    return Client(
        Everything().server,
        mode=era,
        elicitation_callback=_elicited,
        sampling_callback=_sampled,
        list_roots_callback=_rooted,
    )


async def _text(client: Client, tool: str) -> str:
    (block,) = (await client.call_tool(tool, {})).content
    assert isinstance(block, TextContent)
    return block.text


@pytest.mark.parametrize("tool", ASKING_TOOLS)
async def test_a_tool_that_asks_comes_to_one_conclusion_in_both_eras(tool: str) -> None:
    said = []
    for era in ERAS:
        async with _client(era) as client:
            said.append(await _text(client, tool))
    assert said[0] == said[1]


@pytest.mark.parametrize("era", ERAS)
async def test_who_can_answer_nothing_is_told_what_is_missing(era: str) -> None:
    async with Client(Everything().server, mode=era) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("test_missing_capability", {})
    assert caught.value.code == MISSING_REQUIRED_CLIENT_CAPABILITY
    assert caught.value.data == {"requiredCapabilities": {"sampling": {}}}


@pytest.mark.parametrize("era", ERAS)
async def test_a_triggered_change_really_changes_the_list(era: str) -> None:
    async with Client(Everything().server, mode=era) as client:
        before = {tool.name for tool in (await client.list_tools()).tools}
        await client.call_tool("test_trigger_tool_change", {})
        after = {tool.name for tool in (await client.list_tools()).tools}
    assert after - before == {"test_comes_and_goes"}


async def test_answers_without_the_state_that_was_given_out_are_asked_for_again() -> None:
    async with _client("2026-07-28") as client:
        first = await client.session.call_tool("test_input_required_result_multi_round", {}, allow_input_required=True)
        assert isinstance(first, InputRequiredResult)
        again = await client.session.call_tool(
            "test_input_required_result_multi_round",
            {},
            input_responses={"step1": ElicitResult(action="accept", content={"name": "Ada"})},
            allow_input_required=True,
        )
    assert isinstance(again, InputRequiredResult)
    assert list(again.input_requests or {}) == ["step1"]
