"""Build the cases that the doctor examines: each is one client with its servers and the tools that they list."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from truename import dialects
from truename.catalog import UNDECLARED, Catalog, ServerIdentity
from truename.clients.doctor.file_findings import location_of
from truename.clients.gateway_address import ONLY_STYLE, client_of, shown_by
from truename.clients.prediction import Prediction, Roster, affecting_fields
from truename.config.entries import is_gateway
from truename.config.templates import spelling_of
from truename.errors import printable
from truename.identity import fold
from truename.naming import DEFAULT_SERVER_NAME, project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from truename.clients import ClientServer, FoundFile
    from truename.clients.gateway_address import ShownAddress
    from truename.clients.prediction import Key
    from truename.config import ServerConfig
    from truename.conventions import Location
    from truename.dialects import Dialect

__all__ = [
    "ClientCase",
    "ExaminedServer",
    "Identity",
    "ServerLists",
    "StartableServer",
    "cases_of",
    "find_startable",
    "general_dialects",
    "identity",
    "servers_of",
]

_INVALID: Final = "invalid"
_DUPLICATE: Final = "duplicate"
_GATEWAY: Final = DEFAULT_SERVER_NAME
_NO_VERSIONS: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class ExaminedServer:
    """A server under the key that its client uses, with the tools that it lists.

    ``definitions`` are its tools by name (None: the server was not asked), ``repeated`` the names that it lists twice,
    ``unusable`` describes tools without a usable name. ``address`` is its URL, if any; ``identity`` the integration
    and versions that its entry declares. ``shown`` is set if the entry points at the gateway.
    """

    key: str
    definitions: Mapping[str, Mapping[str, object]] | None = None
    repeated: tuple[str, ...] = ()
    unusable: tuple[str, ...] = ()
    location: Location | None = None
    address: str = ""
    identity: ServerIdentity = UNDECLARED
    shown: ShownAddress | None = None

    @classmethod
    def listing(
        cls, key: str, listing: object, location: Location | None = None, *, config: ServerConfig | None = None
    ) -> ExaminedServer:
        """Read an answer to tools/list in any form: tools, names, a result or a response. Raises nothing."""
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
        """The usable tool names, each once; then those that the server lists more than once, once more."""
        return (*(self.definitions or ()), *self.repeated)


def shown_at_gateway(server: ServerConfig) -> ShownAddress | None:
    """Return the gateway's servers that an entry shows; None if the entry does not point at a gateway."""
    return shown_by(server) if is_gateway(server) else None


class ServerLists:
    """The tools of a set of servers, with predictions that are computed once for all clients with these servers."""

    def __init__(self, servers: Iterable[ExaminedServer]) -> None:
        self.servers = tuple(servers)
        self._direct: dict[object, Prediction] = {}
        self._behind_gateway: dict[object, Prediction] = {}
        self._after_connect: dict[object, Prediction] = {}

    @cached_property
    def catalog(self) -> Catalog:
        """All tools with usable names, in the servers' order."""
        pairs = [(server.key, list((server.definitions or {}).values())) for server in self.servers]
        return Catalog.from_mcp(pairs, identities={one.key: one.identity for one in self.servers}, strict=False)

    @cached_property
    def universal(self) -> tuple[str, ...]:
        """The names of these tools at the gateway."""
        return tuple(project(self.catalog, "universal").values())

    @cached_property
    def alike(self) -> Mapping[str, Sequence[Key]]:
        """The tools by folded name: some clients treat names with equal folds as the same."""
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
        """The location of each server's entry, by key, as far as it is known."""
        return {server.key: server.location for server in reversed(self.servers) if server.location is not None}

    def direct(self, dialect: Dialect) -> Prediction:
        """Predict how a client treats the tools without the gateway; clients with the same rules share the result."""
        return _cached(self._direct, dialect, lambda: self._own)

    def behind_gateway(self, dialect: Dialect) -> Prediction:
        """Predict how a client treats the tools behind the gateway, under their universal names."""
        return _cached(self._behind_gateway, dialect, lambda: self._projected)

    def after_connect(self, dialect: Dialect) -> Prediction:
        """Predict how a client treats the tools after `truename connect`.

        That writes one entry per server, or a common one if the client loses fewer tools that way. Servers that the
        client already reaches through the gateway are not changed.
        """
        rosters = ((server.key, self._alone(server, dialect)) for server in self.servers)
        single = _cached(self._after_connect, dialect, lambda: Roster(rosters))
        if any(server.shown is not None for server in self.servers) or not single.lost:
            return single
        common = self.behind_gateway(dialect)
        return common if len(common.lost) < len(single.lost) else single

    def _alone(self, server: ExaminedServer, dialect: Dialect) -> Iterable[str]:
        if server.shown is not None:
            return server.names
        # `connect` writes the address without a version.
        rules = dialects.own(client_of(dialect.client), server.key)
        return project(self.catalog.only(server.key), rules, style=ONLY_STYLE).values()

    def lost_through(self, dialect: Dialect) -> int:
        """Return how many tools a client could not call under their universal names, behind the gateway.

        A client whose rules concern single names only needs no simulation if all names are legal: it shows each.
        """
        rules = dialect.mangling
        alone = not (rules.alike or rules.after or rules.refuse or rules.silent)
        if alone and not any(dialect.check(name, _GATEWAY) for name in self.universal):
            return 0
        return len(self.behind_gateway(dialect).lost)

    @property
    def tools(self) -> int:
        """The number of tools."""
        return sum(len(server.definitions or ()) for server in self.servers)


