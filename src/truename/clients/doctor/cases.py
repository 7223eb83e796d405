"""Build the cases to examine: one client each, with the servers that it would connect to, and their lists."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from truename import dialects
from truename.catalog import UNDECLARED, Catalog, ServerIdentity
from truename.clients.doctor.file_findings import place
from truename.clients.doctor.prediction import Prediction, Roster, effect
from truename.clients.gateway_address import ONLY_STYLE, client_of, shown_by
from truename.config.entries import is_gateway
from truename.config.templates import spelling_of
from truename.identity import fold
from truename.naming import DEFAULT_SERVER_NAME, project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from truename.clients import FoundFile, Sighting
    from truename.clients.doctor.prediction import Key
    from truename.clients.gateway_address import ShownAddress
    from truename.config import ServerConfig
    from truename.conventions import Location
    from truename.dialects import Dialect

__all__ = [
    "ClientCase",
    "ExaminedServer",
    "Identity",
    "ServerLists",
    "Startable",
    "cases_of",
    "general_dialects",
    "identity",
    "servers_of",
    "startable",
]

_INVALID: Final = "invalid"
_DUPLICATE: Final = "duplicate"
_GATEWAY: Final = DEFAULT_SERVER_NAME


@dataclass(frozen=True, kw_only=True)
class ExaminedServer:
    """One server as its client knows it: the key, and what it lists.

    ``definitions`` are its tools by name, None as long as nobody asked the server; ``repeated`` are the names that it
    lists twice, ``unusable`` what stands in its list without a usable name, in words. ``address`` is its URL, if it
    has one; ``identity`` what its entry declares of the ids of its tools. ``shown`` says which servers of the gateway
    the entry shows, if it leads to the gateway already.
    """

    key: str
    definitions: Mapping[str, Mapping[str, Any]] | None = None
    repeated: tuple[str, ...] = ()
    unusable: tuple[str, ...] = ()
    location: Location | None = None
    address: str = ""
    identity: ServerIdentity = UNDECLARED
    shown: ShownAddress | None = None

    @classmethod
    def listing(
        cls, key: str, listing: Any, location: Location | None = None, *, config: ServerConfig | None = None
    ) -> ExaminedServer:
        """Read what a server answered to tools/list: tools, names, a result or a response. Raises nothing."""
        catalog = Catalog.from_mcp([(key, listing)], {}, strict=False)
        found = {code: [one for one in catalog.notices if one.code == code] for code in (_INVALID, _DUPLICATE)}
        return cls(
            key=key,
            definitions={tool.origin.name: tool.definition for tool in catalog.values()},
            repeated=tuple(dict.fromkeys(one.name for one in found[_DUPLICATE])),
            unusable=tuple(one.text for one in found[_INVALID]),
            location=location,
            address=("" if config is None else config.url) or "",
            identity=UNDECLARED if config is None else config.identity,
            shown=None if config is None else shown_at_gateway(config),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names as listed, one that is listed twice twice."""
        return (*(self.definitions or ()), *self.repeated)


def shown_at_gateway(server: ServerConfig) -> ShownAddress | None:
    """Return what an entry shows of a gateway; None where it leads to none."""
    return shown_by(server) if is_gateway(server) else None


