"""Declare tools in their source: the `Declaration`, and the decorator ``@tool``.

The metadata of a declaration is explained in docs/gateway/contexts.md.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from truename.catalog import UNDECLARED, Catalog, ServerIdentity
from truename.conventions.findings import Location
from truename.conventions.metadata import Metadata, read_fields, written_metadata
from truename.errors import ConfigError, DuplicateTool, excerpt
from truename.identity import fold

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Declaration", "catalog_of", "declared", "implementations", "input_schema", "tool"]

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_DECLARATION_PLAIN = Metadata()


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """A tool as declared in its source, with its verbatim name, which may be illegal or a duplicate.

    ``server`` is the key of the server that lists it, "" for a tool of a source file. ``definition`` is a tools/list
    entry, as far as the source contains it. ``location`` is the place of the name. ``ignored`` are rules that a comment
    at that place suppresses: code -> reason ("" if there is none). ``shown`` are the names that clients see, besides
    its own name. ``identity`` is the identity that the configuration declares for its server.
    """

    name: str
    server: str = ""
    definition: Mapping[str, Any] = field(default_factory=lambda: _NOTHING, hash=False)
    metadata: Metadata = _DECLARATION_PLAIN
    location: Location | None = None
    ignored: Mapping[str, str] = field(default_factory=lambda: _NOTHING, hash=False)
    shown: tuple[str, ...] = ()
    identity: ServerIdentity = UNDECLARED

    @property
    def description(self) -> str:
        """The description; "" if there is none."""
        text = self.definition.get("description")
        return text if isinstance(text, str) else ""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The schemas of the parameters by name; empty if the input schema cannot be read."""
        schema = self.definition.get("inputSchema")
        found = schema.get("properties") if isinstance(schema, Mapping) else None
        return found if isinstance(found, Mapping) else _NOTHING


_SIGNATURES_PLAIN: Final[Mapping[object, str]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    dict: "object",
    Mapping: "object",
    type(None): "null",
}
_LISTS: Final = frozenset({list, tuple, set, frozenset, Sequence})
# The classes of parameters that a framework passes to a function in addition to the arguments.
_GIVEN: Final = frozenset({"Context", "RunContext", "RunContextWrapper", "ToolContext", "ToolRuntime"})
_BOUND: Final = frozenset({"self", "cls"})
_VARIADIC: Final = frozenset({inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD})


def input_schema(function: Callable[..., object]) -> dict[str, Any]:
    """Build the JSON Schema of a function's arguments; an argument without a default is required.

    It covers texts, numbers, booleans, lists, dictionaries, `Literal`, `Enum`, unions and optional types; any other
    type has no restriction. ``self``, ``*args``, ``**kwargs`` and arguments that a framework passes (``ctx: Context``)
    are omitted.

    >>> def scroll(by: int, to: str | None = None) -> None: ...
    >>> input_schema(scroll)["properties"]
    {'by': {'type': 'integer'}, 'to': {'anyOf': [{'type': 'string'}, {'type': 'null'}]}}
    """
    inner = inspect.unwrap(function)
    written = inner if inspect.isroutine(inner) else type(inner).__call__
    scope = getattr(written, "__globals__", {})
    hints = {name: _hint(hint, scope) for name, hint in getattr(written, "__annotations__", {}).items()}
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


def _hint(hint: object, scope: dict[str, object]) -> object:
    try:
        return get_type_hints(types.SimpleNamespace(__annotations__={"it": hint}), scope)["it"]
    except (NameError, TypeError, AttributeError, SyntaxError):
        # The annotation cannot be evaluated, for example because the name is imported for type checkers only.
        return Any


def _bare(hint: object) -> object:
    return get_origin(hint) or hint


def _schema(hint: object) -> dict[str, object]:
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
    return {"type": _SIGNATURES_PLAIN[kind]} if kind in _SIGNATURES_PLAIN else {}


_Function = TypeVar("_Function", bound=Callable[..., Any])
_ATTRIBUTE: Final = "__truename__"
_NONE: Final[Mapping[str, Sequence[str]]] = {}


def tool(
    name: str | None = None,
    *,
    is_for_llm: bool = True,
    is_recordable: bool = True,
    platforms: Sequence[str] = (),
    app: str = "",
    owner: str = "",
    family: str = "",
    description: str | None = None,
    parameter_platforms: Mapping[str, Sequence[str]] = _NONE,
) -> Callable[[_Function], _Function]:
    """Declare a function as a tool, by default with the function's name; the function itself is not changed.

    Several decorators on one function declare several tools with one implementation. ``description`` is by default the
    function's docstring. The other arguments are fields of `Metadata`. Raises `ConfigError` with the field
    (docs/gateway/contexts.md).

    >>> @tool("myapp_ios_open", platforms=["IOS"])
    ... @tool("myapp_android_open", platforms=["ANDROID"])
    ... def open_app(permissions: list[str]) -> str:
    ...     "Open the app."
    >>> [(one.name, one.metadata.platforms) for one in declared(open_app)]
    [('myapp_ios_open', ('ios',)), ('myapp_android_open', ('android',))]
    """
    metadata = {
        "is_for_llm": is_for_llm,
        "is_recordable": is_recordable,
        "platforms": platforms,
        "app": app,
        "owner": owner,
        "family": family,
        "parameter_platforms": parameter_platforms,
    }

    def declare(function: _Function) -> _Function:
        try:
            one = _declaration(function, name, description, metadata)
            function.__dict__[_ATTRIBUTE] = (one, *declared(function))
        except (AttributeError, TypeError, ValueError) as error:
            # Some objects, such as built-in functions, have no ``__dict__`` or no signature.
            problem = f"a {type(function).__name__} cannot be declared"
            raise _error(str(name or ""), "", problem, "Declare a function.") from error
        return function

    return declare


