"""The settings, one row each: how it is read, what a schema says of it, and what it is for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, get_args

from truename import dialects
from truename.config.checks import wrong
from truename.config.contexts import CONTEXT, CONTEXTS, read_context, read_contexts, read_protocol
from truename.config.fields import Fields
from truename.config.model import MEMORY, NamesMode, SearchMode
from truename.config.searching import read_pinned
from truename.errors import ConfigError, InvalidToolId, UnknownDialect, excerpt
from truename.identity import ToolId
from truename.naming import STYLES
from truename.policy import HINTS, Outcome, read_convention, read_metadata, read_policy
from truename.policy.conventions import CONVENTION
from truename.policy.gathering import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from truename.policy import Convention, Policy

__all__ = ["REFERENCE", "SETTINGS", "Setting"]

Reader = Callable[[Fields, str, Path], Any]
Schema = Mapping[str, Any]
# What holds a reference can be judged only when the reference is replaced.
REFERENCE: Final[Schema] = {"type": "string", "pattern": r"\$\{"}
_PLAIN: Final[Schema] = {"type": ["string", "number", "boolean"]}
_TEXT: Final[Schema] = {"type": "string"}
_SECONDS: Final[Schema] = {"type": "number", "exclusiveMinimum": 0}
_WHOLE: Final[Schema] = {"type": "integer", "minimum": 1}
_WORD: Final[Schema] = {"anyOf": [{"type": "string", "pattern": r"\S", "maxLength": 64}, REFERENCE]}
_TOKEN: Final[Schema] = {"anyOf": [{"type": "string", "pattern": "^[!-~]+$"}, REFERENCE]}
_ALIASES: Final[Schema] = {
    "type": "object",
    "additionalProperties": {"anyOf": [*_WORD["anyOf"], {"type": ["number", "boolean"]}]},
}
_OVERRIDES: Final[Schema] = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "propertyNames": {"pattern": "[/~%]"},
        "additionalProperties": _PLAIN,
    },
}
_TEXTS: Final[Schema] = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_RULE: Final[Mapping[str, Schema]] = {
    "name": _TEXT,
    "outcome": {"enum": list(get_args(Outcome))},
    "reason": _TEXT,
    "annotations": {
        "type": "object",
        "properties": {name: {"type": "boolean"} for name in HINTS},
        "additionalProperties": False,
    },
    **dict.fromkeys(
        ("tools", "except", "servers", "upstream", "principals", "agents", "clients", "platforms", "apps"), _TEXTS
    ),
}
_POLICY: Final[Schema] = {
    "type": "object",
    "properties": {
        "default": _RULE["outcome"],
        "rules": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": _RULE,
                "required": ["outcome"],
                "additionalProperties": False,
            },
        },
    },
    "additionalProperties": False,
}
_WORDS: Final[Schema] = {"type": ["array", "null"], "items": {"type": "string"}}
_METADATA: Final[Schema] = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "properties": {
            **{name: {"type": ["boolean", "null"]} for name in ("is_for_llm", "is_recordable")},
            **{name: {"type": ["string", "null"]} for name in ("app", "owner", "family")},
            "platforms": _WORDS,
            "parameter_platforms": {"type": ["object", "null"], "additionalProperties": {**_WORDS, "type": "array"}},
        },
        "additionalProperties": False,
    },
}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting: its reader notes faults and returns None for what can't be used."""

    read: Reader
    schema: Schema
    what: str


def _choice(names: Iterable[str]) -> Schema:
    return {"anyOf": [{"enum": sorted(names)}, REFERENCE]}


def _text(fields: Fields, name: str, _: Path) -> str | None:
    text = fields.text(name)
    if text is not None and name in {"server_name", "token"} and (found := wrong(name, text)):
        fields.faults.add(name, *found)
        return None
    return text


def _chosen(known: Iterable[str], what: str) -> Reader:
    known = tuple(known)

    def read(fields: Fields, name: str, _: Path) -> str | None:
        text = fields.text(name)
        if text is not None and text not in known:
            fields.faults.add(name, f"{excerpt(text)} is not {what}", nearest(text, known))
            return None
        return text

    return read


def _path(fields: Fields, name: str, base: Path) -> str | None:
    text = fields.text(name)
    return text if text is None or (name == "ledger" and text == MEMORY) else str(base / Path(text).expanduser())


def _seconds(fields: Fields, name: str, _: Path) -> float | None:
    return fields.number(name)


def _whole(fields: Fields, name: str, _: Path) -> int | None:
    return fields.whole(name)


def _truth(fields: Fields, name: str, _: Path) -> bool | None:
    return fields.truth(name) if name in fields else None


def _aliases(fields: Fields, name: str, _: Path) -> Mapping[str, str] | None:
    if name not in fields:
        return None
    aliases = fields.pairs(name)
    for integration, alias in aliases.items():
        if found := wrong(name, alias):
            fields.faults.add(f"{name}.{excerpt(integration)[1:-1]}", *found)
    return MappingProxyType(aliases)


def _overrides(fields: Fields, name: str, _: Path) -> Mapping[str, Mapping[str, str]] | None:
    declared = fields.nested(name, "an object: dialect -> tool id -> name")
    if declared is None:
        return None
    for dialect in declared:
        _check_override(dialect, declared)
    return MappingProxyType({dialect: MappingProxyType(declared.pairs(dialect)) for dialect in declared})


def _policy(fields: Fields, name: str, _: Path) -> Policy | None:
    # A policy of null is one that can't be read, and not none: without one, every call is allowed.
    if name not in tuple(fields):
        return None
    try:
        return read_policy(fields.raw(name))
    except (ConfigError, ExceptionGroup) as error:
        fields.faults.adopt(error)
        return None


