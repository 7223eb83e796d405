"""The tools that a Python file declares, read from its text: it is parsed, and never imported or run."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from truename.conventions import Location
from truename.lint.calls import at, definition_of, keyword, members, stated, written
from truename.lint.comments import comments_of
from truename.lint.gaps import Gaps
from truename.lint.scope import Function, Scope
from truename.lint.servers import Servers
from truename.lint.signature import literal, schema_of_class, schema_of_function
from truename.lint.source import Source, Unreadable
from truename.lint.ways import OURS, Way, is_base_tool, way

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from truename.lint.comments import Comment
    from truename.lint.gaps import Room

__all__ = ["Named", "Unnamed", "read_python"]

_NAME: Final = "name"
# Nothing in the table of ways is called without it; most sources end here.
_WORD: Final = "tool"
_DESCRIPTION: Final = "description"


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """One tool of a source: its name, where that stands, its definition, and what our own decorator says of it.

    ``first`` to ``last`` are the lines on which a comment is about it. ``is_literal``: the name stands there letter
    by letter. ``server`` is the one of the servers made in this file that has it, "" where that is not certain.
    ``function`` is where the name of its function stands; ``rooms`` are where a name of its own could be written, if
    it has the function's (``is_functions``).
    """

    name: str
    location: Location
    definition: Mapping[str, Any]
    said: Mapping[str, ast.expr] = field(default_factory=lambda: MappingProxyType({}))
    first: int = 0
    last: int = 0
    is_literal: bool = True
    server: str = ""
    function: Location | None = None
    is_functions: bool = False
    rooms: tuple[Room, ...] = ()


@dataclass(frozen=True, slots=True)
class Unnamed:
    """A tool whose name is made when the program runs: where, and what makes it."""

    location: Location
    what: str
    first: int = 0
    last: int = 0


# The first and the last line on which a comment is about a tool.
Lines = tuple[int, int]


def read_python(raw: bytes, file: str) -> tuple[tuple[Named | Unnamed, ...], tuple[Comment, ...]]:
    """Return the tools in the order of the text, and the comments about rules. Raises `Unreadable`."""
    source = Source(raw, file)
    if _WORD not in source.text.lower():
        return (), comments_of(source.text)
    try:
        found = tuple(_Reading(source).tools())
    except RecursionError as error:
        raise Unreadable("it is nested too deeply", "Split it.") from error
    return found, comments_of(source.text)


class _Reading:
    """One file that is being read."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._scope = Scope(source.tree)
        self._servers = Servers(self._scope)
        self._gaps = Gaps(source)
        nodes = self._scope.nodes
        self._methods = {id(one) for node in nodes if isinstance(node, ast.ClassDef) for one in node.body}
        self._schemas: dict[tuple[int, bool], Mapping[str, Any]] = {}
        # Decorators are read with their functions.
        self._seen = {id(one) for node in nodes if isinstance(node, Function) for one in node.decorator_list}

    def tools(self) -> Iterator[Named | Unnamed]:
        found: list[Named | Unnamed] = []
        for node in self._scope.nodes:
            if isinstance(node, Function):
                found += self._decorated(node)
            elif isinstance(node, ast.Call) and id(node) not in self._seen:
                found += self._called(node)
            elif isinstance(node, ast.ClassDef):
                found += self._derived(node)
        return iter(sorted(found, key=lambda one: (one.location.line, one.location.column)))

    def _decorated(self, function: Function) -> Iterator[Named | Unnamed]:
        """Yield a tool for each decorator that declares one; several of one name are one tool."""
        found: dict[str, Named] = {}
        for decorator in function.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            known = self._way(decorator if call is None else call.func)
            if known is None:
                continue
            lines = (decorator.lineno, function.lineno)
            one = self._tool(known, call, function, lines)
            if isinstance(one, Unnamed):
                yield one
            elif one is not None:
                rooms = _rooms(one, self._gaps.of_decorator(decorator, known))
                before = found.get(one.name)
                if before is None or known.library == OURS:
                    found[one.name] = replace(one, server=self._servers.of(decorator))
                both = (*(before.rooms if before is not None else ()), *rooms)
                found[one.name] = replace(found[one.name], rooms=both)
        yield from found.values()

    def _called(self, call: ast.Call) -> Iterator[Named | Unnamed]:
        made_by, function = call.func, None
        if isinstance(made_by, ast.Call) and self._way(made_by.func) is not None:
            # As a decorator is, but called by hand.
            self._seen.add(id(made_by))
            function = self._scope.function(call.args[0] if call.args else None)
            call, made_by = made_by, made_by.func
        known = self._way(made_by)
        if known is None:
            return
        function = function or self._function(known, call)
        if known.needs_function and function is None and keyword(call, known.name) is None:
            return
        lines = (call.lineno, call.end_lineno or call.lineno)
        one = self._tool(known, call, function, lines)
        if isinstance(one, Named):
            rooms = _rooms(one, self._gaps.of_call(call, known))
            yield replace(one, server=self._servers.of(call), rooms=rooms)
        elif one is not None:
            yield one

    def _derived(self, node: ast.ClassDef) -> Iterator[Named | Unnamed]:
        """Yield the tool that a subclass of LangChain's BaseTool is, if it says its name."""
        if not any(is_base_tool(self._scope.dotted(base)) for base in node.bases):
            return
        said = dict(members(node))
        if _NAME not in said:
            return
        lines = (node.lineno, node.body[0].lineno)
        run = next((one for one in node.body if isinstance(one, Function) and one.name in {"_run", "_arun"}), None)
        model = self._scope.class_(said.get("args_schema"))
        schema = None if model is None else schema_of_class(model)
        if schema is None and run is not None:
            schema = schema_of_function(run, is_method=True)
        description = self._scope.text(said.get(_DESCRIPTION))
        doc = description.value if description else ast.get_docstring(node) or ""
        yield self._named(said[_NAME], None, definition_of(doc, schema), {}, lines)

    def _way(self, node: ast.expr) -> Way | None:
        return way(self._scope.dotted(node), is_attribute=isinstance(node, ast.Attribute))

    def _tool(
        self, known: Way, call: ast.Call | None, function: Function | None, lines: Lines
    ) -> Named | Unnamed | None:
        name = None if call is None else self._argument(call, known.name, known.name_at, known, function)
        if name is None and function is None:
            return None if known.needs_function or call is None else self._computed(call, lines)
        if call is not None and any(one.arg is None for one in call.keywords) and name is None:
            return self._computed(call, lines)
        definition = definition_of(self._doc(known, call, function), self._schema(known, call, function))
        definition = {**definition, **stated(call)}
        said = {one.arg: one.value for one in call.keywords if one.arg} if call and known.library == OURS else {}
        return self._named(name, function, definition, said, lines)

    def _named(
        self,
        name: ast.expr | None,
        function: Function | None,
        definition: Mapping[str, Any],
        said: Mapping[str, ast.expr],
        lines: Lines,
    ) -> Named | Unnamed:
        if name is None or (isinstance(name, ast.Constant) and name.value is None):
            if function is None:
                place = self._source.place(name, "") if name else Location(file=self._source.file)
                return Unnamed(place, "None", *lines)
            place = self._source.place_of_function(function)
            made = self._declared(function.name, place, definition, said, lines, is_literal=True)
            return replace(made, function=place, is_functions=True)
        text_ = self._scope.text(name)
        if text_ is None:
            return self._computed(name, lines)
        place = self._source.place(text_.node, text_.value)
        is_literal = self._source.is_literal(text_, place)
        made = self._declared(text_.value, place, definition, said, lines, is_literal=is_literal)
        return made if function is None else replace(made, function=self._source.place_of_function(function))

    def _declared(
        self,
        name: str,
        place: Location,
        definition: Mapping[str, Any],
        said: Mapping[str, ast.expr],
        lines: Lines,
        *,
        is_literal: bool,
    ) -> Named:
        return Named(
            name=name,
            location=place,
            definition={_NAME: name, **definition},
            said=said,
            first=lines[0],
            last=lines[1],
            is_literal=is_literal,
        )

    def _computed(self, node: ast.expr, lines: Lines) -> Unnamed:
        return Unnamed(self._source.place(node, ""), written(node), *lines)

    def _function(self, known: Way, call: ast.Call) -> Function | None:
        for name in known.function:
            found = self._scope.function(keyword(call, name))
            if found is not None:
                return found
        return self._scope.function(at(call, known.function_at))

    def _argument(
        self, call: ast.Call, name: str, place: int, known: Way, function: Function | None
    ) -> ast.expr | None:
        given = keyword(call, name) or at(call, place)
        if given is None or place != known.function_at:
            return given
        # In one place some libraries take the name or the function.
        is_function = given is at(call, place) and (
            self._scope.function(given) is not None or (function is None and self._scope.text(given) is None)
        )
        return None if is_function else given

    def _doc(self, known: Way, call: ast.Call | None, function: Function | None) -> str:
        given = None
        if call is not None:
            given = keyword(call, known.description) or at(call, known.description_at)
        text = self._scope.text(given)
        if text is not None:
            return text.value
        return "" if function is None or given is not None else ast.get_docstring(function) or ""

    def _schema(self, known: Way, call: ast.Call | None, function: Function | None) -> Mapping[str, Any] | None:
        given = [keyword(call, one) for one in known.schemas] if call is not None else []
        if call is not None and known.schema_at >= 0:
            given.append(at(call, known.schema_at))
        for one in given:
            model = self._scope.class_(one)
            is_known, value = literal(one) if one is not None else (False, None)
            if model is not None or (is_known and isinstance(value, dict)):
                return value if model is None else schema_of_class(model)
        if function is None:
            return None
        strict = known.strict and not self._is_false(call, "strict_mode")
        key = (id(function), strict)
        if key not in self._schemas:
            self._schemas[key] = schema_of_function(function, is_method=id(function) in self._methods, strict=strict)
        return self._schemas[key]

    def _is_false(self, call: ast.Call | None, name: str) -> bool:
        given = keyword(call, name) if call is not None else None
        return isinstance(given, ast.Constant) and given.value is False


def _rooms(one: Named, room: Room | None) -> tuple[Room, ...]:
    return (room,) if one.is_functions and room is not None else ()
