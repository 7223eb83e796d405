"""What a conversation consists of, whatever the API: turns of texts, images, calls and their results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from truename.errors import InvalidPayload

__all__ = ["ERROR_MARK", "Image", "Json", "Part", "Shown", "Text", "ToolCall", "ToolResult", "Turn", "as_text", "shown"]

Role = Literal["system", "user", "assistant"]
# OpenAI's results have no field for failure; this mark is written in front of the text, and read back from there.
ERROR_MARK: Final = "[tool error] "


@dataclass(frozen=True, slots=True)
class Text:
    """A text."""

    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """An image: base64 with its media type, or the address of one."""

    media_type: str = ""
    base64: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class Json:
    """A JSON value, as some tools answer."""

    value: Any


Shown = Text | Image | Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call that a model made; ``arguments`` is an object, or the text that was none (a failed call)."""

    call_id: str
    name: str
    namespace: str | None = None
    arguments: Mapping[str, Any] | str = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What came of a call."""

    call_id: str
    name: str = ""
    content: tuple[Shown, ...] = ()
    is_error: bool = False


Part = Text | Image | Json | ToolCall | ToolResult


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side says; ``where`` is its path in the history it was read from."""

    role: Role
    parts: tuple[Part, ...]
    where: str = ""


def as_text(part: Shown, where: str = "content") -> str:
    """Return a part as text. Raises `InvalidPayload` for an image, which is none."""
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Json):
        return json.dumps(part.value, ensure_ascii=False)
    raise InvalidPayload(field=where, problem="is an image, which this API does not take here", code="invalid_request")


def shown(content: object) -> tuple[Shown, ...]:
    """Return what a tool answered as parts: a text, the content of an MCP result, or any JSON value.

    >>> shown([{"type": "text", "text": "sunny"}]), shown({"degrees": 3})
    ((Text(text='sunny'),), (Json(value={'degrees': 3}),))
    """
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(content),)
    if isinstance(content, Text | Image | Json):
        return (content,)
    if isinstance(content, Sequence) and content and all(_is_block(block) for block in content):
        return tuple(part for block in content for part in _block(block))
    return (Json(content),)


def _is_block(block: object) -> bool:
    return isinstance(block, Text | Image | Json) or (
        isinstance(block, Mapping)
        and (
            (block.get("type") == "text" and isinstance(block.get("text"), str))
            or (block.get("type") == "image" and isinstance(block.get("data"), str))
        )
    )


def _block(block: Any) -> tuple[Shown, ...]:
    if not isinstance(block, Mapping):
        return shown(block)
    if block["type"] == "text":
        return (Text(block["text"]),)
    return (Image(media_type=str(block.get("mimeType") or "image/png"), base64=block["data"]),)
