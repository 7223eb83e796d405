"""The check that identifiers of tools and calls are computed in one module, and what it finds elsewhere.

It reads syntax trees, so it sees what is done and not how it is laid out: joining a namespace and a name with a dot,
building a lookup key or the text of an approval key, reading ``call_id`` out of a payload.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from tests.shared import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["offences", "offences_in"]

SOURCE: Final = ROOT / "src" / "truename"
KEYS: Final = SOURCE / "identity" / "keys.py"
_TAGS: Final = ("bare", "namespaced", "deferred_top_level")
_READERS: Final = frozenset({"get", "pop", "getattr", "field", "itemgetter", "attrgetter"})


def offences() -> list[str]:
    """Return every place outside of the one module that computes an identifier by itself."""
    return [
        f"{path.relative_to(SOURCE)}:{found}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path != KEYS
        for found in offences_in(path.read_text("utf-8"))
    ]


def offences_in(source: str) -> list[str]:
    """Return the offences of one module: line and what it does."""
    tree = ast.parse(source)
    said = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr) and _text(one.value)}
    done = ((node, what) for node in ast.walk(tree) if id(node) not in said for what in _does(node))
    found = {(getattr(node, "lineno", 0), what) for node, what in done}
    return [f"{line} {what}" for line, what in sorted(found)]


def _does(node: ast.AST) -> Iterator[str]:
    for what, is_done in _OFFENCES.items():
        if is_done(node):
            yield what


def _joins(node: ast.AST) -> bool:
    joined = isinstance(node, ast.JoinedStr) or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod))
    joined = joined or (isinstance(node, ast.Call) and _name(node.func) in {"join", "format"})
    return joined and _has_dot(node) and any("namespace" in name.lower() for name in _names(node))


def _has_dot(node: ast.AST) -> bool:
    """Tell whether a lone dot is put between two things."""
    texts = (one.value for one in ast.walk(node) if isinstance(one, ast.Constant))
    return any(isinstance(text, str) and text.replace("{}", "").replace("%s", "") == "." for text in texts)


def _builds_a_key(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and _name(node.func) == "LookupKey":
        return True
    if isinstance(node, ast.Tuple | ast.List) and len(node.elts) in {2, 3}:
        return _text(node.elts[0]) in _TAGS and not all(_text(one) for one in node.elts)
    return isinstance(node, ast.Dict) and any(
        key is not None and _text(key) == "kind" and _text(value) in _TAGS
        for key, value in zip(node.keys, node.values, strict=True)
    )


def _writes_an_approval_key(node: ast.AST) -> bool:
    return (_text(node) or "").startswith("deferred_top_level:")


def _reads_a_call_id(node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        return _text(node.slice) == "call_id"
    if isinstance(node, ast.MatchMapping):
        return any(_text(key) == "call_id" for key in node.keys)
    if not isinstance(node, ast.Call) or _name(node.func) not in _READERS:
        return False
    # Where in a payload a field was found is no payload.
    of = _name(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    return of != "paths" and any(_text(argument) == "call_id" for argument in node.args)


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _names(node: ast.AST) -> set[str]:
    return {_name(one) for one in ast.walk(node)} | {_text(one) or "" for one in ast.walk(node)}


def _text(node: ast.AST) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


_OFFENCES: Final[Mapping[str, Callable[[ast.AST], bool]]] = {
    "joins a namespace and a name": _joins,
    "builds a lookup key": _builds_a_key,
    "writes an approval key": _writes_an_approval_key,
    "reads a call id": _reads_a_call_id,
}
