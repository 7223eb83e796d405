"""The entries of ``mcpServers``: servers over stdio (``command``) or HTTP (``url``), and the keys they may have."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeGuard, get_args
from urllib.parse import urlsplit

from truename.catalog import UNDECLARED, ServerIdentity, integration_error
from truename.config.credentials import AUTH, Auth, Login, TokenExchange, plain_auth, read_auth
from truename.config.field_types import (
    COUNT,
    PATH,
    REFERENCE,
    SECONDS_OR_ZERO,
    TEXT,
    TEXTS,
    choice,
    each,
)
from truename.config.fields import EMPTY, Fields, FieldType, Setting, plain_table, read_table, rows_of, setting
from truename.config.settings import StartMode
from truename.errors import excerpt, spelling_remedy
from truename.policy.registry_names import REGISTRY_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from truename.config.interpolate import Sources, UnsetReference
    from truename.errors import ConfigErrors

__all__ = [
    "KNOWN",
    "MAX_KEY",
    "SERVER",
    "STANDINS",
    "ServerConfig",
    "about_keys",
    "identity_within",
    "misspelt",
    "plain_server",
    "read_servers",
    "strange",
]

Isolation = Literal["shared", "session", "user"]
Instances = Literal["gateway", "worker", "single"]
Transport = Literal["stdio", "http", "sse"]
# Keys that clients write into an entry, from their documents and sources; Truename needs none of them.
OF_CLIENTS: Final = frozenset(
    {
        *("alwaysAllow", "autoApprove", "available_tools", "disabledAutoApproveTools", "disabledTools"),
        *("disabled_tools", "enabled_tools", "excludeTools", "includeTools", "tools", "toolFilter", "trust"),
        *("name", "title", "display_name", "description", "icon", "iconUrl", "logoUrl", "tags", "key", "id", "gallery"),
        *("cmd", "uri", "baseUrl", "working_directory", "isActive", "bundled", "source", "settings", "dev", "sandbox"),
        *("environment", "env_vars", "envs", "env_keys", "envFile", "inputs", "apiKey", "requestOptions"),
        *("http_headers", "env_http_headers", "bearer_token_env_var", "headersHelper", "requiresOAuth"),
        *("oauth", "oauth_client_id", "oauth_resource", "scopes", "authProviderType", "targetAudience"),
        *("targetServiceAccount", "startup_timeout_sec", "startup_timeout_ms", "tool_timeout_sec", "toolTimeoutMs"),
        *("initTimeout", "networkTimeout", "longRunning", "required", "supports_parallel_tool_calls", "alwaysLoad"),
        *("default_tools_approval_mode", "serverInstructions", "chatMenu", "provider", "providerUrl", "registryUrl"),
        *("note", "notes", "comment", "comments", "metadata", "_meta"),
    }
)
_COMMENTS: Final = ("_", "$", "/", "#", "x-")
_LONGEST: Final = 64
# Of short words, many are alike by chance.
_LIKE: Final = 0.75
TYPES: Final[Mapping[str, Transport]] = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamablehttp": "http",
    "remote": "http",
    "sse": "sse",
}
# Gemini CLI writes httpUrl, Windsurf serverUrl.
URLS: Final = ("url", "httpUrl", "serverUrl")
MAX_KEY: Final = 1024
# The largest that the grammar of ids has room for.
MAX_VERSION: Final = 10**18 - 1
# Some clients write a server's timeout in seconds (Cline, Roo), others in milliseconds (Gemini CLI, Claude Code).
LONGEST_IN_SECONDS: Final = 3600
_HOST: Final = re.compile(
    r"(\[[0-9A-Fa-f:.]{2,45}\]|[0-9A-Za-z]([0-9A-Za-z_.-]{0,251}[0-9A-Za-z])?)(:[1-9][0-9]{0,4})?"
)
# What a variable may turn out to be: a word or a whole address.
STANDINS: Final = ("1", "https://a.invalid/")
# A text that can only be meant as the version of an integration.
_NUMBER: Final = re.compile(r"@?v?([0-9]+)")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_PLAIN: Final = {"type": ["string", "number", "boolean"]}
_VERSION: Final = {"type": "integer", "minimum": 1, "maximum": MAX_VERSION}


def _read_command(fields: Fields, name: str) -> str | None:
    if fields.is_list(name):
        remedy = 'Write the program as "command" and the rest as "args": [...].'
        fields.add(name, "it is a list, not a text", remedy)
        return None
    return fields.text(name)


def _read_headers(fields: Fields, name: str) -> Mapping[str, str]:
    headers = fields.pairs(name)
    for header, value in headers.items():
        if not _HEADER_NAME.fullmatch(header) or not (value.isprintable() and value.isascii()):
            # The value is not shown: it is a secret more often than not.
            fields.add(f"{name}.{excerpt(header)}", "it is not a legal HTTP header", "Use printable ASCII only.")
    return MappingProxyType(headers)


def _read_timeout(fields: Fields, name: str) -> float | None:
    timeout = fields.number(name)
    return timeout if timeout is None or timeout <= LONGEST_IN_SECONDS else timeout / 1000


def _read_tool_timeouts(fields: Fields, name: str) -> Mapping[str, float]:
    given = fields.nested(name, "an object: tool -> seconds")
    found = {} if given is None else {tool: given.number(tool) for tool in given}
    return MappingProxyType({tool: seconds for tool, seconds in found.items() if seconds is not None})


def _read_hosts(fields: Fields, name: str) -> tuple[str, ...]:
    hosts = each(_HOST, "a host, as in files.example or files.example:8443").read(fields, name)
    return tuple(host.lower() for host in hosts or ())


def _read_integration(fields: Fields, name: str) -> str | None:
    integration = fields.text(name)
    if integration is not None and (fault := integration_error(integration)):
        fields.add(name, f"{excerpt(integration)}: {fault}", "Choose another.")
        return None
    return integration


def _read_version(fields: Fields, name: str) -> int | None:
    given = fields.raw(name)
    if not isinstance(given, str):
        return fields.whole(name, most=MAX_VERSION)
    # Another text is a package's own version, which some clients note there.
    if (meant := _NUMBER.fullmatch(given)) is not None:
        fields.add(name, f"{excerpt(given)} is a text", f"Write {meant[1]}, without quotes.")
    return None


def _read_versions(fields: Fields, name: str) -> Mapping[str, int]:
    given = fields.nested(name, "an object: tool -> version")
    found = {} if given is None else {tool: given.whole(tool, most=MAX_VERSION) for tool in given}
    return MappingProxyType({tool: version for tool, version in found.items() if version is not None})


def _any_case(word: str) -> str:
    return "".join(f"[{letter.upper()}{letter}]" if letter.isalpha() else letter for letter in word)


_COMMAND: Final = FieldType(name="text", read=_read_command, schema={"type": "string", "pattern": r"\S"})


def _read_registry_name(fields: Fields, name: str) -> str | None:
    found = fields.text(name)
    if found is not None and not REGISTRY_NAME.fullmatch(found):
        fields.add(name, f"{excerpt(found)} is not a name of the MCP registry", "Write it as io.github.owner/server.")
        return None
    return found


_REGISTRY: Final = FieldType(name="name in the MCP registry", read=_read_registry_name, schema=TEXT.schema)
_ARGUMENTS: Final = FieldType(name="list of texts", read=TEXTS.read, schema={"type": "array", "items": _PLAIN})
_ENV: Final = FieldType(
    name="table: variable -> text",
    read=lambda fields, name: MappingProxyType(fields.pairs(name)),
    schema={"type": "object", "additionalProperties": {"type": [*_PLAIN["type"], "null"]}},
    plain=dict,
)
_HEADERS: Final = FieldType(
    name="table: header -> text",
    read=_read_headers,
    schema={
        "type": "object",
        "propertyNames": {"pattern": f"^{_HEADER_NAME.pattern}$"},
        "additionalProperties": _PLAIN,
    },
    plain=dict,
)
_URL: Final = FieldType(
    name="HTTP address",
    read=TEXT.read,
    schema={"anyOf": [{"type": "string", "pattern": r"^[Hh][Tt][Tt][Pp][Ss]?://[^/\s]\S*$"}, REFERENCE]},
)
# Clients write transports in any case; editors offer the first form.
_TRANSPORT: Final = FieldType(
    name="`stdio`, `http` or `sse`",
    read=TEXT.read,
    schema={
        "anyOf": [
            {"enum": sorted(set(TYPES.values()))},
            {"type": "string", "pattern": f"^(?:{'|'.join(map(_any_case, TYPES))})$"},
            REFERENCE,
        ]
    },
)
_TIMEOUT: Final = FieldType(
    name="number above 0",
    read=_read_timeout,
    schema={"type": "number", "exclusiveMinimum": 0},
    plain=lambda seconds: seconds if seconds <= LONGEST_IN_SECONDS else seconds * 1000,
)
_TOOL_TIMEOUTS: Final = FieldType(
    name="table: tool or glob -> seconds",
    read=_read_tool_timeouts,
    schema={"type": "object", "additionalProperties": {"type": "number", "exclusiveMinimum": 0}},
    plain=dict,
)
_AUTH: Final = FieldType(name="table", read=lambda _, __: None, schema=AUTH, plain=plain_auth)
_SWITCH: Final = FieldType(
    name="true or false", read=lambda fields, name: fields.truth(name), schema={"type": "boolean"}
)


@dataclass(frozen=True, kw_only=True)
class ServerConfig:
    """One upstream server: ``command`` (stdio) or ``url`` (HTTP), never both.

    ``identity`` is what the entry declares of the ids of its tools. A server with ``unset`` references cannot be
    started: they have no value now.
    """

    key: str
    disabled: bool = setting(
        False, _SWITCH, "Whether the server is switched off; then the entry is not read.", live=True
    )
    command: str | None = setting(
        None, _COMMAND, "Program to start: a server over standard input and output.", live=True
    )
    args: tuple[str, ...] = setting((), _ARGUMENTS, "Arguments of the program.", live=True)
    cwd: str | None = setting(
        None,
        FieldType(name="path", read=PATH.read, schema=TEXT.schema),
        "Directory of the program, relative to this file.",
        live=True,
    )
    url: str | None = setting(None, _URL, "Address of a server over HTTP.", live=True)
    type: Transport = setting("stdio", _TRANSPORT, "Transport, if the command or url does not tell.", live=True)
    timeout: float | None = setting(
        None, _TIMEOUT, "Longest time of one call; above 3600 it is read as milliseconds.", unit="seconds", live=True
    )
    idempotent: tuple[str, ...] = setting(
        (),
        _ARGUMENTS,
        "Tools whose calls may be sent again if a connection breaks: the server's own names, or globs.",
        live=True,
    )
    max_concurrent: int | None = setting(
        None, COUNT, "Calls that may run there at a time; without it as the setting.", unit="calls", live=True
    )
    max_waiting: int | None = setting(
        None, COUNT, "Calls that may wait for a free slot there; without it as the setting.", unit="calls", live=True
    )
    start: StartMode | None = setting(
        None,
        choice(get_args(StartMode)),
        "When the server is started: with the gateway, or at the first request; without it as the setting.",
        live=True,
    )
    idle_timeout: float | None = setting(
        None,
        SECONDS_OR_ZERO,
        "Time without a request after which a lazy server is stopped; 0: never; without it as the setting.",
        unit="seconds",
        live=True,
    )
    allow_redirects: tuple[str, ...] = setting(
        (),
        FieldType(name="list of hosts", read=_read_hosts, schema={"type": "array", "items": _PLAIN}),
        "Other hosts, as host or host:port, to which its redirects are followed, without credentials.",
        live=True,
    )
    isolation: Isolation = setting(
        "shared",
        choice(get_args(Isolation)),
        "Whether all clients share one connection, or each session or user has its own.",
        live=True,
    )
    instances: Instances = setting(
        "gateway",
        choice(get_args(Instances)),
        "How many processes of the program there are: one for each gateway, whose workers share it, one for each "
        "worker, or a single one for all gateways of a state.",
        live=True,
    )
    tool_timeouts: Mapping[str, float] = setting(
        EMPTY,
        _TOOL_TIMEOUTS,
        "Longest time of one call of single tools: by the server's own names, or globs.",
        unit="seconds",
        live=True,
    )
    env: Mapping[str, str] = setting(
        EMPTY, _ENV, "Environment variables of the program; write secrets as ${NAME}.", live=True, secret=True
    )
    headers: Mapping[str, str] = setting(
        EMPTY, _HEADERS, "HTTP headers of every request; write secrets as ${NAME}.", live=True, secret=True
    )
    auth: Auth | None = setting(None, _AUTH, "How the gateway gets access tokens for the server.", live=True)
    registry_name: str | None = setting(
        None,
        _REGISTRY,
        "Its name in the MCP registry, as io.github.owner/server: metadata, never part of an id.",
        live=True,
    )
    identity: ServerIdentity = UNDECLARED
    unset: tuple[UnsetReference, ...] = ()


_IDENTITY: Final[Mapping[str, Setting]] = MappingProxyType(
    {
        "integration": Setting(
            type=FieldType(
                name="name",
                read=_read_integration,
                schema={
                    "anyOf": [
                        {"type": "string", "pattern": r"^[_-]*[A-Za-z0-9][A-Za-z0-9_-]*$", "maxLength": 200},
                        REFERENCE,
                    ]
                },
            ),
            meaning="Integration in the ids of its tools, as salesforce; without it the server's key.",
            default=None,
            live=True,
        ),
        "version": Setting(
            type=FieldType(
                name="whole number above 0",
                read=_read_version,
                # A text is a package's own version, which some clients note there; it means nothing here.
                schema={"anyOf": [_VERSION, {"type": "string", "not": {"pattern": "^@?v?[0-9]+$"}}]},
            ),
            meaning="Version of the integration in the ids of its tools: 2 gives salesforce@2; without it 1.",
            default=None,
            live=True,
        ),
        "versions": Setting(
            type=FieldType(
                name="table: tool -> version",
                read=_read_versions,
                schema={"type": "object", "additionalProperties": _VERSION},
                plain=dict,
            ),
            meaning="Versions of single tools, by the server's own names: create_lead = 3.",
            default=EMPTY,
            live=True,
        ),
    }
)
_DECLARED: Final = rows_of(ServerConfig)
_ALIASES: Final[Mapping[str, Setting]] = MappingProxyType(
    {
        **{
            name: Setting(type=_URL, meaning="The same as url, as another client calls it.", default=None, live=True)
            for name in URLS[1:]
        },
        "transport": Setting(type=_TRANSPORT, meaning="The same as type.", default=None, live=True),
        "enabled": Setting(
            type=_SWITCH, meaning="The opposite of disabled: false switches the server off.", default=None, live=True
        ),
    }
)
SERVER: Final[Mapping[str, Setting]] = MappingProxyType({**_DECLARED, **_IDENTITY, **_ALIASES})
"""The fields of an entry, by their keys."""
KNOWN: Final = frozenset(SERVER)
# Fields that depend on each other are read by themselves.
_APART: Final = frozenset({"disabled", "url", "type", "auth", "isolation"})
_ALONE: Final = MappingProxyType({key: row for key, row in _DECLARED.items() if key not in _APART})


def plain_server(server: ServerConfig) -> dict[str, object]:
    """Return a server's entry as it is written in a file: without defaults, and without ``type`` for HTTP."""
    plain = plain_table(server, _DECLARED) | plain_table(server.identity, _IDENTITY)
    if server.type == "http":
        # The URL implies it.
        del plain["type"]
    return plain


