"""Read and write one server's entry in each client's own form."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from truename.config import ServerConfig
from truename.config.servers import identity_within
from truename.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from truename.clients.table import ConfigFile

Where = tuple[str | int, ...]

Entry = tuple[Where, str, Any]

__all__ = [
    "FORMS",
    "carries",
    "entries_of",
    "left_out",
    "looks_like_server",
    "reach",
    "read_entry",
    "speaks_http",
    "write_entry",
]

Kind = Literal["stdio", "http", "sse"]


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class EntryForm:
    """The form of a client's server entries.

    ``kinds`` maps each supported transport to its value of the field ``word`` ("": the field is not written).
    ``urls`` are the keys of the URL by transport, ``bare`` the transport of a URL without ``word``; ``url_first``:
    a URL overrides a command. ``listed``: command and arguments are one list. ``inside`` is the key of an object that
    holds the transport's fields, ``named`` the field of the server's key, ``in_list``: entries are items of a list.
    ``off`` is the field and value that disable a server, ``offs`` are those that are read, ``always``: the field is
    written for enabled servers too. ``env_names``, ``header_names`` and ``bearer`` are fields with names of
    environment variables. ``stdio`` and ``http`` are constant fields that the client requires; entries whose type is
    ``foreign`` are not MCP servers.
    """

    kinds: Mapping[Kind, str]
    word: str = "type"
    command: str = "command"
    args: str = "args"
    env: str = "env"
    cwd: str = ""
    listed: bool = False
    urls: Mapping[Kind, str] = field(default_factory=lambda: MappingProxyType({"http": "url", "sse": "url"}))
    bare: Mapping[str, Kind] = field(default_factory=_nothing)
    url_first: bool = False
    headers: tuple[str, ...] = ("headers",)
    timeout: str = ""
    per_second: int = 1
    inside: str = ""
    named: str = ""
    in_list: bool = False
    off: tuple[str, bool] | None = None
    offs: tuple[tuple[str, bool], ...] = (("disabled", True), ("enabled", False), ("isActive", False))
    always: bool = False
    env_names: str = ""
    header_names: str = ""
    bearer: str = ""
    foreign: tuple[str, ...] = ()
    stdio: Mapping[str, Any] = field(default_factory=_nothing)
    http: Mapping[str, Any] = field(default_factory=_nothing)


def _kinds(stdio: str = "", http: str = "", sse: str | None = "") -> Mapping[Kind, str]:
    words: dict[Kind, str] = {"stdio": stdio, "http": http}
    return words if sse is None else {**words, "sse": sse}


_WORDLESS: Final = _kinds()
_TYPED: Final = _kinds("stdio", "http", "sse")
_DISABLED: Final = ("disabled", True)
_ENABLED: Final = ("enabled", False)
_SERVER_URL: Final[Mapping[Kind, str]] = {"http": "serverUrl", "sse": "serverUrl"}
_HTTP_URL: Final[Mapping[Kind, str]] = {"http": "httpUrl", "sse": "url"}
_SECONDS: Final[Mapping[str, Any]] = {"timeout": "timeout", "per_second": 1}
_MILLISECONDS: Final[Mapping[str, Any]] = {"timeout": "timeout", "per_second": 1000}
_CLINE: Final = _kinds("stdio", "streamableHttp", "sse")
_BARE_SSE: Final[Mapping[str, Kind]] = {"url": "sse"}
_GOOSE: Final[Mapping[str, Any]] = {"description": "", "env_keys": [], "envs": {}}

FORMS: Final[Mapping[str, EntryForm]] = {
    "any": EntryForm(kinds=_TYPED, cwd="cwd", in_list=True, off=_DISABLED),
    "plain": EntryForm(kinds=_WORDLESS),
    "stdio-only": EntryForm(kinds={"stdio": ""}),
    "typed": EntryForm(kinds=_TYPED),
    "claude-code": EntryForm(kinds=_TYPED, **_MILLISECONDS),
    "cursor": EntryForm(kinds=_WORDLESS),
    "vscode": EntryForm(kinds=_TYPED),
    "windsurf": EntryForm(kinds=_WORDLESS, urls=_SERVER_URL, off=_DISABLED),
    "antigravity": EntryForm(kinds=_WORDLESS, urls=_SERVER_URL, url_first=True, cwd="cwd"),
    "cline": EntryForm(kinds=_CLINE, inside="transport", cwd="cwd", bare=_BARE_SSE, off=_DISABLED, **_SECONDS),
    "cline-flat": EntryForm(kinds=_CLINE, cwd="cwd", bare=_BARE_SSE, off=_DISABLED, **_SECONDS),
    "roo": EntryForm(kinds=_kinds("stdio", "streamable-http", "sse"), cwd="cwd", off=_DISABLED, **_SECONDS),
    "continue": EntryForm(
        kinds=_kinds("stdio", "streamable-http", "sse"),
        named="name",
        in_list=True,
        cwd="cwd",
        headers=("requestOptions", "headers"),
    ),
    "zed": EntryForm(kinds=_WORDLESS, off=_ENABLED),
    "codex": EntryForm(
        kinds=_kinds(sse=None),
        cwd="cwd",
        headers=("http_headers",),
        timeout="tool_timeout_sec",
        off=_ENABLED,
        env_names="env_vars",
        header_names="env_http_headers",
        bearer="bearer_token_env_var",
    ),
    "grok": EntryForm(kinds=_WORDLESS, timeout="tool_timeout_sec"),
    "gemini": EntryForm(
        kinds=_kinds("", "", "sse"), urls=_HTTP_URL, bare=_BARE_SSE, url_first=True, cwd="cwd", **_MILLISECONDS
    ),
    "qwen": EntryForm(kinds=_WORDLESS, urls=_HTTP_URL, bare=_BARE_SSE, url_first=True, cwd="cwd", **_MILLISECONDS),
    "opencode": EntryForm(
        kinds=_kinds("local", "remote", None), listed=True, env="environment", cwd="cwd", off=_ENABLED, always=True
    ),
    "goose": EntryForm(
        kinds=_kinds("stdio", "streamable_http", None),
        command="cmd",
        env="envs",
        urls={"http": "uri"},
        named="name",
        off=_ENABLED,
        always=True,
        env_names="env_keys",
        foreign=("builtin", "platform", "frontend", "inline_python"),
        stdio=_GOOSE,
        http=_GOOSE,
        **_SECONDS,
    ),
    "copilot": EntryForm(kinds=_kinds("local", "http", "sse"), offs=(), stdio={"tools": ["*"]}, http={"tools": ["*"]}),
    "amazon-q": EntryForm(kinds=_kinds("", "http", None), **_MILLISECONDS),
    "kiro": EntryForm(kinds=_WORDLESS, off=_DISABLED),
    "librechat": EntryForm(kinds=_kinds("stdio", "streamable-http", "sse"), **_MILLISECONDS),
    "crush": EntryForm(kinds=_TYPED, off=_DISABLED, **_SECONDS),
    "warp": EntryForm(kinds=_WORDLESS, cwd="working_directory"),
    "cherry-studio": EntryForm(
        kinds=_kinds("stdio", "streamableHttp", "sse"),
        urls={"http": "baseUrl", "sse": "baseUrl"},
        off=("isActive", False),
        always=True,
    ),
    "kimi": EntryForm(kinds=_kinds("stdio", "http", "sse"), word="transport"),
    "vibe": EntryForm(kinds=_kinds("stdio", "streamable-http", None), word="transport", named="name", in_list=True),
    "5ire": EntryForm(kinds=_kinds("local", "remote", None), named="key", off=("isActive", False), always=True),
}


_KINDS: Final[Mapping[str, Kind]] = {
    "stdio": "stdio",
    "local": "stdio",
    "inmemory": "stdio",
    "http": "http",
    "remote": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamablehttp": "http",
    "ws": "http",
    "websocket": "http",
    "sse": "sse",
}
_URLS: Final = ("httpUrl", "serverUrl", "url", "uri", "baseUrl")
# A larger timeout is in milliseconds, where the client's unit is not known.
_LONGEST_IN_SECONDS: Final = 3600
_ENDLESS: Final = 2**53
_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_BEARER: Final = "Bearer "
# Fields about steps that only the client itself performs before it starts or calls a server.
_OWN: Final = ("envFile", "headersHelper", "oauth", "auth", "scopes", "oauth_resource", "requiresOAuth", "sandbox")


def speaks_http(shape: str) -> bool:
    """Return whether a client with entries of this shape can connect to a URL.

    >>> speaks_http("vscode"), speaks_http("stdio-only")
    (True, False)
    """
    return "http" in _form(shape).kinds


def carries(shape: str) -> frozenset[str]:
    """Return the fields of `ServerConfig`, besides command, args, env and url, that entries of this shape can hold."""
    form = _form(shape)
    fields = {"cwd": form.cwd, "timeout": form.timeout, "disabled": form.off, "headers": "http" in form.kinds}
    return frozenset(name for name, is_held in fields.items() if is_held)


def read_entry(shape: str, key: str, raw: object) -> ServerConfig:
    """Read an entry leniently: fields that are not understood are ignored. Raises nothing.

    Of a command and a URL the one that the client would use is kept; an entry with neither gives a server with
    neither. Numbers and booleans are converted to strings.

    >>> read_entry("opencode", "x", {"type": "local", "command": ["npx", "-y", "s"]}).args
    ('-y', 's')
    """
    form = _form(shape)
    entry = _flatten(raw)
    command, args, env = _program(form, entry)
    address = _address(form, entry)
    kind = _kind(form, entry, has_command=command is not None, address=address)
    off = any(entry.get(name) is value for name, value in form.offs)
    return ServerConfig(
        key=key,
        command=command if kind == "stdio" else None,
        args=args if kind == "stdio" else (),
        env=MappingProxyType(env),
        cwd=_text(entry.get(form.cwd or "cwd")),
        url=address[1] if address and kind != "stdio" else None,
        headers=MappingProxyType(_headers(form, entry)),
        type=kind,
        disabled=off,
        timeout=_seconds(form, entry),
        identity=identity_within(entry),
    )


def left_out(raw: object) -> tuple[str, ...]:
    """Return the fields of an entry that affect how its server is run or reached, and that `ServerConfig` lacks.

    >>> left_out({"command": "x", "envFile": ".env", "oauth": False})
    ('envFile',)
    """
    return tuple(name for name in _OWN if _flatten(raw).get(name))


def write_entry(shape: str, server: ServerConfig) -> dict[str, Any]:
    """Return the entry in its client's form, in the client's order of fields.

    Raises `ConfigError` for a server that this client cannot use: a URL where it only starts commands, SSE where it
    does not support it, or neither a command nor a URL.

    >>> write_entry("windsurf", ServerConfig(key="tn", url="http://127.0.0.1:8420/mcp", type="http"))
    {'serverUrl': 'http://127.0.0.1:8420/mcp'}
    """
    form = _form(shape)
    _check(form, server)
    transport = {
        **_type_field(form, server),
        **(_program_fields if server.type == "stdio" else _address_fields)(form, server),
    }
    entry: dict[str, Any] = {form.named: server.key} if form.named else {}
    entry |= {form.inside: transport} if form.inside else transport
    fixed = form.stdio if server.type == "stdio" else form.http
    entry |= {name: _copy(value) for name, value in fixed.items() if name not in entry}
    if server.timeout is not None and form.timeout:
        entry[form.timeout] = _without_fraction(server.timeout * form.per_second)
    if form.off and (form.always or server.disabled):
        name, value = form.off
        entry[name] = value if server.disabled else not value
    return entry


def _form(shape: str) -> EntryForm:
    return FORMS.get(shape, FORMS["any"])


def _flatten(raw: object) -> Mapping[str, Any]:
    """Return the entry as one flat object; Cline nests the transport in its own object."""
    if not isinstance(raw, dict):
        return {}
    nested = raw.get("transport")
    return {**raw, **nested} if isinstance(nested, dict) else raw


def _program(form: EntryForm, entry: Mapping[str, Any]) -> tuple[str | None, tuple[str, ...], dict[str, str]]:
    command = entry.get(form.command, entry.get("command"))
    env = _pairs(entry.get(form.env, entry.get("env")))
    for name in _variables(entry.get(form.env_names)) if form.env_names else ():
        env.setdefault(name, f"${{{name}}}")
    args = _texts(entry.get(form.args))
    if isinstance(command, dict):
        # Zed's oldest form.
        return _text(command.get("path")), _texts(command.get("args")), {**_pairs(command.get("env")), **env}
    if isinstance(command, list):
        first, *rest = _texts(command) or ("",)
        return first or None, (*rest, *args), env
    return _text(command), args, env


def _address(form: EntryForm, entry: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the key and the value of the URL; the client's own key is preferred."""
    names = dict.fromkeys((*form.urls.values(), *_URLS))
    found = ((name, _text(entry.get(name))) for name in names)
    return next(((name, url) for name, url in found if url is not None), None)


