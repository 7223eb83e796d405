"""Share the common parts of all adapters: offered tools, returned calls (also from streams), and results."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from truename import ToolId, dialects, resolve
from truename.adapters.layout import NamespaceLayout
from truename.adapters.reading import JsonObject, PayloadPlace, plain
from truename.errors import InvalidCall, InvalidName, TruenameError, UnknownTool, excerpt
from truename.policy import Call, Caller, bound_call
from truename.policy.arguments import MAX_ARGUMENTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truename import NameTable, Tool
    from truename.identity import LookupKey

__all__ = [
    "NOBODY",
    "Fragments",
    "OfferedTool",
    "RefusedCall",
    "RequestedCall",
    "bind_calls",
    "join_response",
    "offered_tools",
    "require_all",
    "resolve_choice",
]

_MAX_CALLS: Final = 1_000


def join_response(answer: object, assembled: Callable[[Iterable[object]], JsonObject]) -> object:
    """Return a response as plain objects, joined from its events if it is a stream."""
    if isinstance(answer, Mapping) or hasattr(answer, "model_dump"):
        return plain(answer)
    if isinstance(answer, Iterable) and not isinstance(answer, str | bytes):
        return assembled(answer)
    raise InvalidCall(field="the response", problem=f"is of type {type(answer).__name__}, not a response or a stream")


class Fragments:
    """The pieces of the calls of one stream, by their position in it."""

    def __init__(self) -> None:
        self._fixed: dict[int, JsonObject] = {}
        self._texts: dict[int, list[str]] = {}
        self._size = 0
        self._open: set[int] = set()

    def begin(self, place: int, piece: PayloadPlace) -> None:
        """Start a call, which `close` must end. Raises `InvalidCall` if it was already started."""
        if place in self._fixed:
            piece.wrong("", "starts a call that was already started")
        self._open.add(place)
        self._at(place, piece)

    def close(self, place: int) -> None:
        """Mark a call as complete."""
        self._open.discard(place)

    def fix(self, place: int, piece: PayloadPlace, *names: str) -> None:
        """Store texts that a stream sends once. Raises `InvalidCall` if one is sent again with another value."""
        kept = self._at(place, piece)
        for name in names:
            found = piece.optional(name)
            if found and kept.setdefault(name, found) != found:
                piece.wrong(name, "changes within one call")

    def add(self, place: int, text: str) -> None:
        """Add a piece of the arguments. Raises `InvalidCall` for a call that was not started, or too much text."""
        if place not in self._texts:
            raise InvalidCall(field="arguments", problem=f"belong to call {place}, which was not started")
        self._size += len(text)
        if self._size > 4 * MAX_ARGUMENTS:
            raise InvalidCall(field="arguments", problem=f"have more than {4 * MAX_ARGUMENTS:,} characters")
        self._texts[place].append(text)

    def __contains__(self, place: int) -> bool:
        return place in self._fixed

    def check(self, where: str, *, finished: bool) -> None:
        """Check that all calls are complete. Raises `InvalidCall` for a stream that ended too early."""
        if self._open or (self._fixed and not finished):
            raise InvalidCall(field=where, problem="is incomplete: the stream ended within a call")

    def joined(self) -> list[tuple[int, JsonObject, str]]:
        """Return position, fixed texts and joined arguments of each call, in order."""
        return [(place, self._fixed[place], "".join(self._texts[place])) for place in sorted(self._fixed)]

    def _at(self, place: int, piece: PayloadPlace) -> JsonObject:
        if place not in self._fixed and len(self._fixed) >= _MAX_CALLS:
            piece.wrong("", f"is call number {_MAX_CALLS + 1:,} in one response")
        self._texts.setdefault(place, [])
        return self._fixed.setdefault(place, {})


# The model decides; it must not call a tool; it must call one.
MODES: Final = frozenset({"auto", "none", "required"})
NOBODY: Final = Caller()
_PATH_HEAD: Final = re.compile(r"[^.\[]+")


class OfferedTool(NamedTuple):
    """A tool as offered to a model: the key by which to call it, its description, and the schema of its arguments."""

    id: ToolId
    key: LookupKey
    description: str
    schema: Mapping[str, object]
    tool: Tool
    deferred: bool = False


@dataclass(frozen=True, kw_only=True)
class RequestedCall:
    """A call that a model requested, parsed from an API's format and not yet validated.

    ``paths`` are the positions of name, call_id, namespace and arguments in the payload, for errors.
    """

    name: str
    call_id: str
    arguments: object
    namespace: str | None = None
    paths: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class RefusedCall:
    """A call that cannot be made, with the error. Models expect a result for each call: send ``result(refused)``."""

    call_id: str
    wire_name: str
    namespace: str | None
    error: TruenameError


class Api(Protocol):
    """The interface of a module for a model API.

    ``names`` is a name table, or a `NamespaceLayout` of one if the API has namespaces.
    """

    def tools(self, names: NameTable | NamespaceLayout) -> list[JsonObject]:
        """Return the request's list of tools. Raises an `ExceptionGroup` of `InvalidName`."""
        ...

    def tool_choice(self, choice: ToolId | str, names: NameTable | NamespaceLayout) -> str | JsonObject:
        """Return the request's tool choice. Raises `InvalidPayload`, or the errors of `resolve`."""
        ...

    def read(
        self, answer: object, names: NameTable | NamespaceLayout, caller: Caller = ...
    ) -> tuple[Call | RefusedCall, ...]:
        """Return the calls in a response, or in all events of a stream (collect an asynchronous one first).

        Raises `InvalidCall` for anything else, and for a stream that ended too early. A call that was cut off is
        refused.
        """
        ...

    def calls(self, answer: object, names: NameTable | NamespaceLayout, caller: Caller = ...) -> tuple[Call, ...]:
        """Return the calls. Raises the error of a refused call, or an `ExceptionGroup`; then none is returned."""
        ...

    def result(self, call: Call | RefusedCall, content: object = ..., *, is_error: bool = ...) -> JsonObject:
        """Return the result of a call in the API's format."""
        ...