def strange(words: Iterable[str]) -> Iterator[str]:
    """Yield the keys of an entry that no known client understands; comments are left out.

    >>> list(strange(["command", "timeuot", "alwaysAllow", "_comment"]))
    ['timeuot']
    """
    yield from (word for word in words if word not in KNOWN | OF_CLIENTS and not word.startswith(_COMMENTS))


def misspelt(word: str) -> str:
    """Return the key that was probably meant, "" if none is similar.

    >>> misspelt("timeuot"), misspelt("comand"), misspelt("colour")
    ('timeout', 'command', '')
    """
    return next(iter(get_close_matches(word[:_LONGEST], sorted(KNOWN | OF_CLIENTS), 1, _LIKE)), "")


def read_servers(
    entries: Mapping[str, object], where: str, base: Path, sources: Sources, errors: ConfigErrors
) -> tuple[ServerConfig, ...]:
    """Return the servers of one ``mcpServers`` object in its order; note errors.

    Keys that mean nothing here are ignored (`about_keys` reports them). A disabled entry is not read. A reference
    without a value is not an error: it costs this server alone (`ServerConfig.unset`).
    """
    read = partial(_tolerant, base=base, sources=sources, errors=errors)
    return tuple(read(key, entry, f"{where}.{key}") for key, entry in entries.items())


