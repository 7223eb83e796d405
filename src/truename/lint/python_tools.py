"""Find the tools that a Python source declares with any supported library, by parsing it without importing it."""

from __future__ import annotations

import ast
import io
import re
import token
import tokenize
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.conventions import Location
from truename.lint.python_signatures import (
    argument,
    at,
    definition_of,
    expression_text,
    keyword,
    literal,
    members,
    schema_of_class,
    schema_of_function,
    stated_metadata,
)
from truename.lint.python_source import Function, PythonScope, PythonSource, UnreadableSource, bindings, comments_of
from truename.lint.source_files import PYTHON
from truename.migration import FunctionNameSlot, FunctionTool

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from truename.lint.python_source import Comment

__all__ = ["NamedTool", "UnnamedTool", "read_functions", "read_python"]

OURS: Final = "truename"
_LANGCHAIN: Final = "langchain"
_SERVER: Final = "server"
_AGENTS: Final = "agents"
# The library of a dotted name, by its first part.
_LIBRARIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "fastmcp": _SERVER,
        "mcp": _SERVER,
        "mcp_types": _SERVER,
        "pydantic_ai": _SERVER,
        "agents": _AGENTS,
        "langchain": _LANGCHAIN,
        "langchain_core": _LANGCHAIN,
        "langchain_classic": _LANGCHAIN,
        "langchain_community": _LANGCHAIN,
        "truename": OURS,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclarationForm:
    """The way in which a library's function takes name, function, description and schema of a tool.

    Each has a keyword, and a position without one (-1: none). ``needs_function``: there is no tool without a function.
    ``strict``: every parameter is required. ``takes_name``: a name can be added if there is none.
    """

    library: str = ""
    name: str = "name"
    name_at: int = -1
    function: tuple[str, ...] = ("fn",)
    function_at: int = -1
    description: str = "description"
    description_at: int = -1
    schemas: tuple[str, ...] = ()
    schema_at: int = -1
    needs_function: bool = True
    strict: bool = False
    takes_name: bool = True


_MCP_SCHEMAS: Final = ("inputSchema", "input_schema", "parameters")
_WAYS: Final[Mapping[tuple[str, str], DeclarationForm]] = MappingProxyType(
    {
        (_SERVER, "tool"): DeclarationForm(library=_SERVER, name_at=0, function_at=0),
        (_SERVER, "tool_plain"): DeclarationForm(library=_SERVER, function_at=0),
        (_SERVER, "add_tool"): DeclarationForm(library=_SERVER, name_at=1, function_at=0),
        (_SERVER, "from_function"): DeclarationForm(library=_SERVER, name_at=1, function_at=0),
        (_SERVER, "Tool"): DeclarationForm(
            library=_SERVER, needs_function=False, schemas=_MCP_SCHEMAS, function=("function",)
        ),
        (_AGENTS, "function_tool"): DeclarationForm(
            library=_AGENTS,
            name="name_override",
            function=("func",),
            function_at=0,
            description="description_override",
            strict=True,
        ),
        (_AGENTS, "FunctionTool"): DeclarationForm(
            library=_AGENTS,
            name_at=0,
            description_at=1,
            schemas=("params_json_schema",),
            schema_at=2,
            needs_function=False,
        ),
        (_AGENTS, "as_tool"): DeclarationForm(
            library=_AGENTS,
            name="tool_name",
            name_at=0,
            description="tool_description",
            description_at=1,
            needs_function=False,
        ),
        (_LANGCHAIN, "tool"): DeclarationForm(
            library=_LANGCHAIN, name="", name_at=0, function_at=0, schemas=("args_schema",)
        ),
        (_LANGCHAIN, "from_function"): DeclarationForm(
            library=_LANGCHAIN,
            name_at=2,
            function=("func", "coroutine"),
            function_at=0,
            description_at=3,
            schemas=("args_schema",),
        ),
        (_LANGCHAIN, "Tool"): DeclarationForm(
            library=_LANGCHAIN, name_at=0, function=("func",), function_at=1, description_at=2, needs_function=False
        ),
        (_LANGCHAIN, "StructuredTool"): DeclarationForm(
            library=_LANGCHAIN, function=("func", "coroutine"), schemas=("args_schema",), needs_function=False
        ),
        (OURS, "tool"): DeclarationForm(library=OURS, name_at=0, function_at=0),
    }
)
# LangChain's Tool.from_function has another order of parameters than StructuredTool's.
_PLAIN_TOOL: Final = DeclarationForm(
    library=_LANGCHAIN, name_at=1, function=("func",), function_at=0, description_at=2, schemas=("args_schema",)
)
# FastMCP's function takes a tool or a function, and no name.
_ADDED: Final = replace(_WAYS[_SERVER, "add_tool"], takes_name=False)
# The methods of an object of unknown type: a server that another file created, or an agent.
_OF_ANYBODY: Final[Mapping[str, DeclarationForm]] = MappingProxyType(
    {
        "tool": _WAYS[_SERVER, "tool"],
        "add_tool": _ADDED,
        "as_tool": _WAYS[_AGENTS, "as_tool"],
    }
)
_BASES: Final = "BaseTool"
_FROM_FUNCTION: Final = "from_function"


