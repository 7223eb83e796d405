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

    from truename.adapters.reading import PayloadPlace
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
    "grouped",
    "image_of_url",
    "is_blank",
    "marked",
    "shown",
    "untranslatable",
    "url_of",
]

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
class ConversationTurn:
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


# Takes a code, where it is, and a sentence about it.
Tell = Callable[[str, str, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryMention:
    """A call, its result, or a mere reference to a tool: who is named in it, and which call it is.

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
        """The id of the call. Raises if it is missing or no text."""
        return self.place.text(self.id_key)

    @property
    def name(self) -> str | None:
        """The name, which a call has to have and a result may have."""
        if self.named is None:
            return None
        return self.named.optional(self.name_key) if self.kind == "result" else self.named.text(self.name_key)

    @property
    def namespace(self) -> str | None:
        """The namespace, where the API has them."""
        return self.named.optional("namespace") if self.named is not None and self.spaced else None

    def put_id(self, call_id: str) -> None:
        """Write the id."""
        self.place.value[self.id_key] = call_id

    def put_key(self, key: LookupKey) -> None:
        """Write the name, and the namespace that goes with it."""
        if self.named is None:
            return
        self.named.value[self.name_key] = key.name
        if self.spaced:
            self.named.value.pop("namespace", None)
            if key.call_namespace is not None:
                self.named.value["namespace"] = key.call_namespace


def untranslatable(place: PayloadPlace, what: str, field: str = "") -> InvalidPayload:
    """Return the error for something that only the API it was recorded under has."""
    where = place.path(field) if field else place.where
    return InvalidPayload(field=where, problem=f"is {what}, which can't be carried to another API")


# A failed call may have been recorded with a text that is no object; where the API wants one, it stands in this field.
MALFORMED: Final = "malformed_arguments"
_DATA_URL: Final = re.compile(r"data:([a-zA-Z0-9.+/-]+);base64,(.*)", re.DOTALL)
_MAX_DEPTH: Final = 64


def arguments_of(text: str) -> Mapping[str, Any] | str:
    """Return recorded arguments: the object that they are, or the text where they are none (a failed call)."""
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


def arguments_text(arguments: Mapping[str, Any] | str) -> str:
    """Return arguments as the text that OpenAI's APIs keep."""
    if isinstance(arguments, str):
        return arguments
    if set(arguments) == {MALFORMED} and isinstance(arguments[MALFORMED], str):
        return str(arguments[MALFORMED])
    return json.dumps(arguments, ensure_ascii=False)


def arguments_object(arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    """Return arguments as the object that all other APIs keep."""
    return {MALFORMED: arguments} if isinstance(arguments, str) else dict(arguments)


def is_blank(part: Part) -> bool:
    """Tell whether a part is a text of white space only, which some APIs refuse."""
    return isinstance(part, Text) and not part.text.strip()


def image_of_url(url: str) -> Image:
    """Return the image of an address or a data URL."""
    found = _DATA_URL.fullmatch(url)
    return Image(url=url) if found is None else Image(media_type=found[1], base64=found[2])


def url_of(image: Image) -> str:
    """Return an image's address, as a data URL if it has none."""
    return image.url or f"data:{image.media_type};base64,{image.base64}"


def marked(content: tuple[Shown, ...]) -> tuple[bool, tuple[Shown, ...]]:
    """Return whether a result's text says that it failed, and the content without that mark."""
    if not content or not isinstance(content[0], Text) or not content[0].text.startswith(ERROR_MARK):
        return False, content
    rest = content[0].text.removeprefix(ERROR_MARK)
    return True, ((Text(rest), *content[1:]) if rest or len(content) == 1 else content[1:])


def grouped(turns: Sequence[ConversationTurn], joined: Collection[Role]) -> list[ConversationTurn]:
    """Return the turns with every result right behind its call, and neighbours of the ``joined`` roles made one."""
    results = {part.call_id: part for turn in turns for part in turn.parts if isinstance(part, ToolResult)}
    bare = [_without_results(turn) for turn in turns]
    # A turn that held results only is empty now, and still parts what was said before from what was said after.
    assistants = [turn for turn in _joined(bare, {"assistant"}) if turn.parts]
    return list(_joined(_answered(assistants, results), joined))


def _without_results(turn: ConversationTurn) -> ConversationTurn:
    return replace(turn, parts=tuple(part for part in turn.parts if not isinstance(part, ToolResult)))


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