def about_keys(entries: Mapping[str, object], where: str, errors: ConfigErrors, *, ours: bool) -> None:
    """Report keys that no known client understands; in Truename's own file (``ours``) also the keys of clients."""
    for key, entry in entries.items():
        if not isinstance(entry, dict) or entry.get("disabled") is True or entry.get("enabled") is False:
            continue
        for word in (word for word in entry if word not in KNOWN) if ours else strange(entry):
            meant = misspelt(word)
            place = f"{where}.{key}.{excerpt(word)[1:-1]}"
            known = spelling_remedy(word, KNOWN) if ours and meant not in KNOWN else ""
            remedy = known or (f"Did you mean {meant!r}?" if meant else "Remove it, if it is not meant for a client.")
            errors.add(place, f"it is not a setting of a server{'' if ours else ', and has no effect'}", remedy)


def _tolerant(
    key: str, entry: object, where: str, *, base: Path, sources: Sources, errors: ConfigErrors
) -> ServerConfig:
    environ, found = sources.tolerant("${{{}}}".format), errors.apart()
    server = _server(key, entry, where, base=base, environ=environ, errors=found)
    if environ.unset and found:
        # A value that is missing may be a word or a whole address.
        for standin in STANDINS:
            again = errors.apart()
            _server(key, entry, where, base=base, environ=sources.tolerant(f"{standin}".format), errors=again)
            found = min(found, again, key=len)
    errors.take(found)
    return replace(server, unset=environ.unset) if environ.unset else server