def find_declaration_form(dotted: str, *, is_attribute: bool) -> DeclarationForm | None:
    """Return how the function with this full name declares tools; None if it is not known to.

    ``is_attribute``: it follows a dot, as in ``mcp.tool``; a bare name of unknown origin may be anything.
    """
    root, _, rest = dotted.partition(".")
    last = rest.rpartition(".")[2]
    library = _LIBRARIES.get(root)
    if library == _LANGCHAIN and dotted.endswith(".Tool.from_function"):
        return _PLAIN_TOOL
    if last == _FROM_FUNCTION and not dotted.endswith(f"Tool.{_FROM_FUNCTION}"):
        # Resources and prompts are created in the same way.
        return None
    if library is not None:
        return _ADDED if (root, last) == ("fastmcp", "add_tool") else _WAYS.get((library, last))
    return _OF_ANYBODY.get(last) if root and is_attribute else None


def is_base_tool(dotted: str) -> bool:
    """Return whether this full name is the base class of LangChain's tools."""
    root, _, _ = dotted.partition(".")
    return _LIBRARIES.get(root) == _LANGCHAIN and dotted.rpartition(".")[2] in {_BASES, "StructuredTool"}


_SILENT: Final = frozenset({token.COMMENT, token.NL})
_OPENING: Final = frozenset("([{")
_CLOSING: Final = frozenset(")]}")

# Line from 1, column from 0, in characters.
Point = tuple[int, int]


class NameSlot(NamedTuple):
    """A place to insert or replace a name: its start and end, and the text to write around the name."""

    start: Point
    end: Point
    before: str
    after: str


class _Scope(NamedTuple):
    token: tokenize.TokenInfo
    depth: int


class NameSlots:
    """The places for names in one source."""

    def __init__(self, source: PythonSource) -> None:
        self._source = source

    def of_decorator(self, node: ast.expr, known: DeclarationForm) -> NameSlot | None:
        """Return the place for a name in a decorator; None if it takes none."""
        if isinstance(node, ast.Call):
            return self.of_call(node, known)
        line = self._from(self._source.point(node.lineno, node.col_offset))
        last = None
        for one in line:
            if one.type == token.NEWLINE:
                break
            last = one if one.type not in _SILENT else last
        if last is None or not known.takes_name:
            return None
        return _room(last.end, f'({_keyword(known)}"', '")')

    def of_call(self, call: ast.Call, known: DeclarationForm) -> NameSlot | None:
        """Return the place for a name in a call; None if it takes none."""
        given, placed = keyword(call, known.name), at(call, known.name_at)
        if given is None and (isinstance(placed, ast.Constant) or not known.name):
            given = placed
        if known.takes_name and isinstance(given, ast.Constant) and given.value is None:
            return NameSlot(self._source.point(given.lineno, given.col_offset), self._end(given), '"', '"')
        is_full = given is not None or any(isinstance(one, ast.Starred) for one in call.args)
        inside = () if is_full or not known.takes_name else tuple(self._inside(call))
        if not inside:
            return None
        if call.args:
            return self._behind(call.args[-1], inside, known) if known.name else None
        opening = inside[0].token.end
        space = "" if self._source.ends_at(opening) else " "
        return _room(opening, f'{_keyword(known)}"', f'",{space}' if call.keywords else '"')

    def _behind(self, argument: ast.expr, inside: Iterable[_Scope], known: DeclarationForm) -> NameSlot | None:
        """Return the place after the last positional argument."""
        behind = self._end(argument)
        for last, one in pairwise(inside):
            if one.token.start >= behind and (one.depth == 0 or (one.depth == 1 and one.token.string == ",")):
                return _room(last.token.end, f', {_keyword(known)}"', '"')
        return None

    def _inside(self, call: ast.Call) -> Iterator[_Scope]:
        """Yield the tokens of a call from its opening to its closing parenthesis, each with the depth after it."""
        depth = 0
        for one in self._from(self._end(call.func)):
            if one.type in _SILENT:
                continue
            is_opening = one.type == token.OP and one.string in _OPENING
            if depth == 0 and not is_opening:
                # This parenthesis was opened before the function's name.
                continue
            depth += is_opening - (one.type == token.OP and one.string in _CLOSING)
            yield _Scope(one, depth)
            if depth == 0:
                return

    def _end(self, node: ast.expr) -> Point:
        return self._source.point(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)

    def _from(self, point: Point) -> Iterator[tokenize.TokenInfo]:
        starts = self._starts
        return iter(self._tokens[bisect_left(starts, point) :])

    @cached_property
    def _starts(self) -> list[Point]:
        return [one.start for one in self._tokens]

    @cached_property
    def _tokens(self) -> list[tokenize.TokenInfo]:
        try:
            return list(tokenize.generate_tokens(io.StringIO(self._source.text).readline))
        except (tokenize.TokenError, SyntaxError):
            return []


