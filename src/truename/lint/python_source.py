"""Parse a Python source: its tree, the meaning of its names, and its comments. Nothing is imported or run."""

from __future__ import annotations

import ast
import codecs
import io
import re
import tokenize
import warnings
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Final

from truename.conventions import Location

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "MAX_SOURCE",
    "Comment",
    "Function",
    "InlineSuppression",
    "PythonScope",
    "PythonSource",
    "UnreadableSource",
    "bindings",
    "comments_of",
]

Function = ast.FunctionDef | ast.AsyncFunctionDef
# The root of a dotted name whose origin is unknown, or that is a parameter.
UNKNOWN: Final = "?"
# The root of names that are defined in the file itself.
_OWN: Final = ""
_DEEPEST: Final = 20
_LONGEST: Final = 20_000


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text that the source states, and its expression."""

    value: str
    node: ast.expr


class PythonScope:
    """The names that a Python file binds, and their meanings.

    A name that is bound more than once is unknown, unless all bindings are assignments, and all calls among their
    values are calls of one function.
    """

    def __init__(self, tree: ast.Module) -> None:
        self._imported: dict[str, str] = {}
        self._made: dict[str, list[ast.expr]] = {}
        self._texts: dict[str, ast.expr] = {}
        self._bound: Counter[str] = Counter()
        # Cached results; they also end the recursion for names that are defined by each other.
        self._meanings: dict[str, str] = {}
        self._said: dict[str, SourceText | None] = {}
        self.nodes: tuple[ast.AST, ...] = tuple(ast.walk(tree))
        self.functions: dict[str, Function] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        for node in self.nodes:
            self._note(node)
        for name, value in _assigned(tree.body):
            self._texts[name] = value
        for name, owner in self.classes.items():
            for member, value in _assigned(owner.body):
                self._texts[f"{name}.{member}"] = value

    def _note(self, node: ast.AST) -> None:
        match node:
            case ast.Import():
                for one in node.names:
                    root = one.name.partition(".")[0]
                    self._imported[one.asname or root] = one.name if one.asname else root
            case ast.ImportFrom():
                module = UNKNOWN if node.level else node.module or UNKNOWN
                self._imported.update({one.asname or one.name: f"{module}.{one.name}" for one in node.names})
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.functions.setdefault(node.name, node)
                self._bound[node.name] += 1
            case ast.ClassDef():
                self.classes.setdefault(node.name, node)
                self._bound[node.name] += 1
            case ast.arg():
                self._bound[node.arg] += 1
            case ast.Name(ctx=ast.Store()):
                self._bound[node.id] += 1
            case ast.Assign() | ast.AnnAssign():
                for name, value in bindings(node):
                    self._made.setdefault(name, []).append(value)

    def dotted(self, node: ast.AST, depth: int = 0) -> str:
        """Return the full name of an expression: ``fastmcp.FastMCP.tool`` for ``mcp.tool``.

        It begins with ``?`` if it is unknown, and with a dot if this file defines it.
        """
        if depth > _DEEPEST:
            return UNKNOWN
        match node:
            case ast.Attribute():
                return f"{self.dotted(node.value, depth + 1)}.{node.attr}"
            case ast.Call():
                return self.dotted(node.func, depth + 1)
            case ast.Await() | ast.Subscript():
                return self.dotted(node.value, depth + 1)
            case ast.Name():
                return self._named(node.id, depth)
        return UNKNOWN

    def _named(self, name: str, depth: int) -> str:
        if name not in self._meanings:
            self._meanings[name] = UNKNOWN
            self._meanings[name] = self._meant(name, depth)
        return self._meanings[name]

    def _meant(self, name: str, depth: int) -> str:
        if name in self._imported and not self._bound[name]:
            return self._imported[name]
        values = self._made.get(name, [])
        if values and self._bound[name] == len(values):
            meant = {self.dotted(value, depth + 1) for value in values if isinstance(value, ast.Call)}
            return meant.pop() if len(meant) == 1 else UNKNOWN
        if self._bound[name] == 1 and name in self.classes:
            # A class is named like its first base from another module.
            bases = [self.dotted(one, depth + 1) for one in self.classes[name].bases]
            return next((base for base in bases if not base.startswith((UNKNOWN, "."))), f"{_OWN}.{name}")
        return f"{_OWN}.{name}" if self._bound[name] == 1 and name in self.functions else UNKNOWN

    def function(self, node: ast.AST | None) -> Function | None:
        """Return the function of this file that an expression names; None if that is uncertain."""
        match node:
            case ast.Name() if self._bound[node.id] == 1:
                return self.functions.get(node.id)
            case ast.Attribute():
                # A method: a name that is used once in the whole file is unambiguous.
                return self.functions.get(node.attr) if self._bound[node.attr] == 1 else None
        return None

    def class_(self, node: ast.AST | None) -> ast.ClassDef | None:
        """Return the class of this file that an expression names; None if that is uncertain."""
        return self.classes.get(node.id) if isinstance(node, ast.Name) and self._bound[node.id] == 1 else None

    def text(self, node: ast.AST | None, depth: int = 0) -> SourceText | None:
        """Return the text of an expression: a literal, a constant, or a combination of them; None if computed."""
        if depth > _DEEPEST:
            return None
        found: SourceText | None = None
        match node:
            case ast.Constant(value=str(value)):
                found = SourceText(value, node)
            case ast.Name() if self._bound[node.id] == 1:
                found = self._constant(node.id, depth)
            case ast.Attribute(value=ast.Name(id=owner)) if owner in self.classes:
                found = self._constant(f"{owner}.{node.attr}", depth)
            case ast.Attribute(attr="value") | ast.FormattedValue(conversion=-1, format_spec=None):
                found = self.text(node.value, depth + 1)
            case ast.BinOp(op=ast.Add()):
                found = self._joined(node, (node.left, node.right), depth)
            case ast.JoinedStr():
                found = self._joined(node, tuple(node.values), depth)
        return found

    def _constant(self, name: str, depth: int) -> SourceText | None:
        if name not in self._said:
            self._said[name] = None
            self._said[name] = self.text(self._texts.get(name), depth + 1)
        return self._said[name]

    def _joined(self, node: ast.expr, parts: tuple[ast.expr, ...], depth: int) -> SourceText | None:
        texts = [self.text(part, depth + 1) for part in parts]
        if any(text is None for text in texts):
            return None
        value = "".join(text.value for text in texts if text is not None)
        return SourceText(value, node) if len(value) <= _LONGEST else None


def bindings(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that a statement binds, each with its value: ``a, b = 1, 2`` binds two."""
    match node:
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                match target, value:
                    case ast.Name(id=name), _:
                        yield name, value
                    case ast.Tuple(elts=names), ast.Tuple(elts=values) if len(names) == len(values):
                        pairs = zip(names, values, strict=True)
                        yield from ((one.id, made) for one, made in pairs if isinstance(one, ast.Name))