def _server(
    key: str, entry: object, where: str, *, base: Path, environ: Mapping[str, str], errors: ConfigErrors
) -> ServerConfig:
    where = where if where.isprintable() else ascii(where)
    if not key.strip():
        errors.add(where, "the server's key is empty", "Give the server a name.")
    elif bad := [character for character in key if not character.isprintable()]:
        what = f"the server's key {excerpt(key)} holds U+{ord(bad[0]):04X}, which cannot be seen"
        errors.add(where, what, "Remove that character.")
    elif len(key) > MAX_KEY:
        errors.add(where[:100], f"the server's key has {len(key):,} characters", "Give a shorter name.")
    if not isinstance(entry, dict):
        errors.add(where, "it is not an object", 'Write {"command": "..."} or {"url": "..."}.')
        return ServerConfig(key=key)
    fields = Fields(entry, where, environ, errors, base)
    # Some clients write ``disabled``, others ``enabled``.
    disabled = fields.truth("disabled")
    if disabled or ("enabled" in fields and not fields.truth("enabled")):
        return ServerConfig(key=key, disabled=True)
    url = next((fields.text(name) for name in URLS if name in fields), None)
    # Keys of clients may stand here too: `about_keys` reports those that nobody knows.
    found = read_table(fields, _ALONE, accept_null=True, others=fields)
    transport = _transport(fields, url)
    _check_target(found.get("command"), url, fields)
    auth = read_auth(fields, url, found.get("headers", EMPTY))
    if "allow_redirects" in fields and url is None:
        fields.add("allow_redirects", "only a server with a url redirects", "Leave it out.")
    return ServerConfig(
        key=key,
        url=url,
        type=transport,
        isolation=_isolation(fields, auth),
        auth=auth,
        identity=ServerIdentity(**read_table(fields, _IDENTITY, accept_null=True, others=fields)),
        **found,
    )


