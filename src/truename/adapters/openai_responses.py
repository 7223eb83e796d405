"""Adapt tools, calls and histories to OpenAI Responses, with its namespaces, deferred tools and tool search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from truename.adapters.layout import NamespaceLayout
from truename.adapters.openai_chat import content_of
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
    MODES,
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
from truename.identity.keys import call_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from truename import NameTable, ToolId
    from truename.adapters.turns import Role, Shown
    from truename.adapters.wire import OfferedTool, RefusedCall
    from truename.policy import Call, Caller

__all__ = ["DIALECT", "calls", "result", "search_result", "tool_choice", "tools"]

DIALECT: Final = "openai-responses"
_CALL: Final = frozenset(
    {"type", "id", "call_id", "name", "namespace", "arguments", "parsed_arguments", "status", "caller", "async"}
    | {"created_by"}
)
_PIECE: Final = frozenset({"response.function_call_arguments.delta", "response.function_call_arguments.done"})
Search = Literal["server", "client"]


def tools(
    names: NameTable | NamespaceLayout, *, search: Search | None = "server", strict: bool | None = None
) -> list[JsonObject]:
    """Return the tools; those of one namespace form one entry, at the position of the first of them.

    If any tool is deferred, a tool search is added, which the API or the client runs (``search``; None: the caller adds
    it). ``strict`` is passed on to the API; with None the API decides.

    Raises an `ExceptionGroup` of `InvalidName`.

    >>> from truename import Catalog, project
    >>> names = project(Catalog.of("crm@1/lookup@1"), "openai-responses")
    >>> [tool["type"] for tool in tools(NamespaceLayout.by_server(names, defer=True))]
    ['namespace', 'tool_search']
    """
    layout = NamespaceLayout.of(names)
    listed: dict[str, JsonObject] = {}
    for number, one in enumerate(offered_tools(layout, DIALECT)):
        space = one.key.namespace
        if space is None:
            listed[f"{number} top level"] = _function(one, strict)
        else:
            description = layout.descriptions.get(space) or f"Tools of {space}"
            entry = {"type": "namespace", "name": space, "description": description, "tools": []}
            listed.setdefault(f"in {space}", entry)["tools"].append(_function(one, strict))
    made = list(listed.values())
    return [*made, *_search(search, layout)] if layout.deferred and search else made


def _function(one: OfferedTool, strict: bool | None) -> JsonObject:
    made = {
        "type": "function",
        "name": one.key.name,
        "description": one.description,
        "parameters": dict(one.schema),
        "strict": strict,
    }
    return {**made, "defer_loading": True} if one.deferred else made


def _search(search: Search, layout: NamespaceLayout) -> Iterator[JsonObject]:
    if search == "server":
        yield {"type": "tool_search"}
        return
    query = {"type": "string", "description": "The task of the tool"}
    yield {
        "type": "tool_search",
        "execution": "client",
        "description": f"Find tools by their task; {len(layout.deferred)} tools are not listed.",
        "parameters": {"type": "object", "properties": {"query": query}, "required": ["query"]},
    }


def search_result(call_id: str, ids: Iterable[ToolId], names: NameTable | NamespaceLayout) -> JsonObject:
    """Return the item with the result of a tool search that the client runs."""
    layout, wanted = NamespaceLayout.of(names), frozenset(ids)
    part = NamespaceLayout(
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


def tool_choice(choice: ToolId | str, names: NameTable | NamespaceLayout) -> str | JsonObject:
    """Return ``auto``, ``none``, ``required``, or the function to call, ``namespace.name`` for a namespaced tool.

    Raises `InvalidPayload` for a deferred tool, for the name of a namespace and for a short name inside one, which the
    API cannot choose; raises the errors of `resolve` for an unknown name.
    """
    layout = NamespaceLayout.of(names)
    if isinstance(choice, str) and choice not in MODES:
        _check_text(choice, layout)
    key = resolve_choice(choice, layout)
    if isinstance(key, str):
        return key
    if layout.ids[key] in layout.deferred:
        problem = f"is {layout.ids[key]}, which is deferred: choose it after a tool search has loaded it"
        raise InvalidPayload(field="tool_choice", problem=problem, code="invalid_request")
    return {"type": "function", "name": key.qualified_name}


def _check_text(choice: str, layout: NamespaceLayout) -> None:
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
    names: NameTable | NamespaceLayout,
    caller: Caller = NOBODY,
    *,
    endpoints: Mapping[str, str] | None = None,
) -> tuple[Call | RefusedCall, ...]:
    """Return the function calls in a response, or in the events of a stream. Raises `InvalidCall` for anything else.

    Other items (tools that the API runs itself, custom tools, tool searches) are ignored.
    """
    return bind_calls(_requested_calls(answer), names, caller, endpoints)


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
    """Return the item with the result of a call; the text of a failed one begins with ``[tool error]``."""
    return {"type": "function_call_output", "call_id": call.call_id, "output": output_of(content, is_error=is_error)}


def output_of(content: object, *, is_error: bool) -> str | list[JsonObject]:
    """Return the output of a result: a text, or parts if there are several or images."""
    parts = content_parts(content)
    if not any(isinstance(part, Image) for part in parts):
        made = content_of(parts, is_error=is_error)
        return made if isinstance(made, str) else [{**part, "type": "input_text"} for part in made]
    mark = [{"type": "input_text", "text": ERROR_MARK}] if is_error else []
    return mark + [_part(part) for part in parts]


def _part(part: Shown) -> JsonObject:
    if isinstance(part, Image):
        return {"type": "input_image", "image_url": url_of(part), "detail": "auto"}
    return {"type": "input_text", "text": as_text(part)}


def _requested_calls(answer: object) -> Iterator[RequestedCall]:
    response = PayloadPlace.of(join_response(answer, _join_stream))
    if not isinstance(response.get("output"), list):
        response.wrong("output", "is missing or not a list of items")
    for item in response.each("output"):
        if item.text("type") == "function_call":
            item.only(_CALL)
            status = item.optional("status")
            yield RequestedCall(
                name=item.text("name"),
                namespace=item.optional("namespace"),
                call_id=item.text("call_id"),
                arguments=item.optional("arguments"),
                paths={name: item.path(name) for name in ("name", "namespace", "call_id", "arguments")},
                problem="was cut off by the API" if status not in (None, "completed") else "",
            )


def _join_stream(events: Iterable[object]) -> JsonObject:
    """Join the events of a stream into the response's calls; an item counts when it is done."""
    pieces, done = Fragments(), dict[int, JsonObject]()
    for number, raw in enumerate(events):
        event = PayloadPlace.of(plain(raw), f"events[{number}]")
        kind = event.text("type")
        if kind in ("response.output_item.added", "response.output_item.done"):
            item = event.inside("item")
            if item.text("type") == "function_call":
                _item(event, item, pieces, done)
        elif kind in _PIECE and event.number("output_index") in pieces and kind.endswith("delta"):
            pieces.add(event.number("output_index"), event.optional("delta") or "")
    pieces.check("events", finished=True)
    return {"output": [_checked(done[place], text, place) for place, _, text in pieces.joined()]}


