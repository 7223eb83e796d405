"""Adapt tools, calls and histories to Amazon Bedrock Converse."""

from __future__ import annotations

import base64
import binascii
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
    is_blank,
    unsupported_content,
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
    from collections.abc import Iterable, Sequence

    from truename import NameTable, ToolId
    from truename.adapters.layout import NamespaceLayout
    from truename.adapters.turns import Part, Role, Shown
    from truename.adapters.wire import RefusedCall
    from truename.policy import Call, Caller

__all__ = ["DIALECT", "calls", "result", "tool_choice", "tools"]

DIALECT: Final = "bedrock-converse"
_USE: Final = frozenset({"toolUseId", "name", "input", "type"})
_MODES: Final = {"auto": "auto", "required": "any"}
_FORMATS: Final = {"image/png": "png", "image/jpeg": "jpeg", "image/gif": "gif", "image/webp": "webp"}
_CUT: Final = frozenset({"max_tokens", "malformed_tool_use", "malformed_model_output", "model_context_window_exceeded"})


def tools(names: NameTable | NamespaceLayout) -> list[JsonObject]:
    """Return the tools as ``{"toolSpec": {...}}``, for ``toolConfig.tools``.

    An empty description is omitted, since the API refuses it. Raises an `ExceptionGroup` of `InvalidName`.
    """
    return [
        {
            "toolSpec": {"name": one.key.name, "inputSchema": {"json": dict(one.schema)}}
            | ({"description": one.description} if one.description else {})
        }
        for one in offered_tools(flat(names), DIALECT)
    ]


def tool_choice(choice: ToolId | str, names: NameTable | NamespaceLayout) -> JsonObject:
    """Return ``toolConfig.toolChoice``. Raises `InvalidPayload` for ``none``: the API has no such choice.

    >>> from truename import Catalog, project
    >>> tool_choice("a/b", project(Catalog.of("a@1/b@1"), "bedrock-converse"))
    {'tool': {'name': 'a_b'}}
    """
    key = resolve_choice(choice, flat(names))
    if key == "none":
        problem = "cannot be 'none' for this API: omit toolConfig from the request"
        raise InvalidPayload(field="toolChoice", problem=problem, code="invalid_request")
    return {_MODES[key]: {}} if isinstance(key, str) else {"tool": {"name": key.name}}


def read(
    answer: object,
    names: NameTable | NamespaceLayout,
    caller: Caller = NOBODY,
    *,
    endpoints: Mapping[str, str] | None = None,
) -> tuple[Call | RefusedCall, ...]:
    """Return the calls in a response of Converse, a message, or the events of ConverseStream (or its response).

    Raises `InvalidCall` for anything else.
    """
    events = answer.get("stream") if isinstance(answer, Mapping) else None
    return bind_calls(_requested_calls(answer if events is None else events), flat(names), caller, endpoints)


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
    """Return the block with the result of a call; all blocks of one turn go into one user message."""
    made = {
        "toolUseId": call.call_id,
        "content": [block_of(part) for part in content_parts(content) if part != Text("")],
    }
    return {"toolResult": {**made, "status": "error"} if is_error else made}


def block_of(part: Shown) -> JsonObject:
    """Return a text, a JSON object or an image as a block. Raises `InvalidPayload` for an image without its bytes."""
    if isinstance(part, Json) and isinstance(part.value, dict):
        return {"json": part.value}
    if not isinstance(part, Image):
        return {"text": as_text(part)}
    try:
        source = base64.b64decode(part.base64, validate=True)
    except binascii.Error:
        source = b""
    if not source or part.media_type not in _FORMATS:
        problem = "is not an image in a format of this API, or only the URL of one"
        raise InvalidPayload(field="image", problem=problem, code="invalid_request")
    return {"image": {"format": _FORMATS[part.media_type], "source": {"bytes": source}}}


def _requested_calls(answer: object) -> Iterator[RequestedCall]:
    given = PayloadPlace.of(join_response(answer, _join_stream))
    cut = given.optional("stopReason") in _CUT
    message = given if "content" in given.value else given.inside("output").inside("message")
    if not isinstance(message.get("content"), list):
        message.wrong("content", "is missing or not a list of blocks")
    for block in message.each("content"):
        # The API runs the model's own tools itself.
        if "toolUse" not in block.value or block.inside("toolUse").get("type") is not None:
            continue
        use = block.inside("toolUse")
        use.only(_USE | {"pieces"})
        if isinstance(use.get("input"), str):
            use.wrong("input", "is of type str, not an object")
        yield RequestedCall(
            name=use.text("name"),
            call_id=use.text("toolUseId"),
            arguments=use.get("pieces", "input"),
            paths={"name": use.path("name"), "arguments": use.path("input"), "call_id": use.path("toolUseId")},
            problem="was cut off by the API" if cut else "",
        )