class ServerLists:
    """What a set of servers lists, with all that is worked out once for every client that has them."""

    def __init__(self, servers: Iterable[ExaminedServer]) -> None:
        self.servers = tuple(servers)
        self._bare: dict[object, Prediction] = {}
        self._through: dict[object, Prediction] = {}
        self._connected: dict[object, Prediction] = {}

    @cached_property
    def catalog(self) -> Catalog:
        """All tools whose names can be admitted, in the servers' order."""
        pairs = [(server.key, list((server.definitions or {}).values())) for server in self.servers]
        return Catalog.from_mcp(pairs, identities={one.key: one.identity for one in self.servers}, strict=False)

    @cached_property
    def universal(self) -> tuple[str, ...]:
        """The names that the gateway would give to these tools."""
        return tuple(project(self.catalog, "universal").values())

    @cached_property
    def alike(self) -> Mapping[str, Sequence[Key]]:
        """The tools by their names folded: those that some clients take for the same."""
        found: defaultdict[str, list[Key]] = defaultdict(list)
        for key in self._own.keys:
            found[fold(key[1])].append(key)
        return found

    @cached_property
    def _own(self) -> Roster:
        addresses = {server.key: server.address for server in self.servers if server.address}
        return Roster(((server.key, server.names) for server in self.servers), addresses)

    @cached_property
    def _projected(self) -> Roster:
        return Roster([(_GATEWAY, self.universal)])

    @cached_property
    def places(self) -> Mapping[str, Location]:
        """Where each server stands, by its key, as far as that is known."""
        return {server.key: server.location for server in reversed(self.servers) if server.location is not None}

    def bare(self, dialect: Dialect) -> Prediction:
        """Return what a client makes of the tools as they are; clients that do the same share the answer."""
        return _kept(self._bare, dialect, lambda: self._own)

    def through(self, dialect: Dialect) -> Prediction:
        """Return what a client makes of the same tools behind the gateway, under their universal names."""
        return _kept(self._through, dialect, lambda: self._projected)

    def connected(self, dialect: Dialect) -> Prediction:
        """Return what a client makes of the same tools as `truename connect` gives them to it.

        That is an entry for each server, with its own names, or a common one where the client loses fewer tools that
        way. Servers that it reaches through the gateway already stay as they are.
        """
        rosters = ((server.key, self._alone(server, dialect)) for server in self.servers)
        single = _kept(self._connected, dialect, lambda: Roster(rosters))
        if any(server.shown is not None for server in self.servers) or not single.lost:
            return single
        common = self.through(dialect)
        return common if len(common.lost) < len(single.lost) else single

    def _alone(self, server: ExaminedServer, dialect: Dialect) -> Iterable[str]:
        if server.shown is not None:
            return server.names
        rules = dialects.own(client_of(dialect.name), server.key)
        return project(self.catalog.only(server.key), rules, style=ONLY_STYLE).values()

    def lost_through(self, dialect: Dialect) -> int:
        """Return how many tools a client could not call under their universal names, behind the gateway.

        Where a client has rules for single names only, legal names that differ need no simulation: each is shown.
        """
        rules = dialect.mangling
        alone = not (rules.alike or rules.after or rules.refuse or rules.silent)
        if alone and not any(dialect.check(name, _GATEWAY) for name in self.universal):
            return 0
        return len(self.through(dialect).lost)

    @property
    def tools(self) -> int:
        """How many tools there are."""
        return sum(len(server.definitions or ()) for server in self.servers)


def _kept(made: dict[object, Prediction], dialect: Dialect, roster: Callable[[], Roster]) -> Prediction:
    key = effect(dialect)
    if key not in made:
        made[key] = Prediction(dialect, roster())
    return made[key]


@dataclass(frozen=True, kw_only=True)
class ClientCase:
    """One client, framework or provider, the servers that it would connect, and the files that say so."""

    dialect: Dialect
    lists: ServerLists
    client: str = ""
    title: str = ""
    files: tuple[FoundFile, ...] = field(default=(), repr=False)

    @property
    def name(self) -> str:
        """The client as a command names it: `truename connect NAME`; a dialect's name where no client was found."""
        return self.client or self.dialect.name

    @property
    def called(self) -> str:
        """The client as people call it."""
        return self.title or self.dialect.title

    @property
    def is_connected(self) -> bool:
        """Whether all its servers are reached through the gateway already."""
        return bool(self.lists.servers) and all(server.shown is not None for server in self.lists.servers)

    @property
    def remedy(self) -> str:
        """What gives each tool a name that this client keeps; "" where no client was found."""
        if not self.client:
            return ""
        if any(server.shown is not None and server.shown.only for server in self.lists.servers):
            # Each server has an entry of its own already, and their tools still meet in this client.
            return f"`truename disconnect {self.client}`, then `truename connect {self.client} --one`"
        return f"`truename connect {self.client}`"

    @cached_property
    def bare(self) -> Prediction:
        """What the client makes of the tools as they are."""
        return self.lists.bare(self.dialect)

    @cached_property
    def lost_through(self) -> int:
        """How many tools the client could not call, as `truename connect` gives them to it.

        What is no client has universal names there.
        """
        return len(self.lists.connected(self.dialect).lost) if self.client else self.lists.lost_through(self.dialect)


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


