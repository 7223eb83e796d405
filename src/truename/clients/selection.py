"""Select which of a client's servers the gateway takes over, and say why it leaves the others."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import zip_longest
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.clients.find import root_of_plugin
from truename.clients.gateway_address import shown_by
from truename.clients.plan import PlanNote
from truename.clients.server_entries import entries_of, read_entry
from truename.clients.table import config_files
from truename.config.entries import FoundEntry, address, program, take_apart
from truename.config.templates import Ref, spelling_of, translate
from truename.editing import left_alone
from truename.errors import excerpt
from truename.files.user import at_home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from truename.clients.find import FoundFile, Sighting
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
    "choose",
    "counterpart",
    "document_of",
    "doubtful_forms",
    "secrets_of",
    "seen_of",
    "servers_in",
    "usable",
]

# Stands for what is not known: no configuration holds a NUL.
_UNKNOWN: Final = re.compile(r"\0[^\0]*\0")
# Fields with credentials that the gateway can't have from the entry.
_CREDENTIALS: Final = frozenset({"envFile", "headersHelper"})
_MAIN: Final = frozenset({"command", "args", "url"})


class _Likeness(IntEnum):
    OTHER = 0
    UNKNOWN = 1
    SAME = 2


class ServerMatch(NamedTuple):
    """The gateway's server that is a client's; or None, with the key of one that is near and where it differs.

    ``unset`` are the variables without which it can't be told whether the near one is it.
    """

    server: ServerConfig | None
    near: str = ""
    differing: tuple[str, ...] = ()
    unset: tuple[str, ...] = ()


class _Texts(NamedTuple):
    """A server's texts as they are compared: by their place, what is not known is marked."""

    words: tuple[str, ...]
    others: Mapping[str, str]


def counterpart(
    seen: FoundEntry,
    known: Iterable[ServerConfig],
    environ: Mapping[str, str],
    was_made: Callable[[str, FoundEntry], bool] = lambda _, __: False,
) -> ServerMatch:
    """Return the gateway's server that an entry is, the one of the same key first.

    ``environ`` has what the client's references stand for; ``was_made`` tells whether a server, by its key, was made of
    the entry, which counts where a variable of that server has no value.
    """
    mine = _of_client(seen, environ)
    enabled = sorted((one for one in known if not one.disabled), key=lambda one: one.key != seen.server.key)
    compared = [
        (one, _compared(mine, _of_gateway(one), str(seen.base), exactly=exactly))
        for exactly in (True, False)
        for one in enabled
    ]
    untold = tuple(name for name in seen.left_out if name in _CREDENTIALS)
    possible = [(one, places) for one, places in compared if _Likeness.OTHER not in places.values()]
    if possible and untold:
        return ServerMatch(None, possible[0][0].key, untold)
    if same := next((one for one, places in possible if not places), None):
        return ServerMatch(same)
    if made := next((one for one, _ in possible if was_made(one.key, seen)), None):
        return ServerMatch(made)
    if possible:
        one, places = possible[0]
        return ServerMatch(None, one.key, tuple(places), tuple(reference.name for reference in one.unset))
    near = ((one, places) for one, places in compared if one.key == seen.server.key or not _MAIN & places.keys())
    return next((ServerMatch(None, one.key, tuple(places)) for one, places in near), ServerMatch(None))


def _of_client(seen: FoundEntry, environ: Mapping[str, str]) -> _Texts:
    def told(text: str) -> str:
        return "".join(
            part if isinstance(part, str) else _value(part, environ) if isinstance(part, Ref) else f"\0{part.said}\0"
            for part in translate(text, seen.spelling, seen.base)
        )

    return _texts(seen.server, lambda text: told(text.replace("\0", "\ufffd")))


def _value(part: Ref, environ: Mapping[str, str]) -> str:
    found = environ.get(part.name, "")
    if found or (part.default is None and part.name in environ):
        return found
    return f"\0${part.name}\0" if part.default is None else part.default


def _of_gateway(server: ServerConfig) -> _Texts:
    def told(text: str) -> str:
        for reference in server.unset:
            text = text.replace(f"${{{reference.name}}}", f"\0${reference.name}\0")
        return text

    return _texts(server, told)


