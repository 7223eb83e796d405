"""Which server a tool of a file belongs to: tools of several servers may have the same names."""

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
_CLASSES: Final = (".FastMCP", ".MCPServer", ".Server")
# Written into the list of the one server that the file makes.
_TOOL: Final = ".Tool"
_NAME: Final = "name"


class Servers:
    """The servers that a file makes and keeps in variables."""

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
        self._scope = scope
        self._labels = [label for several in self._made.values() for _, label in several]

    def of(self, node: ast.expr) -> str:
        """Return the label of the server whose method this is (``docs.tool(...)``); "" where it is not certain."""
        maker = node.func if isinstance(node, ast.Call) else node
        match maker:
            case ast.Attribute(value=ast.Name(id=variable)) if variable in self._made:
                made = self._made[variable]
                place = bisect_right(made, node.lineno, key=lambda one: one[0])
                return made[place - 1][1] if place else ""
        is_listed = len(self._labels) == 1 and self._scope.dotted(maker).endswith(_TOOL)
        return self._labels[0] if is_listed else ""


def _is_server(scope: Scope, call: ast.Call) -> bool:
    dotted = scope.dotted(call.func)
    return dotted.startswith(_MADE_BY) and dotted.endswith(_CLASSES)


def _label(scope: Scope, call: ast.Call) -> str:
    given = next((one.value for one in call.keywords if one.arg == _NAME), call.args[0] if call.args else None)
    text = scope.text(given)
    return text.value if text is not None else ""
