"""Pieces of turns that several APIs write alike: arguments as text, images as addresses, the mark of a failure."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from truename.adapters.turns import ERROR_MARK, Image, Text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.adapters.turns import Part, Shown

__all__ = [
    "MALFORMED",
    "arguments_object",
    "arguments_of",
    "arguments_text",
    "image_of_url",
    "is_blank",
    "marked",
    "url_of",
]

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
