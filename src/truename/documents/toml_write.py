"""Values as TOML: sections for tables, one line for everything in them."""

from __future__ import annotations

import json
import math
import re
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any, Final

from truename.documents.spans import Broken

if TYPE_CHECKING:
    from collections.abc import Callable

    from truename.documents.spans import Where

__all__ = ["dotted", "inline", "pair", "sections"]

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_SPECIAL: Final = {float("inf"): "inf", float("-inf"): "-inf"}


def dotted(path: Where) -> str:
    """Return a path as a dotted key; places in arrays of tables go without saying.

    >>> dotted(("mcp_servers", 0, "my server"))
    'mcp_servers."my server"'
    """
    return ".".join(_key(step) for step in path if isinstance(step, str))


def pair(path: Where, value: Any) -> str:
    """Return one line that sets a value."""
    return f"{dotted(path)} = {inline(value)}"


def sections(path: Where, value: Any) -> list[list[str]]:
    """Return the lines of the sections that make a table, or a list of tables, of this path."""
    if isinstance(value, list):
        return [[f"[[{dotted(path)}]]", *_body(item)] for item in value]
    if value and all(isinstance(item, dict) for item in value.values()):
        return [part for key, item in value.items() for part in sections((*path, key), item)]
    return [[f"[{dotted(path)}]", *_body(value)]]


def inline(value: Any) -> str:
    """Write a value on one line. Raises `Broken` for what TOML can't say: null."""
    for kind, write in _WRITERS:
        if isinstance(value, kind):
            return write(value)
    raise Broken("TOML has no way to write null" if value is None else "TOML has no way to write this")


def _body(table: dict[str, Any]) -> list[str]:
    return [pair((key,), item) for key, item in table.items()]


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    # The escapes of JSON are TOML's too; of what JSON leaves as it is, TOML forbids one character.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _number(value: float) -> str:
    return _SPECIAL.get(value, "nan" if math.isnan(value) else repr(value))


def _table(value: dict[str, Any]) -> str:
    inside = ", ".join(pair((key,), item) for key, item in value.items())
    return f"{{ {inside} }}" if inside else "{}"


def _array(value: list[Any]) -> str:
    return f"[{', '.join(inline(item) for item in value)}]"


# The first that fits: a truth value is a number to Python, a moment a date.
_WRITERS: Final[tuple[tuple[Any, Callable[[Any], str]], ...]] = (
    (bool, lambda value: str(value).lower()),
    (str, _text),
    (int, str),
    (float, _number),
    ((datetime, date, time), lambda value: str(value.isoformat())),
    (dict, _table),
    ((list, tuple), _array),
)