def _assigned(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for statement in body:
        yield from bindings(statement)


# Far larger than any handwritten source; the parser takes a thousand bytes of memory for each byte.
MAX_SOURCE: Final = 4 * 1024 * 1024
# Python's names of the accepted encodings. Some codecs are not text encodings, and some take quadratic time.
_ENCODINGS: Final = re.compile(
    r"utf-8(-sig)?|ascii|iso8859-\d{1,2}|cp\d{3,5}|koi8-[rtu]|mac-\w{1,20}|gb\w{1,8}|big5\w{0,8}|shift_jis\w{0,8}|euc_\w{1,12}"
)
# The characters that may precede a name in a literal: rb"""
_PREFIX: Final = 5


class UnreadableSource(ValueError):
    """A source is not readable: states the problem, and the line (0: unknown) and column."""

    def __init__(self, problem: str, remedy: str, line: int = 0, column: int = 0) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy
        self.line = line
        self.column = column


class PythonSource:
    """One source: its name, its text with normalized line ends, and its tree. Raises `UnreadableSource`."""

    def __init__(self, raw: bytes, file: str) -> None:
        self.file = file
        self.text = _decoded(raw)
        self.tree = _parsed(self.text)
        # Only these end a line for the parser; form feeds and the like do not.
        self._lines = self.text.split("\n")

    def is_literal(self, text: SourceText, place: Location) -> bool:
        """Return whether a text is written out at its location."""
        line = self._line(place.line)
        return isinstance(text.node, ast.Constant) and line.startswith(text.value, place.column - 1)

    def _line(self, number: int) -> str:
        return self._lines[number - 1] if 0 < number <= len(self._lines) else ""

    def place(self, node: ast.expr, name: str) -> Location:
        """Return the location of a name; if it is not written out, that of its expression."""
        line = self._line(node.lineno)
        _, start = self.point(node.lineno, node.col_offset)
        found = line.find(name, start, start + len(name) + _PREFIX) if name else -1
        return Location(file=self.file, line=node.lineno, column=(found if found >= 0 else start) + 1)

    def point(self, line: int, offset: int) -> tuple[int, int]:
        """Convert a position that the parser counts in bytes to one in characters, with the column from 0."""
        text = self._line(line)
        if text.isascii():
            return line, offset
        return line, len(text[:offset].encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "ignore"))

    def ends_at(self, point: tuple[int, int]) -> bool:
        """Return whether only blanks and a comment follow on the line."""
        rest = self._line(point[0])[point[1] :].strip()
        return not rest or rest.startswith("#")

    def place_of_function(self, function: Function) -> Location:
        """Return the location of a function's name."""
        line = self._line(function.lineno)
        found = re.compile(rf"\b{re.escape(function.name)}\b").search(line, line.find("def") + 3)
        return Location(file=self.file, line=function.lineno, column=found.start() + 1 if found else 1)


