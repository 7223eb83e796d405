"""Apply events: which tool holds which name, what became of withdrawn names, which tool has which identity.

A state is read row by row when asked, so that a ledger of a million names opens as fast as an empty one. All rows are
the result of applying every event in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeVar

from truename.errors import InvalidToolId
from truename.identity import ToolId, fold
from truename.ledger.events import Bind, Break, Claim, LedgerSettings, Own, Redirect, Retire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from truename.ledger.events import Event

__all__ = [
    "LedgerRows",
    "LedgerState",
    "NameHolders",
    "NamingScope",
    "OriginRow",
    "RecordedSpelling",
    "RowSource",
    "RowsUnder",
    "ServerCounts",
    "Standing",
    "WithdrawnRow",
]

# More redirects in a row than this are a circle.
_MOST_REDIRECTS: Final = 32

V = TypeVar("V")
RowKey = tuple[Any, ...]


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
    """The origin of an identity, and its place in the pinned order: the server's place, and its own."""

    server: str
    name: str
    server_rank: int
    rank: int


class ServerCounts(NamedTuple):
    """The numbers of a server's names, identities and URIs, and its rank in the pinned order, once it has one."""

    rank: int | None = None
    claims: int = 0
    bound: int = 0
    owned: int = 0


class WithdrawnRow(NamedTuple):
    """The withdrawal of a spelling, and its place among all withdrawals of its scope."""

    place: int
    standing: Standing


class RowSource(Protocol):
    """A source of the rows that are not in memory."""

    def read(self, table: str, key: RowKey) -> Any:
        """Return the value of one row, None if there is none."""
        ...

    def under(self, table: str, prefix: RowKey) -> Iterable[tuple[RowKey, Any]]:
        """Return the rows whose keys begin with ``prefix``."""
        ...


class LedgerRows(Generic[V]):
    """One table of a ledger as a mapping: rows are read when asked, and stay in memory.

    Without a source all rows are in memory. ``changed`` are the keys of the rows that are not stored yet.
    """

    __slots__ = ("_rows", "_source", "changed", "is_whole", "table")

    def __init__(self, table: str, source: RowSource | None) -> None:
        self.table = table
        self.is_whole = source is None
        self.changed: dict[RowKey, None] = {}
        self._source = source
        self._rows: dict[RowKey, V] = {}

    def get(self, *key: object) -> V | None:
        """Return the value of a row, None if there is none."""
        found = self._rows.get(key)
        if found is None and not self.is_whole and self._source is not None:
            found = self._source.read(self.table, key)
            if found is not None:
                self._rows[key] = found
        return found

    def put(self, value: V, *key: object) -> None:
        """Set a row; it is stored with the events that set it."""
        self._rows[key] = value
        self.changed[key] = None

    def absorb(self, key: RowKey, value: V) -> None:
        """Take over a row as it is stored."""
        self._rows[key] = value

    def forget(self, key: RowKey) -> None:
        """Read a row anew when it is asked for."""
        self._rows.pop(key, None)

    def under(self, *prefix: object) -> list[tuple[RowKey, V]]:
        """Return the rows whose keys begin with ``prefix``; all of them without one."""
        if not self.is_whole and self._source is not None:
            for key, value in self._source.under(self.table, prefix):
                self._rows.setdefault(key, value)
            self.is_whole = not prefix
        # Copied in one step, which no other thread can interrupt.
        rows = list(self._rows.items())
        return [row for row in rows if row[0][: len(prefix)] == prefix] if prefix else rows


def _as_it_is(value: object) -> Any:
    return value


class RowsUnder(Mapping[Any, V]):
    """The rows under a prefix of their keys, by the rest of the key; a rest of one part is that part.

    Iterating reads all of them, looking one up reads one.
    """

    __slots__ = ("_except", "_prefix", "_rows", "_show")

    def __init__(
        self,
        rows: LedgerRows[Any],
        *prefix: object,
        without: frozenset[object] = frozenset(),
        show: Callable[[Any], V] = _as_it_is,
    ) -> None:
        self._rows = rows
        self._prefix = prefix
        self._except = without
        self._show = show

    def __getitem__(self, key: object) -> V:
        found: V | None = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def get(self, key: object, default: object = None) -> Any:
        """Return the value of a row, ``default`` if there is none."""
        if key in self._except:
            return default
        found = self._rows.get(*self._prefix, *(key if type(key) is tuple else (key,)))
        return default if found is None else self._show(found)

    def __contains__(self, key: object) -> bool:
        return self.get(key) is not None

    def __iter__(self) -> Iterator[object]:
        return iter(dict(self._pairs()))

    def __len__(self) -> int:
        return sum(1 for _ in self._pairs())

    def items(self) -> Any:
        """Return all rows, as pairs."""
        return dict(self._pairs()).items()

    def values(self) -> Any:
        """Return the values of all rows."""
        return dict(self._pairs()).values()

    def _pairs(self) -> Iterator[tuple[object, V]]:
        length = len(self._prefix)
        for key, value in self._rows.under(*self._prefix):
            rest = key[length:]
            short = rest if len(rest) > 1 else rest[0]
            if short not in self._except:
                yield short, self._show(value)

    def __repr__(self) -> str:
        return repr(dict(self._pairs()))


