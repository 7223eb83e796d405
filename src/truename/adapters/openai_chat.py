"""Adapt tools, calls and histories to OpenAI Chat Completions, and the many servers that implement it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from truename.adapters.layout import NamespaceLayout
from truename.adapters.reading import JsonObject, PayloadPlace, plain
from truename.adapters.turns import (
    ERROR_MARK,
    ConversationTurn,
    HistoryMention,
    Image,
    Tell,
    Text,
    ToolCall,
    ToolResult,
    arguments_of,
    arguments_text,
    as_text,
    content_parts,
    image_of_url,
    split_error_mark,
    unsupported_content,
    url_of,
)
from truename.adapters.wire import (
    NOBODY,
    Fragments,
    RequestedCall,
    bind_calls,
    join_response,
    offered_tools,
    require_all,
    resolve_choice,
)
from truename.errors import InvalidPayload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from truename import NameTable, ToolId
    from truename.adapters.turns import Part, Role, Shown
    from truename.adapters.wire import RefusedCall
    from truename.policy import Call, Caller

__all__ = ["DIALECT", "calls", "content_of", "flat", "result", "tool_choice", "tools"]

DIALECT: Final = "openai"
_CALL: Final = frozenset({"id", "type", "index", "function", "custom", "extra_content"})
_FUNCTION: Final = frozenset({"name", "arguments", "parsed_arguments"})
# A call that was cut off can look complete: an empty text would be a call without arguments.
_CUT: Final = frozenset({"length", "content_filter"})


def flat(names: NameTable | NamespaceLayout) -> NamespaceLayout:
    """Return the layout if it is flat. Raises `InvalidPayload` for one with namespaces or deferred tools."""
    layout = NamespaceLayout.of(names)
    if any(key.kind != "bare" for key in layout.keys.values()):
        problem = "has namespaces or deferred tools, which this API does not have"
        raise InvalidPayload(field="tools", problem=problem, code="invalid_request")
    return layout


def tools(names: NameTable | NamespaceLayout, *, strict: bool | None = None) -> list[JsonObject]:
    """Return the tools as ``{"type": "function", "function": {...}}``; ``strict`` is passed on to the API.

    Raises an `ExceptionGroup` of `InvalidName` for names that the API would refuse.
    """
    extra = {} if strict is None else {"strict": strict}
    return [
        {
            "type": "function",
            "function": {"name": one.key.name, "description": one.description, "parameters": dict(one.schema)} | extra,
        }
        for one in offered_tools(flat(names), DIALECT)
    ]


def tool_choice(choice: ToolId | str, names: NameTable | NamespaceLayout) -> str | JsonObject:
    """Return ``auto``, ``none``, ``required``, or the one function that the model must call."""
    key = resolve_choice(choice, flat(names))
    return key if isinstance(key, str) else {"type": "function", "function": {"name": key.name}}


def read(
    answer: object,
    names: NameTable | NamespaceLayout,
    caller: Caller = NOBODY,
    *,
    endpoints: Mapping[str, str] | None = None,
) -> tuple[Call | RefusedCall, ...]:
    """Return the calls in a completion, a message, or the chunks of a stream.

    Raises `InvalidCall` for anything else, and for several alternatives (``n``), whose calls exclude each other.
    """
    return bind_calls(_requested_calls(answer), flat(names), caller, endpoints)


def calls(
    answer: object,
    names: NameTable | NamespaceLayout,
    caller: Caller = NOBODY,
    *,
    endpoints: Mapping[str, str] | None = None,
) -> tuple[Call, ...]:
    """Return the calls as `read` does. Raises the errors of refused calls; then no call is returned."""
    return require_all(read(answer, names, caller, endpoints=endpoints))


def result(call: Call | RefusedCall, content: object = None, *, is_error: bool = False) -> JsonObject:
    """Return the message with the result of a call.

    The API has no field for failure: the text of a failed call begins with ``[tool error]``, which `history`
    recognizes.

    >>> from truename import Catalog, project
    >>> names = project(Catalog.of("a@1/b@1"), "openai")
    >>> call = {"id": "c1", "type": "function", "function": {"name": "a_b", "arguments": ""}}
    >>> result(calls({"role": "assistant", "tool_calls": [call]}, names)[0], "no such file", is_error=True)
    {'role': 'tool', 'tool_call_id': 'c1', 'content': '[tool error] no such file'}
    """
    return {"role": "tool", "tool_call_id": call.call_id, "content": content_of(content, is_error=is_error)}


def content_of(content: object, *, is_error: bool) -> str | list[JsonObject]:
    """Return a result's content: one text, or text parts if there are several."""
    texts = [as_text(part) for part in content_parts(content)] or [""]
    if is_error:
        texts[0] = ERROR_MARK + texts[0]
    return texts[0] if len(texts) == 1 else [{"type": "text", "text": text} for text in texts]


