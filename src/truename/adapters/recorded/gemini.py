"""Histories of Gemini: ``contents``, in either spelling of the fields."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from truename.adapters.gemini import MADE, made_id, response_of
from truename.adapters.recorded.mentions import Mention, Tell, untranslatable
from truename.adapters.recorded.parts import arguments_object
from truename.adapters.turns import Image, Json, Text, ToolCall, ToolResult, Turn, as_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truename.adapters.reading import Place
    from truename.adapters.turns import Part, Role, Shown

__all__ = ["mentions", "read", "with_ids", "without_made_ids", "write"]

_ROLES: Final[dict[str, Role]] = {"user": "user", "model": "assistant", "function": "user"}
_CALL: Final = ("functionCall", "function_call")
_RESPONSE: Final = ("functionResponse", "function_response")
_SIGNATURE: Final = ("thoughtSignature", "thought_signature")
# Newer models refuse calls without a signature of their own; this one is documented for calls that another model made.
_FOREIGN: Final = "skip_thought_signature_validator"
_CALL_FIELDS: Final = frozenset({"id", "name", "args"})
_RESPONSE_FIELDS: Final = frozenset({"id", "name", "response", "parts"})
_MIXED: Final = frozenset({"thought", *_SIGNATURE})


def with_ids(messages: Sequence[Place]) -> None:
    """Give every call and response that came without an id one; a response belongs to the first open call of its name.

    Calls that came without an id go before those that have one.

    Raises the fault for a response without a call.
    """
    waiting: list[Place] = []
    made = 0
    for message in messages:
        for part in message.each("parts"):
            if part.get(*_CALL) is not None:
                call = part.inside(*_CALL)
                if call.optional("id") is None:
                    call.value["id"] = made_id("history", made)
                    made += 1
                waiting.append(call)
            elif part.get(*_RESPONSE) is not None:
                _match(part.inside(*_RESPONSE), waiting)


def _match(response: Place, waiting: list[Place]) -> None:
    given, name = response.optional("id"), response.text("name")
    key, wanted = ("name", name) if given is None else ("id", given)
    fit = [call for call in waiting if call.value.get(key) == wanted]
    # What came without an id answers a call that came without one, if any is open.
    call = min(fit, key=lambda call: not call.text("id").startswith(MADE), default=None)
    if call is None and given is None:
        response.wrong("name", "answers no call")
    if call is not None:
        waiting.remove(call)
        response.value["id"] = call.value["id"]


def without_made_ids(messages: Sequence[Place]) -> None:
    """Take out the ids that were made here: the API did not give them and does not need them."""
    for mention in mentions(messages):
        if str(mention.place.value.get("id", "")).startswith(MADE):
            del mention.place.value["id"]


def mentions(messages: Sequence[Place]) -> Iterator[Mention]:
    """Iterate over the calls and responses, both of which have a name."""
    for message in messages:
        for part in message.each("parts"):
            if part.get(*_CALL) is not None:
                call = part.inside(*_CALL)
                yield Mention(kind="call", place=call, id_key="id", named=call)
            elif part.get(*_RESPONSE) is not None:
                response = part.inside(*_RESPONSE)
                yield Mention(kind="result", place=response, id_key="id", named=response)


def read(messages: Sequence[Place], tell: Tell) -> Iterator[Turn]:
    """Iterate over the turns. Raises `InvalidPayload` for what no other API has."""
    for message in messages:
        message.only(frozenset({"role", "parts"}))
        role = message.optional("role") or "user"
        if role not in _ROLES:
            message.wrong("role", "is no role that is known here")
        yield Turn(_ROLES[role], tuple(_parts(message, tell)), message.where)


def _parts(message: Place, tell: Tell) -> Iterator[Part]:
    for part in message.each("parts"):
        signature = part.get(*_SIGNATURE)
        if signature not in (None, _FOREIGN, _FOREIGN.encode()):
            tell("dropped", part.path(part.key(*_SIGNATURE)), "is of use to this API only and was left out")
        if part.get("thought"):
            tell("dropped", part.where, "is a thought, which is of use to this API only, and was left out")
        elif part.get(*_CALL) is not None:
            yield _call(part.inside(*_CALL))
        elif part.get(*_RESPONSE) is not None:
            yield _result(part.inside(*_RESPONSE))
        elif any(value is not None for name, value in part.value.items() if name not in _MIXED):
            yield _shown(part)


def _shown(part: Place) -> Shown:
    if isinstance(part.get("text"), str):
        return Text(part.value["text"])
    if part.get("inlineData", "inline_data") is not None:
        inline = part.inside("inlineData", "inline_data")
        found = inline.get("data")
        text = base64.b64encode(found).decode() if isinstance(found, bytes) else inline.text("data")
        return Image(media_type=inline.text("mimeType", "mime_type"), base64=text)
    raise untranslatable(part, "no text, call, response or inline image")


def _call(call: Place) -> ToolCall:
    call.only(_CALL_FIELDS)
    given = call.get("args")
    if given is not None and not isinstance(given, Mapping):
        call.wrong("args", f"is of type {type(given).__name__}, not an object")
    return ToolCall(call_id=call.text("id"), name=call.text("name"), arguments=given or {})


def _result(place: Place) -> ToolResult:
    place.only(_RESPONSE_FIELDS)
    response = place.inside("response").value
    is_error = set(response) == {"error"}
    said = next(iter(response.values())) if set(response) in ({"error"}, {"output"}) else response
    content: list[Shown] = [Text(said) if isinstance(said, str) else Json(said)]
    content += map(_shown, place.each("parts"))
    return ToolResult(call_id=place.text("id"), content=tuple(content), is_error=is_error)


def write(turn: Turn) -> Iterator[dict[str, Any]]:
    """Iterate over the contents of a turn; results stand in one of their own."""
    results = [_response(part) for part in turn.parts if isinstance(part, ToolResult)]
    if results:
        yield {"role": "user", "parts": results}
    said = [_part(part) for part in turn.parts if not isinstance(part, ToolResult) and part != Text("")]
    first = next((part for part in said if "functionCall" in part), None)
    if first is not None:
        first["thoughtSignature"] = _FOREIGN
    if said:
        yield {"role": "model" if turn.role == "assistant" else "user", "parts": said}


def _response(result: ToolResult) -> dict[str, Any]:
    made = {"name": result.name, "response": response_of(result.content, is_error=result.is_error)}
    images = [_inline(part) for part in result.content if isinstance(part, Image)]
    return {"functionResponse": {**_id(result), **made, **({"parts": images} if images else {})}}


def _id(part: ToolCall | ToolResult) -> dict[str, str]:
    # The API did not give the ids that were made here, and does not need them.
    return {} if part.call_id.startswith(MADE) else {"id": part.call_id}


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, ToolCall):
        return {"functionCall": {**_id(part), "name": part.name, "args": arguments_object(part.arguments)}}
    if isinstance(part, Image):
        return _inline(part)
    if isinstance(part, ToolResult):
        return _response(part)
    return {"text": as_text(part)}


def _inline(image: Image) -> dict[str, Any]:
    if image.url:
        return {"fileData": {"fileUri": image.url, "mimeType": image.media_type or "image/png"}}
    return {"inlineData": {"mimeType": image.media_type, "data": image.base64}}
