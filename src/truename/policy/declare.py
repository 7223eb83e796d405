"""``@tool``: a tool declared where it is written, with its metadata. The function stays what it is (seed 003)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from truename.catalog import Catalog
from truename.errors import ConfigError, DuplicateTool, excerpt
from truename.identity import fold
from truename.policy.authored import written_metadata
from truename.policy.declaration import Declaration
from truename.policy.finding import Location
from truename.policy.said import read_fields
from truename.policy.signatures import input_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["catalog_of", "declared", "implementations", "tool"]

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
    for field, fault in found.faults.items():
        raise _wrong(called, field, fault, "Mend the declaration.")
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
