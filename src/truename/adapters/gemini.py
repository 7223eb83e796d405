"""Adapt tools, calls and histories to Gemini's generateContent, on the Gemini API and Vertex AI."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from truename.adapters.openai_chat import flat
from truename.adapters.reading import JsonObject, PayloadPlace, plain
from truename.adapters.turns import (
    ConversationTurn,
    HistoryMention,
    Image,
    Json,
    Tell,
    Text,
    ToolCall,
    ToolResult,
    arguments_object,
    as_text,
    content_parts,
    unsupported_content,
)
from truename.adapters.wire import (
    NOBODY,
    RequestedCall,
    bind_calls,
    join_response,
    offered_tools,
    require_all,
    resolve_choice,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from truename import NameTable, ToolId
    from truename.adapters.layout import NamespaceLayout
    from truename.adapters.turns import Part, Role, Shown
    from truename.adapters.wire import RefusedCall
    from truename.policy import Call, Caller

__all__ = ["DIALECT", "add_missing_ids", "calls", "remove_made_ids", "result", "tool_choice", "tools"]

DIALECT: Final = "google-gemini"
# The prefix of ids made here for calls that came without one; the API never sees these ids.
MADE: Final = "tn-made-"
_CALL: Final = frozenset(
    {"id", "name", "args", "partialArgs", "partial_args", "willContinue", "will_continue", "thoughtSignature"}
)
_MODES: Final = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
_CUT: Final = frozenset({"MAX_TOKENS", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"})


def tools(names: NameTable | NamespaceLayout) -> list[JsonObject]:
    """Return the one tool that holds all declarations; an empty list for no tools.

    The schemas are sent as ``parametersJsonSchema``, which accepts JSON Schema unchanged. Raises an `ExceptionGroup` of
    `InvalidName`.
    """
    declared = [
        {"name": one.key.name, "description": one.description, "parametersJsonSchema": dict(one.schema)}
        for one in offered_tools(flat(names), DIALECT)
    ]
    return [{"functionDeclarations": declared}] if declared else []


def tool_choice(choice: ToolId | str, names: NameTable | NamespaceLayout) -> JsonObject:
    """Return the request's ``toolConfig``; for a single tool, a mode with one allowed name.

    >>> from truename import Catalog, project
    >>> tool_choice("a/b", project(Catalog.of("a@1/b@1"), "google-gemini"))
    {'functionCallingConfig': {'mode': 'ANY', 'allowedFunctionNames': ['a_b']}}
    """
    key = resolve_choice(choice, flat(names))
    if isinstance(key, str):
        return {"functionCallingConfig": {"mode": _MODES[key]}}
    return {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [key.name]}}


def read(
    answer: object,
    names: NameTable | NamespaceLayout,
    caller: Caller = NOBODY,
    *,
    turn: str = "",
    endpoints: Mapping[str, str] | None = None,
) -> tuple[Call | RefusedCall, ...]:
    """Return the calls in a response or in the responses of a stream.

    A call without an id gets one from its position and the response's ``responseId``, or ``turn`` (a text unique to
    each turn of the conversation): the same response gives the same ids. Raises `InvalidCall` for anything else, for
    several candidates, and for a call without an id if there is neither.
    """
    return bind_calls(_requested_calls(answer, turn), flat(names), caller, endpoints)


def calls(
    answer: object,
    names: NameTable | NamespaceLayout,
    caller: Caller = NOBODY,
    *,
    turn: str = "",
    endpoints: Mapping[str, str] | None = None,
) -> tuple[Call, ...]:
    """Return the calls as `read` does. Raises the errors of refused calls; then no call is returned."""
    return require_all(read(answer, names, caller, turn=turn, endpoints=endpoints))


def result(call: Call | RefusedCall, content: object = None, *, is_error: bool = False) -> JsonObject:
    """Build the `functionResponse` part for a call; an id that Truename made for the call is left out."""
    made: JsonObject = {"name": call.wire_name, "response": response_of(content, is_error=is_error)}
    if parts := [_inline(part) for part in content_parts(content) if isinstance(part, Image)]:
        made["parts"] = parts
    return {"functionResponse": made if call.call_id.startswith(MADE) else {"id": call.call_id, **made}}


def response_of(content: object, *, is_error: bool) -> JsonObject:
    """Return a result as the object that the API expects: ``output`` or ``error``, with a JSON value unchanged."""
    parts = [part for part in content_parts(content) if not isinstance(part, Image)]
    only = parts[0].value if len(parts) == 1 and isinstance(parts[0], Json) else None
    said = only if only is not None else "\n".join(as_text(part) for part in parts)
    return {"error" if is_error else "output": said}


def _inline(part: Image) -> JsonObject:
    if part.url:
        return {"fileData": {"fileUri": part.url, "mimeType": part.media_type or "image/png"}}
    return {"inlineData": {"mimeType": part.media_type, "data": part.base64}}


def made_id(turn: str, place: int) -> str:
    """Return an id for a call that came without one, from the turn and the call's position in it."""
    return f"{MADE}{hashlib.sha256(turn.encode('utf-8', 'surrogatepass')).hexdigest()[:20]}-{place}"