def _texts(server: ServerConfig, told: Callable[[str], str]) -> _Texts:
    if server.url is not None:
        headers = {f"headers.{name.lower()}": told(value) for name, value in server.headers.items()}
        return _Texts((), {"url": address(told(server.url)), **headers})
    words = program([told(word) for word in (server.command or "", *server.args)])
    env = {f"env.{name}": told(value) for name, value in server.env.items()}
    return _Texts(words, {**env, **({"cwd": str(at_home(told(server.cwd)))} if server.cwd else {})})


def _compared(mine: _Texts, theirs: _Texts, base: str, *, exactly: bool) -> dict[str, _Likeness]:
    """Return the places that are not known to be the same."""
    found: dict[str, _Likeness] = {}
    for at, (one, other) in enumerate(zip_longest(mine.words, theirs.words)):
        place = "args" if at else "command"
        like = _likeness(one, other)
        if not at and not exactly and one and other and _is_same_program(one, other):
            like = _Likeness.SAME
        found[place] = min(like, found.get(place, like))
    for place in dict.fromkeys((*mine.others, *theirs.others)):
        found[place] = _likeness(mine.others.get(place), theirs.others.get(place))
    if _is_elsewhere(mine.others.get("cwd")):
        found["cwd"] = _Likeness.UNKNOWN
    elif not exactly and "cwd" not in theirs.others and mine.others.get("cwd") == base:
        # The client starts it in the project unasked, and so may the gateway.
        found["cwd"] = _Likeness.SAME
    return {place: like for place, like in found.items() if like is not _Likeness.SAME}


def _likeness(one: str | None, other: str | None) -> _Likeness:
    if one == other:
        return _Likeness.SAME
    if one is None or other is None:
        return _Likeness.OTHER
    return _Likeness.UNKNOWN if _covers(one, other) or _covers(other, one) else _Likeness.OTHER


def _covers(pattern: str, text: str) -> bool:
    # Part by part instead of a regular expression: what strangers wrote must not cost more than its length.
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
    """Tell whether two commands are one program: one with its path, one as it is found."""
    bare = [name for name in (one, other) if "/" not in name and "\\" not in name]
    return bool(bare) and _stem(one) == _stem(other)


def _stem(command: str) -> str:
    name = PureWindowsPath(command).name if "\\" in command else PurePosixPath(command).name
    for ending in (".cmd", ".exe", ".bat"):
        if name.lower().endswith(ending):
            return name[: -len(ending)].lower()
    return name


def _is_elsewhere(directory: str | None) -> bool:
    """Tell whether a client's directory is relative to wherever it was started."""
    return bool(directory) and not (
        PurePosixPath(directory or "").is_absolute() or PureWindowsPath(directory or "").is_absolute()
    )


# Claude Code keeps what a user configured for one project in the user's own file.
LOCAL: Final = "local"
OF_PROJECT: Final = frozenset({"project", LOCAL})
_PLUGIN: Final = "plugin"


def seen_of(sighting: Sighting, found: FoundFile, machine: Machine) -> FoundEntry:
    """Return a sighting in a file as a proposal takes it, with the directory in which its client would start it."""
    base = _base(sighting, machine)
    return FoundEntry(
        client=sighting.client or "file",
        title=found.file.title or "file",
        file=_short(sighting.path, machine.home),
        where=_dotted(sighting.where),
        server=_placed(sighting, base),
        spelling=spelling_of(sighting.client),
        base=base,
        left_out=sighting.left_out,
        remarks=tuple(_remarks(sighting, base)),
    )


def _remarks(sighting: Sighting, base: Path | None) -> Iterator[str]:
    cwd = sighting.server.cwd
    if cwd and base is None and not (cwd.startswith(("$", "~", "{", "%")) or _is_absolute(cwd)):
        yield "cwd is relative to this file now, and was to wherever the client was started"
    if sighting.left_out:
        yield f"not carried over: {', '.join(sighting.left_out)}"


def _base(sighting: Sighting, machine: Machine) -> Path | None:
    """Return the project or plugin that a server belongs to."""
    if sighting.scope == _PLUGIN:
        return root_of_plugin(sighting.path)
    if sighting.scope not in OF_PROJECT:
        return None
    named = (Path(part) for part in sighting.where[1:2] if sighting.scope == LOCAL and isinstance(part, str))
    return next((path for path in named if path.is_absolute()), None) or _holder(sighting.path, machine)


def _holder(file: Path, machine: Machine) -> Path:
    """Return the project of a file: the one that was looked at, or where the file lies (its ``.vscode`` apart)."""
    if file.absolute().is_relative_to(machine.project):
        return machine.project
    directory = file.absolute().parent
    return directory.parent if directory.name.startswith(".") else directory


