"""Read another gateway's configuration key by key; every key that no importer reads is reported."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

import yaml

from truename.config.entries import FoundEntry
from truename.config.files import decode, read_text
from truename.config.servers import ServerConfig
from truename.conventions import Finding, Location, Rule, Severity
from truename.errors import ConfigError, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = [
    "RULES",
    "ConfigReading",
    "ImportedConfig",
    "ImportedRename",
    "TakenKeys",
    "bearer",
    "left",
    "read_plain",
    "read_server",
]


@dataclass(frozen=True, kw_only=True)
class ImportedRename:
    """A tool that the other gateway shows under another name."""

    server: str
    tool: str
    name: str
    where: str


@dataclass(frozen=True, kw_only=True)
class ImportedAlias:
    """A short name of a server, with which the names of its tools begin."""

    name: str
    where: str


@dataclass(frozen=True, kw_only=True)
class ImportedConfig:
    """An imported configuration; ``left`` has a finding for everything that was not imported."""

    kind: str
    file: str
    seen: tuple[FoundEntry, ...] = ()
    renames: tuple[ImportedRename, ...] = ()
    aliases: Mapping[str, ImportedAlias] = field(default_factory=dict)
    left: tuple[Finding, ...] = ()


def _rule(code: str, name: str, severity: Severity, what: str, why: str) -> Rule:
    return Rule(code=code, name=name, severity=severity, what=what, why=why)


_W, _N, _E = Severity.WARNING, Severity.NOTE, Severity.ERROR
RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        rule.name: rule
        for rule in (
            _rule("IM001", "server", _E, "A server cannot be imported.", "Its tools are missing."),
            _rule("IM002", "filter", _W, "A list hides or allows tools.", "Tools that were hidden become visible."),
            _rule("IM003", "rename", _W, "A name cannot be kept.", "The tool gets another name than before."),
            _rule("IM004", "description", _N, "A text about a tool is replaced.", "Models read the server's own text."),
            _rule(
                "IM005", "access", _W, "An access rule cannot be imported.", "Calls that were refused will be allowed."
            ),
            _rule("IM006", "kept-elsewhere", _W, "A value is not in the file.", "It has to be copied by hand."),
            _rule("IM007", "setting", _N, "A setting has no counterpart.", "The gateway behaves differently."),
        )
    }
)
_REMEDY: Final[Mapping[str, str]] = MappingProxyType(
    {
        "server": "Add it to the configuration by hand.",
        "filter": "Deny the hidden tools with [policy], or show fewer tools with a profile.",
        "rename": "Choose another name under [overrides.universal], or leave it to Truename.",
        "description": "Write it under [tools], if models rely on it.",
        "access": "Restrict access with [policy] or profiles, or leave the server out.",
        "kept-elsewhere": "Copy it from the other gateway by hand.",
        "setting": "Check whether you need it.",
    }
)


def left(name: str, fact: str, *, file: str, where: str, server: str = "", tools: tuple[str, ...] = ()) -> Finding:
    """Return a finding about something that cannot be imported; ``name`` is a rule of `RULES`."""
    return Finding(
        rule=RULES[name],
        fact=fact,
        remedy=_REMEDY[name],
        location=Location(file=file, key=where),
        server=server,
        tools=tools,
    )


_MOST_TOOLS: Final = 5_000
_SHOWN: Final = 5
_EMPTY: Final[tuple[object, ...]] = (None, "", [], {}, False)


class ConfigReading:
    """A reader of one file, which collects servers, renames and findings."""

    def __init__(self, kind: str, title: str, path: Path | str, spelling: str = "braces") -> None:
        self.kind = kind
        self.title = title
        self.path = path
        self._spelling = spelling
        self._seen: list[FoundEntry] = []
        self._renames: list[ImportedRename] = []
        self._left: list[Finding] = []
        self._aliases: dict[str, ImportedAlias] = {}

    def beside(self, path: Path) -> ConfigReading:
        """Return a reader of another file of the same gateway; its findings are added to those of this one."""
        other = ConfigReading(self.kind, self.title, path, self._spelling)
        other._left = self._left
        return other

    def server(self, server: ServerConfig, where: str) -> None:
        """Add a server."""
        self._seen.append(
            FoundEntry(
                client=self.kind,
                title=self.title,
                file=str(self.path),
                where=where,
                server=server,
                spelling=self._spelling,
            )
        )

    def rename(self, server: str, tool: str, name: object, where: str) -> None:
        """Add a rename; a name that is not a string, or unchanged, is ignored."""
        if isinstance(name, str) and name and name != tool:
            self._renames.append(ImportedRename(server=server, tool=tool, name=name, where=where))

    def alias(self, server: str, alias: str, where: str) -> None:
        """Add the short name with which the names of a server's tools begin."""
        if alias != server:
            self._aliases[server] = ImportedAlias(name=alias, where=where)

    def leave(self, rule: str, fact: str, where: str, *, server: str = "", tools: tuple[str, ...] = ()) -> None:
        """Add a finding about something that cannot be imported."""
        self._left.append(left(rule, fact, file=str(self.path), where=where, server=server, tools=tools))

    def filtered(self, taken: TakenKeys, *names: str, server: str) -> None:
        """Add a finding for each list of shown or hidden tools."""
        for name in names:
            tools = taken.names(name)
            if tools:
                shown = ", ".join(excerpt(tool)[1:-1] for tool in tools[:_SHOWN])
                more = f" and {len(tools) - _SHOWN:,} more" if len(tools) > _SHOWN else ""
                what = f"The list {name} of {excerpt(server)} ({shown}{more}) was not imported."
                self.leave("filter", what, taken.where(name), server=server, tools=tools)

    def descriptions(self, taken: TakenKeys, *names: str, server: str) -> None:
        """Add a finding for each replaced description; the objects' keys are names of tools."""
        for name in names:
            for tool in taken.object(name):
                self.description(tool, f"{taken.where(name)}.{tool}", server=server)

    def description(self, tool: str, where: str, *, server: str) -> None:
        """Add a finding about a replaced description of a tool."""
        fact = f"The description of tool {excerpt(tool)} of {excerpt(server)} was not imported."
        self.leave("description", fact, where, server=server, tools=(tool,))

    def switched_off(self, tool: str, where: str, *, server: str) -> None:
        """Add a finding about a disabled tool."""
        fact = f"Tool {excerpt(tool)} of {excerpt(server)} was disabled, and becomes visible."
        self.leave("filter", fact, where, server=server, tools=(tool,))

    def rest(self, taken: TakenKeys, *, server: str = "", rules: Mapping[str, str] = MappingProxyType({})) -> None:
        """Add a finding for each key that was not read; ``rules`` maps keys to rules other than ``setting``."""
        whose = f" of {excerpt(server)}" if server else ""
        for name in taken.untaken():
            fact = f"{excerpt(name)}{whose} was not imported."
            self.leave(rules.get(name, "setting"), fact, taken.where(name), server=server)

    def result(self) -> ImportedConfig:
        """Return the collected configuration."""
        return ImportedConfig(
            kind=self.kind,
            file=str(self.path),
            seen=tuple(self._seen),
            renames=tuple(self._renames),
            aliases=MappingProxyType(dict(self._aliases)),
            left=tuple(self._left),
        )


