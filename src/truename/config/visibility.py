"""Read which tools, prompts and resources a session sees, and how: contexts, profiles, presentation, tool search."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from truename.catalog import estimated_tokens
from truename.catalog.globs import glob_error
from truename.config.fields import TEXTS, TRUTH, Row, read_row_table, row_schema
from truename.errors import ConfigError, MigrationError, excerpt, spelling_remedy
from truename.migration.protocol_versions import version_parts
from truename.policy import HINTS, Context
from truename.policy.call import ORIGINS
from truename.policy.presentation import LONGEST_DESCRIPTION, LONGEST_TITLE, Presentation
from truename.policy.principal import WRITTEN, principal_fault
from truename.policy.profiles import Profile, Profiles

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from truename.config.fields import Fields
    from truename.config.model import Settings

__all__ = [
    "CONTEXT",
    "CONTEXTS",
    "PROFILES",
    "TOOLS",
    "plain_context",
    "read_context",
    "read_contexts",
    "read_pinned",
    "read_profiles",
    "read_protocol",
    "read_tools",
    "why_searched",
]

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
_MOST: Final = 1_000
_WHAT: Final = ("tools", "servers", "annotations", "families", "owners", "prompts", "resources")
_WHOM: Final = ("groups", "scopes", "principals", "everyone", "default")
_HINTED: Final = {
    "type": "object",
    "properties": {name: {"type": "boolean"} for name in HINTS},
    "additionalProperties": False,
}
_NONE_TOO: Final = {"type": "array", "items": {"type": "string"}}
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


def _texts(fields: Fields, name: str) -> tuple[str, ...] | None:
    found = fields.texts(name)
    if not fields.is_list(name):
        return None
    if not found or len(found) > _MOST or not all(text.strip() for text in found):
        fields.faults.add(fields.where(name), f"it has not 1 to {_MOST:,} texts", "Leave it out, or name some.")
        return None
    return found


def _servers(fields: Fields, name: str) -> tuple[str, ...] | None:
    # An empty list says that there are none, where otherwise those of `servers` are.
    return () if fields.raw(name) == [] else _texts(fields, name)


def _globs(fields: Fields, name: str) -> tuple[str, ...] | None:
    globs = _texts(fields, name)
    for index, glob in enumerate(globs or ()):
        if fault := glob_error(glob):
            where, problem = f"{fields.where(name)}[{index}]", f"{excerpt(glob)} is no glob on ids: {fault}"
            fields.faults.add(where, problem, "Write integration/tool, as github/create_*.")
    return globs


def _principals(fields: Fields, name: str) -> tuple[str, ...] | None:
    globs = _texts(fields, name)
    for index, glob in enumerate(globs or ()):
        if fault := principal_fault(glob):
            where = f"{fields.where(name)}[{index}]"
            fields.faults.add(where, f"{excerpt(glob)}: {fault}", WRITTEN)
    return globs


def _hints(fields: Fields, name: str) -> Mapping[str, bool] | None:
    said = fields.nested(name, "an object: readOnlyHint -> true")
    if said is None:
        return None
    for word in said:
        if word not in HINTS:
            said.faults.add(said.where(excerpt(word)[1:-1]), "it is no annotation", spelling_remedy(word, HINTS))
    found = {word: value for word in HINTS if word in said and (value := said.truth(word)) is not None}
    return MappingProxyType(found)


def _truth(fields: Fields, name: str) -> bool | None:
    return fields.truth(name)


def _row(read: Callable[[Fields, str], Any], what: str, schema: Mapping[str, Any] = TEXTS) -> Row:
    return Row(read, schema, what)


_ROWS: Final[Mapping[str, Row]] = {
    "tools": _row(_globs, "Globs on ids: the tools that are in it."),
    "servers": _row(_texts, "Keys of servers, or globs: all their tools are in it."),
    "except": _row(_globs, "Globs on ids: what is not in it all the same."),
    "annotations": _row(_hints, "Only tools with these annotations.", _HINTED),
    "families": _row(_texts, "Only tools of these families (metadata)."),
    "owners": _row(_texts, "Only tools of these owners (metadata)."),
    "prompts": _row(_servers, "The servers whose prompts are in it; else those of servers.", _NONE_TOO),
    "resources": _row(_servers, "The servers whose resources are in it; else those of servers.", _NONE_TOO),
    "groups": _row(_texts, "It is for who is in one of these groups."),
    "scopes": _row(_texts, "It is for tokens with one of these scopes."),
    "principals": _row(_principals, "It is for these principals, or globs."),
    "everyone": _row(_truth, "It is for everybody who may come in.", TRUTH),
    "default": _row(_truth, "It is for those who are in no other.", TRUTH),
}

PROFILES: Final[Mapping[str, Any]] = {
    "type": "object",
    "propertyNames": {"pattern": f"^{_NAME.pattern}$"},
    "additionalProperties": row_schema(_ROWS),
}


"""What a schema says of the tables."""


def read_profiles(fields: Fields, name: str, _: Path) -> Profiles | None:
    """Read the tables ``profiles``; what is wrong is noted, and None returned for what can't be used."""
    if name not in tuple(fields):
        return None
    if name not in fields:
        fields.faults.add(
            fields.where(name), "it is null, not an object", "Leave it out, or say what there is for whom."
        )
    tables = fields.nested(name, "an object: NAME -> object")
    if tables is None:
        return None
    before = len(fields.faults)
    found = {key: profile for key in tables if (profile := _profile(tables, key)) is not None}
    if not found and len(fields.faults) == before:
        fields.faults.add(fields.where(name), "it has no profile", "Leave it out, or write [profiles.NAME].")
    return Profiles(found) if len(fields.faults) == before else None