def _placed(sighting: Sighting, base: Path | None) -> ServerConfig:
    """Give a project's server the directory in which its client would have started it."""
    server = sighting.server
    if base is None or sighting.scope == _PLUGIN or server.command is None or (server.cwd or "").startswith("$"):
        return server
    return replace(server, cwd=str(base / server.cwd) if server.cwd else str(base))


def _short(path: Path, home: Path) -> str:
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def _is_absolute(text: str) -> bool:
    return PurePosixPath(text).is_absolute() or PureWindowsPath(text).is_absolute()


def _dotted(where: Sequence[str | int]) -> str:
    text = ""
    for part in where:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


# What belongs to who asks; project files are their teams' too, managed ones an administrator's, plugins' their own.
OWN_SCOPES: Final = frozenset({"user", "local", "deployment"})
READ_ONLY: Final = frozenset({"managed", "plugin"})
_EDITABLE: Final = frozenset({"json", "jsonc", "toml", "yaml"})
_LIKELY_SECRET: Final = 16
_PIECE: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
# In words, capitals stand where one begins; in random letters they stand anywhere.
_SHORTEST_WORD: Final = 3.5
_FORMS: Final = {
    "comment": "it has a comment",
    "trailing-comma": "a comma stands behind the last item",
    "bom": "it begins with a byte order mark",
}
# Values of variables that are no secrets and stand in many other places: switches, numbers, paths.
_PLAIN: Final = re.compile(r"true|false|yes|no|on|off|none|\d{1,8}|[~.]{0,2}/.*|[A-Za-z]:\\.*", re.IGNORECASE)


@dataclass(frozen=True)
class SelectedServer:
    """A server of the client that is going to be reached through the gateway, which knows it as ``upstream``."""

    found: FoundFile
    sighting: Sighting
    upstream: str

    @property
    def key(self) -> str:
        """The client's own key of the server."""
        return self.sighting.server.key


@dataclass(frozen=True)
class ServerSelection:
    """The servers to take over, those that are at the gateway already, and what there is to say of the others."""

    taken: tuple[SelectedServer, ...]
    already: tuple[Sighting, ...]
    notes: tuple[PlanNote, ...]


def document_of(found: FoundFile) -> Document:
    """Return the document of a file that is `usable`. Raises `ConfigError` for any other."""
    if found.document is None:
        raise left_alone(found.path, "it is no document")
    return found.document


def usable(found: Iterable[FoundFile], scopes: frozenset[str]) -> list[FoundFile]:
    """Return the files to change. Raises `ConfigError` for one that is broken or can't be changed in place."""
    chosen = [one for one in found if one.file.shape and not one.file.legacy and one.file.scope in scopes]
    for one in chosen:
        if one.problem is not None:
            error = one.problem
            raise left_alone(one.path, error.problem, f"Nothing was changed. {error.remedy}", key=error.key)
        _check_form(one)
        if one.servers and (one.document is None or one.file.format not in _EDITABLE):
            raise left_alone(one.path, "it is a script, which is not changed in place")
    return [one for one in chosen if one.document is not None]


def _check_form(found: FoundFile) -> None:
    """Refuse a file that its own client does not read: whatever is written there, none of its servers is there."""
    for quirk in () if found.document is None else found.document.quirks:
        if quirk.kind in found.file.refuses:
            problem = f"{_FORMS[quirk.kind]}, and {found.file.title} does not read that"
            remedy = "Nothing was changed. Remove it, and connect again."
            raise left_alone(found.path, problem, remedy, key=f"line {quirk.line}, column {quirk.column}")


def doubtful_forms(files: Iterable[FoundFile]) -> Iterator[PlanNote]:
    """Yield what files have that strict JSON has not, where it is not known whether their client reads that."""
    for found in files:
        quirks = () if found.document is None else found.document.quirks
        if quirk := next((one for one in quirks if one.kind in found.file.doubtful), None):
            fact = f"{found.path}, line {quirk.line}: {_FORMS[quirk.kind]}"
            advice = f"{found.file.title} is not known to read that: remove it if its servers are missing."
            yield PlanNote(kind="info", subject=str(found.path), fact=fact, advice=advice)


