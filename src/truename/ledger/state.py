"""Apply events: which tool holds which name, what became of withdrawn names, which tool has which identity.

All rows are the result of applying every event in order.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from truename.errors import InvalidToolId
from truename.identity import ToolId, fold
from truename.ledger.events import Bind, Break, Claim, LedgerSettings, Own, Redirect, Retire
from truename.ledger.identity_index import IdentityIndex, MemoryIdentityIndex
from truename.ledger.likeness import LikenessIndex, MemoryLikeness
from truename.ledger.rows import AllRows, LedgerRows, RowGroup, RowKey, RowSource

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from truename.ledger.events import Event

__all__ = [
    "LedgerSource",
    "LedgerState",
    "NameHolders",
    "NamingScope",
    "OriginRow",
    "RecordedSpelling",
    "ServerCounts",
    "Standing",
    "WithdrawnRow",
]

K = TypeVar("K")
V = TypeVar("V")
# The tables that grow with the names; the others are always in memory.
_LARGE: Final = ("holder", "spelling", "shown", "first_version", "origin", "binding", "owner")
# Those with names of tools.
_NAMING: Final = ("origin", "shown", "spelling")
# More redirects in a row than this are a circle.
_MOST_REDIRECTS: Final = 32


class Standing(NamedTuple):
    """The meaning of a name: ``held`` or ``redirected`` (then ``id`` is its tool), ``retired`` or ``broken``.

    A redirected name is listed until the day ``until``. A broken one does not exist since ``protocol``; ``id`` is the
    tool of its successor, as far as that is known.
    """

    status: str
    id: ToolId | None
    since: str
    successor: str | None = None
    until: str = ""
    protocol: str = ""


class NameHolders(NamedTuple):
    """The tools of the names with one fold: the first that was shown under one of them, and the present holder."""

    first: ToolId | None
    present: ToolId


class RecordedSpelling(NamedTuple):
    """One way in which a name was written, with the server's part that it begins with and the number at its end."""

    fold: str
    prefix: str = ""
    number: int | None = None


class OriginRow(NamedTuple):
    """The origin of an identity, and its place in the fixed order: the server's place, and its own."""

    server: str
    name: str
    server_rank: int
    rank: int


class ServerCounts(NamedTuple):
    """The numbers of a server's names, identities and URIs, and its rank in the fixed order, once it has one."""

    rank: int | None = None
    claims: int = 0
    bound: int = 0
    owned: int = 0


class WithdrawnRow(NamedTuple):
    """The withdrawal of a spelling, and its place among all withdrawals of its scope."""

    place: int
    standing: Standing


class LedgerSource(RowSource, IdentityIndex, LikenessIndex, Protocol):
    """A source of the rows that are not in memory."""


