"""The tools that a Python file declares, read from its text: it is parsed, and never imported or run."""

from __future__ import annotations

import ast
import re
import tokenize
import warnings
from dataclasses import dataclass, field
from io import BytesIO
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from truename.lint.comments import comments_of
from truename.lint.scope import Function, Scope, Text
from truename.lint.signature import literal, schema_of_class, schema_of_function
from truename.lint.ways import OURS, Way, is_base_tool, way
from truename.policy import Location

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from truename.lint.comments import Comment

__all__ = ["MAX_SOURCE", "Declared", "Unnamed", "Unreadable", "read_python"]

# No source written by people is half as large; a parser takes a thousand bytes of memory for each.
MAX_SOURCE: Final = 4 * 1024 * 1024
_ENCODINGS: Final = re.compile(
    r"utf-8(-sig)?|ascii|us-ascii|iso-8859-\d{1,2}|latin-1|cp\d{3,4}|windows-\d{4}|koi8-[ru]"
)
# What may stand before a name in a literal: rb"""
_PREFIX: Final = 5
_LONGEST: Final = 80
_NAME: Final = "name"
_DESCRIPTION: Final = "description"
_SCHEMA: Final = "inputSchema"


class Unreadable(ValueError):
    """A source can't be read: what is wrong with it, and the line (0: unknown) and column."""

    def __init__(self, problem: str, remedy: str, line: int = 0, column: int = 0) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """One tool of a source: its name, where that stands, its definition, and what our own decorator says of it.

    ``first`` to ``last`` are the lines on which a comment is about it. ``is_literal``: the name stands there letter
    by letter.
    """

    name: str
    location: Location
    definition: Mapping[str, Any]
    said: Mapping[str, ast.expr] = field(default_factory=lambda: MappingProxyType({}))
    first: int = 0
    last: int = 0
    is_literal: bool = True


@dataclass(frozen=True, slots=True)
class Unnamed:
    """A tool whose name is made when the program runs: where, and what makes it."""

    location: Location
    what: str
    first: int = 0
    last: int = 0


# The first and the last line on which a comment is about a tool.
Lines = tuple[int, int]


def read_python(raw: bytes, file: str) -> tuple[tuple[Declared | Unnamed, ...], tuple[Comment, ...]]:
    """Return the tools in the order of the text, and the comments about rules. Raises `Unreadable`."""
    text = _decoded(raw)
    tree = _parsed(text)
    try:
        found = tuple(_Reading(tree, text, file).tools())
    except RecursionError as error:
        raise Unreadable("it is nested too deeply", "Split it.") from error
    return found, comments_of(text)


def _decoded(raw: bytes) -> str:
    if len(raw) > MAX_SOURCE:
        raise Unreadable(f"it is larger than {MAX_SOURCE:,} bytes", "Split it, or leave it out with --exclude.")
    try:
        encoding, _ = tokenize.detect_encoding(BytesIO(raw).readline)
    except SyntaxError as error:
        raise Unreadable(f"it has no encoding that can be read ({error.msg})", "Save it as UTF-8.", 1) from error
    if not _ENCODINGS.fullmatch(encoding.lower()):
        raise Unreadable(f"its encoding {encoding[:40]!r} is not read here", "Save it as UTF-8.", 1)
    try:
        return raw.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"it is not {encoding} (byte {error.start})", "Save it as UTF-8.", line) from error


