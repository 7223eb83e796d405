"""A case: one client with the servers that it would connect, and what they list as far as that is known."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from truename import dialects
from truename.catalog import UNDECLARED, Catalog, ServerIdentity
from truename.clients.address import shown_by
from truename.clients.upcoming import ONLY_STYLE, client_of
from truename.config.entries import is_gateway
from truename.doctor.prediction import Prediction, Roster, effect
from truename.identity import fold
from truename.naming import DEFAULT_SERVER_NAME, project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from truename.clients import Found
    from truename.clients.address import Shown
    from truename.config import ServerConfig
    from truename.conventions import Location
    from truename.dialects import Dialect
    from truename.doctor.prediction import Key

__all__ = ["Case", "Lists", "Server", "shown_at_gateway"]

_INVALID: Final = "invalid"
_DUPLICATE: Final = "duplicate"
_GATEWAY: Final = DEFAULT_SERVER_NAME


@dataclass(frozen=True, kw_only=True)
class Server:
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
    shown: Shown | None = None

    @classmethod
    def listing(
        cls, key: str, listing: Any, location: Location | None = None, *, config: ServerConfig | None = None
    ) -> Server:
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


def shown_at_gateway(server: ServerConfig) -> Shown | None:
    """Return what an entry shows of a gateway; None where it leads to none."""
    return shown_by(server) if is_gateway(server) else None


class Lists:
    """What a set of servers lists, with all that is worked out once for every client that has them."""

    def __init__(self, servers: Iterable[Server]) -> None:
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

    def _alone(self, server: Server, dialect: Dialect) -> Iterable[str]:
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
class Case:
    """One client, framework or provider, the servers that it would connect, and the files that say so."""

    dialect: Dialect
    lists: Lists
    client: str = ""
    title: str = ""
    files: tuple[Found, ...] = field(default=(), repr=False)

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