def _kind(form: EntryForm, entry: Mapping[str, Any], *, has_command: bool, address: tuple[str, str] | None) -> Kind:
    words = (entry.get(name) for name in dict.fromkeys((form.word, "type", "transport")))
    kind = next((_KINDS[word.lower()] for word in words if isinstance(word, str) and word.lower() in _KINDS), None)
    if address is None:
        return "stdio"
    if kind is None or kind == "stdio":
        by_program = has_command and (kind == "stdio" or not form.url_first)
        return "stdio" if by_program else form.bare.get(address[0], "http")
    return kind


def _headers(form: EntryForm, entry: Mapping[str, Any]) -> dict[str, str]:
    found = _pairs(entry.get("headers"))
    value: Any = entry
    for name in form.headers:
        value = value.get(name) if isinstance(value, dict) else None
    found |= _pairs(value)
    if form.header_names:
        found |= {name: f"${{{variable}}}" for name, variable in _pairs(entry.get(form.header_names)).items()}
    if form.bearer and (variable := _text(entry.get(form.bearer))):
        found.setdefault("Authorization", f"{_BEARER}${{{variable}}}")
    if "requestOptions" in form.headers and (secret := _text(entry.get("apiKey"))):
        found.setdefault("Authorization", f"{_BEARER}{secret}")
    return found


