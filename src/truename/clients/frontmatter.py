"""The lists of tools in the frontmatter of a Markdown file, read as text: a few forms, and nothing evaluated."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["frontmatter"]

_LONGEST: Final = 64 * 1024
_FENCE: Final = re.compile(r"---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*\r?(?=\n|\Z)", re.DOTALL | re.MULTILINE)
_FIELD: Final = re.compile(r"([A-Za-z][A-Za-z_-]{0,40}):[ \t]*([^\r\n]*)")
_MEMBER: Final = re.compile(r"""[ \t]+(?:"([^"]+)"|'([^']+)'|([^\s'"#][^:\r\n]*)):[ \t]+([^\r\n]+)""")
_ITEM: Final = re.compile(r"[ \t]*-[ \t]+([^\r\n]+)")


def frontmatter(text: str) -> dict[str, Any]:
    r"""Return the fields of a frontmatter: lists of texts, and objects of texts where a field has members.

    A text with commas is a list, as clients take it; so is one in brackets.

    >>> frontmatter("---\nname: x\ntools: Read, mcp__a__b\n---\n")["tools"]
    ['Read', 'mcp__a__b']
    """
    found = _FENCE.match(text[:_LONGEST].removeprefix("\ufeff"))
    return _fields(found[1].splitlines()) if found else {}


def _fields(lines: Iterable[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    name = ""
    for line in lines:
        if field := _FIELD.fullmatch(line):
            name = field[1]
            fields[name] = _listed(field[2])
        elif name and (item := _ITEM.fullmatch(line)) and isinstance(fields[name], list):
            fields[name].append(_bare(item[1]))
        elif name and (member := _MEMBER.fullmatch(line)):
            fields[name] = _with_member(fields[name], member)
    return fields


def _with_member(value: Any, member: re.Match[str]) -> Any:
    if isinstance(value, list) and value:
        return value
    key = member[1] or member[2] or member[3].strip()
    return {**(value or {}), key: {"true": True, "false": False}.get(_bare(member[4]), _bare(member[4]))}


def _listed(text: str) -> list[str]:
    inner = text.strip()
    if inner.startswith("[") and inner.endswith("]"):
        inner = inner[1:-1]
    return [bare for piece in inner.split(",") if (bare := _bare(piece))]


def _bare(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text
