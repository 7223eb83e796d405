"""Whatever a model or somebody in between answers: calls of tools that are there, or a typed error."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.adapters.model_apis import BENCHES
from tests.support.adapters_history_faults import JSON
from tests.support.adapters_model_apis import answer_of
from truename import Catalog
from truename.errors import TruenameError
from truename.policy import Call

CATALOG = Catalog.of("a@1/b@1", "a@1/c@1")
STREAMS: dict[str, list[Any]] = {
    "openai_chat": [
        {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "a_b"}}]}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    ],
    "openai_responses": [
        {
            "type": f"response.output_item.{state}",
            "output_index": 0,
            "item": {"type": "function_call", "call_id": "c", "name": "a_b", "arguments": "{}"},
        }
        for state in ("added", "done")
    ],
    "anthropic": [
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "tool_use", "id": "c", "name": "a_b", "input": {}},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    ],
    "gemini": [
        {
            "candidates": [
                {
                    "content": {"parts": [{"functionCall": {"id": "c", "name": "a_b", "args": {}}}]},
                    "finishReason": "STOP",
                }
            ]
        }
    ],
    "bedrock": [
        {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "c", "name": "a_b"}}}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"toolUse": {"input": "{}"}}}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"messageStop": {"stopReason": "tool_use"}},
    ],
}


def damaged(whole: Any, junk: Any, data: st.DataObject) -> Any:
    """Return a copy in which one place, anywhere, holds junk."""
    made = [copy.deepcopy(whole)]
    place: Any = made
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not place[key] or not isinstance(place[key], list | dict) or data.draw(st.integers(0, 4)) == 0:
            place[key] = junk
            return made[0]
        place = place[key]


@given(st.sampled_from(sorted(BENCHES)), st.booleans(), JSON, st.data())
def test_a_damaged_answer_gives_calls_of_tools_that_are_there_or_a_typed_error(
    name: str, stream: bool, junk: Any, data: st.DataObject
) -> None:
    bench = BENCHES[name]
    names = bench.names(CATALOG)
    answer = damaged(STREAMS[name] if stream else answer_of(bench, "a_b", "a_c"), junk, data)

    found: tuple[Any, ...] = ()
    try:
        found = bench.adapter.calls(answer, names)
    except* TruenameError:
        pass

    assert all(isinstance(call, Call) and call.id in names for call in found)


def test_the_streams_themselves_are_whole() -> None:
    for name, bench in BENCHES.items():
        assert [call.call_id for call in bench.adapter.calls(STREAMS[name], bench.names(CATALOG))] == ["c"]
