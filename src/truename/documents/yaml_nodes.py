"""The tree of a YAML text: what stands where, and what it means by the rules of YAML 1.2."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

__all__ = ["Node", "Pair", "is_text", "meaning"]

_CONSTANTS: Final = MappingProxyType(
    {
        **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
        **dict.fromkeys(("true", "True", "TRUE"), True),
        **dict.fromkeys(("false", "False", "FALSE"), False),
    }
)
# Longer ones are texts here: Python refuses to read them, and they are no setting.
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,400}|0o[0-7]{1,400}|0x[0-9a-fA-F]{1,400}")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]{1,400}|[0-9]{1,400}(?:\.[0-9]{0,400})?)(?:[eE][-+]?[0-9]{1,400})?")
_SPECIAL: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
# What YAML 1.1 makes of plain words, and other parsers still do.
_ELSEWHERE: Final = re.compile(
    r"[-+]?[0-9][0-9_,:.eE+-]*|0[bBoOxX][0-9a-fA-F_]+|[0-9]{4}-.*|[-+]?\.[0-9_].*|(?i:y|n|yes|no|on|off|true|false|null)"
)


@dataclass(slots=True)
class Pair:
    """A member of a mapping (where its key starts and ends) or an item of a sequence."""

    key: str | int
    start: int
    end: int
    node: Node


@dataclass(slots=True)
class Node:
    """A scalar, collection (``map``, ``list``) or ``alias``; a block collection ends where its last scalar does."""

    kind: str
    start: int
    end: int
    column: int
    value: Any
    is_flow: bool = False
    # A scalar's text before it got a meaning, whether it stands without quotes, and whether it is a literal block.
    text: str | None = None
    is_plain: bool = False
    is_literal: bool = False
    pairs: list[Pair] = field(default_factory=list)

    @property
    def is_block(self) -> bool:
        """Whether this is a collection whose form is made by indentation."""
        return self.kind in {"map", "list"} and not self.is_flow

    def child(self, step: str | int) -> Pair | None:
        """Return the member or item; of a key that stands twice, the one that counts: the last."""
        return next((pair for pair in reversed(self.pairs) if pair.key == step), None)


def meaning(text: str) -> Any:
    """Return what a plain scalar means.

    >>> [meaning(text) for text in ("yes", "12:30", "0o17", "~", "1e3")]
    ['yes', '12:30', 15, None, 1000.0]
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        return int(text, 0) if text.startswith(("0o", "0x")) else int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return float(text.replace(".", "", 1)) if _SPECIAL.fullmatch(text) else text


def is_text(text: str) -> bool:
    """Tell whether a plain scalar is a text to every parser, old and new."""
    return isinstance(meaning(text), str) and not _ELSEWHERE.fullmatch(text)