class LedgerState:
    """All rows of a ledger; ``revision`` counts the records that made them."""

    __slots__ = (
        "_bound",
        "_ranked",
        "begun_scopes",
        "bindings",
        "first_versions",
        "holders",
        "origins",
        "owners",
        "revision",
        "scopes",
        "servers",
        "settings",
        "shown",
        "spellings",
        "spellings_of",
        "tables",
        "withdrawn",
    )

    def __init__(self, source: RowSource | None = None) -> None:
        self.revision = 0
        # (scope, fold), (scope, name) and (scope, fold) -> names
        self.holders: LedgerRows[NameHolders] = LedgerRows("holder", source)
        self.spellings: LedgerRows[RecordedSpelling] = LedgerRows("spelling", source)
        self.spellings_of: LedgerRows[tuple[str, ...]] = LedgerRows("spellings_of", source)
        # (scope, number of the settings, table, id): the name that a tool has in a table
        self.shown: LedgerRows[str] = LedgerRows("shown", source)
        # (scope, integration, suite, tool): of the versions of a tool, the first that was shown without a number
        self.first_versions: LedgerRows[ToolId] = LedgerRows("first_version", source)
        self.origins: LedgerRows[OriginRow] = LedgerRows("origin", source)
        self.bindings: LedgerRows[ToolId] = LedgerRows("binding", source)
        self.owners: LedgerRows[str] = LedgerRows("owner", source)
        # These are few, and always in memory: (server), (scope), (scope, number), (scope, "name" or "fold", text).
        self.servers: LedgerRows[ServerCounts] = LedgerRows("server", None)
        self.settings: LedgerRows[LedgerSettings] = LedgerRows("settings", None)
        self.withdrawn: LedgerRows[WithdrawnRow] = LedgerRows("withdrawn", None)
        self.begun_scopes: LedgerRows[bool] = LedgerRows("scope", None)
        self.scopes: dict[str, NamingScope] = {}
        # How many servers have a place in the pinned order, and how many identities.
        self._ranked = self._bound = 0
        stored: tuple[LedgerRows[Any], ...] = (
            *(self.holders, self.spellings, self.shown, self.first_versions, self.origins, self.bindings),
            *(self.owners, self.servers, self.settings, self.withdrawn, self.begun_scopes),
        )
        self.tables = MappingProxyType({rows.table: rows for rows in stored})

    def scope(self, name: str) -> NamingScope:
        """Return a naming scope; it is empty if it has no records."""
        return self.scopes.get(name) or NamingScope(self, name)

    def begun(self, name: str) -> NamingScope:
        """Return a naming scope that has records, and create it if it is new."""
        if name not in self.scopes:
            self.scopes[name] = NamingScope(self, name)
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
            self.spellings_of.forget((key[0], value.fold))
        elif table == "server":
            before = self.counts(key[0])
            self._ranked += (value.rank is not None) - (before.rank is not None)
            self._bound += value.bound - before.bound
        self.tables[table].absorb(key, value)

    def apply(self, event: Event) -> None:
        """Apply an event."""
        match event:
            case Bind():
                self._bind(event)
            case Own():
                if self.owners.get(event.uri) is None:
                    self.owners.put(event.server, event.uri)
                    counts = self.counts(event.server)
                    self.servers.put(counts._replace(owned=counts.owned + 1), event.server)
            case _:
                if event.scope not in self.scopes:
                    self.begun_scopes.put(True, event.scope)
                self.begun(event.scope).apply(event)

    def counts(self, server: str) -> ServerCounts:
        """Return the numbers of a server's claims, identities and URIs, and its rank."""
        return self.servers.get(server) or ServerCounts()

    def _bind(self, event: Bind) -> None:
        before = self.bindings.get(event.server, event.name)
        if self.binds(event.server, event.name, event.id):
            self.bindings.put(event.id, event.server, event.name)
        counts = self.counts(event.server)
        server_rank = counts.rank
        if server_rank is None:
            server_rank, self._ranked = self._ranked, self._ranked + 1
            counts = counts._replace(rank=server_rank)
        if self.origins.get(event.id) is None:
            # A tool with another id stays where it was in the list.
            earlier = None if before is None else self.origins.get(before)
            place = (server_rank, self._bound) if earlier is None else (earlier.server_rank, earlier.rank)
            self.origins.put(OriginRow(event.server, event.name, *place), event.id)
            counts = counts._replace(bound=counts.bound + 1)
            self._bound += 1
        self.servers.put(counts, event.server)

    def origin(self, id: ToolId) -> tuple[str, str] | None:
        """Return the origin of an identity, as (server id, upstream name)."""
        found = self.origins.get(id)
        return None if found is None else (found.server, found.name)

    def binds(self, server: str, name: str, id: ToolId) -> bool:
        """Return whether to record this id for a tool: it has none yet, or its former id was redirected."""
        bound = self.bindings.get(server, name)
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
        return RowsUnder(self.bindings, without=frozenset(given_away))

    def _is_given_away(self, server: str, name: str) -> bool:
        origin = server, name
        successors = self.scope("").successors(self.bindings.get(server, name))
        return any((self.origin(id) or origin) != origin for id in successors)


