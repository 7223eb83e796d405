"""What there is to examine: the files that were found, the servers in them, and the cases that they make."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from truename import dialects
from truename.config.templates import spelling_of
from truename.doctor.case import Case, Lists, Server, shown_at_gateway
from truename.doctor.files import place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from truename.clients import Found, Sighting
    from truename.config import ServerConfig
    from truename.conventions import Location
    from truename.dialects import Dialect

__all__ = ["Identity", "Startable", "cases_of", "general_dialects", "identity", "servers_of", "startable"]

Identity: TypeAlias = tuple[Any, ...]
# The nearest first: what is configured there goes before the rest, as most clients have it.
_NEAREST_FIRST: Final = ("managed", "local", "project", "deployment", "user", "plugin")
_PROJECTS: Final = "projects"
_REFERS: Final = ("$", "{", "%")


@dataclass(frozen=True, kw_only=True)
class Startable:
    """A server that could be asked, once for all that have it.

    ``path`` is the file that says so (None: it was typed), ``clients`` whose files do, ``of_project`` tells that none
    but a project's own file does. ``spelling`` is how its references are written; a server without one has none left,
    and ``written`` is then how it was before they were replaced.
    """

    server: ServerConfig
    path: Path | None
    clients: tuple[str, ...]
    of_project: bool
    shape: str = field(default="", repr=False)
    spelling: str = field(default="", repr=False)
    written: ServerConfig | None = field(default=None, repr=False)
    location: Location | None = None


def identity(sighting: Sighting) -> Identity:
    """Return what makes two entries the same server: how it is started or reached, whatever its key."""
    server = sighting.server
    texts = (server.command or "", *server.args, *server.env.values(), server.url or "", *server.headers.values())
    # What is relative is another thing from another directory, and a reference from another client.
    relative = any(text and not text.startswith(("/", "~")) and "/" in text for text in (server.command, server.cwd))
    return (
        server.command,
        server.args,
        tuple(sorted(server.env.items())),
        server.cwd,
        server.url,
        tuple(sorted(server.headers.items())),
        server.type,
        str(sighting.path.parent) if relative else "",
        spelling_of(sighting.client) if any(mark in text for text in texts for mark in _REFERS) else "",
    )


def startable(files: Iterable[Found]) -> Mapping[Identity, Startable]:
    """Return every server that is switched on and says how to reach it, each once."""
    groups: defaultdict[Identity, list[tuple[Found, Sighting]]] = defaultdict(list)
    for found in files:
        for sighting in found.servers:
            server = sighting.server
            if not server.disabled and (server.command is not None or server.url is not None):
                groups[identity(sighting)].append((found, sighting))
    return {key: _startable(group) for key, group in groups.items()}


def _startable(group: Sequence[tuple[Found, Sighting]]) -> Startable:
    found, sighting = group[0]
    return Startable(
        server=sighting.server,
        path=sighting.path,
        clients=tuple(dict.fromkeys(one.file.title for one, _ in group)),
        of_project=all(one.scope == "project" for _, one in group),
        shape=found.file.shape,
        spelling=spelling_of(found.file.client),
        location=place(found, sighting.where),
    )


def cases_of(files: Sequence[Found], answers: Mapping[Identity, Any], project: str = "") -> tuple[Case, ...]:
    """Return a case for each client of these files, with what its servers answered, as far as they were asked.

    Files of no certain client make none.

    A file that configures other projects too makes one more case for each of them, told by its path.
    """
    by_client: defaultdict[str, list[Found]] = defaultdict(list)
    for found in files:
        if found.file.client:
            by_client[found.file.client].append(found)
    return tuple(case for several in by_client.values() for case in _cases(several, answers, project))


def servers_of(files: Iterable[Found], answers: Mapping[Identity, Any]) -> list[Server]:
    """Return the servers of files that are of no certain client."""
    read = _Reader(answers)
    pairs = [(found, one) for found in files if not found.file.client for one in found.servers]
    return [read.server(found, one) for found, one in _effective(pairs) if not one.server.disabled]


def general_dialects() -> tuple[Dialect, ...]:
    """Return whom tools of no certain client are examined for: clients and frameworks that were run, and providers."""
    return tuple(
        row
        for row in dialects.table()
        if row.kind == "provider" or (row.kind in ("client", "framework") and row.confidence == "run")
    )


def _cases(files: Sequence[Found], answers: Mapping[Identity, Any], project: str) -> Iterator[Case]:
    file, read = files[0].file, _Reader(answers)
    pairs = [(found, sighting) for found in files for sighting in found.servers if not sighting.server.disabled]
    pairs.sort(key=lambda pair: _rank(pair[1]))
    elsewhere = dict.fromkeys(there for _, one in pairs if (there := _project_of(one)) not in ("", project))
    dialect = dialects.get(file.dialect)
    for there in ("", *elsewhere):
        here = [pair for pair in pairs if _project_of(pair[1]) in ("", there or project)]
        yield Case(
            dialect=dialect,
            lists=Lists(read.server(found, one) for found, one in _effective(here)),
            client=file.client,
            title=f"{file.title} in {there}" if there else file.title,
            files=() if there else tuple(files),
        )


class _Reader:
    """What servers answered, read once for all clients that know one by the same key."""

    def __init__(self, answers: Mapping[Identity, Any]) -> None:
        self._answers = answers

    def server(self, found: Found, sighting: Sighting) -> Server:
        key, here = sighting.server.key, place(found, sighting.where)
        answer = self._answers.get(identity(sighting))
        return (
            Server(key=key, location=here, shown=shown_at_gateway(sighting.server))
            if answer is None
            else Server.listing(key, answer, here, config=sighting.server)
        )


def _effective(pairs: Iterable[tuple[Found, Sighting]]) -> Iterable[tuple[Found, Sighting]]:
    """Return one entry a key, the nearest."""
    chosen: dict[str, tuple[Found, Sighting]] = {}
    for pair in pairs:
        chosen.setdefault(pair[1].server.key, pair)
    return chosen.values()


def _rank(sighting: Sighting) -> int:
    return _NEAREST_FIRST.index(sighting.scope) if sighting.scope in _NEAREST_FIRST else len(_NEAREST_FIRST)


def _project_of(sighting: Sighting) -> str:
    """Return the project that an entry of a file of many projects is for; nothing for an entry of all."""
    return str(sighting.where[1]) if len(sighting.where) > 2 and sighting.where[0] == _PROJECTS else ""