class TakenKeys:
    """An object of the file that records which of its keys were read.

    A key whose value has another type than requested stays unread, so it is reported by `ConfigReading.rest`.
    """

    def __init__(self, values: object, where: str) -> None:
        self._values: Mapping[str, object] = values if isinstance(values, dict) else {}
        self._where = where
        self._taken: set[str] = set()

    def where(self, name: str) -> str:
        """Return the dotted path of a key within the configuration, for messages."""
        return f"{self._where}.{name}" if self._where and name else self._where or name

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) not in _EMPTY

    def ignore(self, *names: str) -> None:
        """Mark keys as read whose values do not matter (titles, schemas, dates)."""
        self._taken.update(names)

    def give_back(self, name: str) -> None:
        """Mark a key as unread again."""
        self._taken.discard(name)

    def untaken(self) -> Iterator[str]:
        """Yield the unread keys whose values are not empty."""
        for name, value in self._values.items():
            if name not in self._taken and value not in _EMPTY:
                yield str(name)

    def text(self, name: str) -> str | None:
        """Return a string, None if it is missing or empty."""
        value = self._values.get(name)
        if isinstance(value, str):
            self._taken.add(name)
            return value or None
        return None

    def truth(self, name: str) -> bool | None:
        """Return a boolean, None if there is none."""
        value = self._values.get(name)
        if isinstance(value, bool):
            self._taken.add(name)
            return value
        return None

    def number(self, name: str) -> float | None:
        """Return a positive number, None if there is none."""
        value = self._values.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf"):
            self._taken.add(name)
            return float(value)
        return None

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of strings; numbers are converted."""
        value = self._values.get(name)
        if not isinstance(value, list) or not all(isinstance(item, str | int | float) for item in value):
            return ()
        self._taken.add(name)
        return tuple(map(_said_reading, value))

    def names(self, name: str) -> tuple[str, ...]:
        """Return names of tools: the items of a list, or the keys of an object."""
        value = self._values.get(name)
        if isinstance(value, dict):
            self._taken.add(name)
            return tuple(str(key) for key in value)[:_MOST_TOOLS]
        return self.texts(name)[:_MOST_TOOLS]

    def pairs(self, name: str) -> dict[str, str]:
        """Return an object of strings; it is marked as read only if it has no other values."""
        found = self.object(name)
        if not all(value is None or isinstance(value, str | int | float) for value in found.values()):
            self._taken.discard(name)
        return {key: _said_reading(value) for key, value in found.items() if isinstance(value, str | int | float)}

    def object(self, name: str) -> dict[str, Any]:
        """Return an object; empty if there is none."""
        value = self._values.get(name)
        if not isinstance(value, dict):
            return {}
        self._taken.add(name)
        return {str(key): item for key, item in value.items()}

    def items(self, name: str) -> list[Any]:
        """Return a list of any values; empty if there is none."""
        value = self._values.get(name)
        if not isinstance(value, list):
            return []
        self._taken.add(name)
        return value

    def inside(self, name: str) -> TakenKeys:
        """Return a nested object as `TakenKeys`."""
        return TakenKeys(self.object(name), self.where(name))


def _said_reading(value: str | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# The pure Python parser of YAML takes about a second for each of these limits.
_MAX_YAML: Final = 2 * 1024 * 1024
_MAX_MERGED: Final = 10_000
_MAX_DEPTH: Final = 100
_MOST_VALUES: Final = 500_000


class _Loader(yaml.SafeLoader):
    """A safe loader that also refuses duplicate keys, deep nesting and merges that grow without bound."""

    merged = 0
    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise yaml.YAMLError("it is nested too deeply")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        self.merged += len(node.value)
        if self.merged > _MAX_MERGED * 10:
            raise yaml.YAMLError("its << keys merge too much")

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    mark = key.start_mark
                    what = f"the key {excerpt(key.value)} is duplicate (line {mark.line + 1})"
                    raise yaml.YAMLError(what)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_plain(path: Path) -> dict[str, object]:
    """Parse a file that holds one JSON or YAML object. Raises `ConfigError` for anything else."""
    text = read_text(path)
    if text.lstrip().startswith(("{", "//", "/*")):
        return decode(text, str(path), toml=False)
    if len(text) > _MAX_YAML:
        raise _error(path, f"it is larger than {_MAX_YAML:,} characters", "Give a configuration file.")
    try:
        found = yaml.load(text, _Loader)  # noqa: S506 - a safe loader, made stricter
        _measure(found, {})
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise _error(path, f"it is not YAML ({_said_source(error)})", "Fix the file there.") from None
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise _error(path, "it is not an object with named keys", "Give a gateway's configuration file.")
    return found


def _measure(value: object, known: dict[int, int]) -> int:
    """Return the number of values with aliases expanded. Raises `YAMLError` for too many, or a value inside itself."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        # While it is being measured, the value counts as too large: meeting it again means that it contains itself.
        known[id(value)] = _MOST_VALUES
        items = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_measure(item, known) for item in items)
    if known[id(value)] >= _MOST_VALUES:
        raise yaml.YAMLError("its aliases make it too large")
    return known[id(value)]