def _profile(tables: Fields, key: str) -> Profile | None:
    where = tables.where(excerpt(key)[1:-1])
    if _NAME.fullmatch(key) is None:
        problem = f"{excerpt(key)} can't be a profile's name"
        tables.faults.add(where, problem, "Write up to 64 of A-Z, a-z, 0-9, '.', '_', '-'.")
        return None
    table = tables.nested(key, "an object")
    if table is None:
        if key not in tables:
            tables.faults.add(where, "it is null", "Leave it out, or say what there is for whom.")
        return None
    said = read_row_table(table, _ROWS)
    if not any(said.get(word) for word in _WHAT):
        tables.faults.add(where, "it shows nothing", 'Say what is in it; tools = ["*"] is all of them.')
    if not any(said.get(word) for word in _WHOM):
        tables.faults.add(where, "it is for nobody", f"Say for whom, with one of: {', '.join(_WHOM)}.")
    return Profile(**{"excluded" if word == "except" else word: value for word, value in said.items()})


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


def why_searched(settings: Settings, definitions: Collection[Mapping[str, Any]], most: int | None) -> str:
    """Return why a list of these definitions is searched and not listed whole; "" if it is listed whole.

    ``most`` is how many tools the client takes, None where it has no known limit.

    >>> from truename.config import Settings
    >>> why_searched(Settings(tool_search="auto"), [{"name": "add"}] * 81, most=80)
    'it has 81 tools, and this client takes 80'
    """
    if settings.tool_search == "off":
        return ""
    if settings.tool_search == "on":
        return "tool_search is on"
    there = len(definitions)
    if most is not None and there > most:
        return f"it has {there:,} tools, and this client takes {most:,}"
    if there > settings.max_listed:
        return f"it has {there:,} tools, and max_listed is {settings.max_listed:,}"
    tokens = estimated_tokens(definitions)
    if tokens > settings.list_budget:
        return f"its definitions take about {tokens:,} tokens, and list_budget is {settings.list_budget:,}"
    return ""


def read_pinned(fields: Fields, name: str, _: Path) -> tuple[str, ...] | None:
    """Return the globs on ids; each one that could fit no tool is a fault."""
    if name not in fields:
        return None
    globs = fields.texts(name)
    for index, glob in enumerate(globs):
        if fault := glob_error(glob):
            where, problem = f"{fields.where(name)}[{index}]", f"{excerpt(glob)} is no glob on ids: {fault}"
            fields.faults.add(where, problem, "Write integration/tool, as github/create_*.")
    return globs
