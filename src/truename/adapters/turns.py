"""Represent a conversation as turns of texts, images, calls and results, whatever API recorded it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from truename.errors import InvalidPayload

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from truename.adapters.reading import JsonObject, PayloadPlace
    from truename.identity import LookupKey

__all__ = [
    "ERROR_MARK",
    "ConversationTurn",
    "HistoryMention",
    "Image",
    "Json",
    "Part",
    "Shown",
    "Tell",
    "Text",
    "ToolCall",
    "ToolResult",
    "arguments_object",
    "arguments_of",
    "arguments_text",
    "as_text",
    "content_parts",
    "image_of_url",
    "is_blank",
    "merge_turns",
    "split_error_mark",
    "unsupported_content",
    "url_of",
]

Role = Literal["system", "user", "assistant"]
# OpenAI's results have no field for failure; this mark precedes the text of a failed call.
ERROR_MARK: Final = "[tool error] "


@dataclass(frozen=True, slots=True)
class Text:
    """A text part of a message or of a tool result."""

    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """An image: base64 with its media type, or a URL."""

    media_type: str = ""
    base64: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class Json:
    """A JSON value, which some tools return."""

    value: Any


Shown = Text | Image | Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call that a model made; ``arguments`` is an object, or the text of a failed call that is not one."""

    call_id: str
    name: str
    namespace: str | None = None
    arguments: Mapping[str, object] | str = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of a call."""

    call_id: str
    name: str = ""
    content: tuple[Shown, ...] = ()
    is_error: bool = False


Part = Text | Image | Json | ToolCall | ToolResult


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """A turn of one side; ``where`` is its path in the recorded history."""

    role: Role
    parts: tuple[Part, ...]
    where: str = ""


def as_text(part: Shown, where: str = "content") -> str:
    """Return a part as text. Raises `InvalidPayload` for an image."""
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Json):
        return json.dumps(part.value, ensure_ascii=False)
    raise InvalidPayload(
        field=where, problem="is an image, which this API does not accept here", code="invalid_request"
    )


def content_parts(content: object) -> tuple[Shown, ...]:
    """Return the result of a tool as parts: a text, the content of an MCP result, or any JSON value.

    >>> content_parts([{"type": "text", "text": "sunny"}]), content_parts({"degrees": 3})
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
        return content_parts(block)
    if block["type"] == "text":
        return (Text(block["text"]),)
    return (Image(media_type=str(block.get("mimeType") or "image/png"), base64=block["data"]),)


