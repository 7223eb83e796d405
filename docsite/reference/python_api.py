"""The public Python API, from its signatures and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Final, Literal, get_args, get_origin

import truename
from docsite.reference.text import code, head, prose, table
from truename import Catalog, Style, project
from truename.errors import TruenameError
from truename.naming import STYLES

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["page"]

_INTRODUCTION: Final = """`from truename import ...` has the names of this page's first part. Everything else below `truename` is for the packages named under
[other packages](#other-packages), or private. The core (identity, catalog, dialects, ledger, naming) needs two small libraries and has no async code.

Three calls do the main job. `Catalog.from_mcp` takes the tools of all servers, `project` gives each tool a name that one client accepts, and `resolve` finds
the tool of a name that comes back:

```python
from truename import Catalog, Ledger, project, resolve

catalog = Catalog.from_mcp({"weather": ["get_data"], "database": ["get_data"]})  # or results of tools/list
names = project(catalog, "openai", ledger=Ledger.open("names.db"))
names["database@1/get_data@1"]  # 'database_get_data'
found = resolve("database_get_data", names)
catalog[found.id].origin.server  # 'database'
catalog[found.id].origin.name  # 'get_data'
```

`"openai"` is a [dialect](dialects.md): a client, framework or provider. The [ledger](../glossary.md#ledger) keeps the names over restarts. Without a ledger, a name can change when another server is added."""
_OTHERS: Final = (
    ("truename.policy", "rules, approvals, profiles and the metadata of tools", "[policy](../gateway/policy.md)"),
    ("truename.lint", "declarations read from sources and dumps, findings, reports", "[lint](../teams/lint.md)"),
    ("truename.migration", "diff, lock, rename and recordings", "[diff and lock](../teams/diff-and-lock.md)"),
    ("truename.config", "reading and writing a configuration", "[settings](settings.md)"),
)
_FOLDED: Final = 100
_NOT_RUN: Final = "<!-- not run: the test of docstrings runs it -->"


def page() -> str:
    """Return the page."""
    names = [name for name in truename.__all__ if not _is_error(name)]
    parts = [head("Python API", "the docstrings of `src/truename`"), _INTRODUCTION]
    parts.append(
        table(
            ("name", "is"),
            ((f"[`{name}`](#{name.lower()})", _summary(getattr(truename, name))) for name in names),
        )
    )
    parts.append(
        "The classes of [errors](errors.md) are importable from `truename` too: "
        + ", ".join(map(code, sorted(set(truename.__all__) - set(names))))
        + "."
    )
    for name in names:
        parts += _section(name, getattr(truename, name))
    parts.append("## Other packages")
    for module, purpose, guide in _OTHERS:
        parts += [f"### {module}", f"{purpose[0].upper()}{purpose[1:]}: {guide}.", _listed(module)]
    parts += [
        "### truename.adapters",
        "Model APIs and agent frameworks, one module each: [frameworks](../frameworks/adapters.md).",
        _adapters(),
    ]
    return "\n\n".join(parts) + "\n"


def _is_error(name: str) -> bool:
    value = getattr(truename, name)
    return isinstance(value, type) and issubclass(value, TruenameError)


def _summary(value: object) -> str:
    if isinstance(value, type(truename.WireName)):
        return "The type of the names that a compiled table shows: a string."
    if get_origin(value) is Literal:
        return f"One of {', '.join(code(repr(one)) for one in get_args(value))}."
    if get_origin(value) is Callable:
        return f"The type {code(re.sub(r'^.*?Callable', 'Callable', str(value)))}."
    doc = inspect.getdoc(value) or ""
    return prose(" ".join(doc.split("\n\n")[0].split()))


def _section(name: str, value: object) -> Iterator[str]:
    yield f"## {name}"
    if inspect.ismodule(value):
        yield _summary(value)
        exported = [one for one in value.__all__ if not isinstance(getattr(value, one), type) or name != "errors"]
        for one in exported:
            if inspect.isfunction(getattr(value, one)) and name != "errors":
                yield f"### {name}.{one}"
                yield from _callable(f"{name}.{one}", getattr(value, one))
        return
    if inspect.isfunction(value):
        yield from _callable(name, value)
        return
    if not isinstance(value, type):
        yield _summary(value)
        return
    yield from _docstring(value)
    if rows := _fields(value):
        yield table(("field", "type"), rows)
    if value is Style:
        yield "### Presets"
        yield table(
            ("style", "`get_data` of the server `weather`", "`fs.list` of the server `weather`"), map(_preset, STYLES)
        )
    for attribute, member in _members(value):
        yield f"### {name}.{attribute}"
        if isinstance(member, property):
            yield "A property."
            yield from _docstring(member)
        else:
            yield from _callable(f"{name}.{attribute}", member)


def _fields(kind: type) -> list[tuple[str, str]]:
    """Return the fields of a dataclass or named tuple, and their types."""
    if is_dataclass(kind):
        return [(code(one.name), code(str(one.type))) for one in fields(kind)]
    annotations = inspect.get_annotations(kind)
    # Named tuples wrap the text of a type in a ForwardRef.
    texts = {name: str(getattr(one, "__forward_arg__", one)) for name, one in annotations.items()}
    return [(code(name), code(texts[name])) for name in getattr(kind, "_fields", ())]


def _preset(style: str) -> tuple[str, str, str]:
    catalog = Catalog.from_mcp({"weather": ["get_data", "fs.list"]})
    data, listed = project(catalog, "native", style=style).values()
    return code(style), code(data), code(listed)


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    for attribute, raw in vars(kind).items():
        member = raw.__func__ if isinstance(raw, (classmethod, staticmethod)) else raw
        is_shown = inspect.isfunction(member) or isinstance(member, property)
        if is_shown and not attribute.startswith("_") and inspect.getdoc(member):
            yield attribute, member


def _callable(name: str, function: Any) -> Iterator[str]:
    yield f"```text\n{_signature(name, function)}\n```"
    yield from _docstring(function)


def _signature(name: str, function: Any) -> str:
    signature = inspect.signature(function)
    own = [one for one in signature.parameters.values() if one.name not in {"self", "cls"}]
    written = list(_parameters(own))
    text = f"{name}({', '.join(written)}) -> {signature.return_annotation}"
    if len(text) <= _FOLDED:
        return text
    inner = ",\n    ".join(written)
    return f"{name}(\n    {inner},\n) -> {signature.return_annotation}"


def _parameters(parameters: list[inspect.Parameter]) -> Iterator[str]:
    last = None
    for one in parameters:
        if last is one.POSITIONAL_ONLY and one.kind is not last:
            yield "/"
        if one.kind is one.KEYWORD_ONLY and last is not one.kind:
            yield "*"
        star = "*" if one.kind is one.VAR_POSITIONAL else "**" if one.kind is one.VAR_KEYWORD else ""
        default = "" if one.default is one.empty else f" = {one.default!r}"
        yield f"{star}{one.name}: {one.annotation}{default}"
        last = one.kind
    if last is inspect.Parameter.POSITIONAL_ONLY:
        yield "/"


def _docstring(value: object) -> Iterator[str]:
    text, mark, example = (inspect.getdoc(value) or "").partition(">>> ")
    if text.strip():
        yield prose(text.strip())
    if mark:
        yield f"{_NOT_RUN}\n\n```pycon\n{mark}{example.strip()}\n```"


def _listed(module: str) -> str:
    package = import_module(module)
    return table(
        ("name", "is"),
        (
            (code(name), _summary(getattr(package, name)))
            for name in package.__all__
            if callable(getattr(package, name))
        ),
    )


def _adapters() -> str:
    folder = import_module("truename.adapters").__path__
    rows = []
    for one in iter_modules(folder):
        if not one.name.startswith("_"):
            path = next(iter(folder)) + f"/{one.name}.py"
            with open(path, encoding="utf-8") as file:  # noqa: PTH123 - not imported: the framework may be missing
                found = re.match(r'r?"""(.*?)(?:\n\n|""")', file.read(), re.DOTALL)
            rows.append((code(f"truename.adapters.{one.name}"), prose(" ".join(found[1].split())) if found else ""))
    return table(("module", "is"), rows)
