"""Test support: model apis, used by tests of several modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.adapters.bedrock_endpoint import BedrockEndpoint
from tests.adapters.model_apis import Bench, scripted

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager


def bedrock_plan() -> Callable[[dict[str, Any]], list[dict[str, Any]]]:
    """Return a model that calls each offered tool once, three at a time."""

    def plan(body: dict[str, Any]) -> list[dict[str, Any]]:
        names = [tool["toolSpec"]["name"] for tool in body["toolConfig"]["tools"]]
        done = sum("toolResult" in block for message in body["messages"] for block in message["content"])
        uses: list[dict[str, Any]] = [
            {"toolUse": {"toolUseId": f"tooluse_{number}", "name": name, "input": {"q": f"k{number}"}}}
            for number, name in enumerate(names)
        ]
        return uses[done : done + 3] or [{"text": "all done"}]

    return plan


def model(bench: Bench) -> AbstractContextManager[Any]:
    return BedrockEndpoint(bedrock_plan()) if bench.name == "bedrock" else scripted()


def answer_of(bench: Bench, *wire_names: str) -> dict[str, Any]:
    """Return an answer of the API in which these names are called."""
    items: list[Any] = []
    for number, name in enumerate(wire_names):
        shapes: dict[str, dict[str, Any]] = {
            "openai_chat": {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": "{}"}},
            "openai_responses": {"type": "function_call", "call_id": f"c{number}", "name": name, "arguments": "{}"},
            "anthropic": {"type": "tool_use", "id": f"c{number}", "name": name, "input": {}},
            "gemini": {"functionCall": {"id": f"c{number}", "name": name, "args": {}}},
            "bedrock": {"toolUse": {"toolUseId": f"c{number}", "name": name, "input": {}}},
        }
        items.append(shapes[bench.name])
    whole: dict[str, dict[str, Any]] = {
        "openai_chat": {"choices": [{"index": 0, "message": {"role": "assistant", "tool_calls": items}}]},
        "openai_responses": {"output": items},
        "anthropic": {"role": "assistant", "content": items},
        "gemini": {"candidates": [{"content": {"role": "model", "parts": items}}]},
        "bedrock": {"output": {"message": {"role": "assistant", "content": items}}},
    }
    return whole[bench.name]