class LedgerState:
    """All rows of a ledger; ``revision`` counts the records that made them."""

    __slots__ = (
        "_bound",
        "_empty_scopes",
        "_in_memory",
        "_integrations",
        "_likeness",
        "_origins",
        "_ranked",
        "_source",
        "begun_scopes",
        "bindings",
        "first_versions",
        "holders",
        "index",
        "origins",
        "owners",
        "revision",
        "scopes",
        "server_counts",
        "servers",
        "settings",
        "shown",
        "spellings",
        "spellings_of",
        "tables",
        "withdrawn",
    )

    def __init__(self, source: LedgerSource | None = None, *, is_stored: bool = True) -> None:
        self.revision = 0
        rows = partial(LedgerRows[Any], source=source, is_stored=is_stored)
        few = partial(LedgerRows[Any], source=None, is_stored=is_stored)
        # (scope, fold), (scope, name) and (scope, fold) -> names
        self.holders: LedgerRows[NameHolders] = rows("holder")
        self.spellings: LedgerRows[RecordedSpelling] = rows("spelling")
        self.spellings_of: LedgerRows[tuple[str, ...]] = rows("spellings_of")
        # (scope, number of the settings, table, id): the name that a tool has in a table
        self.shown: LedgerRows[str] = rows("shown")
        # (scope, integration, suite, tool): of the versions of a tool, the first that was shown without a number
        self.first_versions: LedgerRows[ToolId] = rows("first_version")
        self.origins: LedgerRows[OriginRow] = rows("origin")
        self.bindings: LedgerRows[ToolId] = rows("binding")
        self.owners: LedgerRows[str] = rows("owner")
        self._in_memory = MemoryIdentityIndex(self.bindings)
        self.index: IdentityIndex = self._in_memory if source is None else source
        self._source = source
        self._likeness = MemoryLikeness(self.origins, self.shown, self.spellings)
        self._integrations: dict[str, None] | None = None
        # These are few, and always in memory: (server), (scope), (scope, number), (scope, "name" or "fold", text).
        self.servers: LedgerRows[ServerCounts] = few("server")
        self._origins, self.server_counts = self.origins.group(), self.servers.group()
        self.settings: LedgerRows[LedgerSettings] = few("settings")
        self.withdrawn: LedgerRows[WithdrawnRow] = few("withdrawn")
        self.begun_scopes: LedgerRows[bool] = few("scope")
        # Those with records, and those that were asked for and have none.
        self.scopes: dict[str, NamingScope] = {}
        self._empty_scopes: dict[str, NamingScope] = {}
        # How many servers have a place in the fixed order, and how many identities.
        self._ranked = self._bound = 0
        stored: tuple[LedgerRows[Any], ...] = (
            *(self.holders, self.spellings, self.shown, self.first_versions, self.origins, self.bindings),
            *(self.owners, self.servers, self.settings, self.withdrawn, self.begun_scopes),
        )
        self.tables = MappingProxyType({rows.table: rows for rows in stored})

    def scope(self, name: str) -> NamingScope:
        """Return a naming scope; it is empty if it has no records."""
        found = self.scopes.get(name) or self._empty_scopes.get(name)
        if found is None:
            found = self._empty_scopes.setdefault(name, NamingScope(self, name))
        return found

    def begun(self, name: str) -> NamingScope:
        """Return a naming scope that has records, and create it if it is new."""
        if name not in self.scopes:
            self.scopes[name] = self.scope(name)
            del self._empty_scopes[name]
        return self.scopes[name]

    def absorb(self, table: str, key: RowKey, value: Any) -> None:
        """Take over a row as it is stored."""
        if table == "settings":
            self.begun(key[0]).take_settings(value)
        elif table == "withdrawn":
            self.begun(key[0]).withdrawals += 1
            self.begun(key[0]).take_withdrawn(key[1], key[2], value.standing)
        elif table == "scope":
            self.begun(key[0])
        elif table == "spelling":
            self._take_spelling(key[0], key[1], value.fold)
        elif table == "server":
            before = self.counts(key[0])
            self._ranked += (value.rank is not None) - (before.rank is not None)
            self._bound += value.bound - before.bound
        elif table == "origin":
            self._take_identity(key[0], value.name)
        elif table == "shown":
            self._likeness.held(key[0], value, key[-1])
        self.tables[table].absorb(key, value)

    def read_spellings(self) -> None:
        """Read all spellings at once, also by their fold."""
        self.spellings_of.is_whole = True
        for (scope, name), spelling in self.spellings.under():
            self._take_spelling(scope, name, spelling.fold)

    def _take_spelling(self, scope: str, name: str, key: str) -> None:
        group = self.spellings_of.group(scope)
        if self.spellings_of.is_whole:
            group.rows[key] = tuple(dict.fromkeys((*group.rows.get(key, ()), name)))
        else:
            group.forget(key)

    def apply(self, event: Event) -> None:
        """Apply an event."""
        match event:
            case Bind():
                self._bind(event)
            case Own():
                if self.owners.get(event.uri) is None:
                    self.owners.add(event.server, event.uri)
                    counts = self.counts(event.server)
                    self.server_counts.put(event.server, counts._replace(owned=counts.owned + 1))
            case _:
                if event.scope not in self.scopes:
                    self.begun_scopes.put(True, event.scope)
                self.begun(event.scope).apply(event)

    @property
    def identities(self) -> int:
        """The number of identities."""
        return self._bound

    def counts(self, server: str) -> ServerCounts:
        """Return the numbers of a server's claims, identities and URIs, and its rank."""
        return self.server_counts.get(server) or ServerCounts()

    def _bind(self, event: Bind) -> None:
        bindings = self.bindings.group(event.server)
        before = bindings.get(event.name)
        if self.binds(event.server, event.name, event.id):
            (bindings.add if before is None else bindings.put)(event.name, event.id)
        server_rank, claims, bound, owned = self.counts(event.server)
        if server_rank is None:
            server_rank, self._ranked = self._ranked, self._ranked + 1
        origins = self._origins
        if origins.get(event.id) is None:
            # A tool with another id stays where it was in the list.
            earlier = None if before is None else origins.get(before)
            place = (server_rank, self._bound) if earlier is None else (earlier.server_rank, earlier.rank)
            origins.add(event.id, OriginRow(event.server, event.name, *place))
            if self.index is self._in_memory:
                self._in_memory.add(event.id, event.server)
            self._take_identity(event.id, event.name)
            bound += 1
            self._bound += 1
        self.server_counts.put(event.server, ServerCounts(server_rank, claims, bound, owned))

    def origin(self, id: ToolId) -> tuple[str, str] | None:
        """Return the origin of an identity, as (server id, upstream name)."""
        found = self._origins.rows.get(id) or self._origins.get(id)
        return None if found is None else (found.server, found.name)

    @property
    def likeness(self) -> LikenessIndex:
        """The index of tools by keys of their names: in memory if all rows are, so that nobody else has to be asked."""
        source = self._source
        return self._likeness if source is None or all(self.tables[one].is_whole for one in _NAMING) else source

    def integrations(self) -> Collection[str]:
        """Return the integrations of all identities, present and former; they are read once."""
        if self._integrations is None:
            self._integrations = dict.fromkeys(self.likeness.integrations())
        return self._integrations.keys()

    def _take_identity(self, id: ToolId, name: str) -> None:
        self._likeness.bound(id, name)
        if self._integrations is not None:
            self._integrations[id.integration] = None

    def held(self, scope: str, name: str, id: ToolId) -> None:
        """Take in that a tool holds a name."""
        self._likeness.held(scope, name, id)

    def binds(self, server: str, name: str, id: ToolId) -> bool:
        """Return whether to record this id for a tool: it has none yet, or its former id was redirected."""
        bindings = self.bindings.group(server)
        bound = bindings.rows.get(name) or bindings.get(name)
        if bound is None:
            return True
        return bound != id and (id in self.scope("").successors(bound) or self._is_given_away(server, name))

    def current_bindings(self) -> Mapping[tuple[str, str], ToolId]:
        """Return the identities by (server id, upstream name), without those that were redirected to other tools.

        If an operator redirected an id to another tool that was seen, calls of the id go to that tool. A tool that the
        first server still lists under the old name then needs another id.
        """
        given_away = set()
        for name in list(self.scope("").withdrawn_names):
            with suppress(InvalidToolId):
                origin = self.origin(ToolId.parse(name)) if "/" in name else None
                if origin is not None and self._is_given_away(*origin):
                    given_away.add(origin)
        return AllRows(self.bindings, hides=given_away.__contains__)

    def read_ahead(self, events: Sequence[Event]) -> None:
        """Read at once what applying these events looks up, which is a row or two of each table for each event."""
        if all(self.tables[table].is_whole for table in _LARGE):
            return
        self.expect_identities([(event.server, event.name, event.id) for event in events if isinstance(event, Bind)])
        self.owners.group().read_ahead(event.uri for event in events if isinstance(event, Own))
        for scope, claims in _grouped((event.scope, event) for event in events if isinstance(event, Claim)):
            self.scope(scope).read_ahead(claims)

    def expect_identities(self, origins: Collection[tuple[str, str, ToolId]]) -> None:
        """Read at once what is on record about these tools, ``(server id, upstream name, id)``."""
        if self.origins.is_whole and self.bindings.is_whole:
            return
        self._origins.read_ahead(id for _, _, id in origins)
        for server, names in _grouped((server, name) for server, name, _ in origins):
            self.bindings.group(server).read_ahead(names)

    def has_now(self, server: str, name: str, id: ToolId) -> bool:
        """Return whether a tool has this identity, and not another one since it was redirected."""
        return self.bindings.get(server, name) == id and not self._is_given_away(server, name)

    def bindings_of(self, servers: Iterable[str]) -> dict[tuple[str, str], ToolId]:
        """Return the current bindings of these servers; no other row is read."""
        current = self.current_bindings()
        found = (row for server in servers for row in self.bindings.under(server))
        return {(server, name): id for (server, name), id in found if (server, name) in current}

    def _is_given_away(self, server: str, name: str) -> bool:
        base = self.scope("")
        if not base.withdrawn_names:
            return False
        origin = server, name
        successors = base.successors(self.bindings.get(server, name))
        return any((self.origin(id) or origin) != origin for id in successors)