def choose(files: Sequence[FoundFile], address: GatewayAddress, machine: Machine) -> ServerSelection:
    """Tell the servers of these files that the gateway has too from those that it has not."""
    taken: list[SelectedServer] = []
    already: list[Sighting] = []
    notes: list[PlanNote] = []
    seen: set[object] = set()
    for found in files:
        for sighting in found.servers:
            if (place := (sighting.path, sighting.where)) in seen:
                continue
            seen.add(place)
            if address.is_met(sighting.server):
                already.append(sighting)
                notes += _gone(sighting, address)
                continue
            upstream = _upstream(seen_of(sighting, found, machine), address, notes)
            if upstream is not None:
                taken.append(SelectedServer(found, sighting, upstream))
    return ServerSelection(tuple(taken), tuple(already), tuple(notes))


def _gone(sighting: Sighting, address: GatewayAddress) -> Iterator[PlanNote]:
    """Yield which of the gateway's servers an entry leads to that the gateway does not have."""
    shown = shown_by(sighting.server)
    wanted = (shown.only,) if shown.only is not None else shown.servers or ()
    missing = [key for key in wanted if key not in {one.key for one in address.config.enabled}]
    if missing:
        keys = ", ".join(map(excerpt, missing))
        fact = f"{excerpt(sighting.server.key)} leads to {keys}, which the gateway's configuration does not have"
        advice = "Add it there, or `truename disconnect` the client and connect it again."
        yield PlanNote(kind="left", subject=sighting.server.key, fact=fact, advice=advice)


def _upstream(entry: FoundEntry, address: GatewayAddress, notes: list[PlanNote]) -> str | None:
    server = entry.server
    if server.disabled:
        notes.append(
            PlanNote(kind="left", subject=server.key, fact=f"{excerpt(server.key)} is switched off in this client")
        )
        return None
    match = counterpart(entry, address.config.servers, address.environ, address.was_made)
    if match.server is None and address.is_elsewhere(server):
        fact = f"{excerpt(server.key)} leads to another address of a gateway ({excerpt(server.url or '')})"
        advice = "To move it, take it out with `truename disconnect` first."
        notes.append(PlanNote(kind="left", subject=server.key, fact=fact, advice=advice))
        return None
    if match.server is None:
        fact, advice = _apart(entry, match)
        notes.append(PlanNote(kind="left", subject=server.key, fact=fact, advice=advice))
        return None
    return match.server.key


def _apart(entry: FoundEntry, match: ServerMatch) -> tuple[str, str]:
    """Return why no server of the gateway is this one, and what to do: no value is in either."""
    key, near = excerpt(entry.server.key), excerpt(match.near)
    if match.unset:
        names = f"{', '.join(match.unset)} {'is' if len(match.unset) == 1 else 'are'} not set here"
        fact = f"{key} stays as it is: {names}, so whether the gateway's {near} is the same server is not known"
        return fact, "Set it to the value that this client has, or run `truename init --copy-secrets`."
    if match.differing:
        places = ", ".join(map(excerpt, match.differing))
        fact = f"{key} stays as it is: the gateway's {near} is another server, which differs in {places}"
        return fact, "`truename init` makes a server of each entry that differs."
    fact = f"{key} ({entry.file}) is not in the gateway's configuration, so it stays as it is"
    return fact, "`truename init` proposes a configuration with all servers of your clients."


def secrets_of(servers: Iterable[ServerConfig]) -> Iterator[str]:
    """Yield the texts of servers that are secrets, or may be one: a diff is shown to others."""
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
    """Return what of an argument may be a secret: a long run that is made of no words, never the name of an option.

    >>> _likely_secret("--local-timezone"), _likely_secret("--key=a1b2c3d4e5f6a7b8")
    ('', 'a1b2c3d4e5f6a7b8')
    """
    _, equals, value = word.rpartition("=")
    if (word.startswith("-") and not equals) or len(value) < _LIKELY_SECRET or {"/", "@", ".", " "} & set(value):
        return ""
    pieces = _PIECE.findall(value)
    is_worded = not any(piece.isdigit() for piece in pieces) and sum(map(len, pieces)) >= _SHORTEST_WORD * len(pieces)
    return "" if is_worded else value


def servers_in(client: str, value: Any) -> Iterator[ServerConfig]:
    """Yield the servers that a value would have as any of the client's files."""
    for file in config_files(client):
        for _, key, raw in entries_of(file, value):
            yield read_entry(file.shape, key, raw)
