"""The tables that decide who sees and may call what: policy, metadata, tools, contexts and profiles.

Their classes belong to `truename.policy`; here are their keys, schemas and readers in a configuration.
"""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, get_args

from truename.catalog.globs import glob_error
from truename.config.field_types import (
    BOOLEAN,
    TEXT,
    checked_by,
    choice,
    named_tables,
    read_elsewhere,
    read_named,
)
from truename.config.fields import FieldType, Setting, plain_table, read_table, table_schema
from truename.errors import ConfigError, excerpt, spelling_remedy
from truename.policy import HINTS, Context, Outcome, plain_policy, read_metadata, read_policy
from truename.policy.call import ORIGINS
from truename.policy.presentation import LONGEST_DESCRIPTION, LONGEST_TITLE, Presentation
from truename.policy.principal import WRITTEN, principal_error
from truename.policy.profiles import Profile, Profiles
from truename.policy.rules import TERMS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from truename.config.fields import Fields, Schema

__all__ = ["CONTEXT", "CONTEXTS", "METADATA", "POLICY", "PROFILES", "TOOLS"]

_MOST: Final = 1_000
_WHAT: Final = ("tools", "servers", "annotations", "families", "owners", "prompts", "resources")
_WHOM: Final = ("groups", "scopes", "principals", "everyone", "default")
_TEXT: Final[Schema] = {"type": "string"}
_TEXTS: Final[Schema] = {"type": "array", "items": {"type": "string"}}
_SOME_TEXTS: Final[Schema] = {**_TEXTS, "minItems": 1}
_HINTS: Final[Schema] = {
    "type": "object",
    "properties": {name: {"type": "boolean"} for name in HINTS},
    "additionalProperties": False,
}


def _plain(value: Any) -> dict[str, Any]:
    return dict(sorted(value.items()))


def _about(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description}


# -- policy

_KINDS: Final[Mapping[str, Schema]] = {
    "text": _TEXT,
    "texts": _SOME_TEXTS,
    "outcome": {"enum": list(get_args(Outcome))},
    "annotations": _HINTS,
}
_RULE: Final = {about.key or term: _about(_KINDS[about.kind], about.meaning) for term, about in TERMS.items()}
POLICY: Final = FieldType(
    name="table",
    read=partial(read_elsewhere, read_policy),
    schema={
        "type": "object",
        "properties": {
            "default": _about(
                _RULE["outcome"],
                "How a call is handled to which no rule applies; without it allow, or ask if a rule allows.",
            ),
            "rules": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": _RULE,
                    "required": ["outcome"],
                    "additionalProperties": False,
                },
                "description": "Rules; of those that apply the strictest decides.",
            },
        },
        "additionalProperties": False,
    },
    plain=plain_policy,
)

# -- metadata and presentation, by tool id or glob

_WORDS: Final[Schema] = {"type": ["array", "null"], "items": {"type": "string"}}
METADATA: Final = FieldType(
    name="tables by tool id or glob",
    read=partial(read_elsewhere, read_metadata),
    schema={
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "properties": {
                "is_for_llm": _about({"type": ["boolean", "null"]}, "Whether models may see and call the tool."),
                "is_recordable": _about({"type": ["boolean", "null"]}, "Whether calls of the tool may be recorded."),
                "app": _about({"type": ["string", "null"]}, "App in whose contexts alone the tool is shown."),
                "owner": _about({"type": ["string", "null"]}, "Team that owns the tool."),
                "family": _about({"type": ["string", "null"]}, "Family of the tool."),
                "platforms": _about(_WORDS, "Platforms in whose contexts alone the tool is shown."),
                "parameter_platforms": {
                    "type": ["object", "null"],
                    "additionalProperties": {**_WORDS, "type": "array"},
                    "description": "Platforms in whose contexts alone a parameter is shown, by its name.",
                },
            },
            "additionalProperties": False,
        },
    },
    plain=_plain,
)
_TITLE: Final = {"type": ["string", "null"], "pattern": r"\S", "maxLength": LONGEST_TITLE}
TOOLS: Final = FieldType(
    name="tables by tool id or glob",
    # Texts are taken as they stand: if ${NAME} was a reference here, a client could be shown a secret.
    read=partial(read_elsewhere, Presentation.read),
    schema={
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "properties": {
                "title": _about(_TITLE, "Title that clients are shown."),
                "description": _about(
                    {**_TITLE, "maxLength": LONGEST_DESCRIPTION}, "Description that clients are shown."
                ),
                "annotations": {
                    "type": ["object", "null"],
                    "properties": {**{name: {"type": ["boolean", "null"]} for name in HINTS}, "title": _TITLE},
                    "additionalProperties": False,
                    "description": "Annotations that clients are shown.",
                },
            },
            "additionalProperties": False,
        },
    },
    plain=lambda tools: _plain(tools.table),
)

# -- contexts

_CONTEXT: Final[Mapping[str, Setting]] = MappingProxyType(
    {
        "platform": Setting(
            type=TEXT, meaning="Platform on which the client runs, as ios.", default=Context.platform, live=True
        ),
        "app": Setting(type=TEXT, meaning="App for which it works.", default=Context.app, live=True),
        "origin": Setting(
            type=checked_by(TEXT.read, choice(ORIGINS)),
            meaning="Who makes its calls: a model, a recording that is replayed, or a step of a program.",
            default=Context.origin,
            live=True,
        ),
    }
)