def _requested_calls(answer: object) -> Iterator[RequestedCall]:
    completion = join_response(answer, _join_stream)
    message, cut = PayloadPlace.of(completion), False
    if "choices" in message.value:
        choices = list(message.each("choices"))
        if len(choices) != 1:
            message.wrong("choices", f"has {len(choices)} alternatives, not one")
        cut = choices[0].optional("finish_reason") in _CUT
        message = choices[0].inside("message")
    elif "role" not in message.value:
        message.wrong("choices", "is missing")
    if message.get("function_call") is not None:
        message.wrong("function_call", "is the deprecated form of a call, which has no id")
    for call in message.each("tool_calls"):
        if call.get("type") != "custom":
            yield _one(call, cut=cut)


def _one(call: PayloadPlace, *, cut: bool) -> RequestedCall:
    call.only(_CALL)
    if call.get("type") not in (None, "function"):
        call.wrong("type", "is not 'function'")
    function = call.inside("function")
    function.only(_FUNCTION)
    paths = {"name": function.path("name"), "arguments": function.path("arguments"), "call_id": call.path("id")}
    return RequestedCall(
        name=function.text("name"),
        call_id=call.text("id"),
        arguments=function.optional("arguments"),
        paths=paths,
        problem="was cut off by the API" if cut else "",
    )


def _join_stream(chunks: Iterable[object]) -> JsonObject:
    """Join the chunks of a stream into a completion with its calls."""
    found: dict[int, Fragments] = {}
    reasons: dict[int, str] = {}
    for number, chunk in enumerate(chunks):
        for choice in PayloadPlace.of(plain(chunk), f"chunks[{number}]").each("choices"):
            place = choice.number("index")
            reasons[place] = choice.optional("finish_reason") or reasons.get(place, "")
            pieces = found.setdefault(place, Fragments())
            if choice.get("delta") is not None:
                for piece in choice.inside("delta").each("tool_calls"):
                    _add(pieces, piece)
    choices: list[JsonObject] = []
    for place, pieces in sorted(found.items()):
        pieces.check(f"choices[{place}]", finished=bool(reasons[place]))
        made = [
            {
                "id": one.get("id"),
                "type": one.get("type") or "function",
                "function": {"name": one.get("name"), "arguments": text},
            }
            for _, one, text in pieces.joined()
        ]
        choices.append({"message": {"role": "assistant", "tool_calls": made}, "finish_reason": reasons[place]})
    return {"choices": choices}


def _add(pieces: Fragments, piece: PayloadPlace) -> None:
    piece.only(_CALL)
    place = piece.number("index")
    pieces.fix(place, piece, "id", "type")
    if piece.get("function") is not None:
        function = piece.inside("function")
        function.only(_FUNCTION)
        pieces.fix(place, function, "name")
        pieces.add(place, function.optional("arguments") or "")


