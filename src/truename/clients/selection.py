"""Select the servers of a client that will go through the gateway, with a note for each server that will not."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import zip_longest
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.clients.find import root_of_plugin
from truename.clients.gateway_address import shown_by
from truename.clients.plan import PlanNote
from truename.clients.server_entries import entries_of, read_entry
from truename.clients.table import config_files
from truename.config.entries import FoundEntry, address, program, take_apart
from truename.config.templates import Ref, spelling_of, translate
from truename.editing import cannot_edit
from truename.errors import excerpt
from truename.files.user import at_home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from truename.clients.find import ClientServer, FoundFile
    from truename.clients.gateway_address import GatewayAddress
    from truename.clients.machine import Machine
    from truename.config import ServerConfig
    from truename.editing import Document

__all__ = [
    "LOCAL",
    "OF_PROJECT",
    "OWN_SCOPES",
    "READ_ONLY",
    "SelectedServer",
    "ServerSelection",
    "document_of",
    "doubtful_form_notes",
    "editable_files",
    "find_counterpart",
    "found_entry",
    "secrets_of",
    "select_servers",
    "servers_in",
]

# An unknown part of a text, such as a reference to an unset variable; no configuration holds a NUL.
_UNKNOWN: Final = re.compile(r"\0[^\0]*\0")
# Fields that get credentials in ways that the gateway does not have.
_CREDENTIALS: Final = frozenset({"envFile", "headersHelper"})
_MAIN: Final = frozenset({"command", "args", "url"})


class _Likeness(IntEnum):
    OTHER = 0
    UNKNOWN = 1
    SAME = 2


class ServerMatch(NamedTuple):
    """The gateway's server that equals a client's; or None, with the key of a similar one and the differing fields.

    ``unset`` are variables without a value, because of which the similar server may or may not be the same.
    """

    server: ServerConfig | None
    near: str = ""
    differing: tuple[str, ...] = ()
    unset: tuple[str, ...] = ()


class _Texts(NamedTuple):
    """The strings of a server that are compared, by field, with unknown parts marked by NUL characters."""

    words: tuple[str, ...]
    others: Mapping[str, str]


def find_counterpart(
    seen: FoundEntry,
    known: Iterable[ServerConfig],
    environ: Mapping[str, str],
    was_created_from: Callable[[str, FoundEntry], bool] = lambda _, __: False,
) -> ServerMatch:
    """Find the gateway's server that is the same as a client's entry, trying the one with the same key first.

    ``environ`` resolves the client's references. ``was_created_from`` tells whether a server was created from the
    entry; it decides where a variable of that server has no value.
    """
    mine = _of_client(seen, environ)
    enabled = sorted((one for one in known if not one.disabled), key=lambda one: one.key != seen.server.key)
    compared = [
        (one, _compared(mine, _of_gateway(one), str(seen.base), exactly=exactly))
        for exactly in (True, False)
        for one in enabled
    ]
    unreadable = tuple(name for name in seen.left_out if name in _CREDENTIALS)
    possible = [(one, places) for one, places in compared if _Likeness.OTHER not in places.values()]
    if possible and unreadable:
        return ServerMatch(None, possible[0][0].key, unreadable)
    if same := next((one for one, places in possible if not places), None):
        return ServerMatch(same)
    if made := next((one for one, _ in possible if was_created_from(one.key, seen)), None):
        return ServerMatch(made)
    if possible:
        one, places = possible[0]
        return ServerMatch(None, one.key, tuple(places), tuple(reference.name for reference in one.unset))
    near = ((one, places) for one, places in compared if one.key == seen.server.key or not _MAIN & places.keys())
    return next((ServerMatch(None, one.key, tuple(places)) for one, places in near), ServerMatch(None))


def _of_client(seen: FoundEntry, environ: Mapping[str, str]) -> _Texts:
    def resolve(text: str) -> str:
        return "".join(
            part if isinstance(part, str) else _value(part, environ) if isinstance(part, Ref) else f"\0{part.said}\0"
            for part in translate(text, seen.spelling, seen.base)
        )

    return _texts(seen.server, lambda text: resolve(text.replace("\0", "\ufffd")))


def _value(part: Ref, environ: Mapping[str, str]) -> str:
    found = environ.get(part.name, "")
    if found or (part.default is None and part.name in environ):
        return found
    return f"\0${part.name}\0" if part.default is None else part.default


def _of_gateway(server: ServerConfig) -> _Texts:
    def resolve(text: str) -> str:
        for reference in server.unset:
            text = text.replace(f"${{{reference.name}}}", f"\0${reference.name}\0")
        return text

    return _texts(server, resolve)


def _texts(server: ServerConfig, resolve: Callable[[str], str]) -> _Texts:
    if server.url is not None:
        headers = {f"headers.{name.lower()}": resolve(value) for name, value in server.headers.items()}
        return _Texts((), {"url": address(resolve(server.url)), **headers})
    words = program([resolve(word) for word in (server.command or "", *server.args)])
    env = {f"env.{name}": resolve(value) for name, value in server.env.items()}
    return _Texts(words, {**env, **({"cwd": str(at_home(resolve(server.cwd)))} if server.cwd else {})})


def _compared(mine: _Texts, theirs: _Texts, base: str, *, exactly: bool) -> dict[str, _Likeness]:
    """Return the fields that differ, or whose equality is unknown."""
    found: dict[str, _Likeness] = {}
    for at, (one, other) in enumerate(zip_longest(mine.words, theirs.words)):
        place = "args" if at else "command"
        like = _likeness(one, other)
        if not at and not exactly and one and other and _is_same_program(one, other):
            like = _Likeness.SAME
        found[place] = min(like, found.get(place, like))
    for place in dict.fromkeys((*mine.others, *theirs.others)):
        found[place] = _likeness(mine.others.get(place), theirs.others.get(place))
    cwd = mine.others.get("cwd")
    if cwd and not _is_absolute(cwd):
        # It is relative to wherever the client was started.
        found["cwd"] = _Likeness.UNKNOWN
    elif not exactly and "cwd" not in theirs.others and cwd == base:
        # The client starts it in the project by default, and so does the gateway.
        found["cwd"] = _Likeness.SAME
    return {place: like for place, like in found.items() if like is not _Likeness.SAME}


def _likeness(one: str | None, other: str | None) -> _Likeness:
    if one == other:
        return _Likeness.SAME
    if one is None or other is None:
        return _Likeness.OTHER
    return _Likeness.UNKNOWN if _covers(one, other) or _covers(other, one) else _Likeness.OTHER


def _covers(pattern: str, text: str) -> bool:
    # Part by part, in linear time: a regular expression could backtrack on hostile input.
    first, *parts = _UNKNOWN.split(pattern)
    if not parts or not text.startswith(first):
        return False
    *middle, last = parts
    at = len(first)
    for part in middle:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(text) - at >= len(last) and text.endswith(last)


def _is_same_program(one: str, other: str) -> bool:
    """Return whether two commands are the same program, at least one of them without a path."""
    bare = [name for name in (one, other) if "/" not in name and "\\" not in name]
    return bool(bare) and _stem(one) == _stem(other)


def _stem(command: str) -> str:
    name = PureWindowsPath(command).name if "\\" in command else PurePosixPath(command).name
    for ending in (".cmd", ".exe", ".bat"):
        if name.lower().endswith(ending):
            return name[: -len(ending)].lower()
    return name


# Claude Code's scope for servers that a user configured for one project, kept in the user's own file.
LOCAL: Final = "local"
OF_PROJECT: Final = frozenset({"project", LOCAL})
_PLUGIN: Final = "plugin"


def found_entry(client_server: ClientServer, found: FoundFile, machine: Machine) -> FoundEntry:
    """Return a server in a file as a `FoundEntry`, with the directory in which its client starts it."""
    base, path, server = _base_directory(client_server, machine), client_server.path, client_server.server
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in client_server.where)
    is_program = server.command is not None and not (server.cwd or "").startswith("$")
    if is_program and base is not None and client_server.scope != _PLUGIN:
        # The client starts it there.
        server = replace(server, cwd=str(base / server.cwd) if server.cwd else str(base))
    return FoundEntry(
        client=client_server.client or "file",
        title=found.file.title or "file",
        file=f"~/{path.relative_to(machine.home)}" if path.is_relative_to(machine.home) else str(path),
        where="".join(steps).removeprefix("."),
        server=server,
        spelling=spelling_of(client_server.client),
        base=base,
        left_out=client_server.left_out,
        remarks=tuple(_remarks(client_server, base)),
    )


def _remarks(client_server: ClientServer, base: Path | None) -> Iterator[str]:
    cwd = client_server.server.cwd
    if cwd and base is None and not (cwd.startswith(("$", "~", "{", "%")) or _is_absolute(cwd)):
        yield "cwd is now relative to this file; before, to the directory in which the client was started"
    if client_server.left_out:
        yield f"not carried over: {', '.join(client_server.left_out)}"


def _base_directory(client_server: ClientServer, machine: Machine) -> Path | None:
    """Return the directory of the project or plugin that a server belongs to; None for a server of the user.

    It is the project that the entry's place in the file names; else the examined project, if the file is in it; else
    the file's directory, or the one above if that begins with a dot (``.vscode``).
    """
    if client_server.scope == _PLUGIN:
        return root_of_plugin(client_server.path)
    if client_server.scope not in OF_PROJECT:
        return None
    named = (Path(part) for part in client_server.where[1:2] if client_server.scope == LOCAL and isinstance(part, str))
    if directory := next((path for path in named if path.is_absolute()), None):
        return directory
    file = client_server.path.absolute()
    if file.is_relative_to(machine.project):
        return machine.project
    return file.parent.parent if file.parent.name.startswith(".") else file.parent


def _is_absolute(text: str) -> bool:
    return PurePosixPath(text).is_absolute() or PureWindowsPath(text).is_absolute()


# Scopes that belong to the user alone; a project's files belong to its team, managed ones to an administrator.
OWN_SCOPES: Final = frozenset({"user", "local", "deployment"})
READ_ONLY: Final = frozenset({"managed", "plugin"})
_EDITABLE: Final = frozenset({"json", "jsonc", "toml", "yaml"})
_LIKELY_SECRET: Final = 16
_PIECE: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
# Random letters split into shorter pieces than words: their capitals are anywhere.
_SHORTEST_WORD: Final = 3.5
_FORMS: Final = {
    "comment": "it has a comment",
    "trailing-comma": "it has a trailing comma",
    "bom": "it begins with a byte order mark",
}
# Values that are not secret and too common to mask: switches, numbers, paths.
_PLAIN: Final = re.compile(r"true|false|yes|no|on|off|none|\d{1,8}|[~.]{0,2}/.*|[A-Za-z]:\\.*", re.IGNORECASE)


@dataclass(frozen=True)
class SelectedServer:
    """A server of the client that will go through the gateway, where its key is ``upstream``."""

    found: FoundFile
    client_server: ClientServer
    upstream: str

    @property
    def key(self) -> str:
        """The client's own key of the server."""
        return self.client_server.server.key


