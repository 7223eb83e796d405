"""Anthropic Messages.

Source: the types of the anthropic package 2.12.0 (``ToolParam``, ``ToolUseBlock``, ``ToolChoiceParam``). Calls of
server tools are run by the API itself and are no calls here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from truename.adapters.openai_chat import flat
from truename.adapters.reading import Place, plain
from truename.adapters.streams import Fragments, whole
from truename.adapters.turns import Image, Text, as_text, shown
from truename.adapters.wire import NOBODY, Asked, bound, chosen, offers, required

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from truename import NameTable, ToolId
    from truename.adapters.layout import Layout
    from truename.adapters.turns import Shown
    from truename.adapters.wire import Refused
    from truename.policy import Call, Caller

__all__ = ["DIALECT", "block_of", "calls", "read", "result", "tool_choice", "tools"]

DIALECT: Final = "anthropic"
_BLOCK: Final = frozenset({"type", "id", "name", "input", "caller", "cache_control", "toolset_name", "partial_json"})
_MODES: Final = {"auto": "auto", "none": "none", "required": "any"}
_CUT: Final = frozenset({"max_tokens", "model_context_window_exceeded"})


def tools(names: NameTable | Layout, *, defer: Collection[ToolId] = ()) -> list[dict[str, Any]]:
    """Return the tools as ``{"name", "description", "input_schema"}``; ``defer`` are left to the API's tool search.

    Raises an `ExceptionGroup` of `InvalidName` for names that the API would refuse.
    """
    return [
        {"name": one.key.name, "description": one.description, "input_schema": dict(one.schema)}
        | ({"defer_loading": True} if one.id in defer else {})
        for one in offers(flat(names), DIALECT)
    ]


def tool_choice(choice: ToolId | str, names: NameTable | Layout, *, parallel: bool = True) -> dict[str, Any]:
    """Return the choice; ``required`` is called ``any`` here. Without ``parallel`` at most one call is made at a time.

    >>> from truename import Catalog, project
    >>> tool_choice("a/b", project(Catalog.of("a@1/b@1"), "anthropic"))
    {'type': 'tool', 'name': 'a_b'}
    """
    key = chosen(choice, flat(names))
    made = {"type": _MODES[key]} if isinstance(key, str) else {"type": "tool", "name": key.name}
    return made if parallel or made["type"] == "none" else {**made, "disable_parallel_tool_use": True}


def read(
    answer: object,
    names: NameTable | Layout,
    caller: Caller = NOBODY,
    *,
    endpoints: Mapping[str, str] | None = None,
) -> tuple[Call | Refused, ...]:
    """Return the calls in a message or in the events of a stream. Raises `InvalidCall` for what is neither."""
    return bound(_asked(answer), flat(names), caller, endpoints)


def calls(
    answer: object,
    names: NameTable | Layout,
    caller: Caller = NOBODY,
    *,
    endpoints: Mapping[str, str] | None = None,
) -> tuple[Call, ...]:
    """Return the calls as `read` does. Raises the error of one that can't be made: then none is."""
    return required(read(answer, names, caller, endpoints=endpoints))


def result(call: Call | Refused, content: object = None, *, is_error: bool = False) -> dict[str, Any]:
    """Return the block that answers a call; all blocks of one turn go into one user message, before any text."""
    # Both this API and Bedrock refuse a block with an empty text.
    blocks = [block_of(part) for part in shown(content) if part != Text("")]
    made = {"type": "tool_result", "tool_use_id": call.call_id, "content": blocks}
    return {**made, "is_error": True} if is_error else made


def block_of(part: Shown) -> dict[str, Any]:
    """Return a text or an image as a block."""
    if not isinstance(part, Image):
        return {"type": "text", "text": as_text(part)}
    if part.url:
        return {"type": "image", "source": {"type": "url", "url": part.url}}
    source = {"type": "base64", "media_type": part.media_type, "data": part.base64}
    return {"type": "image", "source": source}


def _asked(answer: object) -> Iterator[Asked]:
    message = Place.of(whole(answer, _assembled))
    if not isinstance(message.get("content"), list):
        message.wrong("content", "is missing or no list of blocks")
    cut = message.optional("stop_reason") in _CUT
    for block in message.each("content"):
        if block.text("type") == "tool_use":
            yield _one(block, cut=cut)


def _one(block: Place, *, cut: bool) -> Asked:
    block.only(_BLOCK)
    given = block.get("partial_json", "input")
    if isinstance(block.get("input"), str):
        block.wrong("input", "is of type str, not an object")
    return Asked(
        name=block.text("name"),
        call_id=block.text("id"),
        arguments=given,
        paths={"name": block.path("name"), "arguments": block.path("input"), "call_id": block.path("id")},
        problem="was cut off by the API" if cut else "",
    )


def _assembled(events: Iterable[Any]) -> dict[str, Any]:
    """Join the events of a stream into the message that they are pieces of; text is left out, calls are kept."""
    pieces, inputs, stop = Fragments(), dict[int, Any](), None
    for number, raw in enumerate(events):
        event = Place.of(plain(raw), f"events[{number}]")
        kind = event.text("type")
        if kind == "content_block_start":
            _begin(event, pieces, inputs)
        elif kind == "content_block_delta":
            _continue(event, pieces)
        elif kind == "content_block_stop":
            pieces.close(event.number("index"))
        elif kind == "message_delta":
            stop = event.inside("delta").optional("stop_reason") or stop
    pieces.check("events", finished=stop is not None)
    return {"stop_reason": stop, "content": [_block(one, text, inputs[place]) for place, one, text in pieces.joined()]}


def _begin(event: Place, pieces: Fragments, inputs: dict[int, Any]) -> None:
    block, place = event.inside("content_block"), event.number("index")
    if block.text("type") == "tool_use":
        block.only(_BLOCK)
        pieces.begin(place, block)
        pieces.fix(place, block, "id", "name")
        inputs[place] = block.get("input")


def _continue(event: Place, pieces: Fragments) -> None:
    delta = event.inside("delta")
    if delta.get("type") == "input_json_delta" and event.number("index") in pieces:
        pieces.add(event.number("index"), delta.optional("partial_json") or "")


def _block(one: dict[str, Any], text: str, given: Any) -> dict[str, Any]:
    # Some servers send the whole input with the beginning of the block, and no pieces.
    return {"type": "tool_use", **one, "input": given, **({} if given and not text else {"partial_json": text})}
