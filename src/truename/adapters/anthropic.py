"""Adapt tools, calls and histories to Anthropic Messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from truename.adapters.openai_chat import flat
from truename.adapters.reading import JsonObject, PayloadPlace, plain
from truename.adapters.turns import (
    ConversationTurn,
    HistoryMention,
    Image,
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

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from truename import NameTable, ToolId
    from truename.adapters.layout import NamespaceLayout
    from truename.adapters.turns import Part, Role, Shown
    from truename.adapters.wire import RefusedCall
    from truename.policy import Call, Caller

__all__ = ["DIALECT", "calls", "result", "tool_choice", "tools"]

DIALECT: Final = "anthropic"
_BLOCK: Final = frozenset({"type", "id", "name", "input", "caller", "cache_control", "toolset_name", "partial_json"})
_MODES: Final = {"auto": "auto", "none": "none", "required": "any"}
_CUT: Final = frozenset({"max_tokens", "model_context_window_exceeded"})


def tools(names: NameTable | NamespaceLayout, *, defer: Collection[ToolId] = ()) -> list[JsonObject]:
    """Return the tools as ``{"name", "description", "input_schema"}``; ``defer`` leaves some to the API's tool search.

    Raises an `ExceptionGroup` of `InvalidName` for names that the API would refuse.
    """
    return [
        {"name": one.key.name, "description": one.description, "input_schema": dict(one.schema)}
        | ({"defer_loading": True} if one.id in defer else {})
        for one in offered_tools(flat(names), DIALECT)
    ]


def tool_choice(choice: ToolId | str, names: NameTable | NamespaceLayout, *, parallel: bool = True) -> JsonObject:
    """Return the tool choice; ``required`` is ``any`` here. Without ``parallel`` the model makes at most one call.

    >>> from truename import Catalog, project
    >>> tool_choice("a/b", project(Catalog.of("a@1/b@1"), "anthropic"))
    {'type': 'tool', 'name': 'a_b'}
    """
    key = resolve_choice(choice, flat(names))
    made = {"type": _MODES[key]} if isinstance(key, str) else {"type": "tool", "name": key.name}
    return made if parallel or made["type"] == "none" else {**made, "disable_parallel_tool_use": True}


def read(
    answer: object,
    names: NameTable | NamespaceLayout,
    caller: Caller = NOBODY,
    *,
    endpoints: Mapping[str, str] | None = None,
) -> tuple[Call | RefusedCall, ...]:
    """Return the calls in a message or in the events of a stream. Raises `InvalidCall` for anything else."""
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
    """Return the block with the result of a call; all blocks of one turn go into one user message, before any text."""
    # Both this API and Bedrock refuse a block with an empty text.
    blocks = [block_of(part) for part in content_parts(content) if part != Text("")]
    made = {"type": "tool_result", "tool_use_id": call.call_id, "content": blocks}
    return {**made, "is_error": True} if is_error else made


def block_of(part: Shown) -> JsonObject:
    """Return a text or an image as a block."""
    if not isinstance(part, Image):
        return {"type": "text", "text": as_text(part)}
    if part.url:
        return {"type": "image", "source": {"type": "url", "url": part.url}}
    source = {"type": "base64", "media_type": part.media_type, "data": part.base64}
    return {"type": "image", "source": source}


def _requested_calls(answer: object) -> Iterator[RequestedCall]:
    message = PayloadPlace.of(join_response(answer, _join_stream))
    if not isinstance(message.get("content"), list):
        message.wrong("content", "is missing or not a list of blocks")
    cut = message.optional("stop_reason") in _CUT
    for block in message.each("content"):
        if block.text("type") != "tool_use":
            continue
        block.only(_BLOCK)
        if isinstance(block.get("input"), str):
            block.wrong("input", "is of type str, not an object")
        yield RequestedCall(
            name=block.text("name"),
            call_id=block.text("id"),
            arguments=block.get("partial_json", "input"),
            paths={"name": block.path("name"), "arguments": block.path("input"), "call_id": block.path("id")},
            problem="was cut off by the API" if cut else "",
        )


def _join_stream(events: Iterable[object]) -> JsonObject:
    """Join the events of a stream into a message with its calls; text is skipped."""
    pieces, inputs, stop = Fragments(), dict[int, object](), None
    for number, raw in enumerate(events):
        event = PayloadPlace.of(plain(raw), f"events[{number}]")
        kind = event.text("type")
        if kind == "content_block_start":
            _begin(event, pieces, inputs)
        elif kind == "content_block_delta":
            delta = event.inside("delta")
            if delta.get("type") == "input_json_delta" and event.number("index") in pieces:
                pieces.add(event.number("index"), delta.optional("partial_json") or "")
        elif kind == "content_block_stop":
            pieces.close(event.number("index"))
        elif kind == "message_delta":
            stop = event.inside("delta").optional("stop_reason") or stop
    pieces.check("events", finished=stop is not None)
    # Some servers send the complete input in the block's first event, and no pieces.
    blocks = [
        {"type": "tool_use", **one, "input": inputs[place]}
        | ({} if inputs[place] and not text else {"partial_json": text})
        for place, one, text in pieces.joined()
    ]
    return {"stop_reason": stop, "content": blocks}


def _begin(event: PayloadPlace, pieces: Fragments, inputs: dict[int, object]) -> None:
    block, place = event.inside("content_block"), event.number("index")
    if block.text("type") == "tool_use":
        block.only(_BLOCK)
        pieces.begin(place, block)
        pieces.fix(place, block, "id", "name")
        inputs[place] = block.get("input")


_ROLES: Final[dict[str, Role]] = {"system": "system", "user": "user", "assistant": "assistant"}
_USE: Final = frozenset({"type", "id", "name", "input", "caller", "cache_control"})
_RESULT: Final = frozenset({"type", "tool_use_id", "content", "is_error", "cache_control"})
_THOUGHT: Final = frozenset({"thinking", "redacted_thinking"})


def history_mentions(messages: Sequence[PayloadPlace]) -> Iterator[HistoryMention]:
    """Yield the calls, the results, and the tools that a search returned."""
    for message in messages:
        message.text("role")
        for block in _blocks(message):
            match block.text("type"):
                case "tool_use":
                    yield HistoryMention(kind="call", place=block, id_key="id", named=block)
                case "tool_result":
                    yield HistoryMention(kind="result", place=block, id_key="tool_use_id")
                    yield from (_reference(one) for one in _blocks(block) if one.get("type") == "tool_reference")
                case "tool_search_tool_result":
                    found = block.inside("content")
                    yield from map(_reference, found.each("tool_references"))


def _blocks(place: PayloadPlace) -> Iterator[PayloadPlace]:
    if not isinstance(place.get("content"), str):
        yield from place.each("content")


def _reference(block: PayloadPlace) -> HistoryMention:
    return HistoryMention(kind="reference", place=block, named=block, name_key="tool_name")


def read_history(messages: Sequence[PayloadPlace], tell: Tell) -> Iterator[ConversationTurn]:
    """Yield the turns of a history.

    Raises `InvalidPayload` for content that cannot be carried to other APIs, and for invalid messages.
    """
    for message in messages:
        message.only(frozenset({"role", "content", "id", "type", "model", "stop_reason", "stop_sequence", "usage"}))
        role = message.text("role")
        if role not in _ROLES:
            message.wrong("role", "is not a known role")
        yield ConversationTurn(_ROLES[role], tuple(_parts(message, tell)), message.where)


def _parts(message: PayloadPlace, tell: Tell) -> Iterator[Part]:
    if isinstance(content := message.get("content"), str):
        yield from [Text(content)] if content else []
        return
    for block in message.each("content"):
        if block.get("cache_control") is not None:
            tell("dropped", block.path("cache_control"), "is specific to this API and was dropped")
        match block.text("type"):
            case "tool_use":
                yield _call(block)
            case "tool_result":
                yield _result(block)
            case kind if kind in _THOUGHT:
                tell("dropped", block.where, "is specific to this API and was dropped")
            case _:
                yield _shown(block)


def _shown(block: PayloadPlace) -> Shown:
    kind = block.text("type")
    if kind == "text":
        return Text(block.optional("text") or "")
    if kind != "image":
        raise unsupported_content(block, f"of type {kind!r}")
    source = block.inside("source")
    match source.text("type"):
        case "base64":
            return Image(media_type=source.text("media_type"), base64=source.text("data"))
        case "url":
            return Image(url=source.text("url"))
        case other:
            raise unsupported_content(source, f"of type {other!r}")


def _call(block: PayloadPlace) -> ToolCall:
    block.only(_USE)
    given = block.get("input")
    if not isinstance(given, Mapping):
        block.wrong("input", "is missing" if given is None else f"is of type {type(given).__name__}, not an object")
    return ToolCall(call_id=block.text("id"), name=block.text("name"), arguments=given)


def _result(block: PayloadPlace) -> ToolResult:
    block.only(_RESULT)
    content = block.get("content")
    parts = (Text(content),) if isinstance(content, str) else tuple(map(_shown, block.each("content")))
    return ToolResult(call_id=block.text("tool_use_id"), content=parts, is_error=block.get("is_error") is True)


def write_turn(turn: ConversationTurn) -> Iterator[JsonObject]:
    """Yield the one message of a turn, with the results first."""
    blocks = [_history_block(part) for part in sorted(turn.parts, key=_order) if not is_blank(part)]
    if blocks:
        yield {"role": turn.role, "content": blocks}


def _order(part: Part) -> int:
    return 0 if isinstance(part, ToolResult) else 2 if isinstance(part, ToolCall) else 1


def _history_block(part: Part) -> JsonObject:
    if isinstance(part, ToolCall):
        arguments = arguments_object(part.arguments)
        return {"type": "tool_use", "id": part.call_id, "name": part.name, "input": arguments}
    if isinstance(part, ToolResult):
        content = [block_of(one) for one in part.content if one != Text("")]
        made: JsonObject = {"type": "tool_result", "tool_use_id": part.call_id, "content": content}
        return {**made, "is_error": True} if part.is_error else made
    return block_of(part)
