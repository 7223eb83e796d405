"""OpenAI Chat Completions, and the many servers that speak it.

Source: the types of the openai package 3.54.0 (``ChatCompletionFunctionToolParam`` and its neighbours). Namespaces and
deferred tools are unknown there, so a `Layout` that has them is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from truename.adapters.layout import Layout
from truename.adapters.reading import Place, plain
from truename.adapters.streams import Fragments, whole
from truename.adapters.turns import ERROR_MARK, as_text, shown
from truename.adapters.wire import NOBODY, Asked, bound, chosen, offers, required
from truename.errors import InvalidPayload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from truename import NameTable, ToolId
    from truename.adapters.wire import Refused
    from truename.policy import Call, Caller

__all__ = ["DIALECT", "calls", "content_of", "flat", "read", "result", "tool_choice", "tools"]

DIALECT: Final = "openai"
_CALL: Final = frozenset({"id", "type", "index", "function", "custom", "extra_content"})
_FUNCTION: Final = frozenset({"name", "arguments", "parsed_arguments"})
# What a model breaks off can look complete: an empty text would be a call without arguments.
_CUT: Final = frozenset({"length", "content_filter"})


def flat(names: NameTable | Layout) -> Layout:
    """Return the layout if it is flat. Raises `InvalidPayload` for one with namespaces or deferred tools."""
    layout = Layout.of(names)
    if any(key.kind != "bare" for key in layout.keys.values()):
        problem = "has namespaces or deferred tools, which this API does not have"
        raise InvalidPayload(field="tools", problem=problem, code="invalid_request")
    return layout


def tools(names: NameTable | Layout, *, strict: bool | None = None) -> list[dict[str, Any]]:
    """Return the tools as ``{"type": "function", "function": {...}}``; ``strict`` as the API has it.

    Raises an `ExceptionGroup` of `InvalidName` for names that the API would refuse.
    """
    extra = {} if strict is None else {"strict": strict}
    return [
        {
            "type": "function",
            "function": {"name": one.key.name, "description": one.description, "parameters": dict(one.schema)} | extra,
        }
        for one in offers(flat(names), DIALECT)
    ]


def tool_choice(choice: ToolId | str, names: NameTable | Layout) -> str | dict[str, Any]:
    """Return ``auto``, ``none``, ``required``, or the one function that the model has to call."""
    key = chosen(choice, flat(names))
    return key if isinstance(key, str) else {"type": "function", "function": {"name": key.name}}


def read(
    answer: object,
    names: NameTable | Layout,
    caller: Caller = NOBODY,
    *,
    endpoints: Mapping[str, str] | None = None,
) -> tuple[Call | Refused, ...]:
    """Return the calls in a completion, a message, or the chunks of a stream.

    Raises `InvalidCall` for what is none of them, and for several alternatives (``n``): their calls exclude each other.
    """
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
    """Return the message that answers a call.

    The API has no field for failure: the text of a failed call begins with ``[tool error]``, which `history` knows.

    >>> from truename import Catalog, project
    >>> names = project(Catalog.of("a@1/b@1"), "openai")
    >>> call = {"id": "c1", "type": "function", "function": {"name": "a_b", "arguments": ""}}
    >>> result(calls({"role": "assistant", "tool_calls": [call]}, names)[0], "no such file", is_error=True)
    {'role': 'tool', 'tool_call_id': 'c1', 'content': '[tool error] no such file'}
    """
    return {"role": "tool", "tool_call_id": call.call_id, "content": content_of(content, is_error=is_error)}


def content_of(content: object, *, is_error: bool) -> str | list[dict[str, Any]]:
    """Return a result's content: one text, or text parts if there are several."""
    texts = [as_text(part) for part in shown(content)] or [""]
    if is_error:
        texts[0] = ERROR_MARK + texts[0]
    return texts[0] if len(texts) == 1 else [{"type": "text", "text": text} for text in texts]


def _asked(answer: object) -> Iterator[Asked]:
    completion = whole(answer, _assembled)
    message, cut = Place.of(completion), False
    if "choices" in message.value:
        choices = list(message.each("choices"))
        if len(choices) != 1:
            message.wrong("choices", f"has {len(choices)} alternatives, not one")
        cut = choices[0].optional("finish_reason") in _CUT
        message = choices[0].inside("message")
    elif "role" not in message.value:
        message.wrong("choices", "is missing")
    if message.get("function_call") is not None:
        message.wrong("function_call", "is the older form of a call, which has no id")
    for call in message.each("tool_calls"):
        if call.get("type") != "custom":
            yield _one(call, cut=cut)


def _one(call: Place, *, cut: bool) -> Asked:
    call.only(_CALL)
    if call.get("type") not in (None, "function"):
        call.wrong("type", "is not 'function'")
    function = call.inside("function")
    function.only(_FUNCTION)
    paths = {"name": function.path("name"), "arguments": function.path("arguments"), "call_id": call.path("id")}
    return Asked(
        name=function.text("name"),
        call_id=call.text("id"),
        arguments=function.optional("arguments"),
        paths=paths,
        problem="was cut off by the API" if cut else "",
    )


def _assembled(chunks: Iterable[Any]) -> dict[str, Any]:
    """Join the chunks of a stream into the completion that they are pieces of."""
    found: dict[int, Fragments] = {}
    reasons: dict[int, str] = {}
    for number, chunk in enumerate(chunks):
        for choice in Place.of(plain(chunk), f"chunks[{number}]").each("choices"):
            place = choice.number("index")
            reasons[place] = choice.optional("finish_reason") or reasons.get(place, "")
            pieces = found.setdefault(place, Fragments())
            if choice.get("delta") is not None:
                for piece in choice.inside("delta").each("tool_calls"):
                    _add(pieces, piece)
    return {
        "choices": [
            {"message": {"role": "assistant", "tool_calls": _joined(pieces)}, "finish_reason": reasons[place]}
            for place, pieces in sorted(found.items())
            if pieces.check(f"choices[{place}]", finished=bool(reasons[place]))
        ]
    }


def _add(pieces: Fragments, piece: Place) -> None:
    piece.only(_CALL)
    place = piece.number("index")
    pieces.fix(place, piece, "id", "type")
    if piece.get("function") is not None:
        function = piece.inside("function")
        function.only(_FUNCTION)
        pieces.fix(place, function, "name")
        pieces.add(place, function.optional("arguments") or "")


def _joined(pieces: Fragments) -> list[dict[str, Any]]:
    return [
        {
            "id": one.get("id"),
            "type": one.get("type") or "function",
            "function": {"name": one.get("name"), "arguments": text},
        }
        for _, one, text in pieces.joined()
    ]
