"""Split the entries of clients' files into plain texts, references and secrets, which become variables."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit, urlunsplit

from truename.config.interpolate import VARIABLE
from truename.config.secrets import in_args, in_command, in_env, in_header, in_url, masked, repeated
from truename.config.servers import ServerConfig
from truename.config.templates import Hole, Ref, Template, translate, variable_name, written

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence

__all__ = [
    "FoundEntry",
    "TemplatedEntry",
    "Variable",
    "Variables",
    "address",
    "is_gateway",
    "marked",
    "program",
    "take_apart",
]

_SHELLS: Final = frozenset({"cmd", "cmd.exe"})
_RUNNERS: Final = frozenset({"npx", "uvx", "bunx", "pnpx", "pipx"})
_YES: Final = frozenset({"-y", "--yes"})
_LATEST: Final = re.compile(r"(?P<package>@?[\w./-]+)@latest")
# Paths that only the gateway is likely to serve.
_GATEWAYS: Final = ("/mcp/only/", "/mcp/for/", "/mcp/servers/", "/mcp/search")
_PORT: Final = 8750
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_MARK: Final = "\0"


@dataclass(frozen=True, kw_only=True)
class FoundEntry:
    """A server entry in a client's file: the file, the place in it, and the entry with its unresolved texts.

    ``spelling`` is how references are written there (`spelling_of`), ``base`` the project or plugin of the file.
    ``left_out`` are fields of the entry that ``server`` cannot represent, ``remarks`` are notes for people.
    """

    client: str
    title: str
    file: str
    where: str
    server: ServerConfig
    spelling: str = "braces"
    base: Path | None = None
    left_out: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """The place, for people."""
        return f"{self.file} ({self.where})" if self.where else self.file

    @property
    def guarded(self) -> FoundEntry:
        """The same entry without secrets in its key: some clients use an address as the key."""
        key = masked(self.server.key)
        if key == self.server.key:
            return self
        return replace(self, where=masked(self.where), server=replace(self.server, key=key))


@dataclass(frozen=True, kw_only=True)
class TemplatedEntry:
    """A found entry with its texts as templates, in which secrets are marked."""

    seen: FoundEntry
    command: Template = ()
    args: tuple[Template, ...] = ()
    env: Mapping[str, Template] = field(default_factory=dict)
    cwd: Template = ()
    url: Template = ()
    headers: Mapping[str, Template] = field(default_factory=dict)

    def meaning(self, environ: Mapping[str, str]) -> Mapping[str, Hashable]:
        """Return all values that decide what the server does, by place; entries with equal values are one server.

        A reference has the meaning of its value if ``environ`` has one; a placeholder that only a client can fill in
        equals only that client's. Surprising: an entry with fields that cannot be represented (``envFile``) equals no
        other.
        """

        def read(template: Template) -> tuple[Hashable, ...]:
            return tuple(
                part if isinstance(part, str) else _value(part, environ, self.seen.client) for part in template
            )

        def values(*templates: Template) -> tuple[Hashable, ...]:
            return tuple(part for template in templates for part in read(template) if not isinstance(part, str))

        found: dict[str, Hashable] = dict.fromkeys(self.seen.left_out, self.seen.place)
        found["identity"] = self.seen.server.identity
        found |= {"registry_name": self.seen.server.registry_name} if self.seen.server.registry_name else {}
        if self.url:
            found["url"] = (address(_shape(self.url)), values(self.url))
            return found | {f"headers.{name.lower()}": read(template) for name, template in self.headers.items()}
        name, *rest = program([_shape(self.command), *map(_shape, self.args)])
        found |= {"command": (name, values(self.command)), "args": (*rest, values(*self.args))}
        found |= {"cwd": read(self.cwd)} if self.cwd else {}
        return found | {f"env.{name}": read(template) for name, template in self.env.items()}

    def settled(self, environ: Mapping[str, str]) -> TemplatedEntry:
        """Return the entry with references whose default is a secret replaced by that secret, unless they are set.

        Two entries may have different defaults for one name, and each keeps its own.
        """

        def filled(template: Template) -> Template:
            return tuple(
                Hole(part.name, own=True, value=part.value)
                if isinstance(part, Ref) and part.value is not None and not environ.get(part.name)
                else part
                for part in template
            )

        return self.changed(filled)

    def changed(self, change: Callable[[Template], Template]) -> TemplatedEntry:
        """Return the entry with each of its texts changed."""
        return replace(
            self,
            command=change(self.command),
            args=tuple(map(change, self.args)),
            env={name: change(template) for name, template in self.env.items()},
            cwd=change(self.cwd),
            url=change(self.url),
            headers={name: change(template) for name, template in self.headers.items()},
        )

    def variables(self) -> tuple[tuple[str, Ref | Hole], ...]:
        """Return references and secrets with their places, in an order that all entries of one server share."""
        return tuple((place, part) for place, parts in self.templates() for part in parts if not isinstance(part, str))

    @property
    def secrets(self) -> tuple[str | None, ...]:
        """The secrets in the entry, None for a reference; in the order of `variables`."""
        return tuple(part.value if isinstance(part, Hole) else None for _, part in self.variables())

    def templates(self) -> Iterator[tuple[str, Template]]:
        """Yield every text with its place in the entry."""
        yield "command", self.command
        yield from ((f"args[{i}]", template) for i, template in enumerate(self.args))
        yield from ((f"env.{name}", self.env[name]) for name in sorted(self.env))
        yield "cwd", self.cwd
        yield "url", self.url
        yield from ((f"headers.{name}", self.headers[name]) for name in sorted(self.headers, key=str.lower))


def take_apart(seen: FoundEntry) -> TemplatedEntry:
    """Return a found entry with its texts as templates."""

    def template(text: str | None) -> Template:
        return translate(text or "", seen.spelling, seen.base)

    server = seen.server
    return TemplatedEntry(
        seen=seen,
        command=in_command(template(server.command)),
        args=in_args(map(template, server.args)),
        env={name: in_env(name, template(value)) for name, value in server.env.items()},
        cwd=template(server.cwd),
        url=in_url(template(server.url)),
        headers={name: in_header(name, template(value)) for name, value in server.headers.items()},
    )


def marked(entries: Iterable[TemplatedEntry]) -> list[TemplatedEntry]:
    """Return the entries; a secret that is marked in one of them is marked in all."""
    entries = list(entries)
    again = repeated(part for entry in entries for _, part in entry.variables() if isinstance(part, Hole))
    return [entry.changed(again) for entry in entries]


def is_gateway(server: ServerConfig) -> bool:
    """Return whether the entry is Truename itself, which must not become one of its servers."""
    if server.command is not None:
        words = [_basename(server.command), *server.args]
        at = next((i for i, word in enumerate(words) if word.startswith("truename")), None)
        return at is not None and "serve" in words[at:]
    try:
        parts = urlsplit(server.url or "")
        local = parts.hostname in _LOOPBACK
        return local and (parts.port == _PORT or parts.path.startswith(_GATEWAYS))
    except ValueError:
        return False


def _value(part: Ref | Hole, environ: Mapping[str, str], client: str) -> Hashable:
    if isinstance(part, Hole):
        return ("value", part.value) if part.value is not None else ("client", client, part.said)
    if (found := environ.get(part.name, "")) or (part.default is None and part.name in environ):
        return ("value", found)
    return ("variable", part.name, part.default)


def _shape(template: Template) -> str:
    return "".join(part if isinstance(part, str) else _MARK for part in template)


def program(words: Sequence[str]) -> tuple[str, ...]:
    """Return a command without parts that don't matter: ``cmd /c``, the runner's path, ``-y``, ``@latest``.

    >>> program(["/usr/bin/npx", "-y", "@a/files@latest", "/srv"])
    ('npx', '@a/files', '/srv')
    """
    if not words:
        return ()
    if _basename(words[0]) in _SHELLS and len(words) > 2 and words[1].lower() == "/c":
        words = words[2:]
    runner = _basename(words[0]).removesuffix(".cmd").removesuffix(".exe")
    if runner not in _RUNNERS:
        return tuple(words)
    rest = [word for word in words[1:] if word not in _YES]
    return runner, *(match["package"] if (match := _LATEST.fullmatch(word)) else word for word in rest)


def _basename(command: str) -> str:
    return PureWindowsPath(command).name if "\\" in command else PurePosixPath(command).name


def address(url: str) -> str:
    """Return an address in one spelling: a host in lower case, no slash at the end.

    >>> address("https://me:Secret@A.example/mcp/")
    'https://me:Secret@a.example/mcp'
    """
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return url
    user, at, host = parts.netloc.rpartition("@")
    return urlunsplit((parts.scheme.lower(), f"{user}{at}{host.lower()}", parts.path.rstrip("/"), parts.query, ""))


@dataclass(frozen=True, kw_only=True)
class Variable:
    """A variable that the proposal refers to.

    ``places`` are the files and keys that hold its value now; ``said`` is the placeholder there, if only the client
    could fill it in. ``value`` is never shown, and None if no place holds one. If it is not ``needed``, only servers
    that are switched off refer to it.
    """

    name: str
    value: str | None = field(default=None, repr=False)
    places: tuple[str, ...] = ()
    said: str = ""
    is_set: bool = False
    has_default: bool = False
    needed: bool = True


@dataclass(kw_only=True)
class _FoundVariable:
    values: set[str]
    places: dict[str, None]
    said: str = ""
    asked: str = ""
    has_default: bool = False
    needed: bool = False


class Variables:
    """Names a variable for each secret: its own name if that is free, else prefixed with the server's key."""

    def __init__(self, environ: Mapping[str, str], reserved: Collection[str]) -> None:
        self._environ = environ
        # A name that is referred to already means a variable of the environment, not a value in another file.
        self._reserved = reserved
        self._found: dict[str, _FoundVariable] = {}
        self._names: dict[tuple[str, str, str], str] = {}

    def note(self, key: str, entry: TemplatedEntry, chosen: TemplatedEntry, *, needed: bool) -> None:
        """Record an entry's values and places under the variables of the chosen entry, which is noted first."""
        seen = entry.seen
        for (place, part), (_, named) in zip(entry.variables(), chosen.variables(), strict=True):
            where = f"{seen.where}.{place}" if seen.where else place
            name = self._name(key, named, part, seen.client)
            self._note(name, part, f"{seen.file}: {where}", seen.client)
            self._found[name].needed |= needed

    def written(self, key: str, entry: TemplatedEntry) -> ServerConfig:
        """Return the server with its texts as truename.toml writes them."""

        def text(template: Template) -> str:
            return written(template, lambda hole: self._names[_spot(key, hole)])

        return ServerConfig(
            key=key,
            command=text(entry.command) if entry.seen.server.command is not None else None,
            args=tuple(map(text, entry.args)),
            env=MappingProxyType({name: text(template) for name, template in entry.env.items()}),
            cwd=text(entry.cwd) or None,
            url=text(entry.url) if entry.seen.server.url is not None else None,
            headers=MappingProxyType({name: text(template) for name, template in entry.headers.items()}),
            registry_name=entry.seen.server.registry_name,
            identity=entry.seen.server.identity,
        )

    def all(self) -> tuple[Variable, ...]:
        """Return all variables, in the order in which they were found."""
        return tuple(
            Variable(
                name=name,
                value=next(iter(found.values), None),
                places=tuple(found.places),
                said=found.said,
                is_set=name in self._environ,
                has_default=found.has_default,
                needed=found.needed,
            )
            for name, found in self._found.items()
        )

    def _note(self, name: str, part: Hole | Ref, where: str, client: str) -> None:
        found = self._found.setdefault(name, _FoundVariable(values=set(), places={}))
        if isinstance(part, Ref):
            found.has_default |= part.default is not None
            return
        found.said = found.said or part.said
        found.asked = found.asked or _asked(client, part)
        found.places[where] = None
        if part.value is not None:
            found.values.add(part.value)

    def _name(self, key: str, named: Hole | Ref, part: Hole | Ref, client: str) -> str:
        if isinstance(named, Ref):
            return named.name
        spot = _spot(key, named)
        if spot not in self._names:
            own = named.label if VARIABLE.fullmatch(named.label) else variable_name(named.label)
            longer = f"{variable_name(key)}_{own}"
            value = part.value if isinstance(part, Hole) else None
            candidates = [own, longer] if named.own else [longer]
            numbered = (f"{longer}_{number}" for number in itertools.count(2))
            asked = "" if value is not None else _asked(client, part)
            self._names[spot] = next(
                name for name in itertools.chain(candidates, numbered) if self._is_free(name, value, asked)
            )
        return self._names[spot]

    def _is_free(self, name: str, value: str | None, asked: str) -> bool:
        """Return whether a variable with this name has this value, or does not exist yet."""
        if name in self._reserved or self._environ.get(name, value) != value:
            return False
        found = self._found.get(name)
        if found is None:
            return True
        # A value that only one client knows cannot be shared.
        return found.values == {value} if value is not None else not found.values and found.asked == asked


def _asked(client: str, part: Hole | Ref) -> str:
    return f"{client} {part.said}" if isinstance(part, Hole) and part.said else ""


def _spot(key: str, hole: Hole) -> tuple[str, str, str]:
    return key, hole.label, hole.value if hole.value is not None else f"\0{hole.said}"
