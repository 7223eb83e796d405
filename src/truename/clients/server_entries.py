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
    """One form. ``kinds`` are the transports it can say, each with the word written for it ("" for none at all).

    ``urls`` are the keys of an address by transport, ``bare`` what an address without a word is taken for; with
    ``url_first`` it wins over a command. ``listed``: program and arguments are one list. ``inside`` is the key of an
    object that holds all that is about the transport, ``named`` that of the server's own name, ``in_list``: entries
    are items of a list. ``off`` is the key and the value that switch a server off, ``offs`` those that are understood;
    ``always``: also written for one that is on.
    ``env_names``, ``header_names`` and ``bearer`` hold names of environment variables in place of values.
    ``stdio`` and ``http`` are fixed fields that the client wants; entries with a ``foreign`` word are no MCP servers.
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
# Without a statement of its own, a client's number this large is not meant in seconds.
_LONGEST_IN_SECONDS: Final = 3600
_ENDLESS: Final = 2**53
_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_BEARER: Final = "Bearer "
# What a client does before it starts or asks a server, and nobody else would do.
_OWN: Final = ("envFile", "headersHelper", "oauth", "auth", "scopes", "oauth_resource", "requiresOAuth", "sandbox")


def speaks_http(shape: str) -> bool:
    """Tell whether a client with entries of this shape connects to an address by itself.

    >>> speaks_http("vscode"), speaks_http("stdio-only")
    (True, False)
    """
    return "http" in _form(shape).kinds


def carries(shape: str) -> frozenset[str]:
    """Return the fields of `ServerConfig` that entries of this shape can tell, besides command, args, env, and url."""
    form = _form(shape)
    fields = {"cwd": form.cwd, "timeout": form.timeout, "disabled": form.off, "headers": "http" in form.kinds}
    return frozenset(name for name, told in fields.items() if told)


def read_entry(shape: str, key: str, raw: object) -> ServerConfig:
    """Return the server that an entry means, whatever is in it: what can't be understood is left out.

    An entry with both a command and an address keeps the one that its client would take; one with neither is a server
    without either. Only texts, numbers and truth values count, numbers as their text.

    >>> read_entry("opencode", "x", {"type": "local", "command": ["npx", "-y", "s"]}).args
    ('-y', 's')
    """
    form = _form(shape)
    entry = _flat(raw)
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
    """Return the fields of an entry that say how its server is reached or run, and have no place in a `ServerConfig`.

    >>> left_out({"command": "x", "envFile": ".env", "oauth": False})
    ('envFile',)
    """
    return tuple(name for name in _OWN if _flat(raw).get(name))


def write_entry(shape: str, server: ServerConfig) -> dict[str, Any]:
    """Return the entry as its client wants it, in the client's own order and with no field that it does not know.

    Raises `ConfigError` for what this client can't be told: an address where it only starts programs, SSE where it
    has none, or a server that has neither a command nor an address.

    >>> write_entry("windsurf", ServerConfig(key="tn", url="http://127.0.0.1:8420/mcp", type="http"))
    {'serverUrl': 'http://127.0.0.1:8420/mcp'}
    """
    form = _form(shape)
    _check(form, server)
    transport = {**_told(form, server), **(_said_program if server.type == "stdio" else _said_address)(form, server)}
    entry: dict[str, Any] = {form.named: server.key} if form.named else {}
    entry |= {form.inside: transport} if form.inside else transport
    fixed = form.stdio if server.type == "stdio" else form.http
    entry |= {name: _copied(value) for name, value in fixed.items() if name not in entry}
    if server.timeout is not None and form.timeout:
        timeout = server.timeout * form.per_second
        entry[form.timeout] = int(timeout) if timeout == int(timeout) else timeout
    if form.off and (form.always or server.disabled):
        name, value = form.off
        entry[name] = value if server.disabled else not value
    return entry


def _form(shape: str) -> EntryForm:
    return FORMS.get(shape, FORMS["any"])


def _flat(raw: object) -> Mapping[str, Any]:
    """Return the entry as one object; Cline has the transport in an object of its own."""
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
        # The oldest form of Zed.
        return _text(command.get("path")), _texts(command.get("args")), {**_pairs(command.get("env")), **env}
    if isinstance(command, list):
        first, *rest = _texts(command) or ("",)
        return first or None, (*rest, *args), env
    return _text(command), args, env


def _address(form: EntryForm, entry: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the key that holds the address, and the address; of several the client's own comes first."""
    names = dict.fromkeys((*form.urls.values(), *_URLS))
    found = ((name, _text(entry.get(name))) for name in names)
    return next(((name, url) for name, url in found if url is not None), None)