_ROLES: Final[dict[str, Role]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "user",
}
_KNOWN: Final = frozenset({"role", "content", "tool_calls", "tool_call_id", "refusal", "function_call"})
# Fields for the provider or a screen only; a notice reports that they are dropped.
_DROPPED: Final = frozenset(
    {"name", "annotations", "audio", "reasoning", "reasoning_content", "reasoning_details", "id", "parsed"}
)
_HISTORY_CALL: Final = frozenset({"id", "type", "index", "function"})


def history_mentions(messages: Sequence[PayloadPlace]) -> Iterator[HistoryMention]:
    """Yield the calls and results. Raises for the deprecated form of a call, which has no id."""
    for message in messages:
        role = message.text("role")
        if message.get("function_call") is not None or role == "function":
            name = "role" if role == "function" else "function_call"
            message.wrong(name, "is the deprecated form of a call, which has no id; write it as tool_calls")
        for call in message.each("tool_calls"):
            named = None if call.get("type") == "custom" else call.inside("function")
            yield HistoryMention(kind="call", place=call, id_key="id", named=named)
        if role == "tool":
            named = message if "name" in message.value else None
            yield HistoryMention(kind="result", place=message, id_key="tool_call_id", named=named)


def read_history(messages: Sequence[PayloadPlace], tell: Tell) -> Iterator[ConversationTurn]:
    """Yield the turns of a history.

    Raises `InvalidPayload` for content that cannot be carried to other APIs, and for invalid messages.
    """
    for message in messages:
        role = message.text("role")
        if role not in _ROLES:
            message.wrong("role", "is not a known role")
        message.only(_KNOWN | _DROPPED)
        for name in sorted(_DROPPED & set(message.value)):
            if message.value[name]:
                tell("dropped", message.path(name), "is specific to this API and was dropped")
        parts: list[Part] = []
        if role == "tool":
            parts.append(_result(message))
        else:
            parts += _content(message)
            if refusal := message.optional("refusal"):
                parts.append(Text(refusal))
            parts += map(_call, message.each("tool_calls"))
        yield ConversationTurn(_ROLES[role], tuple(parts), message.where)


def _content(message: PayloadPlace) -> Iterator[Shown]:
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
                raise unsupported_content(part, f"of type {kind!r}")


def _call(call: PayloadPlace) -> ToolCall:
    if call.get("type") == "custom":
        raise unsupported_content(call, "a custom tool's call")
    call.only(_HISTORY_CALL)
    function = call.inside("function")
    function.only(_FUNCTION)
    arguments = arguments_of(function.optional("arguments") or "")
    return ToolCall(call_id=call.text("id"), name=function.text("name"), arguments=arguments)


def _result(message: PayloadPlace) -> ToolResult:
    is_error, content = split_error_mark(tuple(_content(message)))
    return ToolResult(call_id=message.text("tool_call_id"), content=content, is_error=is_error)


def write_turn(turn: ConversationTurn) -> Iterator[JsonObject]:
    """Yield the messages of a turn."""
    for part in turn.parts:
        if isinstance(part, ToolResult):
            content = content_of(part.content, is_error=part.is_error)
            yield {"role": "tool", "tool_call_id": part.call_id, "content": content}
    said = [part for part in turn.parts if not isinstance(part, ToolCall | ToolResult)]
    made = [
        {
            "id": part.call_id,
            "type": "function",
            "function": {"name": part.name, "arguments": arguments_text(part.arguments)},
        }
        for part in turn.parts
        if isinstance(part, ToolCall)
    ]
    if said or made:
        content = as_text(said[0]) if len(said) == 1 and isinstance(said[0], Text) else [_part(part) for part in said]
        yield {"role": turn.role, "content": content or None} | ({"tool_calls": made} if made else {})


def _part(part: Shown) -> JsonObject:
    if isinstance(part, Image):
        return {"type": "image_url", "image_url": {"url": url_of(part)}}
    return {"type": "text", "text": as_text(part)}