def _requested_calls(answer: object, turn: str) -> Iterator[RequestedCall]:
    response = PayloadPlace.of(join_response(answer, _join_stream))
    candidates = list(response.each("candidates"))
    if len(candidates) > 1:
        response.wrong("candidates", f"has {len(candidates)} alternatives, not one")
    if not candidates and response.get("promptFeedback", "prompt_feedback") is None:
        response.wrong("candidates", "is missing")
    key = turn or response.optional("responseId", "response_id") or ""
    for candidate in candidates:
        cut = candidate.optional("finishReason", "finish_reason") in _CUT
        content = candidate.inside("content") if candidate.get("content") is not None else candidate
        found = [part for part in content.each("parts") if part.get("functionCall", "function_call") is not None]
        for place, part in enumerate(found):
            yield _one(part.inside("functionCall", "function_call"), key, place, cut=cut)


def _one(call: PayloadPlace, turn: str, place: int, *, cut: bool) -> RequestedCall:
    call.only(_CALL)
    if call.get("willContinue", "will_continue") or call.get("partialArgs", "partial_args"):
        call.wrong(call.key("partialArgs", "partial_args"), "are pieces of arguments, which are not supported")
    if call.optional("id") is None and not turn:
        call.wrong("id", "is missing, and so is the responseId")
    given = call.get("args")
    if isinstance(given, str):
        call.wrong("args", "is of type str, not an object")
    return RequestedCall(
        name=call.text("name"),
        call_id=call.text("id") if call.get("id") is not None else made_id(turn, place),
        # A call without arguments omits the field.
        arguments={} if given is None else given,
        paths={"name": call.path("name"), "arguments": call.path("args"), "call_id": call.path("id")},
        problem="was cut off by the API" if cut else "",
    )


def _join_stream(responses: Iterable[object]) -> JsonObject:
    """Join the responses of a stream by collecting their parts, since calls are never split."""
    parts: list[object] = []
    joined: JsonObject = {"candidates": [{"content": {"role": "model", "parts": parts}}]}
    for number, raw in enumerate(responses):
        response = PayloadPlace.of(plain(raw), f"responses[{number}]")
        joined["responseId"] = response.optional("responseId", "response_id") or joined.get("responseId")
        candidates = list(response.each("candidates"))
        if len(candidates) > 1:
            response.wrong("candidates", f"has {len(candidates)} alternatives, not one")
        for candidate in candidates:
            if candidate.get("content") is not None:
                parts += [part.value for part in candidate.inside("content").each("parts")]
            reason = candidate.optional("finishReason", "finish_reason")
            joined["candidates"][0]["finishReason"] = reason or joined["candidates"][0].get("finishReason")
    if not joined["candidates"][0].get("finishReason"):
        PayloadPlace(joined).wrong("candidates", "is incomplete: the stream ended without a finishReason")
    return joined


_ROLES: Final[dict[str, Role]] = {"user": "user", "model": "assistant", "function": "user"}
_HISTORY_CALL: Final = ("functionCall", "function_call")
_RESPONSE: Final = ("functionResponse", "function_response")
_SIGNATURE: Final = ("thoughtSignature", "thought_signature")
# Newer models refuse calls without a signature; this one is documented for calls that another model made.
_FOREIGN: Final = "skip_thought_signature_validator"
_CALL_FIELDS: Final = frozenset({"id", "name", "args"})
_RESPONSE_FIELDS: Final = frozenset({"id", "name", "response", "parts"})
_MIXED: Final = frozenset({"thought", *_SIGNATURE})


def add_missing_ids(messages: Sequence[PayloadPlace]) -> None:
    """Give an id to every call and response without one; a response belongs to the first open call of its name.

    Calls that came without an id come before those that have one. Raises an error for a response without a call.
    """
    waiting: list[PayloadPlace] = []
    made = 0
    for message in messages:
        for part in message.each("parts"):
            if part.get(*_HISTORY_CALL) is not None:
                call = part.inside(*_HISTORY_CALL)
                if call.optional("id") is None:
                    call.value["id"] = made_id("history", made)
                    made += 1
                waiting.append(call)
            elif part.get(*_RESPONSE) is not None:
                _match(part.inside(*_RESPONSE), waiting)


def _match(response: PayloadPlace, waiting: list[PayloadPlace]) -> None:
    given, name = response.optional("id"), response.text("name")
    key, wanted = ("name", name) if given is None else ("id", given)
    fit = [call for call in waiting if call.value.get(key) == wanted]
    # A response without an id belongs to a call that came without one, if any is open.
    call = min(fit, key=lambda call: not call.text("id").startswith(MADE), default=None)
    if call is None and given is None:
        response.wrong("name", "belongs to no call")
    if call is not None:
        waiting.remove(call)
        response.value["id"] = call.value["id"]


