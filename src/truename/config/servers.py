"""Read an entry of ``mcpServers``: a server over stdio (``command``) or HTTP (``url``), and the keys it may have."""

from __future__ import annotations

import re
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeGuard, TypeVar, get_args
from urllib.parse import urlsplit

from truename.catalog import ServerIdentity, integration_error
from truename.config.access import each
from truename.config.credentials import Auth, Login, TokenExchange, read_auth
from truename.config.fields import Fields
from truename.config.model import Isolation, ServerConfig, StartMode
from truename.errors import excerpt, spelling_remedy
from truename.files.user import at_home

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from truename.config.interpolate import Sources
    from truename.errors import ConfigErrors

__all__ = [
    "ISOLATIONS",
    "KNOWN",
    "LONGEST_IN_SECONDS",
    "MAX_KEY",
    "MAX_VERSION",
    "STANDINS",
    "STARTS",
    "TYPES",
    "URLS",
    "about_keys",
    "identity_within",
    "misspelt",
    "read_servers",
    "strange",
]

KNOWN: Final = frozenset(
    {
        *("command", "args", "env", "cwd", "url", "httpUrl", "serverUrl", "headers", "type", "transport"),
        *("timeout", "tool_timeouts", "idempotent", "max_concurrent", "max_waiting", "isolation", "start"),
        *("idle_timeout", "auth", "allow_redirects", "integration", "version", "versions", "disabled", "enabled"),
    }
)
# Read in the documents and sources of clients: what they write into an entry, and who starts the server need not know.
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
TYPES: Final[Mapping[str, Literal["stdio", "http", "sse"]]] = {
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
ISOLATIONS: Final[tuple[Isolation, ...]] = get_args(Isolation)
STARTS: Final[tuple[StartMode, ...]] = get_args(StartMode)
MAX_KEY: Final = 1024
# The largest that the grammar of ids has room for.
MAX_VERSION: Final = 10**18 - 1
_Word = TypeVar("_Word", bound=str)
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


def strange(words: Iterable[str]) -> Iterator[str]:
    """Yield the keys of an entry that nobody is known to understand; those that are comments are left out.

    >>> list(strange(["command", "timeuot", "alwaysAllow", "_comment"]))
    ['timeuot']
    """
    yield from (word for word in words if word not in KNOWN | OF_CLIENTS and not word.startswith(_COMMENTS))


def misspelt(word: str) -> str:
    """Return the key that somebody may have meant, "" where none is near.

    >>> misspelt("timeuot"), misspelt("comand"), misspelt("colour")
    ('timeout', 'command', '')
    """
    return next(iter(get_close_matches(word[:_LONGEST], sorted(KNOWN | OF_CLIENTS), 1, _LIKE)), "")


def read_servers(
    entries: Mapping[str, Any], where: str, base: Path, sources: Sources, faults: ConfigErrors
) -> tuple[ServerConfig, ...]:
    """Return the servers of one ``mcpServers`` object in its order; faults are noted, not raised.

    Keys that mean nothing here are ignored (`about_keys` tells of them). A disabled entry is not looked into. A
    variable that is not set is no fault: it costs this server alone (`ServerConfig.unset`).
    """
    read = partial(_tolerant, base=base, sources=sources, faults=faults)
    return tuple(read(key, entry, f"{where}.{key}") for key, entry in entries.items())


def about_keys(entries: Mapping[str, Any], where: str, faults: ConfigErrors, *, ours: bool) -> None:
    """Note the keys in entries that nobody understands; in a file of ``ours``, those of clients too."""
    for key, entry in entries.items():
        if not isinstance(entry, dict) or entry.get("disabled") is True or entry.get("enabled") is False:
            continue
        for word in (word for word in entry if word not in KNOWN) if ours else strange(entry):
            meant = misspelt(word)
            place = f"{where}.{key}.{excerpt(word)[1:-1]}"
            known = spelling_remedy(word, KNOWN) if ours and meant not in KNOWN else ""
            remedy = known or (f"Did you mean {meant!r}?" if meant else "Remove it, if it is not meant for a client.")
            faults.add(place, f"it is not a setting of a server{'' if ours else ', and has no effect'}", remedy)


def _tolerant(key: str, entry: Any, where: str, *, base: Path, sources: Sources, faults: ConfigErrors) -> ServerConfig:
    environ, found = sources.tolerant("${{{}}}".format), faults.apart()
    server = _server(key, entry, where, base=base, environ=environ, faults=found)
    if environ.unset and found:
        # What is not set yet may be a word or a whole address.
        for standin in STANDINS:
            again = faults.apart()
            _server(key, entry, where, base=base, environ=sources.tolerant(f"{standin}".format), faults=again)
            found = min(found, again, key=len)
    faults.take(found)
    return replace(server, unset=environ.unset) if environ.unset else server


def _server(
    key: str, entry: Any, where: str, *, base: Path, environ: Mapping[str, str], faults: ConfigErrors
) -> ServerConfig:
    where = where if where.isprintable() else ascii(where)
    _check_key(key, where, faults)
    if not isinstance(entry, dict):
        faults.add(where, "it is not an object", 'Write {"command": "..."} or {"url": "..."}.')
        return ServerConfig(key=key)
    fields = Fields(entry, where, environ, faults)
    if _is_off(fields):
        return ServerConfig(key=key, disabled=True)
    command, url = _command(fields), _url(fields)
    kind = _kind(fields, url, where)
    _check_target(command, url, where, fields)
    _check_headers(headers := fields.pairs("headers"), fields)
    auth = read_auth(fields, url, headers)
    return ServerConfig(
        key=key,
        command=command,
        args=fields.texts("args"),
        env=MappingProxyType(fields.pairs("env")),
        cwd=_directory(fields.text("cwd"), base),
        url=url,
        headers=MappingProxyType(headers),
        type=kind,
        timeout=_seconds(fields.number("timeout")),
        tool_timeouts=_tool_timeouts(fields),
        idempotent=fields.texts("idempotent"),
        max_concurrent=fields.whole("max_concurrent"),
        max_waiting=fields.whole("max_waiting"),
        isolation=_isolation(fields, auth),
        start=_chosen(fields, "start", STARTS, "a way to start"),
        idle_timeout=fields.number("idle_timeout", inclusive=True),
        auth=auth,
        allow_redirects=_redirects(fields, url),
        identity=_identity(fields),
    )


def _identity(fields: Fields) -> ServerIdentity:
    """Return what an entry declares of the ids of its server's tools."""
    integration = fields.text("integration")
    if integration is not None and (fault := integration_error(integration)):
        fields.faults.add(fields.where("integration"), f"{excerpt(integration)}: {fault}", "Choose another.")
        integration = None
    given = fields.nested("versions", "an object: tool -> version")
    versions = {} if given is None else {tool: given.whole(tool, most=MAX_VERSION) for tool in given}
    return ServerIdentity(
        integration=integration,
        version=_version(fields),
        versions=MappingProxyType({tool: version for tool, version in versions.items() if version is not None}),
    )


def identity_within(entry: Mapping[str, Any]) -> ServerIdentity:
    """Return what the entry of a client's file declares of the ids of its server's tools, as far as it can be declared.

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


def _version(fields: Fields) -> int | None:
    """Return the version of the integration; a text is a package's own version, which some clients note there."""
    said = fields.raw("version")
    if not isinstance(said, str):
        return fields.whole("version", most=MAX_VERSION)
    if (meant := _NUMBER.fullmatch(said)) is not None:
        fields.faults.add(fields.where("version"), f"{excerpt(said)} is a text", f"Write {meant[1]}, without quotes.")
    return None


def _redirects(fields: Fields, url: str | None) -> tuple[str, ...]:
    """Return the hosts that a server may lead to, as they are compared."""
    if "allow_redirects" not in fields:
        return ()
    if url is None:
        problem = "only a server with a url leads anywhere"
        fields.faults.add(fields.where("allow_redirects"), problem, "Leave it out.")
    found = each(_HOST, "a host, as in files.example or files.example:8443")(fields, "allow_redirects")
    return tuple(host.lower() for host in found or ())


def _isolation(fields: Fields, auth: Auth | None) -> Isolation:
    """Return whose a connection is: where each person has a token, each has their own."""
    said = _chosen(fields, "isolation", ISOLATIONS, "a kind of isolation")
    if not isinstance(auth, Login | TokenExchange):
        return said or "shared"
    if said not in {None, "user"}:
        fields.faults.add(fields.where("isolation"), f"{said!r} would mix people's logins", "Leave it out.")
    return "user"


def _chosen(fields: Fields, name: str, known: Collection[_Word], what: str) -> _Word | None:
    said = fields.text(name)
    found = next((one for one in known if one == said), None)
    if said is not None and found is None:
        remedy = f"Write one of {', '.join(known)}."
        fields.faults.add(fields.where(name), f"{excerpt(said)} is not {what}", remedy)
    return found


def _is_off(fields: Fields) -> bool:
    """Tell whether the entry is switched off: some clients write ``disabled``, others ``enabled``."""
    disabled = fields.truth("disabled")
    return disabled or ("enabled" in fields and not fields.truth("enabled"))


def _command(fields: Fields) -> str | None:
    if fields.is_list("command"):
        remedy = 'Write the program as "command" and the rest as "args": [...].'
        fields.faults.add(fields.where("command"), "it is a list, not a text", remedy)
        return None
    return fields.text("command")


def _url(fields: Fields) -> str | None:
    return next((fields.text(name) for name in URLS if name in fields), None)


def _has_url(fields: Fields) -> bool:
    return any(name in fields for name in URLS)


def _check_key(key: str, where: str, faults: ConfigErrors) -> None:
    if not key.strip():
        faults.add(where, "the server's key is empty", "Give the server a name.")
    elif bad := [character for character in key if not character.isprintable()]:
        what = f"the server's key {excerpt(key)} holds U+{ord(bad[0]):04X}, which can't be seen"
        faults.add(where, what, "Remove that character.")
    elif len(key) > MAX_KEY:
        faults.add(where[:100], f"the server's key has {len(key):,} characters", "Give a shorter name.")


def _kind(fields: Fields, url: str | None, where: str) -> Literal["stdio", "http", "sse"]:
    named = fields.text("type") or fields.text("transport")
    if named is None:
        return "http" if url else "stdio"
    kind = TYPES.get(named.lower())
    if kind is None:
        problem = f"{excerpt(named)} is not a kind of transport"
        fields.faults.add(f"{where}.type", problem, 'Write "stdio", "http" or "sse".')
    elif (kind == "stdio") == (url is not None) and ("command" in fields) != _has_url(fields):
        wants = "a command" if kind == "stdio" else "a url"
        fields.faults.add(f"{where}.type", f"{named!r} needs {wants}", "Correct the type, or leave it out.")
    return kind or "stdio"


def _check_target(command: str | None, url: str | None, where: str, fields: Fields) -> None:
    if "command" in fields and _has_url(fields):
        fields.faults.add(where, "it has both a command and a url", "Keep one of them.")
    elif command is None and url is None:
        if "command" not in fields and not _has_url(fields):
            fields.faults.add(where, "it has neither a command nor a url", 'Add "command": "..." or "url": "...".')
    elif command is not None and not command.strip():
        fields.faults.add(f"{where}.command", "it is empty", "Write the program to start.")
    elif url is not None:
        _check_url(url, where, fields)


def _check_url(url: str, where: str, fields: Fields) -> None:
    try:
        parts = urlsplit(url)
        good = parts.scheme in {"http", "https"} and parts.hostname and (parts.port or 1)
    except ValueError:
        good = False
    if not good or not url.isprintable() or " " in url:
        fields.faults.add(f"{where}.url", f"{excerpt(url)} is not an http(s) address", "Write https://HOST/PATH.")


def _check_headers(headers: Mapping[str, str], fields: Fields) -> None:
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not (value.isprintable() and value.isascii()):
            # The value is not shown: it is a secret more often than not.
            where = fields.where(f"headers.{excerpt(name)}")
            fields.faults.add(where, "it is not a legal HTTP header", "Use printable ASCII only.")


def _directory(text: str | None, base: Path) -> str | None:
    return None if text is None else str(base / at_home(text))


def _tool_timeouts(fields: Fields) -> Mapping[str, float]:
    given = fields.nested("tool_timeouts", "an object: tool -> seconds")
    found = {} if given is None else {tool: given.number(tool) for tool in given}
    return MappingProxyType({tool: seconds for tool, seconds in found.items() if seconds is not None})


def _seconds(timeout: float | None) -> float | None:
    if timeout is None or timeout <= LONGEST_IN_SECONDS:
        return timeout
    return timeout / 1000