def _cached(made: dict[object, Prediction], dialect: Dialect, roster: Callable[[], Roster]) -> Prediction:
    key = affecting_fields(dialect)
    if key not in made:
        made[key] = Prediction(dialect, roster())
    return made[key]


@dataclass(frozen=True, kw_only=True)
class ClientCase:
    """A client, framework or provider with the servers that it connects to, and the files that configure them."""

    dialect: Dialect
    lists: ServerLists
    client: str = ""
    title: str = ""
    files: tuple[FoundFile, ...] = field(default=(), repr=False)

    @property
    def name(self) -> str:
        """The client's name for commands (`truename connect NAME`); the dialect's name if there is no client."""
        return self.client or self.dialect.name

    @property
    def called(self) -> str:
        """The client's title."""
        return self.title or self.dialect.title

    @property
    def is_connected(self) -> bool:
        """Whether the client already reaches all its servers through the gateway."""
        return bool(self.lists.servers) and all(server.shown is not None for server in self.lists.servers)

    @property
    def remedy(self) -> str:
        """The command that gives each tool a name that this client keeps; "" if there is no client."""
        if not self.client:
            return ""
        if any(server.shown is not None and server.shown.only for server in self.lists.servers):
            # Each server already has its own entry at the gateway, and their tools still clash in this client.
            return f"`truename disconnect {self.client}`, then `truename connect {self.client} --one`"
        return f"`truename connect {self.client}`"

    @cached_property
    def direct(self) -> Prediction:
        """The prediction for the tools without the gateway."""
        return self.lists.direct(self.dialect)

    @cached_property
    def lost_through(self) -> int:
        """The number of tools that the client could not call after `truename connect`.

        Frameworks and providers get universal names.
        """
        return (
            len(self.lists.after_connect(self.dialect).lost) if self.client else self.lists.lost_through(self.dialect)
        )


Identity: TypeAlias = tuple[Any, ...]
# Scopes in order of precedence, as most clients have it.
_NEAREST_FIRST: Final = ("managed", "local", "project", "deployment", "user", "plugin")
_PROJECTS: Final = "projects"
_REFERS: Final = ("$", "{", "%")


@dataclass(frozen=True, kw_only=True)
class StartableServer:
    """A server that can be started or connected to list its tools, once for all clients that configure it.

    ``path`` is its file (None: it was given on the command line), ``clients`` are the clients that configure it;
    ``of_project``: only files of projects configure it. ``spelling`` is the client's syntax for references to
    variables, "" if they are already resolved; ``written`` is then the entry as written, unresolved.
    """

    server: ServerConfig
    path: Path | None
    clients: tuple[str, ...]
    of_project: bool
    shape: str = field(default="", repr=False)
    spelling: str = field(default="", repr=False)
    written: ServerConfig | None = field(default=None, repr=False)
    location: Location | None = None


def identity(client_server: ClientServer) -> Identity:
    """Return a key that is equal for entries of the same server: how it is started or reached, whatever its name."""
    server = client_server.server
    texts = (server.command or "", *server.args, *server.env.values(), server.url or "", *server.headers.values())
    # A relative path depends on the file's directory, and a reference on the client's syntax.
    relative = any(text and not text.startswith(("/", "~")) and "/" in text for text in (server.command, server.cwd))
    return (
        server.command,
        server.args,
        tuple(sorted(server.env.items())),
        server.cwd,
        server.url,
        tuple(sorted(server.headers.items())),
        server.type,
        str(client_server.path.parent) if relative else "",
        spelling_of(client_server.client) if any(mark in text for text in texts for mark in _REFERS) else "",
    )