def remove_made_ids(messages: Sequence[PayloadPlace]) -> None:
    """Remove the ids that were made here: the API does not know them."""
    for mention in history_mentions(messages):
        if str(mention.place.value.get("id", "")).startswith(MADE):
            del mention.place.value["id"]


def history_mentions(messages: Sequence[PayloadPlace]) -> Iterator[HistoryMention]:
    """Yield the calls and responses, both of which have a name."""
    for message in messages:
        for part in message.each("parts"):
            if part.get(*_HISTORY_CALL) is not None:
                call = part.inside(*_HISTORY_CALL)
                yield HistoryMention(kind="call", place=call, id_key="id", named=call)
            elif part.get(*_RESPONSE) is not None:
                response = part.inside(*_RESPONSE)
                yield HistoryMention(kind="result", place=response, id_key="id", named=response)


def read_history(messages: Sequence[PayloadPlace], tell: Tell) -> Iterator[ConversationTurn]:
    """Yield the turns of a history.

    Raises `InvalidPayload` for content that cannot be carried to other APIs, and for invalid messages.
    """
    for message in messages:
        message.only(frozenset({"role", "parts"}))
        role = message.optional("role") or "user"
        if role not in _ROLES:
            message.wrong("role", "is not a known role")
        yield ConversationTurn(_ROLES[role], tuple(_parts(message, tell)), message.where)


def _parts(message: PayloadPlace, tell: Tell) -> Iterator[Part]:
    for part in message.each("parts"):
        signature = part.get(*_SIGNATURE)
        if signature not in (None, _FOREIGN, _FOREIGN.encode()):
            tell("dropped", part.path(part.key(*_SIGNATURE)), "is specific to this API and was dropped")
        if part.get("thought"):
            tell("dropped", part.where, "is a thought, which is specific to this API, and was dropped")
        elif part.get(*_HISTORY_CALL) is not None:
            yield _call(part.inside(*_HISTORY_CALL))
        elif part.get(*_RESPONSE) is not None:
            yield _result(part.inside(*_RESPONSE))
        elif any(value is not None for name, value in part.value.items() if name not in _MIXED):
            yield _shown(part)


def _shown(part: PayloadPlace) -> Shown:
    if isinstance(part.get("text"), str):
        return Text(part.value["text"])
    if part.get("inlineData", "inline_data") is not None:
        inline = part.inside("inlineData", "inline_data")
        found = inline.get("data")
        text = base64.b64encode(found).decode() if isinstance(found, bytes) else inline.text("data")
        return Image(media_type=inline.text("mimeType", "mime_type"), base64=text)
    raise unsupported_content(part, "neither text nor call nor response nor inline image")


def _call(call: PayloadPlace) -> ToolCall:
    call.only(_CALL_FIELDS)
    given = call.get("args")
    if given is not None and not isinstance(given, Mapping):
        call.wrong("args", f"is of type {type(given).__name__}, not an object")
    return ToolCall(call_id=call.text("id"), name=call.text("name"), arguments=given or {})


def _result(place: PayloadPlace) -> ToolResult:
    place.only(_RESPONSE_FIELDS)
    response = place.inside("response").value
    is_error = set(response) == {"error"}
    said = next(iter(response.values())) if set(response) in ({"error"}, {"output"}) else response
    content: list[Shown] = [Text(said) if isinstance(said, str) else Json(said)]
    content += map(_shown, place.each("parts"))
    return ToolResult(call_id=place.text("id"), content=tuple(content), is_error=is_error)


def write_turn(turn: ConversationTurn) -> Iterator[JsonObject]:
    """Yield the contents of a turn; results form a separate one."""
    results = [_response(part) for part in turn.parts if isinstance(part, ToolResult)]
    if results:
        yield {"role": "user", "parts": results}
    said = [_part(part) for part in turn.parts if not isinstance(part, ToolResult) and part != Text("")]
    first = next((part for part in said if "functionCall" in part), None)
    if first is not None:
        first["thoughtSignature"] = _FOREIGN
    if said:
        yield {"role": "model" if turn.role == "assistant" else "user", "parts": said}


def _response(result: ToolResult) -> JsonObject:
    made = {"name": result.name, "response": response_of(result.content, is_error=result.is_error)}
    images = [_inline(part) for part in result.content if isinstance(part, Image)]
    return {"functionResponse": {**_id(result), **made, **({"parts": images} if images else {})}}


def _id(part: ToolCall | ToolResult) -> dict[str, str]:
    # The API does not know the ids that were made here.
    return {} if part.call_id.startswith(MADE) else {"id": part.call_id}


def _part(part: Part) -> JsonObject:
    if isinstance(part, ToolCall):
        return {"functionCall": {**_id(part), "name": part.name, "args": arguments_object(part.arguments)}}
    if isinstance(part, Image):
        return _inline(part)
    if isinstance(part, ToolResult):
        return _response(part)
    return {"text": as_text(part)}
