"""Derive the input schema of a function or model from its annotations, as far as they are simple."""

from __future__ import annotations

import ast
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from truename.lint.python_source import Function

__all__ = [
    "argument",
    "at",
    "definition_of",
    "expression_text",
    "keyword",
    "literal",
    "members",
    "schema_of_class",
    "schema_of_function",
    "stated_metadata",
]

Schema = dict[str, object]

_SIMPLE: Final[Mapping[str, Schema]] = MappingProxyType(
    {
        "str": {"type": "string"},
        "int": {"type": "integer"},
        "float": {"type": "number"},
        "bool": {"type": "boolean"},
        "bytes": {"type": "string"},
        "None": {"type": "null"},
        "list": {"type": "array"},
        "tuple": {"type": "array"},
        "set": {"type": "array", "uniqueItems": True},
        "dict": {"type": "object"},
        "Any": {},
    }
)
_OF_ONE: Final = frozenset({"list", "set", "tuple", "Sequence", "Iterable", "frozenset"})
_OLD_NAMES: Final = MappingProxyType(
    {"List": "list", "Dict": "dict", "Set": "set", "Tuple": "tuple", "Mapping": "dict"}
)
# Parameters that the libraries provide themselves, so that the model does not see them.
_GIVEN: Final = frozenset(
    {
        "Context", "MCPContext", "RunContext", "RunContextWrapper", "ToolContext", "ToolRuntime", "RunnableConfig",
        "Callbacks", "CallbackManagerForToolRun", "AsyncCallbackManagerForToolRun", "Depends", "CurrentContext",
    }
)  # fmt: skip
_INJECTED: Final = "Injected"
_FIELD: Final = "Field"
_STATIC: Final = "staticmethod"
_DEEPEST: Final = 12


def schema_of_function(function: Function, *, is_method: bool, strict: bool = False) -> Schema:
    """Return the schema of a function's parameters; ``strict`` makes all required, as one provider demands."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(named) - len(arguments.defaults))
    pairs = list(zip(named, [*defaults, *arguments.defaults], strict=True))
    is_bound = is_method and not any(_last(one) == _STATIC for one in function.decorator_list)
    pairs = pairs[is_bound:] + list(zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))
    return _object(((arg.arg, arg.annotation, default) for arg, default in pairs), strict=strict)


def schema_of_class(node: ast.ClassDef) -> Schema:
    """Return the schema of a model from its annotated fields."""
    fields = (
        (one.target.id, one.annotation, one.value)
        for one in node.body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    )
    return _object(fields, strict=False)


def _object(fields: Iterable[tuple[str, ast.expr | None, ast.expr | None]], *, strict: bool) -> Schema:
    properties: Schema = {}
    required: list[str] = []
    for name, annotation, default in fields:
        names = () if annotation is None else _parts(annotation)
        if any(one in _GIVEN or one.startswith(_INJECTED) for one in names):
            continue
        if default is not None and _last(default) in _GIVEN:
            continue
        schema, is_required = _defaulted(_of(annotation), default)
        properties[name] = schema
        if is_required or strict:
            required.append(name)
    made: Schema = {"type": "object", "properties": properties}
    return {**made, "required": required} if required else made


def _parts(annotation: ast.expr, depth: int = 0) -> Iterator[str]:
    """Yield the top-level names of an annotation: of unions, Annotated and generics."""
    match annotation:
        case _ if depth > _DEEPEST:
            return
        case ast.BinOp():
            yield from _parts(annotation.left, depth + 1)
            yield from _parts(annotation.right, depth + 1)
        case ast.Subscript() if _last(annotation.value) in {"Annotated", "Optional", "Union"}:
            for one in _items(annotation.slice):
                yield from _parts(one, depth + 1)
        case ast.Constant(value=str(text)):
            yield text.partition("[")[0].rpartition(".")[2]
        case _:
            yield _last(annotation)


def _defaulted(schema: Schema, default: ast.expr | None) -> tuple[Schema, bool]:
    if isinstance(default, ast.Call) and _last(default) == _FIELD:
        schema = schema | _described(default)
        factory = any(one.arg == "default_factory" for one in default.keywords)
        value = argument(default, "default")
        if value is None or (isinstance(value, ast.Constant) and value.value is ...):
            return schema, not factory
        default = value
    if default is None:
        return schema, True
    known, plain = literal(default)
    return (schema | {"default": plain} if known else schema), False


def _of(annotation: ast.expr | None, depth: int = 0) -> Schema:
    if annotation is None or depth > _DEEPEST:
        return {}
    match annotation:
        case ast.Constant(value=None):
            return {"type": "null"}
        case ast.Name() | ast.Attribute():
            name = _last(annotation)
            return dict(_SIMPLE.get(_OLD_NAMES.get(name, name), {}))
        case ast.BinOp(op=ast.BitOr()):
            return {"anyOf": [_of(one, depth + 1) for one in _union(annotation)]}
        case ast.Subscript():
            return _generic(_last(annotation.value), _items(annotation.slice), depth + 1)
    return {}


def _generic(name: str, items: list[ast.expr], depth: int) -> Schema:
    name = _OLD_NAMES.get(name, name)
    if name == "Optional":
        return {"anyOf": [_of(items[0], depth), {"type": "null"}]}
    if name == "Union":
        return {"anyOf": [_of(one, depth) for one in items]}
    if name == "Literal":
        values = [value for known, value in map(literal, items) if known]
        return {"enum": values} if len(values) == len(items) else {}
    if name == "Annotated":
        return _annotated(items, depth)
    if name in _OF_ONE:
        inner = _of(items[0], depth)
        return {**_SIMPLE.get(name, {"type": "array"}), **({"items": inner} if inner else {})}
    return dict(_SIMPLE.get(name, {}))


def _annotated(items: list[ast.expr], depth: int) -> Schema:
    schema = _of(items[0], depth)
    for one in items[1:]:
        match one:
            case ast.Constant(value=str(text)):
                schema |= {"description": text}
            case ast.Call() if _last(one) == _FIELD:
                schema |= _described(one)
    return schema


def _described(call: ast.Call) -> Schema:
    for one in call.keywords:
        if one.arg == "description" and isinstance(one.value, ast.Constant) and isinstance(one.value.value, str):
            return {"description": one.value.value}
    return {}


def argument(call: ast.Call, name: str) -> ast.expr | None:
    """Return the argument with this keyword, else the first one."""
    return next((one.value for one in call.keywords if one.arg == name), call.args[0] if call.args else None)


def _union(node: ast.expr) -> list[ast.expr]:
    members: list[ast.expr] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        members.append(node.right)
        node = node.left
    return [node, *reversed(members)]


def _items(node: ast.expr) -> list[ast.expr]:
    return list(node.elts) or [node] if isinstance(node, ast.Tuple) else [node]


def _last(node: ast.AST) -> str:
    """Return the last part of a name, also of a call or subscript."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            return node.attr
    return ""


