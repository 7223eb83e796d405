"""OpenAI Responses, with what only it has: namespaces, deferred tools and tool search.

A `Layout` says which tool is in which namespace and which are deferred; a name table alone is flat. Source: the types
of the openai package 3.54.0 (``NamespaceToolParam``, ``ToolSearchToolParam``); seed 001.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from truename.adapters.layout import Layout
from truename.adapters.openai_chat import content_of
from truename.adapters.reading import Place, plain
from truename.adapters.streams import Fragments, whole
from truename.adapters.turns import ERROR_MARK, Image, as_text, shown
from truename.adapters.wire import MODES, NOBODY, Asked, bound, chosen, offers, required
from truename.errors import InvalidPayload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from truename import NameTable, ToolId
    from truename.adapters.wire import Offer, Refused
    from truename.policy import Call, Caller

__all__ = ["DIALECT", "calls", "found", "output_of", "read", "result", "tool_choice", "tools"]

DIALECT: Final = "openai-responses"
_CALL: Final = frozenset(
    {"type", "id", "call_id", "name", "namespace", "arguments", "parsed_arguments", "status", "caller", "async"}
    | {"created_by"}
)
_PIECE: Final = frozenset({"response.function_call_arguments.delta", "response.function_call_arguments.done"})
Search = Literal["server", "client"]


def tools(
    names: NameTable | Layout, *, search: Search | None = "server", strict: bool | None = None
) -> list[dict[str, Any]]:
    """Return the tools; those of one namespace are together, where the first of them stands.

    If any tool is deferred, a tool search is added, run by the API or by the client (``search``; None: the caller adds
    it). ``strict`` is as the API has it; None leaves the choice to it.

    Raises an `ExceptionGroup` of `InvalidName`.

    >>> from truename import Catalog, project
    >>> names = project(Catalog.of("crm@1/lookup@1"), "openai-responses")
    >>> [tool["type"] for tool in tools(Layout.by_server(names, defer=True))]
    ['namespace', 'tool_search']
    """
    layout = Layout.of(names)
    listed: dict[str, dict[str, Any]] = {}
    for number, one in enumerate(offers(layout, DIALECT)):
        space = one.key.namespace
        if space is None:
            listed[f"{number} top level"] = _function(one, strict)
        else:
            listed.setdefault(f"in {space}", _namespace(space, layout))["tools"].append(_function(one, strict))
    made = list(listed.values())
    return [*made, *_search(search, layout)] if layout.deferred and search else made


def _function(one: Offer, strict: bool | None) -> dict[str, Any]:
    made = {
        "type": "function",
        "name": one.key.name,
        "description": one.description,
        "parameters": dict(one.schema),
        "strict": strict,
    }
    return {**made, "defer_loading": True} if one.deferred else made


def _namespace(space: str, layout: Layout) -> dict[str, Any]:
    return {
        "type": "namespace",
        "name": space,
        "description": layout.descriptions.get(space) or f"Tools of {space}",
        "tools": [],
    }


def _search(search: Search, layout: Layout) -> Iterator[dict[str, Any]]:
    if search == "server":
        yield {"type": "tool_search"}
        return
    query = {"type": "string", "description": "What the tool should do"}
    yield {
        "type": "tool_search",
        "execution": "client",
        "description": f"Finds tools by what they do; {len(layout.deferred)} are not listed.",
        "parameters": {"type": "object", "properties": {"query": query}, "required": ["query"]},
    }


def found(call_id: str, ids: Iterable[ToolId], names: NameTable | Layout) -> dict[str, Any]:
    """Return the item that answers a tool search which the client runs: the tools that it found."""
    layout, wanted = Layout.of(names), frozenset(ids)
    part = Layout(
        layout.names,
        {id: key for id, key in layout.keys.items() if id in wanted},
        layout.deferred & wanted,
        layout.descriptions,
    )
    listed = tools(part, search=None)
    return {
        "type": "tool_search_output",
        "execution": "client",
        "call_id": call_id,
        "status": "completed",
        "tools": listed,
    }


def tool_choice(choice: ToolId | str, names: NameTable | Layout) -> str | dict[str, Any]:
    """Return ``auto``, ``none``, ``required``, or the function to call, ``namespace.name`` for one in a namespace.

    Raises `InvalidPayload` for a deferred tool, for the name of a namespace and for a short name inside one: the API
    has no way to choose those; and what `resolve` raises for a name that is none.
    """
    layout = Layout.of(names)
    if isinstance(choice, str) and choice not in MODES:
        _check_text(choice, layout)
    key = chosen(choice, layout)
    if isinstance(key, str):
        return key
    if layout.ids[key] in layout.deferred:
        problem = f"is {layout.ids[key]}, which is deferred: it can be chosen after a tool search has loaded it"
        raise InvalidPayload(field="tool_choice", problem=problem, code="invalid_request")
    return {"type": "function", "name": key.qualified_name}


def _check_text(choice: str, layout: Layout) -> None:
    keys = layout.keys.values()
    if any(key.kind != "namespaced" and key.name == choice for key in keys):
        return
    if any(key.namespace == choice for key in keys):
        problem = "is a namespace, not a tool"
    elif any(key.name == choice for key in keys):
        problem = "is a short name inside a namespace; write namespace.name"
    else:
        return
    raise InvalidPayload(field="tool_choice", problem=problem, code="invalid_request")


def read(
    answer: object,
    names: NameTable | Layout,
    caller: Caller = NOBODY,
    *,
    endpoints: Mapping[str, str] | None = None,
) -> tuple[Call | Refused, ...]:
    """Return the function calls in a response, or in the events of a stream. Raises `InvalidCall` for what is neither.

    Other items (what the API runs itself, custom tools, tool searches) are no calls of these tools.
    """
    return bound(_asked(answer), names, caller, endpoints)


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
    """Return the item that answers a call; the text of a failed one begins with ``[tool error]``."""
    return {"type": "function_call_output", "call_id": call.call_id, "output": output_of(content, is_error=is_error)}


def output_of(content: object, *, is_error: bool) -> str | list[dict[str, Any]]:
    """Return a result's output: a text, or parts if there are several or images."""
    parts = shown(content)
    if not any(isinstance(part, Image) for part in parts):
        made = content_of(parts, is_error=is_error)
        return made if isinstance(made, str) else [{**part, "type": "input_text"} for part in made]
    marked = [{"type": "input_text", "text": ERROR_MARK}] if is_error else []
    return marked + [_part(part) for part in parts]