def identity_within(entry: Mapping[str, Any]) -> ServerIdentity:
    """Return the identity that an entry of a client's file declares for its server; illegal parts are ignored.

    >>> identity_within({"integration": "salesforce", "version": "1.4.2", "versions": {"get": 0}})
    ServerIdentity(integration='salesforce', version=None, versions=mappingproxy({}))
    """
    integration, version, versions = (entry.get(name) for name in ("integration", "version", "versions"))
    pairs = versions.items() if isinstance(versions, dict) else ()
    is_fit = isinstance(integration, str) and not integration_error(integration)
    return ServerIdentity(
        integration=integration if is_fit else None,
        version=version if _is_version(version) else None,
        versions=MappingProxyType({tool: number for tool, number in pairs if _is_version(number)}),
    )


def _is_version(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_VERSION


def _isolation(fields: Fields, auth: Auth | None) -> Isolation:
    """Return how connections are isolated: where each person has a token, each has a connection."""
    given: Isolation | None = _DECLARED["isolation"].type.read(fields, "isolation")
    if not isinstance(auth, Login | TokenExchange):
        return given or "shared"
    if given not in {None, "user"}:
        fields.add("isolation", f"{given!r} would mix people's logins", "Leave it out.")
    return "user"


def _has_url(fields: Fields) -> bool:
    return any(name in fields for name in URLS)


def _transport(fields: Fields, url: str | None) -> Transport:
    named = fields.text("type") or fields.text("transport")
    if named is None:
        return "http" if url else "stdio"
    transport = TYPES.get(named.lower())
    if transport is None:
        fields.add("type", f"{excerpt(named)} is not a transport", 'Write "stdio", "http" or "sse".')
    elif (transport == "stdio") == (url is not None) and ("command" in fields) != _has_url(fields):
        wants = "a command" if transport == "stdio" else "a url"
        fields.add("type", f"{named!r} needs {wants}", "Correct the type, or leave it out.")
    return transport or "stdio"


def _check_target(command: str | None, url: str | None, fields: Fields) -> None:
    if "command" in fields and _has_url(fields):
        fields.errors.add(fields.place, "it has both a command and a url", "Keep one of them.")
    elif command is None and url is None:
        if "command" not in fields and not _has_url(fields):
            problem = "it has neither a command nor a url"
            fields.errors.add(fields.place, problem, 'Add "command": "..." or "url": "...".')
    elif command is not None and not command.strip():
        fields.add("command", "it is empty", "Write the program to start.")
    elif url is not None:
        try:
            parts = urlsplit(url)
            good = parts.scheme in {"http", "https"} and parts.hostname and (parts.port or 1)
        except ValueError:
            good = False
        if not good or not url.isprintable() or " " in url:
            fields.add("url", f"{excerpt(url)} is not an http(s) address", "Write https://HOST/PATH.")