def _decoded(raw: bytes) -> str:
    if len(raw) > MAX_SOURCE:
        raise UnreadableSource(f"it is larger than {MAX_SOURCE:,} bytes", "Split it, or exclude it with --exclude.")
    try:
        encoding, _ = tokenize.detect_encoding(BytesIO(raw).readline)
    except SyntaxError as error:
        raise UnreadableSource(f"its encoding is not readable ({error.msg})", "Save it as UTF-8.", 1) from error
    if not _ENCODINGS.fullmatch(codecs.lookup(encoding).name):
        raise UnreadableSource(f"its encoding {encoding[:40]!r} is not supported", "Save it as UTF-8.", 1)
    try:
        return raw.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UnreadableSource(f"it is not {encoding} (byte {error.start})", "Save it as UTF-8.", line) from error


def _parsed(text: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            # The compiler's warnings about a source are not findings.
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        problem = f"it is not Python ({error.msg})"
        raise UnreadableSource(
            problem, "Correct the file at this line.", error.lineno or 0, error.offset or 0
        ) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise UnreadableSource(
            f"it cannot be parsed ({str(error)[:80] or 'nested too deeply'})", "Simplify it."
        ) from error


_MARK: Final = "truename:"
_COMMENT: Final = re.compile(r"#\s{0,20}truename:\s{0,20}ignore\s{0,20}(?:\[(?P<rules>[^\]]{0,500})\])?(?P<reason>.*)")
_MOST: Final = 20


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment: its position, the rules as written, and the reason ("" if none is given)."""

    line: int
    column: int
    rules: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineSuppression:
    """The suppression of one rule by a comment: its location, the reason, and the locations of the names it applies to.

    ``rule`` is a code or a name, as written.
    """

    rule: str
    reason: str
    location: Location
    names: tuple[Location, ...] = ()


def comments_of(text: str) -> tuple[Comment, ...]:
    """Return the suppressing comments of a valid Python source.

    >>> comments_of("x = 1  # truename: ignore[TN104, separator] kept for old clients")[0].rules
    ('TN104', 'separator')
    """
    if _MARK not in text:
        return ()
    found: list[Comment] = []
    # A source that the parser accepts, but not the tokenizer: the remaining comments are unknown.
    with suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            match = _COMMENT.match(token.string) if token.type == tokenize.COMMENT else None
            if match is not None:
                line, column = token.start
                given = [rule.strip() for rule in (match["rules"] or "").split(",")[:_MOST]]
                rules = tuple(rule for rule in given if rule) or ("",)
                found.append(Comment(line, column + 1, rules, match["reason"].strip()))
    return tuple(found)