def _parsed(text: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            # What the compiler dislikes in somebody's source is not ours to tell.
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        problem = f"it is not Python ({error.msg})"
        raise Unreadable(problem, "Mend the file there.", error.lineno or 0, error.offset or 0) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise Unreadable(f"it can't be parsed ({str(error)[:80] or 'nested too deeply'})", "Mend it.") from error


class _Reading:
    """One file that is being read."""

    def __init__(self, tree: ast.Module, text: str, file: str) -> None:
        self._scope = Scope(tree)
        self._lines = text.split("\n")
        self._file = file
        nodes = self._scope.nodes
        self._methods = {id(one) for node in nodes if isinstance(node, ast.ClassDef) for one in node.body}
        self._schemas: dict[tuple[int, bool], Mapping[str, Any]] = {}
        # Decorators are read with their functions.
        self._seen = {id(one) for node in nodes if isinstance(node, Function) for one in node.decorator_list}

    def tools(self) -> Iterator[Declared | Unnamed]:
        found: list[Declared | Unnamed] = []
        for node in self._scope.nodes:
            if isinstance(node, Function):
                found += self._decorated(node)
            elif isinstance(node, ast.Call) and id(node) not in self._seen:
                found += self._called(node)
            elif isinstance(node, ast.ClassDef):
                found += self._derived(node)
        return iter(sorted(found, key=lambda one: (one.location.line, one.location.column)))

    def _decorated(self, function: Function) -> Iterator[Declared | Unnamed]:
        """Yield a tool for each decorator that declares one; several of one name are one tool."""
        found: dict[str, Declared] = {}
        for decorator in function.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            known = self._way(decorator if call is None else call.func)
            if known is None:
                continue
            lines = (decorator.lineno, function.lineno)
            one = self._tool(known, call, function, lines)
            if isinstance(one, Unnamed):
                yield one
            elif one is not None and (known.library == OURS or one.name not in found):
                found[one.name] = one
        yield from found.values()

    def _called(self, call: ast.Call) -> Iterator[Declared | Unnamed]:
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
        if known.needs_function and function is None and self._keyword(call, known.name) is None:
            return
        lines = (call.lineno, call.end_lineno or call.lineno)
        one = self._tool(known, call, function, lines)
        if one is not None:
            yield one

    def _derived(self, node: ast.ClassDef) -> Iterator[Declared | Unnamed]:
        """Yield the tool that a subclass of LangChain's BaseTool is, if it says its name."""
        if not any(is_base_tool(self._scope.dotted(base)) for base in node.bases):
            return
        said = dict(_members(node))
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
        yield self._named(said[_NAME], None, _definition(doc, schema), {}, lines)

    def _way(self, node: ast.expr) -> Way | None:
        return way(self._scope.dotted(node), is_attribute=isinstance(node, ast.Attribute))

    def _tool(
        self, known: Way, call: ast.Call | None, function: Function | None, lines: Lines
    ) -> Declared | Unnamed | None:
        name = None if call is None else self._argument(call, known.name, known.name_at, known, function)
        if name is None and function is None:
            return None if known.needs_function or call is None else self._computed(call, lines)
        if call is not None and any(one.arg is None for one in call.keywords) and name is None:
            return self._computed(call, lines)
        definition = _definition(self._doc(known, call, function), self._schema(known, call, function))
        said = {one.arg: one.value for one in call.keywords if one.arg} if call and known.library == OURS else {}
        return self._named(name, function, definition, said, lines)

    def _named(
        self,
        name: ast.expr | None,
        function: Function | None,
        definition: Mapping[str, Any],
        said: Mapping[str, ast.expr],
        lines: Lines,
    ) -> Declared | Unnamed:
        if name is None or (isinstance(name, ast.Constant) and name.value is None):
            if function is None:
                return Unnamed(self._place(name, "") if name else Location(file=self._file), "None", *lines)
            text, place = function.name, self._place_of_function(function)
            return self._declared(text, place, definition, said, lines, is_literal=True)
        text_ = self._scope.text(name)
        if text_ is None:
            return self._computed(name, lines)
        place = self._place(text_.node, text_.value)
        return self._declared(text_.value, place, definition, said, lines, is_literal=self._is_literal(text_, place))

    def _declared(
        self,
        name: str,
        place: Location,
        definition: Mapping[str, Any],
        said: Mapping[str, ast.expr],
        lines: Lines,
        *,
        is_literal: bool,
    ) -> Declared:
        return Declared(
            name=name,
            location=place,
            definition={_NAME: name, **definition},
            said=said,
            first=lines[0],
            last=lines[1],
            is_literal=is_literal,
        )

    def _computed(self, node: ast.expr, lines: Lines) -> Unnamed:
        return Unnamed(self._place(node, ""), _written(node), *lines)

    def _function(self, known: Way, call: ast.Call) -> Function | None:
        for keyword in known.function:
            found = self._scope.function(self._keyword(call, keyword))
            if found is not None:
                return found
        return self._scope.function(_at(call, known.function_at))

    @staticmethod
    def _keyword(call: ast.Call, name: str) -> ast.expr | None:
        return next((one.value for one in call.keywords if one.arg == name), None) if name else None

    def _argument(
        self, call: ast.Call, keyword: str, place: int, known: Way, function: Function | None
    ) -> ast.expr | None:
        given = self._keyword(call, keyword) or _at(call, place)
        if given is None or place != known.function_at:
            return given
        # In one place some libraries take the name or the function.
        is_function = given is _at(call, place) and (
            self._scope.function(given) is not None or (function is None and self._scope.text(given) is None)
        )
        return None if is_function else given

    def _doc(self, known: Way, call: ast.Call | None, function: Function | None) -> str:
        given = None
        if call is not None:
            given = self._keyword(call, known.description) or _at(call, known.description_at)
        text = self._scope.text(given)
        if text is not None:
            return text.value
        return "" if function is None or given is not None else ast.get_docstring(function) or ""

    def _schema(self, known: Way, call: ast.Call | None, function: Function | None) -> Mapping[str, Any] | None:
        given = [self._keyword(call, one) for one in known.schemas] if call is not None else []
        if call is not None and known.schema_at >= 0:
            given.append(_at(call, known.schema_at))
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

    def _is_false(self, call: ast.Call | None, keyword: str) -> bool:
        given = self._keyword(call, keyword) if call is not None else None
        return isinstance(given, ast.Constant) and given.value is False

    def _is_literal(self, text: Text, place: Location) -> bool:
        line = self._line(place.line)
        return isinstance(text.node, ast.Constant) and line.startswith(text.value, place.column - 1)

    def _line(self, number: int) -> str:
        return self._lines[number - 1] if 0 < number <= len(self._lines) else ""

    def _place(self, node: ast.expr, name: str) -> Location:
        """Return where the name begins; where it is not written letter by letter, where the expression does."""
        line = self._line(node.lineno)
        start = node.col_offset
        if not line.isascii():
            # The parser counts bytes.
            start = len(line[:start].encode("utf-8", "surrogatepass")[:start].decode("utf-8", "ignore"))
        found = line.find(name, start, start + len(name) + _PREFIX) if name else -1
        return Location(file=self._file, line=node.lineno, column=(found if found >= 0 else start) + 1)

    def _place_of_function(self, function: Function) -> Location:
        line = self._line(function.lineno)
        found = re.compile(rf"\b{re.escape(function.name)}\b").search(line, line.find("def") + 3)
        return Location(file=self._file, line=function.lineno, column=found.start() + 1 if found else 1)


def _written(node: ast.expr) -> str:
    """Return what makes a name, as it could be written; of something long, only what kind of thing it is."""
    if (node.end_lineno or 0) - node.lineno > 1 or (node.end_col_offset or 0) - node.col_offset > _LONGEST:
        return f"{type(node).__name__} of several parts"
    return ast.unparse(node)[:_LONGEST]


def _at(call: ast.Call, place: int) -> ast.expr | None:
    if not 0 <= place < len(call.args) or any(isinstance(one, ast.Starred) for one in call.args[: place + 1]):
        return None
    return call.args[place]


def _members(node: ast.ClassDef) -> Iterable[tuple[str, ast.expr]]:
    for one in node.body:
        match one:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value


def _definition(description: str, schema: Mapping[str, Any] | None) -> Mapping[str, Any]:
    told: dict[str, Any] = {_DESCRIPTION: description} if description else {}
    return told if schema is None else {**told, _SCHEMA: schema}
