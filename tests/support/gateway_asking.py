"""Test support: asking, used by tests of several modules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server.lowlevel.server import Server

from tests.conformance.fixture import refusing

Rounds = Mapping[str, list[dict[str, types.InputRequest]]]


def form(message: str) -> types.ElicitRequest:
    schema = {"type": "object", "properties": {"name": {"type": "string", "default": "Ada"}}}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(text: str) -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=text))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=9))


ROUNDS: Rounds = {
    "ask": [{"who": form("Who?")}],
    "twice": [{"one": form("One?")}, {"two": form("Two?")}],
    "all": [{"who": form("Who?"), "say": sampling("Hi"), "where": types.ListRootsRequest()}],
    "later": [{}],
    "endless": [{"more": form("More?")} for _ in range(100)],
}


def stateless() -> Server[Any]:
    """A server of the stateless era whose tools ask in rounds, and then tell what they were answered."""

    async def list_tools(ctx: Any, params: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name=n, input_schema={"type": "object"}) for n in ROUNDS])

    async def call_tool(
        ctx: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        step = int(params.request_state or "0")
        if step < len(ROUNDS[params.name]):
            asked = ROUNDS[params.name][step]
            return types.InputRequiredResult(input_requests=asked or None, request_state=str(step + 1))
        answers = {
            key: answer.model_dump(by_alias=True, mode="json", exclude_none=True)
            for key, answer in (params.input_responses or {}).items()
        }
        able = (ctx.meta or {}).get("io.modelcontextprotocol/clientCapabilities")
        told = {"answers": answers, "steps": step, "able": able}
        return types.CallToolResult(content=[], structured_content=told)

    server = Server("asking", on_list_tools=list_tools, on_call_tool=call_tool)
    server.middleware.append(refusing("handshake"))
    return server


class Person:
    """A client's user: answers with its name, and remembers what it was asked."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked: list[Any] = []

    async def elicited(self, _: object, params: Any) -> types.ElicitResult:
        self.asked.append(params)
        return types.ElicitResult(action="accept", content={"name": self.name})

    async def sampled(self, _: object, params: Any) -> types.CreateMessageResult:
        self.asked.append(params)
        text = types.TextContent(type="text", text=f"{self.name} says")
        return types.CreateMessageResult(role="assistant", content=text, model="m")

    async def rooted(self, _: object) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=f"file:///{self.name}")])  # type: ignore[arg-type]

    @property
    def answering(self) -> dict[str, Any]:
        return {
            "elicitation_callback": self.elicited,
            "sampling_callback": self.sampled,
            "list_roots_callback": self.rooted,
        }
