"""Reading what the operator says of tools in the place of their servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from truename.errors import ConfigError
from truename.policy import HINTS
from truename.policy.presentation import LONGEST_DESCRIPTION, LONGEST_TITLE, Presentation

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from truename.config.fields import Fields

__all__ = ["TOOLS", "read_tools"]

_TITLE: Final = {"type": ["string", "null"], "pattern": r"\S", "maxLength": LONGEST_TITLE}
_ANNOTATIONS: Final = {
    "type": ["object", "null"],
    "properties": {**{name: {"type": ["boolean", "null"]} for name in HINTS}, "title": _TITLE},
    "additionalProperties": False,
}
TOOLS: Final[Mapping[str, Any]] = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "properties": {
            "title": _TITLE,
            "description": {**_TITLE, "maxLength": LONGEST_DESCRIPTION},
            "annotations": _ANNOTATIONS,
        },
        "additionalProperties": False,
    },
}
"""What a schema says of the table."""


def read_tools(fields: Fields, name: str, _: Path) -> Presentation | None:
    """Read the table ``tools``; what is wrong is noted, and None returned where there is none, or a faulty one.

    Texts are taken as they stand: ``${NAME}`` is no reference here, or a client would be shown a secret.
    """
    # A table of null is one that can't be read, and not none: what it should say would not be said.
    if name not in tuple(fields):
        return None
    try:
        return Presentation.read(fields.raw(name))
    except (ConfigError, ExceptionGroup) as error:
        fields.faults.adopt(error)
        return None
