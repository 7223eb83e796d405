"""Which server of a file has a tool, where the file makes several: their tools may have the same names."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING, Final

from truename.lint.scope import bindings

if TYPE_CHECKING:
    from truename.lint.scope import Scope

__all__ = ["Servers"]

_MADE_BY: Final = ("fastmcp.", "mcp.")
_CLASSES: Final = (".FastMCP", ".MCPServer")
_NAME: Final = "name"


class Servers:
    """The servers that a file makes and keeps in variables. A file with one of them has one set of names."""

    def __init__(self, scope: Scope) -> None:
        self._made: dict[str, list[tuple[int, str]]] = {}
        labels: Counter[str] = Counter()
        made = (pair for node in scope.nodes for pair in bindings(node))
        for variable, call in made:
            if isinstance(call, ast.Call) and _is_server(scope, call):
                label = _label(scope, call) or variable
                labels[label] += 1
                told = f"{label}_{labels[label]}" if labels[label] > 1 else label
                self._made.setdefault(variable, []).append((call.lineno, told))
        for several in self._made.values():
            several.sort()
        self._is_needed = labels.total() > 1

    def of(self, node: ast.expr) -> str:
        """Return the label of the server whose method this is (``docs.tool(...)``); "" where it is not certain."""
        maker = node.func if isinstance(node, ast.Call) else node
        match maker:
            case ast.Attribute(value=ast.Name(id=variable)) if self._is_needed:
                made = self._made.get(variable, [])
                place = bisect_right(made, node.lineno, key=lambda one: one[0])
                return made[place - 1][1] if place else ""
        return ""


def _is_server(scope: Scope, call: ast.Call) -> bool:
    dotted = scope.dotted(call.func)
    return dotted.startswith(_MADE_BY) and dotted.endswith(_CLASSES)


def _label(scope: Scope, call: ast.Call) -> str:
    given = next((one.value for one in call.keywords if one.arg == _NAME), call.args[0] if call.args else None)
    text = scope.text(given)
    return text.value if text is not None else ""