def offered_tools(names: NameTable | NamespaceLayout, dialect: str) -> tuple[OfferedTool, ...]:
    """Return the tools under their names, each of which is legal in the API's dialect.

    Raises an `ExceptionGroup` of `InvalidName` for a table whose dialect has looser rules. A definition without a
    usable schema gets one without arguments, so that one bad server does not invalidate the request.
    """
    layout = NamespaceLayout.of(names)
    rules = dialects.get(dialect)
    wrong = [
        InvalidName(name=key.name, dialect=dialect, reasons=reasons)
        for key in layout.keys.values()
        if (reasons := rules.check(key.name))
    ]
    if wrong:
        message = f"{len(wrong)} names are not legal in the dialect {dialect}"
        raise ExceptionGroup(message, wrong)
    return tuple(_offer(layout, id) for id in layout.keys)


def _offer(layout: NamespaceLayout, id: ToolId) -> OfferedTool:
    tool = layout.names.catalog[id]
    description, schema = tool.shown.get("description"), tool.definition.get("inputSchema")
    return OfferedTool(
        id=id,
        key=layout.keys[id],
        description=description if isinstance(description, str) else "",
        schema={"type": "object", **(schema if isinstance(schema, Mapping) else {"properties": {}})},
        tool=tool,
        deferred=id in layout.deferred,
    )


def resolve_choice(choice: ToolId | str, names: NameTable | NamespaceLayout) -> LookupKey | str:
    """Return the mode, or the key of the chosen tool; a tool named "auto" must be chosen by its id.

    Raises the errors of `resolve`, also for a tool that is not offered.
    """
    if isinstance(choice, str) and choice in MODES:
        return choice
    layout = NamespaceLayout.of(names)
    if isinstance(choice, str) and choice in layout.qualified:
        return layout.keys[layout.qualified[choice]]
    found = resolve(str(choice), layout.names).id
    if found is None or found not in layout.keys:
        raise UnknownTool(text=str(choice))
    return layout.keys[found]


def bind_calls(
    asked: Iterable[RequestedCall],
    names: NameTable | NamespaceLayout,
    caller: Caller = NOBODY,
    endpoints: Mapping[str, str] | None = None,
) -> tuple[Call | RefusedCall, ...]:
    """Return each call bound to its tool, or refused with an error.

    Raises `InvalidCall` for a repeated id, since the results could not be matched to the calls.
    """
    layout, seen = NamespaceLayout.of(names), set[str]()
    found: list[Call | RefusedCall] = []
    for one in asked:
        if one.call_id in seen:
            raise InvalidCall(field=one.paths.get("call_id", "call_id"), problem=f"{excerpt(one.call_id)} is repeated")
        seen.add(one.call_id)
        found.append(_bound(one, layout, caller, endpoints))
    return tuple(found)


def _bound(
    asked: RequestedCall, layout: NamespaceLayout, caller: Caller, endpoints: Mapping[str, str] | None
) -> Call | RefusedCall:
    try:
        if asked.problem:
            raise InvalidCall(field="arguments", problem=asked.problem)
        call = bound_call(
            name=asked.name,
            namespace=asked.namespace,
            call_id=asked.call_id,
            arguments=asked.arguments,
            names=layout.names,
            caller=caller,
            keys=layout.ids,
            endpoints=endpoints,
        )
        if call.key in layout.ids or layout.is_meant(call.wire_name, call.id):
            return call
        raise UnknownTool(text=call.wire_name, suggestions=layout.names.suggester.nearest(call.wire_name))
    except TruenameError as error:
        told = _located(error, asked.paths) if isinstance(error, InvalidCall) else error
        return RefusedCall(call_id=asked.call_id, wire_name=asked.name, namespace=asked.namespace, error=told)


def _located(error: InvalidCall, paths: Mapping[str, str]) -> InvalidCall:
    head = _PATH_HEAD.match(error.field)
    if head is None or head[0] not in paths:
        return error
    return replace(error, field=paths[head[0]] + error.field[head.end() :])


def require_all(found: Sequence[Call | RefusedCall]) -> tuple[Call, ...]:
    """Return the calls if none is refused. Raises the error of a refused call, or an `ExceptionGroup` of several."""
    errors = [one.error for one in found if isinstance(one, RefusedCall)]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        message = f"{len(errors)} calls are refused; nothing was run"
        raise ExceptionGroup(message, errors)
    return tuple(one for one in found if isinstance(one, Call))
