"""Values as YAML: lines in block style, or one line in flow style; read alike by parsers of YAML 1.1 and 1.2."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from truename.documents.yaml_nodes import is_text

__all__ = ["flow", "items", "member", "members", "name"]

_PLAIN: Final = re.compile(r"[A-Za-z0-9_./$](?:[A-Za-z0-9_./@$+=~:%-]*[A-Za-z0-9_./@$+=~%-])?")
_SPECIAL: Final = {float("inf"): ".inf", float("-inf"): "-.inf"}


def member(key: str, value: Any, unit: str) -> list[str]:
    """Return the lines of one member, the first without indentation."""
    if not isinstance(value, dict | list) or not value:
        return [f"{name(key)}: {flow(value)}"]
    inside = members(value, unit) if isinstance(value, dict) else items(value, unit)
    return [f"{name(key)}:", *(unit + line for line in inside)]


def members(value: dict[str, Any], unit: str) -> list[str]:
    """Return the lines of an object."""
    return [line for key, item in value.items() for line in member(key, item, unit)]


def items(value: list[Any], unit: str) -> list[str]:
    """Return the lines of a list."""
    return [line for one in value for line in _item(one, unit)]


def flow(value: Any) -> str:
    """Return a value on one line."""
    match value:
        case str():
            return name(value)
        case float() if value in _SPECIAL or value != value:  # noqa: PLR0124 - the test for NaN
            return _SPECIAL.get(value, ".nan")
        case dict():
            return f"{{{', '.join(f'{name(key)}: {flow(item)}' for key, item in value.items())}}}"
        case list():
            return f"[{', '.join(flow(item) for item in value)}]"
    return json.dumps(value)


def name(text: str) -> str:
    """Return a text as a scalar, in quotes unless every parser reads it the same without."""
    if _PLAIN.fullmatch(text) and is_text(text):
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\U{ord(char):08X}" for char in quoted)


def _item(value: Any, unit: str) -> list[str]:
    lines = [flow(value)]
    if value and isinstance(value, dict | list):
        lines = members(value, unit) if isinstance(value, dict) else items(value, unit)
    return [f"- {lines[0]}", *(f"  {line}" for line in lines[1:])]