@dataclass(frozen=True)
class ServerSelection:
    """The servers to connect, the entries that already point at the gateway, and notes about the others."""

    selected: tuple[SelectedServer, ...]
    already: tuple[ClientServer, ...]
    notes: tuple[PlanNote, ...]


def document_of(found: FoundFile) -> Document:
    """Return the document of a file. Raises `ConfigError` for a file without one."""
    if found.document is None:
        raise cannot_edit(found.path, "it is not a JSON, TOML or YAML document")
    return found.document


def editable_files(found: Iterable[FoundFile], scopes: frozenset[str]) -> list[FoundFile]:
    """Return the files to change. Raises `ConfigError` for one that is invalid or cannot be edited in place."""
    chosen = [one for one in found if one.file.shape and not one.file.legacy and one.file.scope in scopes]
    for one in chosen:
        if one.problem is not None:
            error = one.problem
            raise cannot_edit(one.path, error.problem, f"Nothing was changed. {error.remedy}", key=error.key)
        _check_form(one)
        if one.servers and (one.document is None or one.file.format not in _EDITABLE):
            raise cannot_edit(one.path, "it is a script, which cannot be edited in place")
    return [one for one in chosen if one.document is not None]


def _check_form(found: FoundFile) -> None:
    """Raise `ConfigError` for a file that its own client refuses: nothing written there would have an effect."""
    for quirk in () if found.document is None else found.document.quirks:
        if quirk.kind in found.file.refuses:
            problem = f"{_FORMS[quirk.kind]}, which {found.file.title} does not accept"
            remedy = "Nothing was changed. Remove it, and connect again."
            raise cannot_edit(found.path, problem, remedy, key=f"line {quirk.line}, column {quirk.column}")


