"""OpenAI Responses, with what only it has: namespaces, a tool search that the client runs, and custom tools."""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from lab.model.turn import Offered, Reply, Turn, plain_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lab.model.turn import Step

__all__ = ["read", "reply"]

_RESULTS: Final = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})
_CALLS: Final = frozenset({"function_call", "custom_tool_call", "tool_search_call"})
_BRINGS_TOOLS: Final = frozenset({"additional_tools", "tool_search_output"})
_USAGE: Final = {
    "input_tokens": 10,
    "output_tokens": 5,
    "total_tokens": 15,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 0},
}
Event = tuple[str, dict[str, Any]]


def read(body: dict[str, Any], path: str) -> Turn:  # noqa: ARG001 - the other APIs need the path
    """Return what a request says; tools that a search brought are tools like the others."""
    given = body.get("input")
    items: list[dict[str, Any]] = given if isinstance(given, list) else [{"content": given}]
    found = [tool for item in items if item.get("type") in _BRINGS_TOOLS for tool in item.get("tools") or []]
    return Turn(
        model=body.get("model", ""),
        tools=tuple(offer for tool in (body.get("tools") or []) + found for offer in _offers(tool)),
        results=tuple(
            plain_text(item.get("output") or item.get("tools")) for item in items if item.get("type") in _RESULTS
        ),
        history=tuple(_called(item) for item in items if item.get("type") in _CALLS),
        text="\n".join([plain_text(body.get("instructions"))] + [plain_text(item.get("content")) for item in items]),
        streaming=bool(body.get("stream")),
    )


def _offers(tool: dict[str, Any]) -> Iterator[Offered]:
    if tool.get("type") == "namespace":
        yield from (_offer(member, tool.get("name")) for member in tool.get("tools") or [])
    else:
        yield _offer(tool, None)


def _offer(tool: dict[str, Any], namespace: str | None) -> Offered:
    return Offered(
        name=tool.get("name") or tool.get("type") or "",
        namespace=namespace,
        description=tool.get("description") or "",
        deferred=bool(tool.get("defer_loading")),
    )


def _called(item: dict[str, Any]) -> str:
    name = item.get("name") or ""
    return f"{item['namespace']}.{name}" if item.get("namespace") else name


def reply(steps: Sequence[Step], turn: Turn, serial: int) -> Reply:
    """Return the answer that takes these steps, or says that all is done."""
    items = [_item(step) for step in steps] or [_done(serial)]
    response = {
        "id": f"resp_lab{serial}",
        "object": "response",
        "created_at": 1,
        "model": turn.model or "lab",
        "status": "completed",
        "output": items,
        "parallel_tool_calls": len(items) > 1,
        "tool_choice": "auto",
        "tools": [],
        "usage": _USAGE,
    }
    if not turn.streaming:
        return Reply(document=response)
    numbers = count()
    events = [
        ("response.created", {"response": response | {"status": "in_progress", "output": []}}),
        *(event for place, item in enumerate(items) for event in _streamed(place, item)),
        ("response.completed", {"response": response}),
    ]
    return Reply(
        events=tuple((kind, {"type": kind, "sequence_number": next(numbers), **event}) for kind, event in events)
    )


def _item(step: Step) -> dict[str, Any]:
    common = {"call_id": step.call_id, "status": "completed"}
    within = {"namespace": step.namespace} if step.namespace else {}
    if step.kind == "code":
        own: dict[str, Any] = {"type": "custom_tool_call", "name": step.name, "input": step.code} | within
        return own | common | {"id": f"ctc_{step.number}"}
    if step.kind == "search":
        own = {"type": "tool_search_call", "execution": "client", "arguments": dict(step.arguments)}
        return own | common | {"id": f"tsc_{step.number}"}
    arguments = json.dumps(step.sent, ensure_ascii=False)
    own = {"type": "function_call", "name": step.name, "arguments": arguments} | within
    return own | common | {"id": f"fc_{step.number}"}


def _done(serial: int) -> dict[str, Any]:
    content = [{"type": "output_text", "text": "all done", "annotations": []}]
    return {
        "type": "message",
        "id": f"msg_{serial}",
        "role": "assistant",
        "status": "completed",
        "content": content,
    }


def _streamed(place: int, item: dict[str, Any]) -> list[Event]:
    at = {"output_index": place}
    within = at | {"item_id": item["id"]}
    middle: list[Event] = []
    begun = item
    if item["type"] == "function_call":
        begun = item | {"arguments": ""}
        middle = [
            ("response.function_call_arguments.delta", within | {"delta": item["arguments"]}),
            (
                "response.function_call_arguments.done",
                within | {"name": item["name"], "arguments": item["arguments"]},
            ),
        ]
    elif item["type"] == "message":
        begun = item | {"content": []}
        empty = {"type": "output_text", "text": "", "annotations": []}
        middle = [
            ("response.content_part.added", within | {"content_index": 0, "part": empty}),
            ("response.output_text.delta", within | {"content_index": 0, "delta": "all done", "logprobs": []}),
        ]
    return [
        ("response.output_item.added", at | {"item": begun}),
        *middle,
        ("response.output_item.done", at | {"item": item}),
    ]