def _item(event: PayloadPlace, item: PayloadPlace, pieces: Fragments, done: dict[int, JsonObject]) -> None:
    place = event.number("output_index")
    item.only(_CALL)
    if event.value["type"].endswith("added"):
        pieces.begin(place, item)
    pieces.fix(place, item, "call_id", "name", "namespace")
    if event.value["type"].endswith("done"):
        pieces.close(place)
        done[place] = item.value


def _checked(item: JsonObject, text: str, place: int) -> JsonObject:
    # The finished item counts; pieces that add up to another text are an error of the stream.
    if text and text != item.get("arguments"):
        PayloadPlace(item, f"output[{place}]").wrong("arguments", "differs from the joined pieces")
    return item


_ROLES: Final[dict[str, Role]] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_HISTORY_CALL: Final = frozenset(
    {"type", "id", "call_id", "name", "namespace", "arguments", "parsed_arguments", "status"}
)
_OUTPUT: Final = frozenset({"type", "id", "call_id", "name", "namespace", "output", "status"})
_MESSAGE: Final = frozenset({"type", "id", "role", "content", "status", "phase"})
_SEARCHED: Final = "tool_search_output"
# Calls of other kinds of tools: their names do not change, but their ids are call ids too.
_OTHER_CALLS: Final = frozenset({"custom_tool_call", "shell_call", "local_shell_call", "apply_patch_call"})
_OTHER_RESULTS: Final = frozenset({f"{name}_output" for name in _OTHER_CALLS})


