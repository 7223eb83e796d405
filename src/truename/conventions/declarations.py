"""Declare tools where they are written: the `Declaration`, and the decorator ``@tool`` (seed 003)."""

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
    """One tool as its source has it: the name verbatim, legal or not, twice or not.

    ``server`` is the key of the server that lists it, "" for the tools of a source file. ``definition`` is a
    tools/list entry, as far as the source tells it. ``location`` is the place of the name. ``ignored`` are rules that
    a comment at that place takes back: code -> reason ("" where none is given). ``shown`` is what clients call it,
    beside its own name. ``identity`` is what the configuration declares of its server's ids.
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
        """What the model reads about it; "" if there is no such text."""
        text = self.definition.get("description")
        return text if isinstance(text, str) else ""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The schemas of its parameters by name; none where the schema can't be read."""
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
    """Declare a function as a tool; without a name it has the function's. The function itself is not changed.

    Several of these on one function are several tools with one implementation. ``description`` is the function's
    docstring unless it is given. The rest is `Metadata`. Raises `ConfigError` with the field. Source: seed 003.

    >>> @tool("myapp_ios_open", platforms=["IOS"])
    ... @tool("myapp_android_open", platforms=["ANDROID"])
    ... def open_app(permissions: list[str]) -> str:
    ...     "Open the app."
    >>> [(one.name, one.metadata.platforms) for one in declared(open_app)]
    [('myapp_ios_open', ('ios',)), ('myapp_android_open', ('android',))]
    """
    said = {
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
            one = _declaration(function, name, description, said)
            function.__dict__[_ATTRIBUTE] = (one, *declared(function))
        except (AttributeError, TypeError, ValueError) as error:
            # A class, a built-in function: what has no place for it, or no signature.
            problem = f"a {type(function).__name__} can't be declared"
            raise _wrong(str(name or ""), "", problem, "Declare a function.") from error
        return function

    return declare


def declared(function: Callable[..., Any]) -> tuple[Declaration, ...]:
    """Return the tools that a function is declared as, in the order in which they are written; none is no fault."""
    found: tuple[Declaration, ...] = getattr(function, "__dict__", {}).get(_ATTRIBUTE, ())
    return found


def catalog_of(*sources: Callable[..., Any] | ModuleType, server: str = "local") -> Catalog:
    """Return the catalogue of all tools that these functions, and the functions of these modules, are declared as.

    Raises `DuplicateTool`, which names both owners, for two that have one name in any case and spelling: no client
    could tell them apart, and an `ExceptionGroup` of `InvalidName` for names that no catalogue takes. Then there is no
    catalogue at all.

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


def implementations(*sources: Callable[..., Any] | ModuleType) -> Mapping[str, Callable[..., Any]]:
    """Return by declared name the function behind each of these tools. Raises `DuplicateTool` as `catalog_of`.

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
    # A function that two modules have, or that is given twice, is one function.
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
            raise _wrong(repr(source), "", "it is neither a function nor a module", "Give what is declared.")


def _declaration(
    function: Callable[..., Any], name: str | None, description: str | None, said: Mapping[str, object]
) -> Declaration:
    called = getattr(function, "__name__", "") if name is None else name
    if not isinstance(called, str) or not called:
        raise _wrong(str(called), "name", "it is no text, or empty", "Give the tool a name.")
    if description is not None and not isinstance(description, str):
        raise _wrong(called, "description", "it is no text", "Give a text, or nothing for the docstring.")
    found = read_fields(said)
    for key, fault in found.faults.items():
        raise _wrong(called, key, fault, "Mend the declaration.")
    text = inspect.getdoc(function) if description is None else description
    meta = written_metadata(found.metadata)
    definition = {
        "name": called,
        **({"description": text} if text else {}),
        "inputSchema": input_schema(function),
        **({"_meta": meta} if meta else {}),
    }
    return Declaration(name=called, definition=definition, metadata=found.metadata, location=_location(function))


def _location(function: Callable[..., Any]) -> Location:
    inner = inspect.unwrap(function)
    key = f"{getattr(inner, '__module__', '')}.{getattr(inner, '__qualname__', type(inner).__name__)}"
    code = getattr(inner, "__code__", None)
    return Location(file=code.co_filename, line=code.co_firstlineno, key=key) if code else Location(file="", key=key)


def _owner(one: Declaration) -> str:
    where = one.location.key if one.location else one.name
    return f"{one.metadata.owner} ({where})" if one.metadata.owner else where


def _wrong(name: str, field: str, problem: str, remedy: str) -> ConfigError:
    key = f"{excerpt(name)}{'.' if field else ''}{field}"
    return ConfigError(file="@tool", key=key, problem=problem, remedy=remedy)
