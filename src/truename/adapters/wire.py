"""What all adapters have in common: tools as they are offered, calls as they come back, results as they are sent.

A module for a model API has the five functions of `Api`. A framework's adapter builds on `offers` (what to register,
under which name), `Asked` with `bound` (from what the model asked to `Call` or `Refused`) and `chosen`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from truename import ToolId, dialects, resolve
from truename.adapters.layout import Layout
from truename.errors import InvalidCall, InvalidName, TruenameError, UnknownTool, excerpt
from truename.policy import Call, Caller, bound_call

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from truename import NameTable, Tool
    from truename.identity import LookupKey

__all__ = ["NOBODY", "Api", "Asked", "Offer", "Refused", "bound", "chosen", "offers", "required"]

# The model decides; it must call none; it must call some tool.
MODES: Final = frozenset({"auto", "none", "required"})
NOBODY: Final = Caller()
_PATH_HEAD: Final = re.compile(r"[^.\[]+")


class Offer(NamedTuple):
    """A tool as a model is offered it: the key it is called by, what it does, and the schema of its arguments."""

    id: ToolId
    key: LookupKey
    description: str
    schema: Mapping[str, Any]
    tool: Tool
    deferred: bool = False


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A call as a model asked for it, read from an API's shape and not yet believed.

    ``paths`` say where in the payload name, call_id, namespace and arguments stand, for errors.
    """

    name: str
    call_id: str
    arguments: object
    namespace: str | None = None
    paths: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A call that can't be made, and why. Models expect an answer to each call: send ``result(refused)``."""

    call_id: str
    wire_name: str
    namespace: str | None
    error: TruenameError


class Api(Protocol):
    """What a module for a model API offers; a module is one of these.

    ``names`` is a name table, or a `Layout` of one where the API has namespaces.
    """

    def tools(self, names: NameTable | Layout) -> list[dict[str, Any]]:
        """Return the request's list of tools. Raises an `ExceptionGroup` of `InvalidName`."""
        ...

    def tool_choice(self, choice: ToolId | str, names: NameTable | Layout) -> Any:
        """Return the request's choice. Raises `InvalidPayload`, or what `resolve` raises."""
        ...

    def read(self, answer: object, names: NameTable | Layout, caller: Caller = ...) -> tuple[Call | Refused, ...]:
        """Return the calls in an answer, or in all events of a stream (of an asynchronous one: collected).

        Raises `InvalidCall` for what is no answer. A call that was cut off, or a stream that ended early, is no call.
        """
        ...

    def calls(self, answer: object, names: NameTable | Layout, caller: Caller = ...) -> tuple[Call, ...]:
        """Return the calls. Raises the error of one that can't be made, or an `ExceptionGroup` of them: none is."""
        ...

    def result(self, call: Call | Refused, content: object = ..., *, is_error: bool = ...) -> dict[str, Any]:
        """Return what came of a call, in the API's shape."""
        ...


def offers(names: NameTable | Layout, dialect: str) -> tuple[Offer, ...]:
    """Return the tools under their names, each legal in the API's dialect.

    Raises an `ExceptionGroup` of `InvalidName`: a table made for a client with looser rules does not fit. A definition
    without a usable schema gets one that takes no arguments, so one bad server does not spoil the request for all.
    """
    layout = Layout.of(names)
    rules = dialects.get(dialect)
    wrong = [
        InvalidName(name=key.name, dialect=dialect, reasons=reasons)
        for key in layout.keys.values()
        if (reasons := rules.check(key.name))
    ]
    if wrong:
        message = f"{len(wrong)} names are not legal for {dialect}"
        raise ExceptionGroup(message, wrong)
    return tuple(_offer(layout, id) for id in layout.keys)


def _offer(layout: Layout, id: ToolId) -> Offer:
    tool = layout.names.catalog[id]
    description, schema = tool.shown.get("description"), tool.definition.get("inputSchema")
    return Offer(
        id=id,
        key=layout.keys[id],
        description=description if isinstance(description, str) else "",
        schema={"type": "object", **(schema if isinstance(schema, Mapping) else {"properties": {}})},
        tool=tool,
        deferred=id in layout.deferred,
    )


def chosen(choice: ToolId | str, names: NameTable | Layout) -> LookupKey | str:
    """Return the mode, or the key of the tool that is chosen; a tool called "auto" is chosen by its id.

    Raises what `resolve` raises, also for a tool that is not offered.
    """
    if isinstance(choice, str) and choice in MODES:
        return choice
    layout = Layout.of(names)
    if isinstance(choice, str) and choice in layout.qualified:
        return layout.keys[layout.qualified[choice]]
    found = resolve(str(choice), layout.names).id
    if found is None or found not in layout.keys:
        raise UnknownTool(text=str(choice))
    return layout.keys[found]


def bound(
    asked: Iterable[Asked],
    names: NameTable | Layout,
    caller: Caller = NOBODY,
    endpoints: Mapping[str, str] | None = None,
) -> tuple[Call | Refused, ...]:
    """Return each call bound to its tool, or refused with the error that says why.

    Raises `InvalidCall` if one id stands twice: nobody could tell their results apart.
    """
    layout, seen = Layout.of(names), set[str]()
    found: list[Call | Refused] = []
    for one in asked:
        if one.call_id in seen:
            raise InvalidCall(field=one.paths.get("call_id", "call_id"), problem=f"{excerpt(one.call_id)} stands twice")
        seen.add(one.call_id)
        found.append(_bound(one, layout, caller, endpoints))
    return tuple(found)


def _bound(asked: Asked, layout: Layout, caller: Caller, endpoints: Mapping[str, str] | None) -> Call | Refused:
    try:
        if asked.problem:
            raise InvalidCall(field="arguments", problem=asked.problem)
        return _meant(
            bound_call(
                name=asked.name,
                namespace=asked.namespace,
                call_id=asked.call_id,
                arguments=asked.arguments,
                names=layout.names,
                caller=caller,
                keys=layout.ids,
                endpoints=endpoints,
            ),
            layout,
        )
    except TruenameError as error:
        told = _located(error, asked.paths) if isinstance(error, InvalidCall) else error
        return Refused(call_id=asked.call_id, wire_name=asked.name, namespace=asked.namespace, error=told)


def _meant(call: Call, layout: Layout) -> Call:
    if call.key in layout.ids or layout.is_meant(call.wire_name, call.id):
        return call
    raise UnknownTool(text=call.wire_name, suggestions=layout.names.suggester.nearest(call.wire_name))


def _located(error: InvalidCall, paths: Mapping[str, str]) -> InvalidCall:
    head = _PATH_HEAD.match(error.field)
    if head is None or head[0] not in paths:
        return error
    return replace(error, field=paths[head[0]] + error.field[head.end() :])


def required(found: Sequence[Call | Refused]) -> tuple[Call, ...]:
    """Return the calls if all can be made. Raises the error, or an `ExceptionGroup` of several."""
    errors = [one.error for one in found if isinstance(one, Refused)]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        message = f"{len(errors)} calls can't be made; nothing was run"
        raise ExceptionGroup(message, errors)
    return tuple(one for one in found if isinstance(one, Call))
