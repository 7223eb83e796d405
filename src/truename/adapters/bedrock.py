"""Amazon Bedrock Converse.

Source: botocore 1.44.5, bedrock-runtime 2023-09-30 (``ToolConfiguration``, ``ToolUseBlock``, ``ToolResultBlock``).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from truename.adapters.openai_chat import flat
from truename.adapters.reading import Place, plain
from truename.adapters.streams import Fragments, whole
from truename.adapters.turns import Image, Json, Text, as_text, shown
from truename.adapters.wire import NOBODY, Asked, bound, chosen, offers, required
from truename.errors import InvalidPayload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from truename import NameTable, ToolId
    from truename.adapters.layout import Layout
    from truename.adapters.turns import Shown
    from truename.adapters.wire import Refused
    from truename.policy import Call, Caller

__all__ = ["DIALECT", "block_of", "calls", "read", "result", "tool_choice", "tools"]

DIALECT: Final = "bedrock-converse"
_USE: Final = frozenset({"toolUseId", "name", "input", "type"})
_MODES: Final = {"auto": "auto", "required": "any"}
_FORMATS: Final = {"image/png": "png", "image/jpeg": "jpeg", "image/gif": "gif", "image/webp": "webp"}
_CUT: Final = frozenset({"max_tokens", "malformed_tool_use", "malformed_model_output", "model_context_window_exceeded"})


def tools(names: NameTable | Layout) -> list[dict[str, Any]]:
    """Return the tools as ``{"toolSpec": {...}}``, for ``toolConfig.tools``.

    An empty description is left out, as the API refuses one. Raises an `ExceptionGroup` of `InvalidName`.
    """
    return [
        {
            "toolSpec": {"name": one.key.name, "inputSchema": {"json": dict(one.schema)}}
            | ({"description": one.description} if one.description else {})
        }
        for one in offers(flat(names), DIALECT)
    ]


def tool_choice(choice: ToolId | str, names: NameTable | Layout) -> dict[str, Any]:
    """Return ``toolConfig.toolChoice``. Raises `InvalidPayload` for ``none``: the API has no such choice.

    >>> from truename import Catalog, project
    >>> tool_choice("a/b", project(Catalog.of("a@1/b@1"), "bedrock-converse"))
    {'tool': {'name': 'a_b'}}
    """
    key = chosen(choice, flat(names))
    if key == "none":
        problem = "can't be 'none' here: leave toolConfig out of the request"
        raise InvalidPayload(field="toolChoice", problem=problem, code="invalid_request")
    return {_MODES[key]: {}} if isinstance(key, str) else {"tool": {"name": key.name}}


def read(
    answer: object,
    names: NameTable | Layout,
    caller: Caller = NOBODY,
    *,
    endpoints: Mapping[str, str] | None = None,
) -> tuple[Call | Refused, ...]:
    """Return the calls in an answer of Converse, a message, or the events of ConverseStream (or its answer).

    Raises `InvalidCall` for what is none of them.
    """
    events = answer.get("stream") if isinstance(answer, Mapping) else None
    return bound(_asked(answer if events is None else events), flat(names), caller, endpoints)


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
    """Return the block that answers a call; all blocks of one turn go into one user message."""
    made = {"toolUseId": call.call_id, "content": [block_of(part) for part in shown(content) if part != Text("")]}
    return {"toolResult": {**made, "status": "error"} if is_error else made}


def block_of(part: Shown) -> dict[str, Any]:
    """Return a text, a JSON object or an image as a block. Raises `InvalidPayload` for an image that has no bytes."""
    if isinstance(part, Json) and isinstance(part.value, dict):
        return {"json": part.value}
    if not isinstance(part, Image):
        return {"text": as_text(part)}
    try:
        source = base64.b64decode(part.base64, validate=True)
    except binascii.Error:
        source = b""
    if not source or part.media_type not in _FORMATS:
        problem = "is no image of a format that this API takes, or only the address of one"
        raise InvalidPayload(field="image", problem=problem, code="invalid_request")
    return {"image": {"format": _FORMATS[part.media_type], "source": {"bytes": source}}}


def _asked(answer: object) -> Iterator[Asked]:
    given = Place.of(whole(answer, _assembled))
    cut = given.optional("stopReason") in _CUT
    message = given if "content" in given.value else given.inside("output").inside("message")
    if not isinstance(message.get("content"), list):
        message.wrong("content", "is missing or no list of blocks")
    for block in message.each("content"):
        # What the model's own tools do is run by the API.
        if "toolUse" in block.value and block.inside("toolUse").get("type") is None:
            yield _one(block.inside("toolUse"), cut=cut)


def _one(use: Place, *, cut: bool) -> Asked:
    use.only(_USE | {"pieces"})
    given = use.get("pieces", "input")
    if isinstance(use.get("input"), str):
        use.wrong("input", "is of type str, not an object")
    return Asked(
        name=use.text("name"),
        call_id=use.text("toolUseId"),
        arguments=given,
        paths={"name": use.path("name"), "arguments": use.path("input"), "call_id": use.path("toolUseId")},
        problem="was cut off by the API" if cut else "",
    )


def _assembled(events: Iterable[Any]) -> dict[str, Any]:
    """Join the events of ConverseStream into the message that they are pieces of; only calls are kept."""
    pieces, stop = Fragments(), None
    for number, raw in enumerate(events):
        event = Place.of(plain(raw), f"events[{number}]")
        if event.get("contentBlockStart") is not None:
            _begin(event.inside("contentBlockStart"), pieces)
        elif event.get("contentBlockDelta") is not None:
            _continue(event.inside("contentBlockDelta"), pieces)
        elif event.get("contentBlockStop") is not None:
            pieces.close(event.inside("contentBlockStop").number("contentBlockIndex"))
        elif event.get("messageStop") is not None:
            stop = event.inside("messageStop").optional("stopReason")
    pieces.check("events", finished=stop is not None)
    made = [{"toolUse": {**one, "pieces": text}} for _, one, text in pieces.joined()]
    return {"stopReason": stop, "output": {"message": {"role": "assistant", "content": made}}}


def _begin(event: Place, pieces: Fragments) -> None:
    if event.get("start") is None or event.inside("start").get("toolUse") is None:
        return
    use, place = event.inside("start").inside("toolUse"), event.number("contentBlockIndex")
    use.only(_USE)
    pieces.begin(place, use)
    pieces.fix(place, use, "toolUseId", "name", "type")


def _continue(event: Place, pieces: Fragments) -> None:
    delta, place = event.inside("delta"), event.number("contentBlockIndex")
    if delta.get("toolUse") is not None:
        pieces.add(place, delta.inside("toolUse").optional("input") or "")
