"""OpenAI Chat Completions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from lab.model.turn import Offered, Reply, Turn, plain_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.model.turn import Step

__all__ = ["read", "reply"]

_REPORTS: Final = ("Observation", "Error:", "Call id: ")


def read(body: dict[str, Any], path: str) -> Turn:  # noqa: ARG001 - the other APIs need the path
    """Return what a request says."""
    messages = body.get("messages") or []
    functions = [tool.get("function") or tool for tool in body.get("tools") or []] + (body.get("functions") or [])
    results = [message for message in messages if _is_result(message)]
    return Turn(
        model=body.get("model", ""),
        tools=tuple(
            Offered(name=str(one.get("name") or one.get("type")), description=one.get("description") or "")
            for one in functions
        ),
        results=tuple(plain_text(message.get("content")) for message in results),
        history=tuple(
            call.get("function", {}).get("name") or ""
            for message in messages
            for call in message.get("tool_calls") or []
        ),
        text="\n".join(plain_text(message.get("content")) for message in messages if message not in results),
        streaming=bool(body.get("stream")),
    )


def _is_result(message: dict[str, Any]) -> bool:
    role = message.get("role")
    if role in {"tool", "function"}:
        return True
    # smolagents reports results, and failures, as words of the user.
    return role == "user" and plain_text(message.get("content")).startswith(_REPORTS)


def reply(steps: Sequence[Step], turn: Turn, serial: int) -> Reply:
    """Return the answer that takes these steps, or says that all is done."""
    base = {"id": f"chatcmpl-lab{serial}", "created": 1, "model": turn.model or "lab"}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    message: dict[str, Any] = {"role": "assistant", "content": "all done"}
    if steps:
        message = {"role": "assistant", "content": None, "tool_calls": [_call(step) for step in steps]}
    finish = "tool_calls" if steps else "stop"
    if not turn.streaming:
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return Reply(document=base | {"object": "chat.completion", "choices": [choice], "usage": usage})
    if steps:
        message["tool_calls"] = [{"index": place, **call} for place, call in enumerate(message["tool_calls"])]
    chunk = base | {"object": "chat.completion.chunk"}
    return Reply(
        events=(
            ("", chunk | {"choices": [{"index": 0, "delta": message, "finish_reason": None}]}),
            ("", chunk | {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage}),
            ("", chunk | {"choices": [], "usage": usage}),
            ("", "[DONE]"),
        )
    )


def _call(step: Step) -> dict[str, Any]:
    function = {"name": step.name, "arguments": json.dumps(step.sent, ensure_ascii=False)}
    return {"id": step.call_id, "type": "function", "function": function}
