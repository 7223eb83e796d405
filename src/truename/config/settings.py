"""The settings, one row each: its reader, its schema and its sentence of documentation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, get_args

from truename import dialects
from truename.config.access import ACCESS, read_access
from truename.config.approvals import APPROVALS, read_approvals
from truename.config.audit import AUDIT, read_audit
from truename.config.fields import METADATA, POLICY, TEXTS, Fields
from truename.config.model import MEMORY, NamesMode, ReloadMode, SearchMode, StartMode
from truename.config.telemetry import TELEMETRY, read_telemetry
from truename.config.trust import TRUST, read_trust
from truename.config.visibility import (
    CONTEXT,
    CONTEXTS,
    PROFILES,
    TOOLS,
    read_context,
    read_contexts,
    read_pinned,
    read_profiles,
    read_protocol,
    read_tools,
)
from truename.conventions import read_convention
from truename.conventions.convention import CONVENTION
from truename.errors import ConfigError, ConfigErrors, InvalidToolId, UnknownDialect, excerpt, spelling_remedy
from truename.files.user import at_home
from truename.identity import ToolId
from truename.naming import STYLES
from truename.policy import read_metadata, read_policy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from truename.config.model import Config
    from truename.conventions import Convention
    from truename.policy import Policy

__all__ = ["REFERENCE", "SETTINGS", "verify", "wrong"]

_LONGEST: Final = 64
Reader = Callable[[Fields, str, Path], Any]
Schema = Mapping[str, Any]
# What holds a reference can be judged only when the reference is replaced.
REFERENCE: Final[Schema] = {"type": "string", "pattern": r"\$\{"}
_PLAIN: Final[Schema] = {"type": ["string", "number", "boolean"]}
_TEXT: Final[Schema] = {"type": "string"}
_SECONDS: Final[Schema] = {"type": "number", "exclusiveMinimum": 0}
_WHOLE: Final[Schema] = {"type": "integer", "minimum": 1}
_PERCENT: Final[Schema] = {"type": "integer", "minimum": 1, "maximum": 100}
_FROM_NOUGHT: Final[Mapping[str, Schema]] = {kind: {"type": kind, "minimum": 0} for kind in ("number", "integer")}
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


def wrong(setting: str, text: str) -> tuple[str, str] | None:
    """Say what is wrong with a text for this setting and what to do, or None.

    >>> wrong("token", "a b")
    ("it can't be sent as a bearer token", 'Use printable ASCII without spaces.')
    """
    if setting == "token":
        good = text and text.isascii() and text.isprintable() and " " not in text
        return None if good else ("it can't be sent as a bearer token", "Use printable ASCII without spaces.")
    if text.strip() and text.isprintable() and len(text) <= _LONGEST:
        return None
    what = "a server's name" if setting == "server_name" else "an alias"
    return f"{excerpt(text)} can't be {what}", "Write a short word."


def verify(config: Config) -> None:
    """Raise `ConfigError`, or a group of them, for settings that options made what no file may have."""
    settings = config.settings
    faults = ConfigErrors(str(config.path or "settings"))
    given = [("server_name", "server_name", settings.server_name)]
    given += [("aliases", f"aliases.{excerpt(key)[1:-1]}", alias) for key, alias in (settings.aliases or {}).items()]
    if settings.token is not None:
        given.append(("token", "token", settings.token))
    for setting, where, text in given:
        if found := wrong(setting, text):
            faults.add(where, *found)
    faults.raise_any()


def read_networks(fields: Fields, name: str, _: Path) -> tuple[str, ...] | None:
    """Return the networks, written in one way; each text that is none is a fault."""
    if name not in fields:
        return None
    found: list[str] = []
    for index, text in enumerate(fields.texts(name)):
        try:
            found.append(str(ip_network(text.strip())))
        except ValueError:
            where, problem = f"{fields.where(name)}[{index}]", f"{excerpt(text)} is no network"
            fields.faults.add(where, problem, "Write it as 10.1.0.0/16, without bits behind its length.")
    return tuple(found)


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
            fields.faults.add(name, f"{excerpt(text)} is not {what}", spelling_remedy(text, known))
            return None
        return text

    return read


def _path(fields: Fields, name: str, base: Path) -> str | None:
    text = fields.text(name)
    return text if text is None or (name == "state" and text == MEMORY) else str(base / at_home(text))


def _seconds(fields: Fields, name: str, _: Path) -> float | None:
    return fields.number(name)


def _whole(fields: Fields, name: str, _: Path) -> int | None:
    return fields.whole(name)


def _seconds_or_never(fields: Fields, name: str, _: Path) -> float | None:
    return fields.number(name, least=0, inclusive=True)


def _percent(fields: Fields, name: str, _: Path) -> int | None:
    return fields.whole(name, most=100)


def _whole_or_none(fields: Fields, name: str, _: Path) -> int | None:
    return fields.whole(name, least=0)


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
        "env_file": _setting(_path, _TEXT, "A file of KEY=VALUE lines for ${KEY}; the environment goes before it."),
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
        "state": _setting(_path, _TEXT, "The database of names, pins, approvals, tokens and sign-ins, or memory."),
        "token": _setting(_text, _TOKEN, "What HTTP clients must send as a bearer token; best a reference."),
        "access": _setting(read_access, ACCESS, "Who may come in: static tokens, OAuth, sign-in."),
        "trust": _setting(read_trust, TRUST, "What is done about definitions that are new or have changed."),
        "profiles": _setting(read_profiles, PROFILES, "Which tools, prompts and resources there are for whom."),
        "audit": _setting(read_audit, AUDIT, "The journal of calls and decisions."),
        "telemetry": _setting(read_telemetry, TELEMETRY, "Metrics and traces."),
        "approvals": _setting(read_approvals, APPROVALS, "Who decides on calls that the policy asks about."),
        "call_timeout": _setting(_seconds, _SECONDS, "Seconds that one call may take."),
        "startup_timeout": _setting(_seconds, _SECONDS, "Seconds that a server may take to start."),
        "answer_timeout": _setting(_seconds, _SECONDS, "Seconds that a client may take for what a server asks it."),
        "max_rounds": _setting(_whole, _WHOLE, "How often a server may ask the client in one call."),
        "max_concurrent": _setting(_whole, _WHOLE, "The most calls that run at one server at a time."),
        "max_waiting": _setting(_whole, _WHOLE, "The most calls that wait for a place at one server."),
        "breaker_failures": _setting(_whole, _WHOLE, "After how many failures in a row a server is left alone."),
        "breaker_seconds": _setting(_seconds, _SECONDS, "How long at most it is left alone."),
        "max_isolated": _setting(_whole, _WHOLE, "The most connections to a server that sessions or users have alone."),
        "isolation_idle": _setting(_seconds, _SECONDS, "Seconds without a request after which such a connection ends."),
        "max_held": _setting(_whole, _WHOLE, "The most calls that wait for answers of clients that call again."),
        "max_held_bytes": _setting(_whole, _WHOLE, "Bytes of calls, questions and answers that wait for such clients."),
        "max_tasks": _setting(_whole, _WHOLE, "The most tasks of servers that clients can ask for."),
        "drain_timeout": _setting(_seconds, _SECONDS, "Seconds that calls may take to end when the gateway is to end."),
        "reload": _setting(
            _chosen(get_args(ReloadMode), "a choice"),
            _choice(get_args(ReloadMode)),
            "When serve reads its files anew: watch (when they change, and at SIGHUP), signal (at SIGHUP), off.",
        ),
        "start": _setting(
            _chosen(get_args(StartMode), "a choice"),
            _choice(get_args(StartMode)),
            "When servers are started: eager (with the gateway), lazy (at the first request to them).",
        ),
        "idle_timeout": _setting(
            _seconds_or_never, _FROM_NOUGHT["number"], "Seconds without a request after which a lazy server is ended."
        ),
        "server_instructions": _setting(
            _whole_or_none, _FROM_NOUGHT["integer"], "The most characters of one server's instructions that are shown."
        ),
        "max_instructions": _setting(
            _whole_or_none, _FROM_NOUGHT["integer"], "The most characters of all servers' instructions together."
        ),
        "max_body": _setting(_whole, _WHOLE, "Bytes of the longest request."),
        "max_result": _setting(_whole, _WHOLE, "Bytes of the longest answer of a server."),
        "max_tools": _setting(_whole, _WHOLE, "The most tools that one server may list."),
        "max_sessions": _setting(_whole, _WHOLE, "The most sessions at a time."),
        "session_timeout": _setting(_seconds, _SECONDS, "Seconds without a request after which a session ends."),
        "resume_events": _setting(
            _whole, _WHOLE, "The most messages of one session that are kept for a client whose stream breaks off."
        ),
        "resume_bytes": _setting(_whole, _WHOLE, "Bytes of those messages of one session."),
        "resume_total": _setting(_whole, _WHOLE, "Bytes of those messages of all sessions."),
        "max_requests": _setting(_whole, _WHOLE, "The most requests that one client over stdio has open at a time."),
        "max_incoming": _setting(_whole, _WHOLE, "Bytes of all requests over HTTP that are answered at a time."),
        "max_depth": _setting(_whole, _WHOLE, "How many objects and lists of a request may stand in one another."),
        "max_unread": _setting(_whole, _WHOLE, "Bytes of answers over HTTP that clients have not read yet."),
        "principal_share": _setting(_percent, _PERCENT, "Percent of sessions, connections, bytes for one principal."),
        "reserved_share": _setting(_percent, _PERCENT, "Percent of them that is for principals who have none yet."),
        "max_entries": _setting(_whole, _WHOLE, "The most keys and items that one request has."),
        "max_views": _setting(_whole, _WHOLE, "The most lists, and paths without a client, that are kept ready."),
        "max_claims": _setting(_whole, _WHOLE, "The most names that one server may hold in the ledger."),
        "policy": _setting(_policy, POLICY, "Which calls are allowed, asked about or denied."),
        "metadata": _setting(
            _metadata, METADATA, "For whom tools are, by id or glob: goes before what their authors say."
        ),
        "tools": _setting(
            read_tools, TOOLS, "What clients are shown of tools, by id or glob: goes before what their servers say."
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
        "pinned": _setting(read_pinned, TEXTS, "Globs on ids: the tools that are listed where others are searched."),
        "allow_addresses": _setting(
            read_networks, TEXTS, "Networks that are gone to whatever they are, also near and link-local ones."
        ),
        "protocol": _setting(read_protocol, _TEXT, "The version of the names: a rename counts it up, as 0.2 to 0.3."),
        "recording": _setting(_path, _TEXT, "A file to which the calls of recordable tools are written."),
        "overrides": _setting(_overrides, _OVERRIDES, "Declared names: dialect, tool id, name."),
    }
)