def _context(_: str, table: Fields, found: dict[str, Any]) -> Context | None:
    try:
        return Context(**found)
    except ConfigError as error:
        table.add(error.key, error.problem, error.remedy)
        return None


def _read_context(fields: Fields, name: str) -> Context | None:
    table = fields.table(name)
    if table is None:
        return None
    before = len(table.errors)
    found = read_table(table, _CONTEXT)
    return _context(name, table, found) if len(table.errors) == before else None


CONTEXT: Final = FieldType(
    name="table",
    read=_read_context,
    schema=table_schema(_CONTEXT),
    plain=partial(plain_table, rows=_CONTEXT),
    rows=_CONTEXT,
)
CONTEXTS: Final = named_tables(_CONTEXT, _context)

# -- profiles


def _some_texts(fields: Fields, name: str) -> tuple[str, ...] | None:
    found = fields.texts(name)
    if not fields.is_list(name):
        return None
    if not found or len(found) > _MOST or not all(text.strip() for text in found):
        fields.add(name, f"it does not have 1 to {_MOST:,} texts", "Leave it out, or name some.")
        return None
    return found


def _servers(fields: Fields, name: str) -> tuple[str, ...] | None:
    # An empty list means none; without a list those of `servers` are meant.
    return () if fields.raw(name) == [] else _some_texts(fields, name)


def _globs(check: Callable[[str], str | None], problem: str, remedy: str, fields: Fields, name: str) -> object:
    globs = _some_texts(fields, name)
    for index, glob in enumerate(globs or ()):
        if error := check(glob):
            fields.add(f"{name}[{index}]", f"{excerpt(glob)}{problem}: {error}", remedy)
    return globs


def _hints(fields: Fields, name: str) -> Mapping[str, bool] | None:
    table = fields.nested(name, "an object: readOnlyHint -> true")
    if table is None:
        return None
    for word in table:
        if word not in HINTS:
            table.add(excerpt(word)[1:-1], "it is not an annotation", spelling_remedy(word, HINTS))
    return MappingProxyType({word: table.truth(word) for word in HINTS if word in table})


_SOME: Final = FieldType(name="list of texts", read=_some_texts, schema=_SOME_TEXTS)
_SERVERS: Final = FieldType(name="list of texts", read=_servers, schema=_TEXTS)
_IDS: Final = checked_by(
    partial(_globs, glob_error, " is not a glob on tool ids", "Write integration/tool, as github/create_*."), _SOME
)
_PRINCIPALS: Final = checked_by(partial(_globs, principal_error, "", WRITTEN), _SOME)
_PROFILE: Final[Mapping[str, Setting]] = MappingProxyType(
    {
        name: Setting(type=kind, meaning=meaning, default=default, live=True, attribute=attribute)
        for name, kind, meaning, default, attribute in (
            ("tools", _IDS, "Globs on tool ids: tools of the profile.", (), ""),
            ("servers", _SOME, "Globs on keys of servers, whose tools are all of the profile.", (), ""),
            ("except", _IDS, "Globs on tool ids: tools that the profile does not have.", (), "excluded"),
            (
                "annotations",
                FieldType(name="table: annotation -> true or false", read=_hints, schema=_HINTS, plain=dict),
                "Only tools with these annotations.",
                MappingProxyType({}),
                "",
            ),
            ("families", _SOME, "Only tools of these families (metadata).", (), ""),
            ("owners", _SOME, "Only tools of these owners (metadata).", (), ""),
            ("prompts", _SERVERS, "Globs on keys of servers whose prompts are shown; else as servers.", None, ""),
            ("resources", _SERVERS, "Globs on keys of servers whose resources are shown; else as servers.", None, ""),
            ("groups", _SOME, "Callers in one of these groups have the profile.", (), ""),
            ("scopes", _SOME, "Callers whose token has one of these scopes have the profile.", (), ""),
            ("principals", _PRINCIPALS, "Globs on principals that have the profile.", (), ""),
            ("everyone", BOOLEAN, "Whether every caller has the profile.", False, ""),
            ("default", BOOLEAN, "Whether callers without another profile have the profile.", False, ""),
        )
    }
)


def _profile(_: str, table: Fields) -> Profile | None:
    before = len(table.errors)
    found = read_table(table, _PROFILE)
    written = {"except" if key == "excluded" else key: value for key, value in found.items()}
    if not any(written.get(key) for key in _WHAT):
        table.errors.add(table.place, "it shows nothing", 'Add its tools; tools = ["*"] shows all of them.')
    if not any(written.get(key) for key in _WHOM):
        table.errors.add(table.place, "nobody has it", f"Add at least one of: {', '.join(_WHOM)}.")
    return Profile(**found) if len(table.errors) == before else None


def _read_profiles(fields: Fields, name: str) -> Profiles | None:
    before = len(fields.errors)
    found = read_named(fields, name, _profile)
    if found is None or len(fields.errors) != before:
        return None
    if not found:
        fields.add(name, "it has no profile", "Leave it out, or write [profiles.NAME].")
        return None
    return Profiles(found)


_TABLES: Final = named_tables(_PROFILE, lambda *_: None)
PROFILES: Final = FieldType(
    name=_TABLES.name,
    read=_read_profiles,
    schema=_TABLES.schema,
    plain=_TABLES.plain,
    rows=_PROFILE,
    key=_TABLES.key,
)
