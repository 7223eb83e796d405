"""Histories of OpenAI Chat Completions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from truename.adapters.openai_chat import content_of
from truename.adapters.recorded.mentions import Mention, Tell, untranslatable
from truename.adapters.recorded.parts import arguments_of, arguments_text, image_of_url, marked, url_of
from truename.adapters.turns import Image, Text, ToolCall, ToolResult, Turn, as_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from truename.adapters.reading import Place
    from truename.adapters.turns import Part, Role, Shown

__all__ = ["mentions", "read", "write"]

_ROLES: Final[dict[str, Role]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "user",
}
_KNOWN: Final = frozenset({"role", "content", "tool_calls", "tool_call_id", "refusal", "function_call"})
# What only serves the provider or a screen; a notice tells that it stays behind.
_DROPPED: Final = frozenset(
    {"name", "annotations", "audio", "reasoning", "reasoning_content", "reasoning_details", "id", "parsed"}
)
_CALL: Final = frozenset({"id", "type", "index", "function"})
_FUNCTION: Final = frozenset({"name", "arguments", "parsed_arguments"})


def mentions(messages: Sequence[Place]) -> Iterator[Mention]:
    """Iterate over the calls and results. Raises for the older form of a call, which has no id."""
    for message in messages:
        role = message.text("role")
        if message.get("function_call") is not None or role == "function":
            name = "role" if role == "function" else "function_call"
            message.wrong(name, "is the older form of a call, which has no id; write it as tool_calls")
        for call in message.each("tool_calls"):
            named = None if call.get("type") == "custom" else call.inside("function")
            yield Mention(kind="call", place=call, id_key="id", named=named)
        if role == "tool":
            named = message if "name" in message.value else None
            yield Mention(kind="result", place=message, id_key="tool_call_id", named=named)


def read(messages: Sequence[Place], tell: Tell) -> Iterator[Turn]:
    """Iterate over the turns. Raises `InvalidPayload` for what no other API has."""
    for message in messages:
        role = message.text("role")
        if role not in _ROLES:
            message.wrong("role", "is no role that is known here")
        _check(message, tell)
        parts: list[Part] = []
        if role == "tool":
            parts.append(_result(message))
        else:
            parts += _content(message)
            if refusal := message.optional("refusal"):
                parts.append(Text(refusal))
            parts += map(_call, message.each("tool_calls"))
        yield Turn(_ROLES[role], tuple(parts), message.where)


def _check(message: Place, tell: Tell) -> None:
    message.only(_KNOWN | _DROPPED)
    for name in sorted(_DROPPED & set(message.value)):
        if message.value[name]:
            tell("dropped", message.path(name), "is of use to this API only and was left out")


def _content(message: Place) -> Iterator[Shown]:
    content = message.get("content")
    if isinstance(content, str):
        if content:
            yield Text(content)
        return
    for part in message.each("content"):
        match part.text("type"):
            case "text":
                yield Text(part.optional("text") or "")
            case "refusal":
                yield Text(part.optional("refusal") or "")
            case "image_url":
                yield image_of_url(part.inside("image_url").text("url"))
            case kind:
                raise untranslatable(part, f"of type {kind!r}")


def _call(call: Place) -> ToolCall:
    if call.get("type") == "custom":
        raise untranslatable(call, "a custom tool's call")
    call.only(_CALL)
    function = call.inside("function")
    function.only(_FUNCTION)
    arguments = arguments_of(function.optional("arguments") or "")
    return ToolCall(call_id=call.text("id"), name=function.text("name"), arguments=arguments)


def _result(message: Place) -> ToolResult:
    is_error, content = marked(tuple(_content(message)))
    return ToolResult(call_id=message.text("tool_call_id"), content=content, is_error=is_error)


def write(turn: Turn) -> Iterator[dict[str, Any]]:
    """Iterate over the messages of a turn."""
    for part in turn.parts:
        if isinstance(part, ToolResult):
            content = content_of(part.content, is_error=part.is_error)
            yield {"role": "tool", "tool_call_id": part.call_id, "content": content}
    said = [part for part in turn.parts if not isinstance(part, ToolCall | ToolResult)]
    made = [_made(part) for part in turn.parts if isinstance(part, ToolCall)]
    if said or made:
        content = as_text(said[0]) if len(said) == 1 and isinstance(said[0], Text) else [_part(part) for part in said]
        yield {"role": turn.role, "content": content or None} | ({"tool_calls": made} if made else {})


def _part(part: Shown) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"type": "image_url", "image_url": {"url": url_of(part)}}
    return {"type": "text", "text": as_text(part)}


def _made(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": arguments_text(call.arguments)}
    return {"id": call.call_id, "type": "function", "function": function}