class NamingScope:
    """One naming scope: within it a name once shown never means another tool."""

    __slots__ = ("_state", "epoch", "name", "server_names", "settings", "withdrawals", "withdrawn", "withdrawn_names")

    def __init__(self, state: LedgerState, name: str) -> None:
        self._state = state
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
                holders = self._holders(fold(name))
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
        own = settings.server_name
        self.server_names = [*(name for name in self.server_names if name != own), own]

    def take_withdrawn(self, kind: str, text: str, standing: Standing) -> None:
        """Apply the withdrawal of a spelling (kind ``name``), or of all with a fold (kind ``fold``)."""
        (self.withdrawn_names if kind == "name" else self.withdrawn)[text] = standing

    def _claim(self, event: Claim) -> None:
        name, id, key, state = event.name, event.id, fold(event.name), self._state
        holders = self._holders(key)
        first = None if holders is None else holders.first
        if first is None:
            counts = state.counts(event.server)
            state.servers.put(counts._replace(claims=counts.claims + 1), event.server)
        # Only the tool to which the holder was redirected gets past the check; it may be the first one again.
        if holders != (first or id, id):
            state.holders.put(NameHolders(first or id, id), self.name, key)
        self._spell(name, key, event.prefix, event.number)
        state.shown.put(name, self.name, self.epoch, event.table, id)
        family = (self.name, *id.family)
        if event.number is None and "/" not in name and state.first_versions.get(*family) is None:
            state.first_versions.put(id, *family)

    def _spell(self, name: str, key: str, prefix: str = "", number: int | None = None) -> None:
        known = self._state.spellings.get(self.name, name)
        if known is None:
            spelled = self.spellings(key)
            self._state.spellings_of.absorb((self.name, key), (*spelled, name))
        if known is None or ((prefix or number is not None) and known != (key, prefix, number)):
            self._state.spellings.put(RecordedSpelling(key, prefix, number), self.name, name)

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
                holders = self._holders(key)
                first = None if holders is None else holders.first
                self._state.holders.put(NameHolders(first, standing.id), self.name, key)
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

    def _holders(self, key: str) -> NameHolders | None:
        return self._state.holders.get(self.name, key)

    def spellings(self, key: str) -> tuple[str, ...]:
        """Return the recorded names with this fold, verbatim."""
        return self._state.spellings_of.get(self.name, key) or ()

    def parts(self, name: str) -> tuple[str, int | None]:
        """Return the server's part that a name begins with, and the number at its end."""
        found = self._state.spellings.get(self.name, name)
        return ("", None) if found is None else (found.prefix, found.number)

    def held(self, table: str) -> Mapping[ToolId, str]:
        """Return the names that tools have in a table."""
        return RowsUnder(self._state.shown, self.name, self.epoch, table)

    def first_version(self, id: ToolId) -> ToolId | None:
        """Return the version of this tool that was the first to be shown under a name without a number."""
        return self._state.first_versions.get(self.name, *id.family)

    def first_holder(self, key: str) -> ToolId | None:
        """Return the tool that had the name with this fold first."""
        holders = self._holders(key)
        return None if holders is None else holders.first

    def holder(self, key: str) -> ToolId | None:
        """Return the tool that holds the name with this fold: the first, or the one that an operator gave it to."""
        holders = self._holders(key)
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
        known = self._state.spellings.get(self.name, name)
        return None if known is None else Standing("held", self.holder(known.fold), "")

    def standing_folded(self, key: str) -> Standing | None:
        """Return the meaning of any spelling with this fold; None if it has none."""
        if key in self.withdrawn:
            return self.withdrawn[key]
        id = self.holder(key)
        return None if id is None else Standing("held", id, "")


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
