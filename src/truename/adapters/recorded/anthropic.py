"""Histories of Anthropic Messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from truename.adapters.anthropic import block_of
from truename.adapters.recorded.mentions import Mention, Tell, untranslatable
from truename.adapters.recorded.parts import arguments_object, is_blank
from truename.adapters.turns import Image, Text, ToolCall, ToolResult, Turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truename.adapters.reading import Place
    from truename.adapters.turns import Part, Role, Shown

__all__ = ["mentions", "read", "write"]

_ROLES: Final[dict[str, Role]] = {"system": "system", "user": "user", "assistant": "assistant"}
_USE: Final = frozenset({"type", "id", "name", "input", "caller", "cache_control"})
_RESULT: Final = frozenset({"type", "tool_use_id", "content", "is_error", "cache_control"})
_THOUGHT: Final = frozenset({"thinking", "redacted_thinking"})


def mentions(messages: Sequence[Place]) -> Iterator[Mention]:
    """Iterate over calls, results, and the tools that a search brought."""
    for message in messages:
        message.text("role")
        for block in _blocks(message):
            match block.text("type"):
                case "tool_use":
                    yield Mention(kind="call", place=block, id_key="id", named=block)
                case "tool_result":
                    yield Mention(kind="result", place=block, id_key="tool_use_id")
                    yield from map(_reference, filter(_is_reference, _blocks(block)))
                case "tool_search_tool_result":
                    found = block.inside("content")
                    yield from map(_reference, found.each("tool_references"))


def _blocks(place: Place) -> Iterator[Place]:
    if not isinstance(place.get("content"), str):
        yield from place.each("content")


def _is_reference(block: Place) -> bool:
    return bool(block.get("type") == "tool_reference")


def _reference(block: Place) -> Mention:
    return Mention(kind="reference", place=block, named=block, name_key="tool_name")


def read(messages: Sequence[Place], tell: Tell) -> Iterator[Turn]:
    """Iterate over the turns. Raises `InvalidPayload` for what no other API has."""
    for message in messages:
        message.only(frozenset({"role", "content", "id", "type", "model", "stop_reason", "stop_sequence", "usage"}))
        role = message.text("role")
        if role not in _ROLES:
            message.wrong("role", "is no role that is known here")
        yield Turn(_ROLES[role], tuple(_parts(message, tell)), message.where)


def _parts(message: Place, tell: Tell) -> Iterator[Part]:
    if isinstance(content := message.get("content"), str):
        yield from [Text(content)] if content else []
        return
    for block in message.each("content"):
        if block.get("cache_control") is not None:
            tell("dropped", block.path("cache_control"), "is of use to this API only and was left out")
        match block.text("type"):
            case "tool_use":
                yield _call(block)
            case "tool_result":
                yield _result(block)
            case kind if kind in _THOUGHT:
                tell("dropped", block.where, "is of use to this API only and was left out")
            case _:
                yield _shown(block)


def _shown(block: Place) -> Shown:
    kind = block.text("type")
    if kind == "text":
        return Text(block.optional("text") or "")
    if kind != "image":
        raise untranslatable(block, f"of type {kind!r}")
    source = block.inside("source")
    match source.text("type"):
        case "base64":
            return Image(media_type=source.text("media_type"), base64=source.text("data"))
        case "url":
            return Image(url=source.text("url"))
        case other:
            raise untranslatable(source, f"of type {other!r}")


def _call(block: Place) -> ToolCall:
    block.only(_USE)
    given = block.get("input")
    if not isinstance(given, Mapping):
        block.wrong("input", "is missing" if given is None else f"is of type {type(given).__name__}, not an object")
    return ToolCall(call_id=block.text("id"), name=block.text("name"), arguments=given)


def _result(block: Place) -> ToolResult:
    block.only(_RESULT)
    content = block.get("content")
    parts = (Text(content),) if isinstance(content, str) else tuple(map(_shown, block.each("content")))
    return ToolResult(call_id=block.text("tool_use_id"), content=parts, is_error=block.get("is_error") is True)


def write(turn: Turn) -> Iterator[dict[str, Any]]:
    """Iterate over the messages of a turn: one, in which results come first."""
    blocks = [_block(part) for part in sorted(turn.parts, key=_order) if not is_blank(part)]
    if blocks:
        yield {"role": turn.role, "content": blocks}


def _order(part: Part) -> int:
    return 0 if isinstance(part, ToolResult) else 2 if isinstance(part, ToolCall) else 1


def _block(part: Part) -> dict[str, Any]:
    if isinstance(part, ToolCall):
        arguments = arguments_object(part.arguments)
        return {"type": "tool_use", "id": part.call_id, "name": part.name, "input": arguments}
    if isinstance(part, ToolResult):
        content = [block_of(one) for one in part.content if one != Text("")]
        made: dict[str, Any] = {"type": "tool_result", "tool_use_id": part.call_id, "content": content}
        return {**made, "is_error": True} if part.is_error else made
    return block_of(part)
