"""One server as one client has it, taken apart: what it does, apart from how its secrets are spelled."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit, urlunsplit

from truename.config.secrets import in_args, in_command, in_env, in_header, in_url, masked, repeated
from truename.config.templates import Hole, Template, translate

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from truename.config.model import ServerConfig
    from truename.config.templates import Ref

__all__ = ["Entry", "Seen", "is_gateway", "marked", "program", "take_apart"]

_SHELLS: Final = frozenset({"cmd", "cmd.exe"})
_RUNNERS: Final = frozenset({"npx", "uvx", "bunx", "pnpx", "pipx"})
_YES: Final = frozenset({"-y", "--yes"})
_LATEST: Final = re.compile(r"(?P<package>@?[\w./-]+)@latest")
_PORT: Final = 8750
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_MARK: Final = "\0"


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A server where it was found: whose file, the place in it, and the entry with its texts as they stand there.

    ``spelling`` is how references are written there (`spelling_of`), ``base`` the project or plugin of the file,
    ``remarks`` what is not in the entry and people should know.
    """

    client: str
    title: str
    file: str
    where: str
    server: ServerConfig
    spelling: str = "braces"
    base: Path | None = None
    remarks: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """The place, for people."""
        return f"{self.file} ({self.where})" if self.where else self.file

    @property
    def guarded(self) -> Seen:
        """The same without secrets in the key: some have an address for one."""
        key = masked(self.server.key)
        if key == self.server.key:
            return self
        return replace(self, where=masked(self.where), server=replace(self.server, key=key))


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A sighting with its texts as templates, its secrets marked."""

    seen: Seen
    command: Template = ()
    args: tuple[Template, ...] = ()
    env: Mapping[str, Template] = field(default_factory=dict)
    cwd: Template = ()
    url: Template = ()
    headers: Mapping[str, Template] = field(default_factory=dict)

    @property
    def identity(self) -> Hashable:
        """What two sightings of one server have in common: the program or address, not how secrets are spelled.

        Two that declare other ids of their tools are two servers.
        """
        declared = self.seen.server.identity
        if self.url:
            headers = _shapes({name.lower(): t for name, t in self.headers.items()})
            return ("http", _address(_shape(self.url)), headers, declared)
        words = [_shape(self.command), *map(_shape, self.args)]
        return ("stdio", program(words), _shape(self.cwd), _shapes(self.env), declared)

    def variables(self) -> tuple[tuple[str, Ref | Hole], ...]:
        """Return what is no plain text, with its place, in an order that all sightings of one server share."""
        return tuple((place, part) for place, parts in self.templates() for part in parts if not isinstance(part, str))

    @property
    def secrets(self) -> tuple[str | None, ...]:
        """The secrets that stand there, None for what names a variable; in the order of `variables`."""
        return tuple(part.value if isinstance(part, Hole) else None for _, part in self.variables())

    def templates(self) -> Iterator[tuple[str, Template]]:
        """Yield every text with the place where it stands in the entry."""
        yield "command", self.command
        yield from ((f"args[{i}]", template) for i, template in enumerate(self.args))
        yield from ((f"env.{name}", self.env[name]) for name in sorted(self.env))
        yield "cwd", self.cwd
        yield "url", self.url
        yield from ((f"headers.{name}", self.headers[name]) for name in sorted(self.headers, key=str.lower))


def take_apart(seen: Seen) -> Entry:
    """Return the sighting as templates."""

    def template(text: str | None) -> Template:
        return translate(text or "", seen.spelling, seen.base)

    server = seen.server
    return Entry(
        seen=seen,
        command=in_command(template(server.command)),
        args=in_args(map(template, server.args)),
        env={name: in_env(name, template(value)) for name, value in server.env.items()},
        cwd=template(server.cwd),
        url=in_url(template(server.url)),
        headers={name: in_header(name, template(value)) for name, value in server.headers.items()},
    )


def marked(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries with every secret of one of them marked in all."""
    entries = list(entries)
    again = repeated(part for entry in entries for _, part in entry.variables() if isinstance(part, Hole))
    return [
        replace(
            entry,
            command=again(entry.command),
            args=tuple(map(again, entry.args)),
            env={name: again(template) for name, template in entry.env.items()},
            cwd=again(entry.cwd),
            url=again(entry.url),
            headers={name: again(template) for name, template in entry.headers.items()},
        )
        for entry in entries
    ]


def is_gateway(server: ServerConfig) -> bool:
    """Tell whether the entry is Truename itself, which must not become a server of its own."""
    if server.command is not None:
        words = [_basename(server.command), *server.args]
        at = next((i for i, word in enumerate(words) if word.startswith("truename")), None)
        return at is not None and "serve" in words[at:]
    try:
        parts = urlsplit(server.url or "")
        local = parts.hostname in _LOOPBACK
        return local and (parts.port == _PORT or parts.path.startswith(("/mcp/only/", "/mcp/for/")))
    except ValueError:
        return False


def _shape(template: Template) -> str:
    return "".join(part if isinstance(part, str) else _MARK for part in template)


def _shapes(templates: Mapping[str, Template]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, _shape(template)) for name, template in templates.items()))


def program(words: Sequence[str]) -> tuple[str, ...]:
    """Return a command without what makes no other server: ``cmd /c``, the runner's path, ``-y``, ``@latest``.

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


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    return urlunsplit((parts.scheme.lower(), parts.netloc.lower(), parts.path.rstrip("/"), parts.query, ""))