def _metadata(fields: Fields, name: str, _: Path) -> Mapping[str, Mapping[str, Any]] | None:
    # Metadata of null is some that can't be read, and not none: what it should hide would be shown.
    if name not in tuple(fields):
        return None
    try:
        return read_metadata(fields.raw(name))
    except (ConfigError, ExceptionGroup) as error:
        fields.faults.adopt(error)
        return None


def _convention(fields: Fields, name: str, _: Path) -> Convention | None:
    if name not in tuple(fields):
        return None
    try:
        return read_convention(fields.raw(name))
    except (ConfigError, ExceptionGroup) as error:
        fields.faults.adopt(error)
        return None


def _check_override(dialect: str, fields: Fields) -> None:
    try:
        dialects.get(dialect)
        for id in fields.pairs(dialect):
            ToolId.parse(id)
    except UnknownDialect as error:
        problem, _, remedy = str(error).rpartition(". ")
        fields.faults.add(fields.where(dialect), problem, remedy)
    except InvalidToolId as error:
        problem = f"{excerpt(error.text)} is not a tool id: {error.reason}"
        fields.faults.add(fields.where(dialect), problem, "Write integration@version/suite.tool@version.")


def _setting(read: Reader, schema: Schema, what: str) -> Setting:
    return Setting(read=read, schema=schema, what=what)


SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType(
    {
        "env_file": _setting(
            _path, _TEXT, "A file of KEY=VALUE lines for ${KEY} references; the environment goes before it."
        ),
        "server_name": _setting(_text, _WORD, "The key under which clients know the gateway; short ones leave room."),
        "style": _setting(_chosen(STYLES, "a style"), _choice(STYLES), "How names are made; else as remembered."),
        "names": _setting(
            _chosen(get_args(NamesMode), "a choice"),
            _choice(get_args(NamesMode)),
            "Which names /mcp has: universal for all, by the client detected, or canonical.",
        ),
        "names_in_texts": _setting(
            _truth, {"type": "boolean"}, "Whether descriptions, prompts and errors mention tools by the shown names."
        ),
        "aliases": _setting(_aliases, _ALIASES, "Short names of integrations: salesforce = sf."),
        "ledger": _setting(_path, _TEXT, "The file that remembers names, or memory."),
        "token": _setting(_text, _TOKEN, "What HTTP clients must send as a bearer token; best a reference."),
        "call_timeout": _setting(_seconds, _SECONDS, "Seconds that one call may take."),
        "startup_timeout": _setting(_seconds, _SECONDS, "Seconds that a server may take to start."),
        "answer_timeout": _setting(_seconds, _SECONDS, "Seconds that a client may take for what a server asks it."),
        "max_rounds": _setting(_whole, _WHOLE, "How often a server may ask the client in one call."),
        "max_concurrent": _setting(_whole, _WHOLE, "The most calls that run at one server at a time."),
        "max_waiting": _setting(_whole, _WHOLE, "The most calls that wait for a place at one server."),
        "breaker_failures": _setting(_whole, _WHOLE, "After how many failures in a row a server is left alone."),
        "breaker_seconds": _setting(_seconds, _SECONDS, "How long at most it is left alone."),
        "max_isolated": _setting(_whole, _WHOLE, "The most connections to one server that sessions have of their own."),
        "max_held": _setting(_whole, _WHOLE, "The most calls that wait for answers of clients that call again."),
        "drain_timeout": _setting(_seconds, _SECONDS, "Seconds that calls may take to end when the gateway is to end."),
        "max_body": _setting(_whole, _WHOLE, "Bytes of the longest request."),
        "max_result": _setting(_whole, _WHOLE, "Bytes of the longest answer of a server."),
        "max_tools": _setting(_whole, _WHOLE, "The most tools that one server may list."),
        "max_sessions": _setting(_whole, _WHOLE, "The most sessions at a time."),
        "max_claims": _setting(_whole, _WHOLE, "The most names that one server may hold in the ledger."),
        "policy": _setting(_policy, _POLICY, "Which calls are allowed, asked about or denied."),
        "metadata": _setting(
            _metadata, _METADATA, "For whom tools are, by id or glob: goes before what their authors say."
        ),
        "convention": _setting(
            _convention, CONVENTION, "What names have to be, and what they tell: see truename lint."
        ),
        "context": _setting(read_context, CONTEXT, "Where sessions run that say nothing: platform, app, origin."),
        "contexts": _setting(read_contexts, CONTEXTS, "Named contexts, for /mcp/in/NAME and --context NAME."),
        "tool_search": _setting(
            _chosen(get_args(SearchMode), "a choice"),
            _choice(get_args(SearchMode)),
            "Whether tools are searched and only pinned ones listed: auto (where there are too many), on, off.",
        ),
        "max_listed": _setting(_whole, _WHOLE, "The most tools that a list has before they are searched instead."),
        "list_budget": _setting(_whole, _WHOLE, "About how many tokens the listed definitions may take before that."),
        "pinned": _setting(read_pinned, _TEXTS, "Globs on ids: the tools that are listed where others are searched."),
        "protocol": _setting(read_protocol, _TEXT, "The version of the names: a rename counts it up, as 0.2 to 0.3."),
        "recording": _setting(_path, _TEXT, "A file to which the calls of recordable tools are written."),
        "overrides": _setting(_overrides, _OVERRIDES, "Declared names: dialect, tool id, name."),
    }
)