def doubtful_form_notes(files: Iterable[FoundFile]) -> Iterator[PlanNote]:
    """Yield a note for each file with an extension of JSON that its client is not known to accept."""
    for found in files:
        quirks = () if found.document is None else found.document.quirks
        if quirk := next((one for one in quirks if one.kind in found.file.doubtful), None):
            fact = f"{found.path}, line {quirk.line}: {_FORMS[quirk.kind]}"
            advice = f"{found.file.title} may not accept that: remove it if its servers are missing."
            yield PlanNote(kind="info", subject=str(found.path), fact=fact, advice=advice)


def select_servers(files: Sequence[FoundFile], address: GatewayAddress, machine: Machine) -> ServerSelection:
    """Select the servers of these files that the gateway has too."""
    selected: list[SelectedServer] = []
    already: list[ClientServer] = []
    notes: list[PlanNote] = []
    seen: set[object] = set()
    for found in files:
        for client_server in found.servers:
            if (place := (client_server.path, client_server.where)) in seen:
                continue
            seen.add(place)
            if address.points_here(client_server.server):
                already.append(client_server)
                notes += _missing_server_notes(client_server, address)
                continue
            upstream = _find_upstream(found_entry(client_server, found, machine), address, notes)
            if upstream is not None:
                selected.append(SelectedServer(found, client_server, upstream))
    return ServerSelection(tuple(selected), tuple(already), tuple(notes))