def declared(function: Callable[..., object]) -> tuple[Declaration, ...]:
    """Return the tools that a function is declared as, in source order; empty if it is not declared."""
    found: tuple[Declaration, ...] = getattr(function, "__dict__", {}).get(_ATTRIBUTE, ())
    return found


def catalog_of(*sources: Callable[..., object] | ModuleType, server: str = "local") -> Catalog:
    """Build a catalogue of all tools declared by these functions and by the functions of these modules.

    Raises `DuplicateTool`, with both owners, for two tools whose names have one fold, which clients could confuse, and
    an `ExceptionGroup` of `InvalidName` for names that a catalogue does not admit.

    >>> @tool("tap", owner="core")
    ... def tap() -> None: ...
    >>> @tool("Tap", owner="payments")
    ... def other() -> None: ...
    >>> catalog_of(tap, other)
    Traceback (most recent call last):
        ...
    truename.errors.DuplicateTool: core (...tap) and payments (...other) both have the name 'Tap'. Rename one, ...
    """
    definitions = [dict(one.definition) for one, _ in _declared_in(sources)]
    return Catalog.from_mcp({server: definitions})


def implementations(*sources: Callable[..., object] | ModuleType) -> Mapping[str, Callable[..., Any]]:
    """Return the functions of the declared tools by name. Raises `DuplicateTool` like `catalog_of`.

    >>> @tool("one")
    ... @tool("two")
    ... def count() -> None: ...
    >>> found = implementations(count)
    >>> found["one"] is found["two"] is count
    True
    """
    return MappingProxyType({one.name: function for one, function in _declared_in(sources)})


def _declared_in(sources: Sequence[object]) -> Sequence[tuple[Declaration, Callable[..., Any]]]:
    holders: dict[str, tuple[Declaration, Callable[..., Any]]] = {}
    # A function that occurs in two modules, or is passed twice, counts once.
    for function in {id(one): one for one in _functions(sources)}.values():
        for one in declared(function):
            holder, _ = holders.setdefault(fold(one.name), (one, function))
            if holder is not one:
                raise DuplicateTool(existing=_owner(holder), duplicate=_owner(one), name=one.name)
    return tuple(holders.values())


def _functions(sources: Sequence[object]) -> Iterator[Callable[..., Any]]:
    for source in sources:
        if isinstance(source, ModuleType):
            yield from (found for found in vars(source).values() if callable(found))
        elif callable(source):
            yield source
        else:
            raise _error(
                repr(source),
                "",
                "it is neither a function nor a module",
                "Pass declared functions, or modules with such functions.",
            )


def _declaration(
    function: Callable[..., Any], name: str | None, description: str | None, metadata: Mapping[str, object]
) -> Declaration:
    own_name = getattr(function, "__name__", "") if name is None else name
    if not isinstance(own_name, str) or not own_name:
        raise _error(str(own_name), "name", "it is empty or not a text", "Give the tool a name.")
    if description is not None and not isinstance(description, str):
        raise _error(own_name, "description", "it is not a text", "Pass a text, or None to use the docstring.")
    found = read_fields(metadata)
    for key, problem in found.errors.items():
        raise _error(own_name, key, problem, "Fix the declaration.")
    text = inspect.getdoc(function) if description is None else description
    meta = written_metadata(found.metadata)
    definition = {
        "name": own_name,
        **({"description": text} if text else {}),
        "inputSchema": input_schema(function),
        **({"_meta": meta} if meta else {}),
    }
    return Declaration(name=own_name, definition=definition, metadata=found.metadata, location=_location(function))


def _location(function: Callable[..., object]) -> Location:
    inner = inspect.unwrap(function)
    key = f"{getattr(inner, '__module__', '')}.{getattr(inner, '__qualname__', type(inner).__name__)}"
    code = getattr(inner, "__code__", None)
    return Location(file=code.co_filename, line=code.co_firstlineno, key=key) if code else Location(file="", key=key)


def _owner(one: Declaration) -> str:
    where = one.location.key if one.location else one.name
    return f"{one.metadata.owner} ({where})" if one.metadata.owner else where


def _error(name: str, field: str, problem: str, remedy: str) -> ConfigError:
    key = f"{excerpt(name)}{'.' if field else ''}{field}"
    return ConfigError(file="@tool", key=key, problem=problem, remedy=remedy)
