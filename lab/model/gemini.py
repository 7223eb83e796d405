"""Gemini's generateContent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lab.model.turn import Offered, Reply, Turn, plain_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.model.turn import Step

__all__ = ["read", "reply"]


def read(body: dict[str, Any], path: str) -> Turn:
    """Return what a request says; whether it wants a stream stands in the path."""
    parts = [part for content in body.get("contents") or [] for part in content.get("parts") or []]
    declared = [
        function
        for tool in body.get("tools") or []
        for function in tool.get("functionDeclarations") or tool.get("function_declarations") or []
    ]
    return Turn(
        model=path.rpartition("models/")[2].partition(":")[0],
        tools=tuple(Offered(name=one.get("name") or "", description=one.get("description") or "") for one in declared),
        results=tuple(
            plain_text(part["functionResponse"].get("response")) for part in parts if "functionResponse" in part
        ),
        history=tuple(part["functionCall"].get("name") or "" for part in parts if "functionCall" in part),
        text="\n".join(part["text"] for part in parts if isinstance(part.get("text"), str)),
        streaming="stream" in path,
    )


def reply(steps: Sequence[Step], turn: Turn, serial: int) -> Reply:
    """Return the answer that takes these steps, or says that all is done."""
    parts: list[dict[str, Any]] = [
        {"functionCall": {"name": step.name, "args": dict(step.sent), "id": step.call_id}} for step in steps
    ] or [{"text": "all done"}]
    answer = {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        "modelVersion": turn.model,
        "responseId": f"lab{serial}",
    }
    return Reply(events=(("", answer),)) if turn.streaming else Reply(document=answer)