def _seconds(form: EntryForm, entry: Mapping[str, Any]) -> float | None:
    if form is FORMS["opencode"]:
        return None  # its timeout limits listing tools, not calls
    value = entry.get(form.timeout or "timeout")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _ENDLESS:
        return None
    per_second = form.per_second if form.timeout else 1000 if value > _LONGEST_IN_SECONDS else 1
    return value / per_second


def _check(form: EntryForm, server: ServerConfig) -> None:
    problem = remedy = ""
    if server.command is None and server.url is None:
        problem, remedy = "it has neither a command nor a url", "Give it one of them."
    elif server.type not in form.kinds and server.type == "sse":
        problem, remedy = "this client does not speak SSE", "Give it an address for streamable HTTP."
    elif server.type not in form.kinds:
        problem, remedy = "this client accepts no url", "Give it a command."
    if problem:
        raise ConfigError(file="", key=server.key, problem=problem, remedy=remedy)


def _type_field(form: EntryForm, server: ServerConfig) -> dict[str, Any]:
    word = form.kinds[server.type]
    return {form.word: word} if word else {}


def _program_fields(form: EntryForm, server: ServerConfig) -> dict[str, Any]:
    fields: dict[str, Any] = {form.command: server.command, form.args: list(server.args)}
    if form.listed:
        fields = {form.command: [server.command, *server.args]}
    names, values = _split_references(server.env, form.env_names)
    if values:
        fields[form.env] = values
    if names:
        fields[form.env_names] = names
    if form.cwd and server.cwd is not None:
        fields[form.cwd] = server.cwd
    return fields