def literal(node: ast.AST, depth: int = 0) -> tuple[bool, object]:
    """Return whether an expression is a plain JSON value, and that value."""
    match node:
        case _ if depth > _DEEPEST:
            return False, None
        case ast.Constant(value=str() | int() | float() | bool() | None):
            return True, node.value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return True, -number
        case ast.List() | ast.Tuple():
            items = [literal(one, depth + 1) for one in node.elts]
            return all(known for known, _ in items), [value for _, value in items]
        case ast.Dict():
            keys = [one.value if isinstance(one, ast.Constant) else None for one in node.keys]
            values = [literal(one, depth + 1) for one in node.values]
            known = all(isinstance(key, str) for key in keys) and all(known for known, _ in values)
            return known, {str(key): value for key, (_, value) in zip(keys, values, strict=True)}
    return False, None


_LONGEST: Final = 80
_DESCRIPTION: Final = "description"
_SCHEMA: Final = "inputSchema"
_STATED: Final[Mapping[str, str]] = MappingProxyType({"meta": "_meta", "_meta": "_meta", "annotations": "annotations"})
# The fields of the SDK's ToolAnnotations in Python, and their names in the protocol.
_CAMEL: Final[Mapping[str, str]] = MappingProxyType(
    {
        "read_only_hint": "readOnlyHint",
        "destructive_hint": "destructiveHint",
        "idempotent_hint": "idempotentHint",
        "open_world_hint": "openWorldHint",
    }
)


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """Return the argument with this keyword; None for the keyword ""."""
    return next((one.value for one in call.keywords if one.arg == name), None) if name else None


def expression_text(node: ast.expr) -> str:
    """Return the expression of a computed name as source; for a long one, only its kind."""
    if (node.end_lineno or 0) - node.lineno > 1 or (node.end_col_offset or 0) - node.col_offset > _LONGEST:
        return f"{type(node).__name__} of several parts"
    return ast.unparse(node)[:_LONGEST]


def at(call: ast.Call, place: int) -> ast.expr | None:
    """Return the argument at this position; None if a starred one precedes it."""
    if not 0 <= place < len(call.args) or any(isinstance(one, ast.Starred) for one in call.args[: place + 1]):
        return None
    return call.args[place]


def members(node: ast.ClassDef) -> Iterable[tuple[str, ast.expr]]:
    """Yield the assignments in the body of a class."""
    for one in node.body:
        match one:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value


def stated_metadata(call: ast.Call | None) -> Mapping[str, object]:
    """Return the metadata and annotations that a call states as literals."""
    told: dict[str, object] = {}
    for one in call.keywords if call is not None else ():
        key = _STATED.get(one.arg or "")
        known, value = literal(_as_table(one.value)) if key is not None else (False, None)
        if key is not None and known and isinstance(value, dict):
            told[key] = value
    return told


def _as_table(node: ast.expr) -> ast.expr:
    """Convert ``ToolAnnotations(readOnlyHint=True)`` to a dictionary expression."""
    if not isinstance(node, ast.Call) or node.args or any(one.arg is None for one in node.keywords):
        return node
    keys: list[ast.expr | None] = [ast.Constant(_CAMEL.get(one.arg or "", one.arg)) for one in node.keywords]
    return ast.Dict(keys=keys, values=[one.value for one in node.keywords])


def definition_of(description: str, schema: Mapping[str, object] | None) -> Mapping[str, object]:
    """Return a definition with this description and schema; unknown parts are omitted."""
    told: dict[str, object] = {_DESCRIPTION: description} if description else {}
    return told if schema is None else {**told, _SCHEMA: schema}