def startable(files: Iterable[FoundFile]) -> Mapping[Identity, Startable]:
    """Return every server that is switched on and says how to reach it, each once."""
    groups: defaultdict[Identity, list[tuple[FoundFile, Sighting]]] = defaultdict(list)
    for found in files:
        for sighting in found.servers:
            server = sighting.server
            if not server.disabled and (server.command is not None or server.url is not None):
                groups[identity(sighting)].append((found, sighting))
    return {key: _startable(group) for key, group in groups.items()}


def _startable(group: Sequence[tuple[FoundFile, Sighting]]) -> Startable:
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


def cases_of(files: Sequence[FoundFile], answers: Mapping[Identity, Any], project: str = "") -> tuple[ClientCase, ...]:
    """Return a case for each client of these files, with what its servers answered, as far as they were asked.

    Files of no certain client make none.

    A file that configures other projects too makes one more case for each of them, told by its path.
    """
    by_client: defaultdict[str, list[FoundFile]] = defaultdict(list)
    for found in files:
        if found.file.client:
            by_client[found.file.client].append(found)
    return tuple(case for several in by_client.values() for case in _cases(several, answers, project))


def servers_of(files: Iterable[FoundFile], answers: Mapping[Identity, Any]) -> list[ExaminedServer]:
    """Return the servers of files that are of no certain client."""
    read = _CaseReader(answers)
    pairs = [(found, one) for found in files if not found.file.client for one in found.servers]
    return [read.server(found, one) for found, one in _effective(pairs) if not one.server.disabled]


def general_dialects() -> tuple[Dialect, ...]:
    """Return whom tools of no certain client are examined for: clients and frameworks that were run, and providers."""
    return tuple(
        row
        for row in dialects.table()
        if row.kind == "provider" or (row.kind in ("client", "framework") and row.confidence == "run")
    )


def _cases(files: Sequence[FoundFile], answers: Mapping[Identity, Any], project: str) -> Iterator[ClientCase]:
    file, read = files[0].file, _CaseReader(answers)
    pairs = [(found, sighting) for found in files for sighting in found.servers if not sighting.server.disabled]
    pairs.sort(key=lambda pair: _rank(pair[1]))
    elsewhere = dict.fromkeys(there for _, one in pairs if (there := _project_of(one)) not in ("", project))
    dialect = dialects.get(file.dialect)
    for there in ("", *elsewhere):
        here = [pair for pair in pairs if _project_of(pair[1]) in ("", there or project)]
        yield ClientCase(
            dialect=dialect,
            lists=ServerLists(read.server(found, one) for found, one in _effective(here)),
            client=file.client,
            title=f"{file.title} in {there}" if there else file.title,
            files=() if there else tuple(files),
        )


class _CaseReader:
    """What servers answered, read once for all clients that know one by the same key."""

    def __init__(self, answers: Mapping[Identity, Any]) -> None:
        self._answers = answers

    def server(self, found: FoundFile, sighting: Sighting) -> ExaminedServer:
        key, here = sighting.server.key, place(found, sighting.where)
        answer = self._answers.get(identity(sighting))
        return (
            ExaminedServer(key=key, location=here, shown=shown_at_gateway(sighting.server))
            if answer is None
            else ExaminedServer.listing(key, answer, here, config=sighting.server)
        )


def _effective(pairs: Iterable[tuple[FoundFile, Sighting]]) -> Iterable[tuple[FoundFile, Sighting]]:
    """Return one entry a key, the nearest."""
    chosen: dict[str, tuple[FoundFile, Sighting]] = {}
    for pair in pairs:
        chosen.setdefault(pair[1].server.key, pair)
    return chosen.values()


def _rank(sighting: Sighting) -> int:
    return _NEAREST_FIRST.index(sighting.scope) if sighting.scope in _NEAREST_FIRST else len(_NEAREST_FIRST)


def _project_of(sighting: Sighting) -> str:
    """Return the project that an entry of a file of many projects is for; nothing for an entry of all."""
    return str(sighting.where[1]) if len(sighting.where) > 2 and sighting.where[0] == _PROJECTS else ""