def _join_stream(events: Iterable[object]) -> JsonObject:
    """Join the events of ConverseStream into a message with its calls."""
    pieces, stop = Fragments(), None
    for number, raw in enumerate(events):
        event = PayloadPlace.of(plain(raw), f"events[{number}]")
        if event.get("contentBlockStart") is not None:
            _begin(event.inside("contentBlockStart"), pieces)
        elif event.get("contentBlockDelta") is not None:
            block = event.inside("contentBlockDelta")
            delta, place = block.inside("delta"), block.number("contentBlockIndex")
            if delta.get("toolUse") is not None:
                pieces.add(place, delta.inside("toolUse").optional("input") or "")
        elif event.get("contentBlockStop") is not None:
            pieces.close(event.inside("contentBlockStop").number("contentBlockIndex"))
        elif event.get("messageStop") is not None:
            stop = event.inside("messageStop").optional("stopReason")
    pieces.check("events", finished=stop is not None)
    made = [{"toolUse": {**one, "pieces": text}} for _, one, text in pieces.joined()]
    return {"stopReason": stop, "output": {"message": {"role": "assistant", "content": made}}}


def _begin(event: PayloadPlace, pieces: Fragments) -> None:
    if event.get("start") is None or event.inside("start").get("toolUse") is None:
        return
    use, place = event.inside("start").inside("toolUse"), event.number("contentBlockIndex")
    use.only(_USE)
    pieces.begin(place, use)
    pieces.fix(place, use, "toolUseId", "name", "type")


_ROLES: Final[dict[str, Role]] = {"user": "user", "assistant": "assistant"}
_HISTORY_USE: Final = frozenset({"toolUseId", "name", "input"})
_RESULT: Final = frozenset({"toolUseId", "content", "status"})
_DROPPED: Final = frozenset({"reasoningContent", "cachePoint", "guardContent"})


def history_mentions(messages: Sequence[PayloadPlace]) -> Iterator[HistoryMention]:
    """Yield a `HistoryMention` for each tool call and each tool result in the messages."""
    for message in messages:
        message.text("role")
        for block in message.each("content"):
            if block.get("toolUse") is not None:
                use = block.inside("toolUse")
                own = use if use.get("type") is None else None
                yield HistoryMention(kind="call", place=use, id_key="toolUseId", named=own)
            elif block.get("toolResult") is not None:
                yield HistoryMention(kind="result", place=block.inside("toolResult"), id_key="toolUseId")


def read_history(messages: Sequence[PayloadPlace], tell: Tell) -> Iterator[ConversationTurn]:
    """Yield the turns of a history.

    Raises `InvalidPayload` for content that cannot be carried to other APIs, and for invalid messages.
    """
    for message in messages:
        message.only(frozenset({"role", "content"}))
        role = message.text("role")
        if role not in _ROLES:
            message.wrong("role", "is not a known role")
        yield ConversationTurn(_ROLES[role], tuple(_parts(message, tell)), message.where)


def _parts(message: PayloadPlace, tell: Tell) -> Iterator[Part]:
    for block in message.each("content"):
        kinds = [name for name, value in block.value.items() if value is not None]
        if len(kinds) != 1:
            block.wrong("", f"has {len(kinds)} kinds of content, not one")
        if kinds[0] == "toolUse":
            yield _call(block.inside("toolUse"))
        elif kinds[0] == "toolResult":
            yield _result(block.inside("toolResult"))
        elif kinds[0] in _DROPPED:
            tell("dropped", block.path(kinds[0]), "is specific to this API and was dropped")
        else:
            yield _shown(block, kinds[0])


def _shown(block: PayloadPlace, kind: str) -> Shown:
    if kind == "text":
        return Text(block.optional("text") or "")
    if kind == "json":
        return Json(block.value["json"])
    if kind == "image":
        image = block.inside("image")
        source = image.inside("source").get("bytes")
        if isinstance(source, bytes):
            return Image(media_type=f"image/{image.text('format')}", base64=base64.b64encode(source).decode())
    raise unsupported_content(block, "neither text nor JSON nor an image with its bytes", kind)


def _call(use: PayloadPlace) -> ToolCall:
    use.only(_HISTORY_USE)
    given = use.get("input")
    if not isinstance(given, Mapping):
        use.wrong("input", "is missing" if given is None else f"is of type {type(given).__name__}, not an object")
    return ToolCall(call_id=use.text("toolUseId"), name=use.text("name"), arguments=given)


def _result(result: PayloadPlace) -> ToolResult:
    result.only(_RESULT)
    content = tuple(_shown(block, next(iter(block.value), "")) for block in result.each("content"))
    is_error = result.optional("status") == "error"
    return ToolResult(call_id=result.text("toolUseId"), content=content, is_error=is_error)


def write_turn(turn: ConversationTurn) -> Iterator[JsonObject]:
    """Yield the one message of a turn, with the results first."""
    ordered = sorted(turn.parts, key=lambda part: 0 if isinstance(part, ToolResult) else 1)
    blocks = [_block(part) for part in ordered if not is_blank(part)]
    if blocks:
        yield {"role": turn.role, "content": blocks}


def _block(part: Part) -> JsonObject:
    if isinstance(part, ToolCall):
        made = {"toolUseId": part.call_id, "name": part.name, "input": arguments_object(part.arguments)}
        return {"toolUse": made}
    if isinstance(part, ToolResult):
        content = [block_of(one) for one in part.content if one != Text("")]
        result = {"toolUseId": part.call_id, "content": content}
        return {"toolResult": {**result, "status": "error"} if part.is_error else result}
    return block_of(part)
