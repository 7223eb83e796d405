"""Gemini's generateContent, on the Gemini API and Vertex AI.

Source: the types of the google-genai package 3.4.0 (``FunctionDeclaration``, ``FunctionCall``, ``FunctionResponse``).
Both spellings of fields are read (``functionCall`` and ``function_call``); what is written is that of the REST API,
which the package takes as well.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from truename.adapters.openai_chat import flat
from truename.adapters.reading import Place, plain
from truename.adapters.streams import whole
from truename.adapters.turns import Image, Json, as_text, shown
from truename.adapters.wire import NOBODY, Asked, bound, chosen, offers, required

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from truename import NameTable, ToolId
    from truename.adapters.layout import Layout
    from truename.adapters.wire import Refused
    from truename.policy import Call, Caller

__all__ = ["DIALECT", "MADE", "calls", "made_id", "read", "response_of", "result", "tool_choice", "tools"]

DIALECT: Final = "google-gemini"
# Calls may come without an id. One that was made here is never shown to the API.
MADE: Final = "tn-made-"
_CALL: Final = frozenset(
    {"id", "name", "args", "partialArgs", "partial_args", "willContinue", "will_continue", "thoughtSignature"}
)
_MODES: Final = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
_CUT: Final = frozenset({"MAX_TOKENS", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"})


def tools(names: NameTable | Layout) -> list[dict[str, Any]]:
    """Return the one tool that holds all declarations, or nothing for no tools.

    The schemas go as ``parametersJsonSchema``, which takes JSON Schema as it is. Raises an `ExceptionGroup` of
    `InvalidName`.
    """
    declared = [
        {"name": one.key.name, "description": one.description, "parametersJsonSchema": dict(one.schema)}
        for one in offers(flat(names), DIALECT)
    ]
    return [{"functionDeclarations": declared}] if declared else []


def tool_choice(choice: ToolId | str, names: NameTable | Layout) -> dict[str, Any]:
    """Return the request's ``toolConfig``; a single tool is a mode with one allowed name.

    >>> from truename import Catalog, project
    >>> tool_choice("a/b", project(Catalog.of("a@1/b@1"), "google-gemini"))
    {'functionCallingConfig': {'mode': 'ANY', 'allowedFunctionNames': ['a_b']}}
    """
    key = chosen(choice, flat(names))
    if isinstance(key, str):
        return {"functionCallingConfig": {"mode": _MODES[key]}}
    return {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [key.name]}}


def read(
    answer: object,
    names: NameTable | Layout,
    caller: Caller = NOBODY,
    *,
    turn: str = "",
    endpoints: Mapping[str, str] | None = None,
) -> tuple[Call | Refused, ...]:
    """Return the calls in a response or in the responses of a stream.

    A call without an id gets one of the response's ``responseId``, or of ``turn`` (anything that is another one in each
    turn of the conversation), and its place: the same response gives the same ids. Raises `InvalidCall` for what is no
    response, for several candidates, and for a call without an id where there is nothing to make one of.
    """
    return bound(_asked(answer, turn), flat(names), caller, endpoints)


def calls(
    answer: object,
    names: NameTable | Layout,
    caller: Caller = NOBODY,
    *,
    turn: str = "",
    endpoints: Mapping[str, str] | None = None,
) -> tuple[Call, ...]:
    """Return the calls as `read` does. Raises the error of one that can't be made: then none is."""
    return required(read(answer, names, caller, turn=turn, endpoints=endpoints))


def result(call: Call | Refused, content: object = None, *, is_error: bool = False) -> dict[str, Any]:
    """Return the part that answers a call; an id that the API never gave is not sent to it."""
    made: dict[str, Any] = {"name": call.wire_name, "response": response_of(content, is_error=is_error)}
    if parts := [_inline(part) for part in shown(content) if isinstance(part, Image)]:
        made["parts"] = parts
    return {"functionResponse": made if call.call_id.startswith(MADE) else {"id": call.call_id, **made}}


def response_of(content: object, *, is_error: bool) -> dict[str, Any]:
    """Return a result as the object that the API wants: ``output`` or ``error``, a JSON value as it is."""
    parts = [part for part in shown(content) if not isinstance(part, Image)]
    only = parts[0].value if len(parts) == 1 and isinstance(parts[0], Json) else None
    said = only if only is not None else "\n".join(as_text(part) for part in parts)
    return {"error" if is_error else "output": said}


def _inline(part: Image) -> dict[str, Any]:
    if part.url:
        return {"fileData": {"fileUri": part.url, "mimeType": part.media_type or "image/png"}}
    return {"inlineData": {"mimeType": part.media_type, "data": part.base64}}


def made_id(turn: str, place: int) -> str:
    """Return an id for a call that came without one, of the turn and its place among that turn's calls."""
    return f"{MADE}{hashlib.sha256(turn.encode('utf-8', 'surrogatepass')).hexdigest()[:20]}-{place}"


def _asked(answer: object, turn: str) -> Iterator[Asked]:
    response = Place.of(whole(answer, _assembled))
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


def _one(call: Place, turn: str, place: int, *, cut: bool) -> Asked:
    call.only(_CALL)
    if call.get("willContinue", "will_continue") or call.get("partialArgs", "partial_args"):
        call.wrong(call.key("partialArgs", "partial_args"), "are pieces of arguments, which are not read here")
    if call.optional("id") is None and not turn:
        call.wrong("id", "is missing, and there is no responseId to make one of")
    given = call.get("args")
    if isinstance(given, str):
        call.wrong("args", "is of type str, not an object")
    return Asked(
        name=call.text("name"),
        call_id=call.text("id") if call.get("id") is not None else made_id(turn, place),
        # A call without arguments comes without the field.
        arguments={} if given is None else given,
        paths={"name": call.path("name"), "arguments": call.path("args"), "call_id": call.path("id")},
        problem="was cut off by the API" if cut else "",
    )


def _assembled(responses: Iterable[Any]) -> dict[str, Any]:
    """Join the responses of a stream: calls come whole, so their parts are put together."""
    parts: list[Any] = []
    joined: dict[str, Any] = {"candidates": [{"content": {"role": "model", "parts": parts}}]}
    for number, raw in enumerate(responses):
        response = Place.of(plain(raw), f"responses[{number}]")
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
        Place(joined).wrong("candidates", "is not finished: the stream ended without a finishReason")
    return joined