def find_startable(files: Iterable[FoundFile]) -> Mapping[Identity, StartableServer]:
    """Return every enabled server with a command or URL, each once."""
    groups: defaultdict[Identity, list[tuple[FoundFile, ClientServer]]] = defaultdict(list)
    for found in files:
        for client_server in found.servers:
            server = client_server.server
            if not server.disabled and (server.command is not None or server.url is not None):
                groups[identity(client_server)].append((found, client_server))
    return {key: _startable(group) for key, group in groups.items()}


def _startable(group: Sequence[tuple[FoundFile, ClientServer]]) -> StartableServer:
    found, client_server = group[0]
    return StartableServer(
        server=client_server.server,
        path=client_server.path,
        clients=tuple(dict.fromkeys(one.file.title for one, _ in group)),
        of_project=all(one.scope == "project" for _, one in group),
        shape=found.file.shape,
        spelling=spelling_of(found.file.client),
        location=location_of(found, client_server.where),
    )


def cases_of(
    files: Sequence[FoundFile],
    answers: Mapping[Identity, object],
    project: str = "",
    versions: Mapping[str, str] = _NO_VERSIONS,
) -> tuple[ClientCase, ...]:
    """Return a case for each client of these files, with the tools of the servers that were asked.

    ``versions`` are the versions of clients, as far as they are known; the others get their newest rules. Files that
    belong to no certain client are skipped. A file that configures several projects makes one case for the present
    project and one for each other project, titled with its path.
    """
    by_client: defaultdict[str, list[FoundFile]] = defaultdict(list)
    for found in files:
        if found.file.client:
            by_client[found.file.client].append(found)
    return tuple(
        case
        for client, several in by_client.items()
        for case in _cases(several, answers, project, versions.get(client))
    )


def servers_of(files: Iterable[FoundFile], answers: Mapping[Identity, object]) -> list[ExaminedServer]:
    """Return the enabled servers of files that belong to no certain client."""
    pairs = [(found, one) for found in files if not found.file.client for one in found.servers]
    return [_examined(found, one, answers) for found, one in _effective(pairs) if not one.server.disabled]


def general_dialects() -> tuple[Dialect, ...]:
    """Return the dialects for tools of no certain client: all providers, and clients and frameworks that were run."""
    return tuple(
        row
        for row in dialects.table()
        if row.kind == "provider" or (row.kind in ("client", "framework") and row.confidence == "run")
    )


def _cases(
    files: Sequence[FoundFile], answers: Mapping[Identity, object], project: str, version: str | None
) -> Iterator[ClientCase]:
    file = files[0].file
    pairs = [
        (found, client_server)
        for found in files
        for client_server in found.servers
        if not client_server.server.disabled
    ]
    rank = {scope: number for number, scope in enumerate(_NEAREST_FIRST)}
    pairs.sort(key=lambda pair: rank.get(pair[1].scope, len(rank)))
    elsewhere = dict.fromkeys(there for _, one in pairs if (there := _project_of(one)) not in ("", project))
    dialect = dialects.get(file.dialect if version is None else f"{file.dialect}@{version}")
    for there in ("", *elsewhere):
        here = [pair for pair in pairs if _project_of(pair[1]) in ("", there or project)]
        yield ClientCase(
            dialect=dialect,
            lists=ServerLists(_examined(found, one, answers) for found, one in _effective(here)),
            client=file.client,
            title=f"{file.title} in {printable(there)}" if there else file.title,
            files=() if there else tuple(files),
        )


def _examined(found: FoundFile, client_server: ClientServer, answers: Mapping[Identity, object]) -> ExaminedServer:
    key, here = client_server.server.key, location_of(found, client_server.where)
    answer = answers.get(identity(client_server))
    if answer is None:
        return ExaminedServer(key=key, location=here, shown=shown_at_gateway(client_server.server))
    return ExaminedServer.listing(key, answer, here, config=client_server.server)


def _effective(pairs: Iterable[tuple[FoundFile, ClientServer]]) -> Iterable[tuple[FoundFile, ClientServer]]:
    """Return the entry with the highest precedence for each key."""
    chosen: dict[str, tuple[FoundFile, ClientServer]] = {}
    for pair in pairs:
        chosen.setdefault(pair[1].server.key, pair)
    return chosen.values()


def _project_of(client_server: ClientServer) -> str:
    """Return the project of an entry in a file that configures several; "" for an entry of all projects."""
    return str(client_server.where[1]) if len(client_server.where) > 2 and client_server.where[0] == _PROJECTS else ""