def _part(part: Any) -> dict[str, Any]:
    if isinstance(part, Image):
        url = part.url or f"data:{part.media_type};base64,{part.base64}"
        return {"type": "input_image", "image_url": url, "detail": "auto"}
    return {"type": "input_text", "text": as_text(part)}


def _asked(answer: object) -> Iterator[Asked]:
    response = Place.of(whole(answer, _assembled))
    if not isinstance(response.get("output"), list):
        response.wrong("output", "is missing or no list of items")
    for item in response.each("output"):
        if item.text("type") == "function_call":
            yield _one(item)


def _one(item: Place) -> Asked:
    item.only(_CALL)
    status = item.optional("status")
    return Asked(
        name=item.text("name"),
        namespace=item.optional("namespace"),
        call_id=item.text("call_id"),
        arguments=item.optional("arguments"),
        paths={name: item.path(name) for name in ("name", "namespace", "call_id", "arguments")},
        problem="was cut off by the API" if status not in (None, "completed") else "",
    )


def _assembled(events: Iterable[Any]) -> dict[str, Any]:
    """Join the events of a stream into the response's calls; an item counts when it is done."""
    pieces, done = Fragments(), dict[int, dict[str, Any]]()
    for number, raw in enumerate(events):
        event = Place.of(plain(raw), f"events[{number}]")
        kind = event.text("type")
        if kind in ("response.output_item.added", "response.output_item.done"):
            item = event.inside("item")
            if item.text("type") == "function_call":
                _item(event, item, pieces, done)
        elif kind in _PIECE and event.number("output_index") in pieces:
            _piece(event, pieces)
    pieces.check("events", finished=True)
    return {"output": [_checked(done[place], text, place) for place, _, text in pieces.joined()]}


def _item(event: Place, item: Place, pieces: Fragments, done: dict[int, dict[str, Any]]) -> None:
    place = event.number("output_index")
    item.only(_CALL)
    if event.value["type"].endswith("added"):
        pieces.begin(place, item)
    pieces.fix(place, item, "call_id", "name", "namespace")
    if event.value["type"].endswith("done"):
        pieces.close(place)
        done[place] = item.value


def _piece(event: Place, pieces: Fragments) -> None:
    if event.value["type"].endswith("delta"):
        pieces.add(event.number("output_index"), event.optional("delta") or "")


def _checked(item: dict[str, Any], text: str, place: int) -> dict[str, Any]:
    # The finished item is what counts; pieces that add up to something else are a fault of the stream.
    if text and text != item.get("arguments"):
        Place(item, f"output[{place}]").wrong("arguments", "is not what its pieces add up to")
    return item
