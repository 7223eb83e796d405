"""Which of a client's servers the gateway takes over, and why it leaves the others."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from truename.clients.address import shown_by
from truename.clients.entries import entries_of
from truename.clients.matching import counterpart
from truename.clients.plan import Note
from truename.clients.seen import seen_of
from truename.clients.shapes import read_entry
from truename.clients.table import config_files
from truename.config.entries import Seen, take_apart
from truename.editing import left_alone
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from truename.clients.address import Address
    from truename.clients.find import Found, Sighting
    from truename.clients.machine import Machine
    from truename.clients.matching import Match
    from truename.config import ServerConfig
    from truename.editing import Document

__all__ = [
    "OWN_SCOPES",
    "READ_ONLY",
    "Choice",
    "Taken",
    "choose",
    "document_of",
    "doubtful_forms",
    "secrets_of",
    "servers_in",
    "usable",
]

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
class Taken:
    """A server of the client that is going to be reached through the gateway, which knows it as ``upstream``."""

    found: Found
    sighting: Sighting
    upstream: str

    @property
    def key(self) -> str:
        """The client's own key of the server."""
        return self.sighting.server.key


@dataclass(frozen=True)
class Choice:
    """The servers to take over, those that are at the gateway already, and what there is to say of the others."""

    taken: tuple[Taken, ...]
    already: tuple[Sighting, ...]
    notes: tuple[Note, ...]


def document_of(found: Found) -> Document:
    """Return the document of a file that is `usable`. Raises `ConfigError` for any other."""
    if found.document is None:
        raise left_alone(found.path, "it is no document")
    return found.document


def usable(found: Iterable[Found], scopes: frozenset[str]) -> list[Found]:
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


def _check_form(found: Found) -> None:
    """Refuse a file that its own client does not read: whatever is written there, none of its servers is there."""
    for quirk in () if found.document is None else found.document.quirks:
        if quirk.kind in found.file.refuses:
            problem = f"{_FORMS[quirk.kind]}, and {found.file.title} does not read that"
            remedy = "Nothing was changed. Remove it, and connect again."
            raise left_alone(found.path, problem, remedy, key=f"line {quirk.line}, column {quirk.column}")


def doubtful_forms(files: Iterable[Found]) -> Iterator[Note]:
    """Yield what files have that strict JSON has not, where it is not known whether their client reads that."""
    for found in files:
        quirks = () if found.document is None else found.document.quirks
        if quirk := next((one for one in quirks if one.kind in found.file.doubtful), None):
            fact = f"{found.path}, line {quirk.line}: {_FORMS[quirk.kind]}"
            advice = f"{found.file.title} is not known to read that: remove it if its servers are missing."
            yield Note(kind="info", subject=str(found.path), fact=fact, advice=advice)


def choose(files: Sequence[Found], address: Address, machine: Machine) -> Choice:
    """Tell the servers of these files that the gateway has too from those that it has not."""
    taken: list[Taken] = []
    already: list[Sighting] = []
    notes: list[Note] = []
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
                taken.append(Taken(found, sighting, upstream))
    return Choice(tuple(taken), tuple(already), tuple(notes))


def _gone(sighting: Sighting, address: Address) -> Iterator[Note]:
    """Yield which of the gateway's servers an entry leads to that the gateway does not have."""
    shown = shown_by(sighting.server)
    wanted = (shown.only,) if shown.only is not None else shown.servers or ()
    missing = [key for key in wanted if key not in {one.key for one in address.config.enabled}]
    if missing:
        keys = ", ".join(map(excerpt, missing))
        fact = f"{excerpt(sighting.server.key)} leads to {keys}, which the gateway's configuration does not have"
        advice = "Add it there, or `truename disconnect` the client and connect it again."
        yield Note(kind="left", subject=sighting.server.key, fact=fact, advice=advice)


def _upstream(entry: Seen, address: Address, notes: list[Note]) -> str | None:
    server = entry.server
    if server.disabled:
        notes.append(
            Note(kind="left", subject=server.key, fact=f"{excerpt(server.key)} is switched off in this client")
        )
        return None
    match = counterpart(entry, address.config.servers, address.environ, address.was_made)
    if match.server is None and address.is_elsewhere(server):
        fact = f"{excerpt(server.key)} leads to another address of a gateway ({excerpt(server.url or '')})"
        advice = "To move it, take it out with `truename disconnect` first."
        notes.append(Note(kind="left", subject=server.key, fact=fact, advice=advice))
        return None
    if match.server is None:
        fact, advice = _apart(entry, match)
        notes.append(Note(kind="left", subject=server.key, fact=fact, advice=advice))
        return None
    return match.server.key


def _apart(entry: Seen, match: Match) -> tuple[str, str]:
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
        seen = Seen(client="", title="", file="", where="", server=server)
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