def _keyword(known: DeclarationForm) -> str:
    return f"{known.name}=" if known.name else ""


def _room(point: Point, before: str, after: str) -> NameSlot:
    return NameSlot(point, point, before, after)


_MADE_BY: Final = ("fastmcp.", "mcp.")
_CLASSES: Final = (".FastMCP", ".MCPServer", ".Server")
# A tool object belongs to the server if the file creates only one.
_TOOL: Final = ".Tool"
_NAME: Final = "name"


class DeclaredServers:
    """The servers that a file creates and assigns to variables."""

    def __init__(self, scope: PythonScope) -> None:
        self._made: dict[str, list[tuple[int, str]]] = {}
        labels: Counter[str] = Counter()
        made = (pair for node in scope.nodes for pair in bindings(node))
        for variable, call in made:
            dotted = scope.dotted(call.func) if isinstance(call, ast.Call) else ""
            if isinstance(call, ast.Call) and dotted.startswith(_MADE_BY) and dotted.endswith(_CLASSES):
                text = scope.text(argument(call, _NAME))
                label = (text.value if text is not None else "") or variable
                labels[label] += 1
                told = f"{label}_{labels[label]}" if labels[label] > 1 else label
                self._made.setdefault(variable, []).append((call.lineno, told))
        for several in self._made.values():
            several.sort()
        self._scope = scope
        self._labels = [label for several in self._made.values() for _, label in several]

    def of(self, node: ast.expr) -> str:
        """Return the label of the server whose method is called (``docs.tool(...)``); "" if that is uncertain."""
        maker = node.func if isinstance(node, ast.Call) else node
        match maker:
            case ast.Attribute(value=ast.Name(id=variable)) if variable in self._made:
                made = self._made[variable]
                place = bisect_right(made, node.lineno, key=lambda one: one[0])
                return made[place - 1][1] if place else ""
        is_listed = len(self._labels) == 1 and self._scope.dotted(maker).endswith(_TOOL)
        return self._labels[0] if is_listed else ""


# Every declaration form contains this word, and most sources do not.
_WORD: Final = "tool"
_DESCRIPTION: Final = "description"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTool:
    """One tool of a source: its name and location, its definition, and the arguments of our own decorator.

    A comment on the lines ``first`` to ``last`` applies to it. ``is_literal``: the name is written out. ``server`` is
    the server of this file that has it, "" if that is uncertain. ``function`` is the location of its function's name;
    ``rooms`` are the places where its own name could be written, if it has the function's (``is_functions``).
    """

    name: str
    location: Location
    definition: Mapping[str, object]
    said: Mapping[str, ast.expr] = field(default_factory=lambda: MappingProxyType({}))
    first: int = 0
    last: int = 0
    is_literal: bool = True
    server: str = ""
    function: Location | None = None
    is_functions: bool = False
    rooms: tuple[NameSlot, ...] = ()


@dataclass(frozen=True, slots=True)
class UnnamedTool:
    """A tool whose name is computed at run time: its location, and the expression of the name."""

    location: Location
    what: str
    first: int = 0
    last: int = 0


# The first and the last line on which a comment applies to a tool.
Lines = tuple[int, int]


