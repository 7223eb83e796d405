"""The profiles of a configuration: the tables ``[profiles.NAME]``, read strictly, for a word may be what hides."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from truename.catalog.globs import fault_in
from truename.config.rows import TRUTH, Row, read_row_table, row_schema
from truename.config.tables import TEXTS
from truename.errors import excerpt, spelling_remedy
from truename.policy import HINTS
from truename.policy.principal import WRITTEN, principal_fault
from truename.policy.profiles import Profile, Profiles

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from truename.config.fields import Fields

__all__ = ["PROFILES", "read_profiles"]

# A profile's name stands in a path.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MOST: Final = 1_000
_WHAT: Final = ("tools", "servers", "annotations", "families", "owners", "prompts", "resources")
_WHOM: Final = ("groups", "scopes", "principals", "everyone", "default")


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
        if fault := fault_in(glob):
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


_HINTED: Final = {
    "type": "object",
    "properties": {name: {"type": "boolean"} for name in HINTS},
    "additionalProperties": False,
}
_NONE_TOO: Final = {"type": "array", "items": {"type": "string"}}
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