def _address_fields(form: EntryForm, server: ServerConfig) -> dict[str, Any]:
    fields: dict[str, Any] = {form.urls[server.type]: server.url}
    values = dict(server.headers)
    bearer = _REFERENCE.fullmatch(values.get("Authorization", "").removeprefix(_BEARER)) if form.bearer else None
    if bearer and values["Authorization"].startswith(_BEARER):
        fields[form.bearer] = bearer[1]
        del values["Authorization"]
    if form.header_names:
        named = {name: found[1] for name, value in values.items() if (found := _REFERENCE.fullmatch(value))}
        values = {name: value for name, value in values.items() if name not in named}
        fields |= {form.header_names: named} if named else {}
    if values:
        inner: Any = values
        for name in reversed(form.headers):
            inner = {name: inner}
        fields |= inner
    return fields


def _split_references(env: Mapping[str, str], allowed: str) -> tuple[list[str], dict[str, str]]:
    """Split variables into names to pass on, if the client has a field for them, and the others with values."""
    names = [name for name, value in env.items() if allowed and value == f"${{{name}}}"]
    return names, {name: value for name, value in env.items() if name not in names}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _to_text(value: object) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) and _is_short(value) else None


def _is_short(value: object) -> bool:
    # Python refuses to convert enormous integers to text.
    return not isinstance(value, int) or abs(value) < 2**63