def _kind(form: EntryForm, entry: Mapping[str, Any], *, has_command: bool, address: tuple[str, str] | None) -> Kind:
    words = (entry.get(name) for name in dict.fromkeys((form.word, "type", "transport")))
    said = next((_KINDS[word.lower()] for word in words if isinstance(word, str) and word.lower() in _KINDS), None)
    if address is None:
        return "stdio"
    if said is None or said == "stdio":
        by_program = has_command and (said == "stdio" or not form.url_first)
        return "stdio" if by_program else form.bare.get(address[0], "http")
    return said


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
        return None  # its timeout is for the list of tools, not for a call
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
        problem, remedy = "this client starts programs and takes no url", "Give it a command."
    if problem:
        raise ConfigError(file="", key=server.key, problem=problem, remedy=remedy)


def _told(form: EntryForm, server: ServerConfig) -> dict[str, Any]:
    word = form.kinds[server.type]
    return {form.word: word} if word else {}


def _said_program(form: EntryForm, server: ServerConfig) -> dict[str, Any]:
    said: dict[str, Any] = {form.command: server.command, form.args: list(server.args)}
    if form.listed:
        said = {form.command: [server.command, *server.args]}
    names, values = _by_name(server.env, form.env_names)
    if values:
        said[form.env] = values
    if names:
        said[form.env_names] = names
    if form.cwd and server.cwd is not None:
        said[form.cwd] = server.cwd
    return said


def _said_address(form: EntryForm, server: ServerConfig) -> dict[str, Any]:
    said: dict[str, Any] = {form.urls[server.type]: server.url}
    values = dict(server.headers)
    bearer = _REFERENCE.fullmatch(values.get("Authorization", "").removeprefix(_BEARER)) if form.bearer else None
    if bearer and values["Authorization"].startswith(_BEARER):
        said[form.bearer] = bearer[1]
        del values["Authorization"]
    if form.header_names:
        named = {name: found[1] for name, value in values.items() if (found := _REFERENCE.fullmatch(value))}
        values = {name: value for name, value in values.items() if name not in named}
        said |= {form.header_names: named} if named else {}
    if values:
        inner: Any = values
        for name in reversed(form.headers):
            inner = {name: inner}
        said |= inner
    return said


def _by_name(env: Mapping[str, str], allowed: str) -> tuple[list[str], dict[str, str]]:
    """Split off the variables that are only passed on, where the client has a field for their names."""
    names = [name for name, value in env.items() if allowed and value == f"${{{name}}}"]
    return names, {name: value for name, value in env.items() if name not in names}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _said(value: object) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) and _is_short(value) else None


def _is_short(value: object) -> bool:
    # The text of an enormous whole number is refused by the interpreter.
    return not isinstance(value, int) or abs(value) < 2**63


def _texts(value: object) -> tuple[str, ...]:
    items: Iterable[object] = value if isinstance(value, list) else ()
    return tuple(said for item in items if (said := _said(item)) is not None)


def _variables(value: object) -> tuple[str, ...]:
    """Return names of variables; Codex may have an object for one, with where it comes from."""
    items: Iterable[object] = value if isinstance(value, list) else ()
    return _texts([item.get("name") if isinstance(item, dict) else item for item in items])


def _pairs(value: object) -> dict[str, str]:
    items = value.items() if isinstance(value, dict) else ()
    return {str(name): said for name, item in items if (said := _said(item)) is not None}


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, dict | list) else value


_MOST: Final = 10_000
_TELLING: Final = ("command", "url", "httpUrl", "serverUrl", "cmd", "uri", "baseUrl", "transport")


def entries_of(file: ConfigFile, value: Any) -> tuple[Entry, ...]:
    """Return the entries of a file as places, keys and raw values, in the file's order.

    The other keys of the row count where its own is not there, or leads to no more than the other's beginning.
    """
    return tuple(islice(_entries(file, value), _MOST))


def looks_like_server(raw: object) -> bool:
    """Tell whether an object can't be anything but a server's entry: it has a command or an address."""
    return isinstance(raw, dict) and any(name in raw for name in _TELLING)


def reach(value: Any, key: tuple[str, ...], where: Where = ()) -> Iterator[tuple[Where, Any]]:
    """Yield what a key leads to, with its place; ``*`` is any key."""
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
            # Without a key of its own, a file may hold anything.
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
