"""Anthropic Messages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from lab.model.turn import Offered, Reply, Turn, plain_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lab.model.turn import Step

__all__ = ["read", "reply"]


def read(body: dict[str, Any], path: str) -> Turn:  # noqa: ARG001 - the other APIs need the path
    """Return what a request says."""
    blocks = list(_blocks(body))
    return Turn(
        model=body.get("model", ""),
        tools=tuple(
            Offered(
                name=tool.get("name") or "",
                description=tool.get("description") or "",
                deferred=bool(tool.get("defer_loading")),
            )
            for tool in body.get("tools") or []
        ),
        results=tuple(_result(block) for block in blocks if block.get("type") == "tool_result"),
        history=tuple(block.get("name") or "" for block in blocks if block.get("type") == "tool_use"),
        text="\n".join([plain_text(body.get("system"))] + [block["text"] for block in blocks if _is_text(block)]),
        streaming=bool(body.get("stream")),
    )


def _blocks(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for message in body.get("messages") or []:
        content = message.get("content")
        if isinstance(content, str):
            yield {"type": "text", "text": content}
        elif isinstance(content, list):
            yield from content


def _is_text(block: dict[str, Any]) -> bool:
    return block.get("type") == "text" and isinstance(block.get("text"), str)


def _result(block: dict[str, Any]) -> str:
    return ("[is_error] " if block.get("is_error") else "") + plain_text(block.get("content"))


def reply(steps: Sequence[Step], turn: Turn, serial: int) -> Reply:
    """Return the answer that takes these steps, or says that all is done."""
    blocks: list[dict[str, Any]] = [
        {"type": "tool_use", "id": f"toolu_lab{step.number}", "name": step.name, "input": dict(step.sent)}
        for step in steps
    ] or [{"type": "text", "text": "all done"}]
    stop = {"stop_reason": "tool_use" if steps else "end_turn", "stop_sequence": None}
    usage = {"input_tokens": 10, "output_tokens": 5}
    message = {
        "id": f"msg_lab{serial}",
        "type": "message",
        "role": "assistant",
        "model": turn.model or "lab",
        "content": blocks,
        "usage": usage,
    } | stop
    if not turn.streaming:
        return Reply(document=message)
    start: dict[str, Any] = {"type": "message_start", "message": message | {"content": [], "stop_reason": None}}
    inner = [event for place, block in enumerate(blocks) for event in _streamed(place, block)]
    ending: list[dict[str, Any]] = [{"type": "message_delta", "delta": stop, "usage": usage}, {"type": "message_stop"}]
    return Reply(events=tuple((event["type"], event) for event in [start, *inner, *ending]))


def _streamed(place: int, block: dict[str, Any]) -> list[dict[str, Any]]:
    if block["type"] == "tool_use":
        empty: dict[str, Any] = block | {"input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"], ensure_ascii=False)}
    else:
        empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
    return [
        {"type": "content_block_start", "index": place, "content_block": empty},
        {"type": "content_block_delta", "index": place, "delta": delta},
        {"type": "content_block_stop", "index": place},
    ]