# A callback with a code, a path, and a sentence about it.
Tell = Callable[[str, str, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryMention:
    """A call, its result, or a reference to a tool in a recorded message.

    ``place`` holds the id in ``id_key``; ``named`` holds the name in ``name_key`` and, if ``spaced``, a namespace.
    """

    kind: Literal["call", "result", "reference"]
    place: PayloadPlace
    id_key: str = ""
    named: PayloadPlace | None = None
    name_key: str = "name"
    spaced: bool = False

    @property
    def call_id(self) -> str:
        """The id of the call. Raises an error if it is missing or not a text."""
        return self.place.text(self.id_key)

    @property
    def name(self) -> str | None:
        """The name, which is required for a call and optional for a result."""
        if self.named is None:
            return None
        return self.named.optional(self.name_key) if self.kind == "result" else self.named.text(self.name_key)

    @property
    def namespace(self) -> str | None:
        """The namespace, if the API has namespaces."""
        return self.named.optional("namespace") if self.named is not None and self.spaced else None

    def put_id(self, call_id: str) -> None:
        """Write the id."""
        self.place.value[self.id_key] = call_id

    def put_key(self, key: LookupKey) -> None:
        """Write the name and its namespace."""
        if self.named is None:
            return
        self.named.value[self.name_key] = key.name
        if self.spaced:
            self.named.value.pop("namespace", None)
            if key.call_namespace is not None:
                self.named.value["namespace"] = key.call_namespace


def unsupported_content(place: PayloadPlace, what: str, field: str = "") -> InvalidPayload:
    """Return the error for content that only the API of the recording has."""
    where = place.path(field) if field else place.where
    return InvalidPayload(field=where, problem=f"is {what}, which other APIs do not support")


# The arguments of a failed call may be a text that is not an object; APIs that need an object get it in this field.
MALFORMED: Final = "malformed_arguments"
_DATA_URL: Final = re.compile(r"data:([a-zA-Z0-9.+/-]+);base64,(.*)", re.DOTALL)
_MAX_DEPTH: Final = 64


def arguments_of(text: str) -> Mapping[str, object] | str:
    """Parse recorded arguments: an object, or the text itself if it is not one (a failed call)."""
    if not text.strip():
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, dict) and _is_shallow(found, 0) else text


def _is_shallow(value: object, depth: int) -> bool:
    if depth > _MAX_DEPTH:
        return False
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return all(_is_shallow(item, depth + 1) for item in inner)


def arguments_text(arguments: Mapping[str, object] | str) -> str:
    """Return arguments as a text, as OpenAI's APIs expect."""
    if isinstance(arguments, str):
        return arguments
    if set(arguments) == {MALFORMED} and isinstance(arguments[MALFORMED], str):
        return str(arguments[MALFORMED])
    return json.dumps(arguments, ensure_ascii=False)


def arguments_object(arguments: Mapping[str, object] | str) -> JsonObject:
    """Return arguments as an object, as all other APIs expect."""
    return {MALFORMED: arguments} if isinstance(arguments, str) else dict(arguments)


def is_blank(part: Part) -> bool:
    """Return whether a part is a text of white space only, which some APIs refuse."""
    return isinstance(part, Text) and not part.text.strip()


def image_of_url(url: str) -> Image:
    """Return the image of a URL or data URL."""
    found = _DATA_URL.fullmatch(url)
    return Image(url=url) if found is None else Image(media_type=found[1], base64=found[2])


def url_of(image: Image) -> str:
    """Return an image's URL, as a data URL if it has none."""
    return image.url or f"data:{image.media_type};base64,{image.base64}"


def split_error_mark(content: tuple[Shown, ...]) -> tuple[bool, tuple[Shown, ...]]:
    """Return whether a result's text has the mark of a failed call, and the content without it."""
    if not content or not isinstance(content[0], Text) or not content[0].text.startswith(ERROR_MARK):
        return False, content
    rest = content[0].text.removeprefix(ERROR_MARK)
    return True, ((Text(rest), *content[1:]) if rest or len(content) == 1 else content[1:])


def merge_turns(turns: Sequence[ConversationTurn], joined: Collection[Role]) -> list[ConversationTurn]:
    """Return the turns with every result after its call, and adjacent turns of the ``joined`` roles merged."""
    results = {part.call_id: part for turn in turns for part in turn.parts if isinstance(part, ToolResult)}
    bare = [
        replace(turn, parts=tuple(part for part in turn.parts if not isinstance(part, ToolResult))) for turn in turns
    ]
    # A turn that had only results is empty now, but still separates the turns before and after it.
    assistants = [turn for turn in _joined(bare, {"assistant"}) if turn.parts]
    return list(_joined(_answered(assistants, results), joined))


def _answered(turns: Iterable[ConversationTurn], results: dict[str, ToolResult]) -> Iterator[ConversationTurn]:
    for turn in turns:
        yield turn
        asked = (part.call_id for part in turn.parts if isinstance(part, ToolCall))
        found = tuple(results[call_id] for call_id in asked if call_id in results)
        if found:
            yield ConversationTurn("user", found, turn.where)


def _joined(turns: Iterable[ConversationTurn], roles: Collection[Role]) -> Iterator[ConversationTurn]:
    last: ConversationTurn | None = None
    for turn in turns:
        if last is not None and turn.role == last.role and turn.role in roles:
            last = replace(last, parts=last.parts + turn.parts)
            continue
        if last is not None:
            yield last
        last = turn
    if last is not None:
        yield last
