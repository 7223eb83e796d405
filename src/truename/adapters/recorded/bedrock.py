"""Histories of Amazon Bedrock Converse."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from truename.adapters.bedrock import block_of
from truename.adapters.recorded.mentions import Mention, Tell, untranslatable
from truename.adapters.recorded.parts import arguments_object, is_blank
from truename.adapters.turns import Image, Json, Text, ToolCall, ToolResult, Turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truename.adapters.reading import Place
    from truename.adapters.turns import Part, Role, Shown

__all__ = ["mentions", "read", "write"]

_ROLES: Final[dict[str, Role]] = {"user": "user", "assistant": "assistant"}
_USE: Final = frozenset({"toolUseId", "name", "input"})
_RESULT: Final = frozenset({"toolUseId", "content", "status"})
_DROPPED: Final = frozenset({"reasoningContent", "cachePoint", "guardContent"})


def mentions(messages: Sequence[Place]) -> Iterator[Mention]:
    """Iterate over the calls and results."""
    for message in messages:
        message.text("role")
        for block in message.each("content"):
            if block.get("toolUse") is not None:
                use = block.inside("toolUse")
                own = use if use.get("type") is None else None
                yield Mention(kind="call", place=use, id_key="toolUseId", named=own)
            elif block.get("toolResult") is not None:
                yield Mention(kind="result", place=block.inside("toolResult"), id_key="toolUseId")


def read(messages: Sequence[Place], tell: Tell) -> Iterator[Turn]:
    """Iterate over the turns. Raises `InvalidPayload` for what no other API has."""
    for message in messages:
        message.only(frozenset({"role", "content"}))
        role = message.text("role")
        if role not in _ROLES:
            message.wrong("role", "is no role that is known here")
        yield Turn(_ROLES[role], tuple(_parts(message, tell)), message.where)


def _parts(message: Place, tell: Tell) -> Iterator[Part]:
    for block in message.each("content"):
        kinds = [name for name, value in block.value.items() if value is not None]
        if len(kinds) != 1:
            block.wrong("", f"has {len(kinds)} kinds of content, not one")
        if kinds[0] == "toolUse":
            yield _call(block.inside("toolUse"))
        elif kinds[0] == "toolResult":
            yield _result(block.inside("toolResult"))
        elif kinds[0] in _DROPPED:
            tell("dropped", block.path(kinds[0]), "is of use to this API only and was left out")
        else:
            yield _shown(block, kinds[0])


def _shown(block: Place, kind: str) -> Shown:
    if kind == "text":
        return Text(block.optional("text") or "")
    if kind == "json":
        return Json(block.value["json"])
    if kind == "image":
        image = block.inside("image")
        source = image.inside("source").get("bytes")
        if isinstance(source, bytes):
            return Image(media_type=f"image/{image.text('format')}", base64=base64.b64encode(source).decode())
    raise untranslatable(block, "no text, JSON or image with its bytes", kind)


def _call(use: Place) -> ToolCall:
    use.only(_USE)
    given = use.get("input")
    if not isinstance(given, Mapping):
        use.wrong("input", "is missing" if given is None else f"is of type {type(given).__name__}, not an object")
    return ToolCall(call_id=use.text("toolUseId"), name=use.text("name"), arguments=given)


def _result(result: Place) -> ToolResult:
    result.only(_RESULT)
    content = tuple(_shown(block, next(iter(block.value), "")) for block in result.each("content"))
    is_error = result.optional("status") == "error"
    return ToolResult(call_id=result.text("toolUseId"), content=content, is_error=is_error)


def write(turn: Turn) -> Iterator[dict[str, Any]]:
    """Iterate over the messages of a turn: one, in which results come first."""
    ordered = sorted(turn.parts, key=lambda part: 0 if isinstance(part, ToolResult) else 1)
    blocks = [_block(part) for part in ordered if not is_blank(part)]
    if blocks:
        yield {"role": turn.role, "content": blocks}


def _block(part: Part) -> dict[str, Any]:
    if isinstance(part, ToolCall):
        made = {"toolUseId": part.call_id, "name": part.name, "input": arguments_object(part.arguments)}
        return {"toolUse": made}
    if isinstance(part, ToolResult):
        content = [block_of(one) for one in part.content if one != Text("")]
        result = {"toolUseId": part.call_id, "content": content}
        return {"toolResult": {**result, "status": "error"} if part.is_error else result}
    return block_of(part)