def _missing_server_notes(client_server: ClientServer, address: GatewayAddress) -> Iterator[PlanNote]:
    """Yield a note if an entry points at servers that the gateway does not have."""
    shown = shown_by(client_server.server)
    wanted = (shown.only,) if shown.only is not None else shown.servers or ()
    missing = [key for key in wanted if key not in {one.key for one in address.config.enabled}]
    if missing:
        keys = ", ".join(map(excerpt, missing))
        fact = f"{excerpt(client_server.server.key)} points at {keys}, which the gateway's configuration does not have"
        advice = "Add it to the configuration, or `truename disconnect` the client and connect it again."
        yield PlanNote(kind="left", subject=client_server.server.key, fact=fact, advice=advice)


def _find_upstream(entry: FoundEntry, address: GatewayAddress, notes: list[PlanNote]) -> str | None:
    server = entry.server
    if server.disabled:
        notes.append(
            PlanNote(kind="left", subject=server.key, fact=f"{excerpt(server.key)} is disabled in this client")
        )
        return None
    match = find_counterpart(entry, address.config.servers, address.environ, address.was_created_from)
    if match.server is None and address.points_elsewhere(server):
        fact = f"{excerpt(server.key)} points to a Truename gateway at another address ({excerpt(server.url or '')})"
        advice = "To move it, run `truename disconnect` first."
        notes.append(PlanNote(kind="left", subject=server.key, fact=fact, advice=advice))
        return None
    if match.server is None:
        fact, advice = _explain_difference(entry, match)
        notes.append(PlanNote(kind="left", subject=server.key, fact=fact, advice=advice))
        return None
    return match.server.key


def _explain_difference(entry: FoundEntry, match: ServerMatch) -> tuple[str, str]:
    """Return why no server of the gateway matches an entry, and what to do; neither text contains values."""
    key, near = excerpt(entry.server.key), excerpt(match.near)
    if match.unset:
        names = f"{', '.join(match.unset)} {'is' if len(match.unset) == 1 else 'are'} not set here"
        fact = f"{key} was left unchanged: {names}, so it is unknown whether the gateway's {near} is the same server"
        return fact, "Set it to this client's value, or run `truename init --copy-secrets`."
    if match.differing:
        places = ", ".join(map(excerpt, match.differing))
        fact = f"{key} was left unchanged: the gateway's {near} is another server, which differs in {places}"
        return fact, "`truename init` creates a server for each entry that differs."
    fact = f"{key} ({entry.file}) is not in the gateway's configuration, so it was left unchanged"
    return fact, "`truename init` proposes a configuration with all servers of your clients."


def secrets_of(servers: Iterable[ServerConfig]) -> Iterator[str]:
    """Yield the strings of servers that are or may be secrets, to be masked in diffs."""
    for server in servers:
        seen = FoundEntry(client="", title="", file="", where="", server=server)
        yield from (text for text in take_apart(seen).secrets if text is not None)
        for text in (*server.env.values(), *server.headers.values()):
            if not _PLAIN.fullmatch(text):
                yield text
                yield text.rpartition(" ")[2]
        yield from (value for word in server.args if (value := _likely_secret(word)))
        if server.url and "?" in server.url:
            yield server.url.partition("?")[2]


def _likely_secret(word: str) -> str:
    """Return the part of an argument that may be a secret: a long text not made of words; "" if none.

    >>> _likely_secret("--local-timezone"), _likely_secret("--key=a1b2c3d4e5f6a7b8")
    ('', 'a1b2c3d4e5f6a7b8')
    """
    _, equals, value = word.rpartition("=")
    if (word.startswith("-") and not equals) or len(value) < _LIKELY_SECRET or {"/", "@", ".", " "} & set(value):
        return ""
    pieces = _PIECE.findall(value)
    is_worded = not any(piece.isdigit() for piece in pieces) and sum(map(len, pieces)) >= _SHORTEST_WORD * len(pieces)
    return "" if is_worded else value


def servers_in(client: str, value: object) -> Iterator[ServerConfig]:
    """Yield the servers in a value, read as each kind of file of the client."""
    for file in config_files(client):
        for _, key, raw in entries_of(file, value):
            yield read_entry(file.shape, key, raw)