class NamingScope:
    """One naming scope: within it a name once shown never means another tool."""

    __slots__ = (
        *("_holders", "_shown", "_spelled", "_spellings", "_state"),
        *("epoch", "name", "server_names", "settings", "withdrawals", "withdrawn", "withdrawn_names"),
    )

    def __init__(self, state: LedgerState, name: str) -> None:
        self._state = state
        # By fold, by name, and the names by fold.
        self._holders = state.holders.group(name)
        self._spellings = state.spellings.group(name)
        self._spelled = state.spellings_of.group(name)
        # By table, under the present settings.
        self._shown: dict[str, RowGroup[str]] = {}
        self.name = name
        self.settings: LedgerSettings | None = None
        self.server_names: list[str] = []
        # How often the settings were changed: names that were shown under others are no longer in the lists.
        self.epoch = 0
        self.withdrawals = 0
        self.withdrawn: dict[str, Standing] = {}
        self.withdrawn_names: dict[str, Standing] = {}

    def apply(self, event: Event) -> None:
        """Apply an event. Names are compared folded, so a claim covers every spelling of it."""
        match event:
            case LedgerSettings():
                self._state.settings.put(event, self.name, self.epoch + 1)
                self.take_settings(event)
            case Claim():
                self._claim(event)
            case Retire(name=name, successor=successor):
                holders = self._holders.get(fold(name))
                first = None if holders is None else holders.first
                self._withdraw(name, Standing("retired", first, event.at, successor))
            case Redirect(name=name, id=id):
                self._cut_circle(name, id, event.at)
                self._withdraw(name, Standing("redirected", id, event.at, str(id), event.until))
            case Break(name=name, id=id, successor=successor):
                self._withdraw(name, Standing("broken", id, event.at, successor or None, protocol=event.protocol))

    def take_settings(self, settings: LedgerSettings) -> None:
        """Apply the settings by which names are made from now on."""
        self.settings = settings
        self.epoch += 1
        self._shown = {}
        own = settings.server_name
        self.server_names = [*(name for name in self.server_names if name != own), own]

    def take_withdrawn(self, kind: str, text: str, standing: Standing) -> None:
        """Apply the withdrawal of a spelling (kind ``name``), or of all with a fold (kind ``fold``)."""
        (self.withdrawn_names if kind == "name" else self.withdrawn)[text] = standing

    def _claim(self, event: Claim) -> None:
        name, id, key, state = event.name, event.id, fold(event.name), self._state
        holders = self._holders.get(key)
        first = None if holders is None else holders.first
        if first is None:
            rank, claims, bound, owned = state.counts(event.server)
            state.server_counts.put(event.server, ServerCounts(rank, claims + 1, bound, owned))
        # Only the tool to which the holder was redirected gets past the check; it may be the first one again.
        if holders is None:
            self._holders.add(key, NameHolders(id, id))
        elif holders != (first or id, id):
            self._holders.put(key, NameHolders(first or id, id))
        self._spell(name, key, event.prefix, event.number)
        self.held(event.table).put(id, name)
        state.held(self.name, name, id)
        if event.number is None and "/" not in name:
            integration, suite, tool = id.family
            versions = state.first_versions.group(self.name, integration, suite)
            if versions.get(tool) is None:
                versions.add(tool, id)

    def _spell(self, name: str, key: str, prefix: str = "", number: int | None = None) -> None:
        known = self._spellings.get(name)
        if known is None:
            self._spelled.rows[key] = (*self.spellings(key), name)
            self._spellings.add(name, RecordedSpelling(key, prefix, number))
        elif (prefix or number is not None) and known != (key, prefix, number):
            self._spellings.put(name, RecordedSpelling(key, prefix, number))

    def _withdraw(self, name: str, standing: Standing) -> None:
        key = fold(name)
        self.withdrawals += 1
        if _is_id(name):
            # Names that fold alike are one name; an id is itself alone, also where a name folds like it.
            self._end("name", name, standing)
            return
        if _is_respelled(key, standing):
            self._end("name", name, standing)
            if standing.id is not None:
                # The successor is another spelling of what was broken, which was perhaps another tool's.
                holders = self._holders.get(key)
                first = None if holders is None else holders.first
                self._holders.put(key, NameHolders(first, standing.id))
            return
        self._end("fold", key, standing)
        self._end("name", name, standing)
        self._spell(name, key)
        for spelling in self.spellings(key):
            # A name removed by a clean break stays so until an operator names exactly that spelling.
            if spelling == name or not self._is_broken(spelling):
                self._end("name", spelling, standing)

    def _end(self, kind: str, text: str, standing: Standing) -> None:
        known = self._state.withdrawn.get(self.name, kind, text)
        place = len(self.withdrawn) + len(self.withdrawn_names) if known is None else known.place
        self.take_withdrawn(kind, text, standing)
        self._state.withdrawn.put(WithdrawnRow(place, standing), self.name, kind, text)

    def _is_broken(self, name: str) -> bool:
        standing = self.withdrawn_names.get(name)
        return standing is not None and standing.status == "broken"

    def _cut_circle(self, old: str, new: ToolId, at: str) -> None:
        """Cancel the redirect of ``new`` if it leads to ``old``: the latest decision of the operator counts."""
        if "/" in old and old != str(new) and old in map(str, self.successors(new)):
            self._end("name", str(new), Standing("redirected", new, at, str(new)))

    def spellings(self, key: str) -> tuple[str, ...]:
        """Return the recorded names with this fold, verbatim."""
        found: tuple[str, ...] = self._spelled.get(key, ())
        return found

    def parts(self, name: str) -> tuple[str, int | None]:
        """Return the server's part that a name begins with, and the number at its end."""
        found = self._spellings.rows.get(name) or self._spellings.get(name)
        return ("", None) if found is None else (found.prefix, found.number)

    def read_ahead(self, claims: Sequence[Claim]) -> None:
        """Read at once what these claims look up."""
        state, folds = self._state, [fold(claim.name) for claim in claims]
        self._holders.read_ahead(folds)
        self._spellings.read_ahead(claim.name for claim in claims)
        self._spelled.read_ahead(folds)
        for table, ids in _grouped((claim.table, claim.id) for claim in claims):
            self.held(table).read_ahead(ids)
        for (integration, suite), tools in _grouped(((id.integration, id.suite), id.tool) for id in _ids(claims)):
            state.first_versions.group(self.name, integration, suite).read_ahead(tools)

    def expect_parts(self, names: Iterable[str]) -> None:
        """Read at once the `parts` of these names."""
        self._spellings.read_ahead(names)

    def expect(self, names: Collection[str]) -> None:
        """Read at once who holds these names, and how they are written."""
        self._holders.read_ahead(map(fold, names))
        self._spellings.read_ahead(names)

    def held(self, table: str) -> RowGroup[str]:
        """Return the names that tools have in a table."""
        found = self._shown.get(table)
        if found is None:
            found = self._shown[table] = self._state.shown.group(self.name, self.epoch, table)
        return found

    def tables(self) -> tuple[str, ...] | None:
        """Return the tables in which names are held; None if only the stored rows could tell."""
        held = self._state.shown
        return held.lasts(self.name, self.epoch) if held.is_whole else None

    def first_version(self, id: ToolId) -> ToolId | None:
        """Return the version of this tool that was the first to be shown under a name without a number."""
        return self._state.first_versions.get(self.name, *id.family)

    def first_holder(self, key: str) -> ToolId | None:
        """Return the tool that had the name with this fold first."""
        holders = self._holders.get(key)
        return None if holders is None else holders.first

    def holder(self, key: str) -> ToolId | None:
        """Return the tool that holds the name with this fold: the first, or the one that an operator gave it to."""
        # Asked for each name of each projection: a row in memory is found without another call.
        holders = self._holders.rows.get(key) or self._holders.get(key)
        return None if holders is None else holders.present

    def bars(self, name: str, id: ToolId) -> bool:
        """Return whether a name was withdrawn and not redirected to this tool, so that the tool cannot have it."""
        standing = self.withdrawn_names.get(name) or self.withdrawn.get(fold(name))
        if self._is_broken(name):
            return True
        return standing is not None and (standing.status, standing.id) != ("redirected", id)

    def is_heir(self, key: str, id: ToolId) -> bool:
        """Return whether the name with this fold, or the tool that holds it, was redirected to this tool."""
        standing = self.withdrawn.get(key)
        if standing is not None:
            return (standing.status, standing.id) == ("redirected", id)
        return id in self.successors(self.holder(key))

    def successors(self, id: ToolId | None) -> Iterator[ToolId]:
        """Yield the tools to which this one was redirected or that a clean break names, in order; a circle ends."""
        for _ in range(_MOST_REDIRECTS):
            standing = self.withdrawn_names.get(str(id))
            if standing is None or standing.status == "retired" or standing.id in (None, id):
                return
            id = standing.id
            yield id

    def standing(self, name: str) -> Standing | None:
        """Return the meaning of exactly this spelling; None if it was never shown."""
        if name in self.withdrawn_names:
            return self.withdrawn_names[name]
        known = self._spellings.get(name)
        return None if known is None else Standing("held", self.holder(known.fold), "")

    def standing_folded(self, key: str) -> Standing | None:
        """Return the meaning of any spelling with this fold; None if it has none."""
        if key in self.withdrawn:
            return self.withdrawn[key]
        id = self.holder(key)
        return None if id is None else Standing("held", id, "")


def _ids(claims: Iterable[Claim]) -> Iterator[ToolId]:
    return (claim.id for claim in claims if claim.number is None)


def _grouped(pairs: Iterable[tuple[K, V]]) -> Iterable[tuple[K, list[V]]]:
    found: defaultdict[K, list[V]] = defaultdict(list)
    for key, value in pairs:
        found[key].append(value)
    return found.items()


def _is_id(name: str) -> bool:
    try:
        return "/" in name and str(ToolId.parse(name)) == name
    except InvalidToolId:
        return False


def _is_respelled(key: str, standing: Standing) -> bool:
    """Return whether only the spelling changed, so that other spellings stay valid: ``fs.list`` to ``fs_list``."""
    if standing.status != "broken":
        return False
    id, successors = standing.id, {standing.successor or ""}
    if id is not None:
        bare = f"{id.suite}_{id.tool}" if id.suite else id.tool
        successors |= {id.tool, bare, f"{id.integration}_{bare}"}
    return key in map(fold, successors)