def read_python(raw: bytes, file: str) -> tuple[tuple[NamedTool | UnnamedTool, ...], tuple[Comment, ...]]:
    """Return the tools in the order of the text, and the comments about rules. Raises `UnreadableSource`."""
    source = PythonSource(raw, file)
    if _WORD not in source.text.lower():
        return (), comments_of(source.text)
    try:
        found = tuple(_SourceReader(source).tools())
    except RecursionError as error:
        raise UnreadableSource("it is nested too deeply", "Split it.") from error
    return found, comments_of(source.text)


class _SourceReader:
    """A reader of one file."""

    def __init__(self, source: PythonSource) -> None:
        self._source = source
        self._scope = PythonScope(source.tree)
        self._servers = DeclaredServers(self._scope)
        self._gaps = NameSlots(source)
        nodes = self._scope.nodes
        self._methods = {id(one) for node in nodes if isinstance(node, ast.ClassDef) for one in node.body}
        self._schemas: dict[tuple[int, bool], Mapping[str, object]] = {}
        # Decorators are read together with their functions.
        self._seen = {id(one) for node in nodes if isinstance(node, Function) for one in node.decorator_list}

    def tools(self) -> Iterator[NamedTool | UnnamedTool]:
        found: list[NamedTool | UnnamedTool] = []
        for node in self._scope.nodes:
            if isinstance(node, Function):
                found += self._decorated(node)
            elif isinstance(node, ast.Call) and id(node) not in self._seen:
                found += self._called(node)
            elif isinstance(node, ast.ClassDef):
                found += self._derived(node)
        return iter(sorted(found, key=lambda one: (one.location.line, one.location.column)))

    def _decorated(self, function: Function) -> Iterator[NamedTool | UnnamedTool]:
        """Yield a tool for each decorator that declares one; several with one name are one tool."""
        found: dict[str, NamedTool] = {}
        for decorator in function.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            known = self._way(decorator if call is None else call.func)
            if known is None:
                continue
            lines = (decorator.lineno, function.lineno)
            one = self._tool(known, call, function, lines)
            if isinstance(one, UnnamedTool):
                yield one
            elif one is not None:
                rooms = _rooms(one, self._gaps.of_decorator(decorator, known))
                before = found.get(one.name)
                if before is None or known.library == OURS:
                    found[one.name] = replace(one, server=self._servers.of(decorator))
                both = (*(before.rooms if before is not None else ()), *rooms)
                found[one.name] = replace(found[one.name], rooms=both)
        yield from found.values()

    def _called(self, call: ast.Call) -> Iterator[NamedTool | UnnamedTool]:
        made_by, function = call.func, None
        if isinstance(made_by, ast.Call) and self._way(made_by.func) is not None:
            # A decorator that is called explicitly.
            self._seen.add(id(made_by))
            function = self._scope.function(call.args[0] if call.args else None)
            call, made_by = made_by, made_by.func
        known = self._way(made_by)
        if known is None:
            return
        given = (*(keyword(call, name) for name in known.function), at(call, known.function_at))
        named = (self._scope.function(one) for one in given)
        function = function or next((one for one in named if one is not None), None)
        if known.needs_function and function is None and keyword(call, known.name) is None:
            return
        lines = (call.lineno, call.end_lineno or call.lineno)
        one = self._tool(known, call, function, lines)
        if isinstance(one, NamedTool):
            rooms = _rooms(one, self._gaps.of_call(call, known))
            yield replace(one, server=self._servers.of(call), rooms=rooms)
        elif one is not None:
            yield one

    def _derived(self, node: ast.ClassDef) -> Iterator[NamedTool | UnnamedTool]:
        """Yield the tool that a subclass of LangChain's BaseTool defines, if it states its name."""
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

    def _way(self, node: ast.expr) -> DeclarationForm | None:
        return find_declaration_form(self._scope.dotted(node), is_attribute=isinstance(node, ast.Attribute))

    def _tool(
        self, known: DeclarationForm, call: ast.Call | None, function: Function | None, lines: Lines
    ) -> NamedTool | UnnamedTool | None:
        name = None if call is None else self._argument(call, known.name, known.name_at, known, function)
        if name is None and function is None:
            return None if known.needs_function or call is None else self._computed(call, lines)
        if call is not None and any(one.arg is None for one in call.keywords) and name is None:
            return self._computed(call, lines)
        definition = definition_of(self._doc(known, call, function), self._schema(known, call, function))
        definition = {**definition, **stated_metadata(call)}
        said = {one.arg: one.value for one in call.keywords if one.arg} if call and known.library == OURS else {}
        return self._named(name, function, definition, said, lines)

    def _named(
        self,
        name: ast.expr | None,
        function: Function | None,
        definition: Mapping[str, object],
        said: Mapping[str, ast.expr],
        lines: Lines,
    ) -> NamedTool | UnnamedTool:
        if name is None or (isinstance(name, ast.Constant) and name.value is None):
            if function is None:
                place = self._source.place(name, "") if name else Location(file=self._source.file)
                return UnnamedTool(place, "None", *lines)
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
        definition: Mapping[str, object],
        said: Mapping[str, ast.expr],
        lines: Lines,
        *,
        is_literal: bool,
    ) -> NamedTool:
        return NamedTool(
            name=name,
            location=place,
            definition={_NAME: name, **definition},
            said=said,
            first=lines[0],
            last=lines[1],
            is_literal=is_literal,
        )

    def _computed(self, node: ast.expr, lines: Lines) -> UnnamedTool:
        return UnnamedTool(self._source.place(node, ""), expression_text(node), *lines)

    def _argument(
        self, call: ast.Call, name: str, place: int, known: DeclarationForm, function: Function | None
    ) -> ast.expr | None:
        given = keyword(call, name) or at(call, place)
        if given is None or place != known.function_at:
            return given
        # Some libraries take the name or the function at the same position.
        is_function = given is at(call, place) and (
            self._scope.function(given) is not None or (function is None and self._scope.text(given) is None)
        )
        return None if is_function else given

    def _doc(self, known: DeclarationForm, call: ast.Call | None, function: Function | None) -> str:
        given = None
        if call is not None:
            given = keyword(call, known.description) or at(call, known.description_at)
        text = self._scope.text(given)
        if text is not None:
            return text.value
        return "" if function is None or given is not None else ast.get_docstring(function) or ""

    def _schema(
        self, known: DeclarationForm, call: ast.Call | None, function: Function | None
    ) -> Mapping[str, object] | None:
        given = [keyword(call, one) for one in known.schemas] if call is not None else []
        if call is not None and known.schema_at >= 0:
            given.append(at(call, known.schema_at))
        for one in given:
            model = self._scope.class_(one)
            is_known, value = literal(one) if one is not None else (False, None)
            if model is not None:
                return schema_of_class(model)
            if is_known and isinstance(value, dict):
                return value
        if function is None:
            return None
        mode = None if call is None else keyword(call, "strict_mode")
        strict = known.strict and not (isinstance(mode, ast.Constant) and mode.value is False)
        key = (id(function), strict)
        if key not in self._schemas:
            self._schemas[key] = schema_of_function(function, is_method=id(function) in self._methods, strict=strict)
        return self._schemas[key]