def _texts(value: object) -> tuple[str, ...]:
    items: Iterable[object] = value if isinstance(value, list) else ()
    return tuple(text for item in items if (text := _to_text(item)) is not None)


def _variables(value: object) -> tuple[str, ...]:
    """Return names of variables; in Codex an item may be an object with a name and a source."""
    items: Iterable[object] = value if isinstance(value, list) else ()
    return _texts([item.get("name") if isinstance(item, dict) else item for item in items])


def _pairs(value: object) -> dict[str, str]:
    items = value.items() if isinstance(value, dict) else ()
    return {str(name): text for name, item in items if (text := _to_text(item)) is not None}


def _without_fraction(number: float) -> float:
    return int(number) if number == int(number) else number


def _copy(value: Any) -> Any:
    return value.copy() if isinstance(value, dict | list) else value


_MOST: Final = 10_000
_TELLING: Final = ("command", "url", "httpUrl", "serverUrl", "cmd", "uri", "baseUrl", "transport")


def entries_of(file: ConfigFile, value: Any) -> tuple[Entry, ...]:
    """Return the entries of a file as paths, keys and raw values, in the file's order.

    The row's alternative paths are used if its own is missing, or is only the beginning of one of them.
    """
    return tuple(islice(_entries(file, value), _MOST))


def looks_like_server(raw: object) -> bool:
    """Return whether a value looks like a server's entry: it has a command or a URL."""
    return isinstance(raw, dict) and any(name in raw for name in _TELLING)


def reach(value: Any, key: tuple[str, ...], where: Where = ()) -> Iterator[tuple[Where, Any]]:
    """Yield the values at a path of keys, with their full paths; ``*`` matches any key."""
    if not key:
        yield where, value
    elif isinstance(value, dict):
        steps: Iterable[Any] = value if key[0] == "*" else [key[0]] if key[0] in value else []
        for step in steps:
            yield from reach(value[step], key[1:], (*where, step))


def _entries(file: ConfigFile, value: Any) -> Iterator[Entry]:
    deeper = [key for key in file.also if key[: len(file.key)] == file.key and _is_group(value, key)]
    keys = deeper or [file.key]
    found = [(where, group) for key in keys for where, group in reach(value, key)]
    if found:
        yield from (entry for where, group in found for entry in _members(file, where, group))
        return
    for key in file.also:
        for where, group in reach(value, key):
            # With an empty path, any top-level object could match: accept only those that look like servers.
            members = _members(file, where, group)
            yield from (entry for entry in members if key or looks_like_server(entry[2]))


def _is_group(value: Any, key: tuple[str, ...]) -> bool:
    groups = [group for _, group in reach(value, key)]
    return any(isinstance(group, dict) and not looks_like_server(group) and "type" not in group for group in groups)


def _members(file: ConfigFile, where: Where, group: Any) -> Iterator[Entry]:
    form = FORMS.get(file.shape, FORMS["any"])
    if isinstance(group, dict):
        members: Iterable[Entry] = (((*where, key), str(key), raw) for key, raw in group.items())
    elif isinstance(group, list) and form.in_list:
        members = (((*where, at), _own_name(raw, form.named or "name", at), raw) for at, raw in enumerate(group))
    else:
        return
    for entry in members:
        raw = entry[2]
        if not (isinstance(raw, dict) and raw.get("type") in form.foreign):
            yield entry


def _own_name(raw: object, field: str, at: int) -> str:
    name = raw.get(field) if isinstance(raw, dict) else None
    return name if isinstance(name, str) and name else f"#{at + 1}"