def history_mentions(messages: Sequence[PayloadPlace]) -> Iterator[HistoryMention]:
    """Yield the calls, the results, and the tools that a search returned."""
    for item in messages:
        kind = item.optional("type")
        if kind == "function_call":
            yield HistoryMention(kind="call", place=item, id_key="call_id", named=item, spaced=True)
        elif kind == "function_call_output":
            named = item if item.get("name") is not None else None
            yield HistoryMention(kind="result", place=item, id_key="call_id", named=named, spaced=True)
        elif kind in _OTHER_CALLS | _OTHER_RESULTS and call_id(item.value) is not None:
            yield HistoryMention(kind="call" if kind in _OTHER_CALLS else "result", place=item, id_key="call_id")
        elif kind == _SEARCHED:
            found = (tool for tool in item.each("tools") if tool.optional("type") == "function")
            yield from (HistoryMention(kind="reference", place=tool, named=tool) for tool in found)


def read_history(messages: Sequence[PayloadPlace], tell: Tell) -> Iterator[ConversationTurn]:
    """Yield the turns of a history.

    Raises `InvalidPayload` for content that cannot be carried to other APIs, and for invalid messages.
    """
    for item in messages:
        match item.optional("type"):
            case "function_call":
                yield ConversationTurn("assistant", (_call(item),), item.where)
            case "function_call_output":
                item.only(_OUTPUT | {"caller", "created_by"})
                is_error, content = split_error_mark(tuple(_content(item, "output")))
                result = ToolResult(call_id=item.text("call_id"), content=content, is_error=is_error)
                yield ConversationTurn("user", (result,), item.where)
            case "reasoning":
                tell("dropped", item.where, "is specific to this API and was dropped")
            case "message" | None:
                item.only(_MESSAGE)
                role = item.text("role")
                if role not in _ROLES:
                    item.wrong("role", "is not a known role")
                yield ConversationTurn(_ROLES[role], tuple(_content(item, "content")), item.where)
            case kind:
                raise unsupported_content(item, f"of type {kind!r}")


def _content(item: PayloadPlace, name: str) -> Iterator[Shown]:
    content = item.get(name)
    if isinstance(content, str):
        if content:
            yield Text(content)
        return
    for part in item.each(name):
        match part.text("type"):
            case "input_text" | "output_text" | "text":
                yield Text(part.optional("text") or "")
            case "refusal":
                yield Text(part.optional("refusal") or "")
            case "input_image" if part.get("image_url") is not None:
                yield image_of_url(part.text("image_url"))
            case kind:
                raise unsupported_content(part, f"of type {kind!r}")


def _call(item: PayloadPlace) -> ToolCall:
    item.only(_HISTORY_CALL | {"caller", "async", "created_by"})
    return ToolCall(
        call_id=item.text("call_id"),
        name=item.text("name"),
        namespace=item.optional("namespace"),
        arguments=arguments_of(item.optional("arguments") or ""),
    )


def write_turn(turn: ConversationTurn) -> Iterator[JsonObject]:
    """Yield the items of a turn."""
    for part in turn.parts:
        if isinstance(part, ToolResult):
            output = output_of(part.content, is_error=part.is_error)
            yield {"type": "function_call_output", "call_id": part.call_id, "output": output}
    said = [part for part in turn.parts if not isinstance(part, ToolCall | ToolResult)]
    if said:
        yield {"type": "message", "role": turn.role, "content": _said(turn.role, said)}
    for part in turn.parts:
        if isinstance(part, ToolCall):
            space = {} if part.namespace is None else {"namespace": part.namespace}
            text = arguments_text(part.arguments)
            yield {"type": "function_call", "call_id": part.call_id, "name": part.name, **space, "arguments": text}


def _said(role: Role, said: Sequence[Shown]) -> str | list[JsonObject]:
    if len(said) == 1 and not isinstance(said[0], Image):
        return as_text(said[0])
    if role == "assistant":
        # Parts of an assistant's message need the ids that the API gave them, so the text is joined.
        return "\n\n".join(as_text(part) for part in said)
    return [_part(part) for part in said]