def _rooms(one: NamedTool, room: NameSlot | None) -> tuple[NameSlot, ...]:
    return (room,) if one.is_functions and room is not None else ()


_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_MARK: Final = "\ufeff"


def read_functions(text: str, file: str) -> tuple[FunctionTool, ...]:
    r"""Return the functions that are tools, with offsets in the text; none for a text that is not readable Python.

    >>> source = "@mcp.tool\ndef search(): ..."
    >>> (found,) = read_functions(source, "server.py")
    >>> (gap,) = found.gaps
    >>> source[: gap.start] + gap.before + "find" + gap.after + source[gap.end :]
    '@mcp.tool(name="find")\ndef search(): ...'
    """
    if not file.endswith(PYTHON):
        return ()
    try:
        found, _ = read_python(text.encode(), file)
    except (UnreadableSource, UnicodeEncodeError):
        return ()
    places = _Places(text)
    return tuple(
        FunctionTool(
            name=one.name,
            start=places.at((one.function.line, one.function.column - 1)),
            gaps=tuple(places.gap(room) for room in one.rooms),
            has_name=not one.is_functions,
        )
        for one in found
        if isinstance(one, NamedTool) and one.function is not None
    )


class _Places:
    """A converter from lines and columns to offsets in a text with any line ends."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(one.end() for one in _LINE_END.finditer(text))]
        # The parser does not count the byte order mark.
        self._marked = text.startswith(_MARK)

    def at(self, point: Point) -> int:
        line, column = point
        return self._starts[line - 1] + column + (self._marked and line == 1)

    def gap(self, room: NameSlot) -> FunctionNameSlot:
        return FunctionNameSlot(self.at(room.start), self.at(room.end), room.before, room.after)
