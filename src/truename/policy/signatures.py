"""The schema of a function's arguments, from its annotations: as far as they say, and no further."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

__all__ = ["input_schema"]

_PLAIN: Final[Mapping[object, str]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    dict: "object",
    Mapping: "object",
    type(None): "null",
}
_LISTS: Final = frozenset({list, tuple, set, frozenset, Sequence})
# What a framework hands to a function beside its arguments, by the name of its class.
_GIVEN: Final = frozenset({"Context", "RunContext", "RunContextWrapper", "ToolContext", "ToolRuntime"})
_BOUND: Final = frozenset({"self", "cls"})
_VARIADIC: Final = frozenset({inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD})


def input_schema(function: Callable[..., Any]) -> dict[str, Any]:
    """Return a JSON Schema of the arguments; one without a default is required.

    Texts, numbers, booleans, lists, dictionaries, `Literal`, `Enum`, unions and optional ones are told; a type that is
    none of these may be anything. Left out are ``self``, ``*args``, ``**kwargs``, and what a framework hands in
    (``ctx: Context``).

    >>> def scroll(by: int, to: str | None = None) -> None: ...
    >>> input_schema(scroll)["properties"]
    {'by': {'type': 'integer'}, 'to': {'anyOf': [{'type': 'string'}, {'type': 'null'}]}}
    """
    hints = _hints(function)
    taken = {
        name: parameter
        for number, (name, parameter) in enumerate(inspect.signature(function).parameters.items())
        if parameter.kind not in _VARIADIC
        and not (number == 0 and name in _BOUND)
        and getattr(_bare(hints.get(name)), "__name__", "") not in _GIVEN
    }
    required = [name for name, parameter in taken.items() if parameter.default is inspect.Parameter.empty]
    properties = {name: _schema(hints.get(name, Any)) for name in taken}
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    inner = inspect.unwrap(function)
    written = inner if inspect.isroutine(inner) else type(inner).__call__
    scope = getattr(written, "__globals__", {})
    return {name: _hint(hint, scope) for name, hint in getattr(written, "__annotations__", {}).items()}


def _hint(hint: Any, scope: dict[str, Any]) -> Any:
    try:
        return get_type_hints(types.SimpleNamespace(__annotations__={"it": hint}), scope)["it"]
    except (NameError, TypeError, AttributeError, SyntaxError):
        # A name that only a type checker knows: nothing is said then, rather than something wrong.
        return Any


def _bare(hint: Any) -> Any:
    return get_origin(hint) or hint


def _schema(hint: Any) -> dict[str, Any]:
    kind, parts = _bare(hint), get_args(hint)
    if kind is Literal:
        return {"enum": list(parts)}
    if kind in (Union, types.UnionType):
        return {"anyOf": [_schema(part) for part in parts]}
    if not inspect.isclass(kind):
        return {}
    if issubclass(kind, Enum):
        return {"enum": [member.value for member in kind]}
    if kind in _LISTS:
        items = [part for part in parts if part is not Ellipsis]
        return {"type": "array", "items": _schema(items[0])} if len(items) == 1 else {"type": "array"}
    return {"type": _PLAIN[kind]} if kind in _PLAIN else {}