def _said_source(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    what = str(getattr(error, "problem", None) or error) if not isinstance(error, RecursionError) else "too deep"
    place = f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
    return f"{excerpt(what)[1:-1]}{place}"


def _error(path: Path, problem: str, remedy: str) -> ConfigError:
    return ConfigError(file=str(path), key="", problem=problem, remedy=remedy)


_TYPES: Final[Mapping[str, Literal["http", "sse"]]] = {
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamablehttp": "http",
    "remote": "http",
    "auto": "http",
    "sse": "sse",
}
_LOCAL: Final = frozenset({"", "stdio", "local"})


def bearer(token: str) -> dict[str, str]:
    """Return the Authorization header for a bearer token."""
    return {"Authorization": token if token.lower().startswith("bearer ") else f"Bearer {token}"}


def read_server(
    key: str,
    taken: TakenKeys,
    reading: ConfigReading,
    *,
    cwd: str = "cwd",
    kind: str = "type",
    seconds: float = 1.0,
    remote: Literal["http", "sse"] = "http",
    headers: Mapping[str, str] = MappingProxyType({}),
    disabled: bool = False,
) -> ServerConfig | None:
    """Read a server's entry; return None, with a finding, if it cannot be imported.

    ``seconds`` is the unit of its timeout, ``remote`` the transport of a URL without a type.
    """
    named = (taken.text(kind) or taken.text("type") or taken.text("transport") or "").lower()
    url = taken.text("url") or taken.text("httpUrl") or taken.text("serverUrl")
    command, args, env = taken.text("command"), taken.texts("args"), taken.pairs("env")
    directory, sent = taken.text(cwd), taken.pairs("headers")
    timeout = taken.number("timeout")
    off = taken.truth("disabled") is True or taken.truth("enabled") is False or disabled
    if named not in _LOCAL and named not in _TYPES:
        fact = f"Server {excerpt(key)} is of type {excerpt(named)}, which is not a known MCP transport."
        reading.leave("server", fact, taken.where(kind), server=key)
        return None
    if command is None and url is None:
        reading.leave("server", f"Server {excerpt(key)} has neither a command nor a url.", taken.where(""), server=key)
        return None
    is_remote = url is not None and (command is None or named in _TYPES)
    if command is not None and url is not None:
        other = "command" if is_remote else "url"
        fact = f"Server {excerpt(key)} has both a command and a url; its {other} is left out."
        reading.leave("setting", fact, taken.where(other), server=key)
    return ServerConfig(
        key=key,
        command=None if is_remote else command,
        args=() if is_remote else args,
        env=MappingProxyType({} if is_remote else env),
        cwd=None if is_remote else directory,
        url=url if is_remote else None,
        headers=MappingProxyType({**sent, **headers} if is_remote else {}),
        type=_TYPES.get(named, remote) if is_remote else "stdio",
        timeout=None if timeout is None else timeout * seconds,
        disabled=off,
    )
