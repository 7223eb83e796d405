"""The contexts of sessions in a configuration: the default one, the named ones, and which protocol is spoken."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from truename.errors import ConfigError, MigrationError, excerpt
from truename.migration.protocol_versions import version_parts
from truename.policy import Context
from truename.policy.call import ORIGINS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from truename.config.fields import Fields

__all__ = ["CONTEXT", "CONTEXTS", "plain_context", "read_context", "read_contexts", "read_protocol"]

# A context's name stands in a path and in a header.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_WORDS: Final = ("platform", "app", "origin")
_TEXT: Final = {"type": "string"}
_ORIGIN: Final = {"anyOf": [{"enum": list(ORIGINS)}, {"type": "string", "pattern": r"\$\{"}]}
CONTEXT: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"platform": _TEXT, "app": _TEXT, "origin": _ORIGIN},
    "additionalProperties": False,
}
CONTEXTS: Final[Mapping[str, Any]] = {
    "type": "object",
    "propertyNames": {"pattern": f"^{_NAME.pattern}$"},
    "additionalProperties": CONTEXT,
}


def read_context(fields: Fields, name: str, _: Path) -> Context | None:
    """Read one context; what can't be read of it is a fault, for it may be what limits a session."""
    if name not in tuple(fields):
        return None
    if name not in fields:
        fields.faults.add(fields.where(name), "it is null, not an object", "Leave it out, or say what limits it.")
    said = fields.nested(name, "an object: platform, app, origin")
    return None if said is None else _context(said)


def read_contexts(fields: Fields, name: str, _: Path) -> Mapping[str, Context] | None:
    """Read the named contexts."""
    said = fields.nested(name, "an object: name -> platform, app, origin")
    if said is None:
        return None
    found: dict[str, Context] = {}
    for key in said:
        if _NAME.fullmatch(key) is None:
            problem = f"{excerpt(key)} can't be a context's name"
            said.faults.add(said.where(key), problem, "Write up to 64 of A-Z, a-z, 0-9, '.', '_', '-'.")
        elif (context := read_context(said, key, _)) is not None:
            found[key] = context
    return MappingProxyType(found)


def read_protocol(fields: Fields, name: str, _: Path) -> str | None:
    """Read the version of the team's protocol."""
    text = fields.text(name)
    if text is None:
        return None
    try:
        version_parts(text)
    except MigrationError as error:
        fields.faults.add(name, error.problem, error.remedy)
        return None
    return text


def plain_context(context: Context) -> dict[str, str]:
    """Return what a context says, as a table of a configuration has it."""
    return {word: said for word in _WORDS if (said := getattr(context, word)) != getattr(Context(), word)}


def _context(said: Fields) -> Context | None:
    before = len(said.faults)
    for word in said:
        if word not in _WORDS:
            problem = "it is no word of a context"
            said.faults.add(said.where(excerpt(word)[1:-1]), problem, f"Use of: {', '.join(_WORDS)}.")
    given: dict[str, Any] = {word: text for word in _WORDS if (text := said.text(word)) is not None}
    try:
        context = Context(**given)
    except ConfigError as error:
        said.faults.add(said.where(error.key), error.problem, error.remedy)
        return None
    return context if len(said.faults) == before else None
