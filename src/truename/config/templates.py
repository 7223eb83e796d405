"""Split a text of a client's configuration into plain text, references, and holes that have to become variables.

Every client writes references in its own way. Nothing is looked up, run or asked here: a reference is translated into
ours, and a placeholder that only that client can fill in becomes a hole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from truename.config.interpolate import literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

__all__ = [
    "LITERAL",
    "SPELLINGS",
    "Hole",
    "Part",
    "Ref",
    "Template",
    "spelling_of",
    "translate",
    "variable_name",
    "written",
]


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference to a variable of the environment; ``value`` is a secret that was its default."""

    name: str
    default: str | None = None
    value: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Hole:
    """A part that has to become a variable: a secret (``value``), or a placeholder that only the client can fill in.

    ``label`` describes it; with ``own`` the label is the variable's name by itself, without the server's key.
    """

    label: str
    own: bool = False
    value: str | None = field(default=None, repr=False)
    said: str = ""


Part = str | Ref | Hole
Template = tuple[Part, ...]

LITERAL: Final = "literal"
_BRACES: Final = r"\$\{(?P<braces>[^{}]*)\}"
# From the clients' own documents and sources; others are read as ${VAR} and ${env:VAR}.
SPELLINGS: Final[Mapping[str, re.Pattern[str]]] = MappingProxyType(
    {
        "braces": re.compile(_BRACES),
        "dollar": re.compile(rf"{_BRACES}|\$(?P<dollar>[A-Za-z_][A-Za-z0-9_]*)"),
        "shell": re.compile(rf"{_BRACES}|\$\((?P<command>[^()]*)\)|\$(?P<dollar>[A-Za-z_][A-Za-z0-9_]*)"),
        "curly": re.compile(rf"{_BRACES}|\{{env:(?P<dollar>[^{{}}]*)\}}|\{{file:(?P<file>[^{{}}]*)\}}"),
        "secrets": re.compile(rf"\$\{{\{{\s*(?P<secret>[\w.-]+)\s*\}}\}}|{_BRACES}"),
        "mustache": re.compile(rf"\{{\{{(?P<template>[^{{}}]*)\}}\}}|{_BRACES}"),
        "project": re.compile(rf"{_BRACES}|\{{(?P<template>[?a-z][^{{}}]*)\}}"),
    }
)
_CLIENTS: Final = MappingProxyType(
    {
        **dict.fromkeys(
            ("claude-desktop", "zed", "cherry-studio", "kimi-cli", "5ire", "witsy", "mastra-code"), LITERAL
        ),
        **dict.fromkeys(("gemini-cli", "qwen-code", "tabnine", "goose", "copilot-cli"), "dollar"),
        **dict.fromkeys(("opencode", "kilo-code"), "curly"),
        "crush": "shell",
        "continue": "secrets",
        "librechat": "mustache",
    }
)
_VARIABLE: Final = re.compile(r"(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_]+")
_DOLLAR: Final = "${TRUENAME_DOLLAR:-$}"


def spelling_of(client: str) -> str:
    """Return the name of the client's way to write references; most write ``${VAR}``."""
    return _CLIENTS.get(client, "braces")


def variable_name(text: str) -> str:
    """Return the text as the name of a variable.

    >>> variable_name("x-api-key"), variable_name("1st key"), variable_name("天気")
    ('X_API_KEY', '_1ST_KEY', 'VALUE')
    """
    name = _NOT_IN_NAMES.sub("_", text).strip("_").upper() or "VALUE"
    return f"_{name}" if name[0].isdigit() else name


def translate(text: str, spelling: str, base: Path | None = None) -> Template:
    """Split a text into parts. ``base`` is the directory that ``${workspaceFolder}`` or a plugin's root means.

    >>> translate("Bearer ${env:TOKEN}", "braces")
    ('Bearer ', Ref(name='TOKEN', default=None))
    """
    if spelling == LITERAL:
        return (text,) if text else ()
    parts: list[Part] = []
    end = 0
    for match in SPELLINGS[spelling].finditer(text):
        parts += [text[end : match.start()], _part(match, base)]
        end = match.end()
    joined: list[Part] = []
    for part in [*parts, text[end:]]:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        elif part != "":
            joined.append(part)
    return tuple(joined)


def written(template: Template, name_of: Callable[[Hole], str]) -> str:
    """Return the text as truename.toml writes it."""
    pieces: list[str] = []
    for part in template:
        if isinstance(part, str):
            pieces.append(literal(part))
            continue
        if pieces and pieces[-1].endswith("$"):
            # A dollar before a reference would be read as its escape.
            pieces[-1] = pieces[-1][:-1] + _DOLLAR
        name, default = (part.name, part.default) if isinstance(part, Ref) else (name_of(part), None)
        pieces.append(f"${{{name}}}" if default is None else f"${{{name}:-{default}}}")
    return "".join(pieces)


def _part(match: re.Match[str], base: Path | None) -> Part:
    kind = str(match.lastgroup)
    inside = match[kind]
    if kind == "braces":
        return _braces(inside, match[0], base)
    if kind == "dollar" and (variable := _VARIABLE.fullmatch(inside)):
        return Ref(variable["name"])
    return Hole(variable_name(inside.rpartition(".")[2]), own=True, said=match[0])


def _braces(inside: str, said: str, base: Path | None) -> Part:
    place = _place(inside, base)
    if place is not None:
        return place
    if variable := _VARIABLE.fullmatch(inside):
        return Ref(variable["name"], variable["default"])
    kind, colon, name = inside.partition(":")
    return Hole(variable_name(name if colon and name else kind), own=True, said=said)


def _place(inside: str, base: Path | None) -> Part | None:
    """Return the meaning of an editor's placeholder for a place, or None if it is not one."""
    if inside == "userHome":
        return Ref("HOME")
    if inside in {"/", "pathSeparator"}:
        return "/"
    if inside in {"workspaceFolder", "workspaceRoot", "fileWorkspaceFolder"}:
        return Hole("WORKSPACE", own=True, said=f"${{{inside}}}") if base is None else str(base)
    if inside == "CLAUDE_PLUGIN_ROOT" and base is not None:
        return str(base)
    if inside == "workspaceFolderBasename" and base is not None:
        return base.name
    return None
