"""What a call or a class body states: arguments by keyword or place, tables that are written out."""

from __future__ import annotations

import ast
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from truename.lint.signature import literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["at", "definition_of", "keyword", "members", "stated", "written"]

_LONGEST: Final = 80
_DESCRIPTION: Final = "description"
_SCHEMA: Final = "inputSchema"
_STATED: Final[Mapping[str, str]] = MappingProxyType({"meta": "_meta", "_meta": "_meta", "annotations": "annotations"})
# The fields of the SDK's ToolAnnotations, as Python and as the protocol spells them.
_CAMEL: Final[Mapping[str, str]] = MappingProxyType(
    {
        "read_only_hint": "readOnlyHint",
        "destructive_hint": "destructiveHint",
        "idempotent_hint": "idempotentHint",
        "open_world_hint": "openWorldHint",
    }
)


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """Return the argument of this keyword; none for the keyword ""."""
    return next((one.value for one in call.keywords if one.arg == name), None) if name else None


def written(node: ast.expr) -> str:
    """Return what makes a name, as it could be written; of something long, only what kind of thing it is."""
    if (node.end_lineno or 0) - node.lineno > 1 or (node.end_col_offset or 0) - node.col_offset > _LONGEST:
        return f"{type(node).__name__} of several parts"
    return ast.unparse(node)[:_LONGEST]


def at(call: ast.Call, place: int) -> ast.expr | None:
    """Return the argument in this place, if it is certain which that is."""
    if not 0 <= place < len(call.args) or any(isinstance(one, ast.Starred) for one in call.args[: place + 1]):
        return None
    return call.args[place]


def members(node: ast.ClassDef) -> Iterable[tuple[str, ast.expr]]:
    """Yield what the body of a class gives to its names."""
    for one in node.body:
        match one:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value


def stated(call: ast.Call | None) -> Mapping[str, Any]:
    """Return what a call states of metadata and annotations, where it is written out."""
    told: dict[str, Any] = {}
    for one in call.keywords if call is not None else ():
        key = _STATED.get(one.arg or "")
        known, value = literal(_as_table(one.value)) if key is not None else (False, None)
        if key is not None and known and isinstance(value, dict):
            told[key] = value
    return told


def _as_table(node: ast.expr) -> ast.expr:
    """Return ``ToolAnnotations(readOnlyHint=True)`` as the table that it is."""
    if not isinstance(node, ast.Call) or node.args or any(one.arg is None for one in node.keywords):
        return node
    keys: list[ast.expr | None] = [ast.Constant(_CAMEL.get(one.arg or "", one.arg)) for one in node.keywords]
    return ast.Dict(keys=keys, values=[one.value for one in node.keywords])


def definition_of(description: str, schema: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return the definition that these make; what is not known is not in it."""
    told: dict[str, Any] = {_DESCRIPTION: description} if description else {}
    return told if schema is None else {**told, _SCHEMA: schema}
