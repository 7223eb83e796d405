"""What names mean in one Python file, as far as its text tells: imports, variables, texts. Nothing is imported."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["UNKNOWN", "Function", "Scope", "Text", "bindings"]

Function = ast.FunctionDef | ast.AsyncFunctionDef
# The root of a dotted name that comes from elsewhere, or from a parameter.
UNKNOWN: Final = "?"
# What is defined in the file itself has this root.
_OWN: Final = ""
_DEEPEST: Final = 20
_LONGEST: Final = 20_000


@dataclass(frozen=True, slots=True)
class Text:
    """A text that the source tells, and the expression that says it."""

    value: str
    node: ast.expr


class Scope:
    """The names of a file. Where one name is used for several things, it means none of them."""

    def __init__(self, tree: ast.Module) -> None:
        self._imported: dict[str, str] = {}
        self._made: dict[str, list[ast.expr]] = {}
        self._texts: dict[str, ast.expr] = {}
        self._bound: Counter[str] = Counter()
        # What was found out once: names that stand for each other could be followed on without end.
        self._meanings: dict[str, str] = {}
        self._said: dict[str, Text | None] = {}
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
                self._imported.update(_modules(node))
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
        """Return the full name of what is meant: ``fastmcp.FastMCP.tool`` for ``mcp.tool``.

        It begins with ``?`` where that is not known, and with a dot for what this file defines itself.
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
            return self._class(self.classes[name], depth)
        return f"{_OWN}.{name}" if self._bound[name] == 1 and name in self.functions else UNKNOWN

    def _class(self, node: ast.ClassDef, depth: int) -> str:
        """Return what a class is: its first base that comes from elsewhere, or itself."""
        known = [base for one in node.bases if not (base := self.dotted(one, depth + 1)).startswith((UNKNOWN, "."))]
        return known[0] if known else f"{_OWN}.{node.name}"

    def function(self, node: ast.AST | None) -> Function | None:
        """Return the function of this file that is meant, if it is certain."""
        match node:
            case ast.Name() if self._bound[node.id] == 1:
                return self.functions.get(node.id)
            case ast.Attribute():
                # A method: of one name in the whole file, it can only be that one.
                return self.functions.get(node.attr) if self._bound[node.attr] == 1 else None
        return None

    def class_(self, node: ast.AST | None) -> ast.ClassDef | None:
        """Return the class of this file that is meant, if it is certain."""
        return self.classes.get(node.id) if isinstance(node, ast.Name) and self._bound[node.id] == 1 else None

    def text(self, node: ast.AST | None, depth: int = 0) -> Text | None:  # noqa: PLR0911 - one case a form
        """Return the text that an expression is, if the file tells it: a literal, a constant, or made of those."""
        if depth > _DEEPEST:
            return None
        match node:
            case ast.Constant(value=str(value)):
                return Text(value, node)
            case ast.Name() if self._bound[node.id] == 1:
                return self._constant(node.id, depth)
            case ast.Attribute(value=ast.Name(id=owner)) if owner in self.classes:
                return self._constant(f"{owner}.{node.attr}", depth)
            case ast.Attribute(attr="value"):
                return self.text(node.value, depth + 1)
            case ast.BinOp(op=ast.Add()):
                return self._joined(node, (node.left, node.right), depth)
            case ast.JoinedStr():
                return self._joined(node, tuple(node.values), depth)
            case ast.FormattedValue(conversion=-1, format_spec=None):
                return self.text(node.value, depth + 1)
        return None

    def _constant(self, name: str, depth: int) -> Text | None:
        if name not in self._said:
            self._said[name] = None
            self._said[name] = self.text(self._texts.get(name), depth + 1)
        return self._said[name]

    def _joined(self, node: ast.expr, parts: tuple[ast.expr, ...], depth: int) -> Text | None:
        texts = [self.text(part, depth + 1) for part in parts]
        if any(text is None for text in texts):
            return None
        value = "".join(text.value for text in texts if text is not None)
        return Text(value, node) if len(value) <= _LONGEST else None


def bindings(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that a statement binds, each with what it is bound to: ``a, b = 1, 2`` has two."""
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


def _modules(node: ast.Import) -> Iterator[tuple[str, str]]:
    for one in node.names:
        root = one.name.partition(".")[0]
        yield (one.asname, one.name) if one.asname else (root, root)


def _assigned(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for statement in body:
        yield from bindings(statement)
