"""The ledger: the record of which tool holds which name. A name once shown never means another tool."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from truename.errors import LedgerError
from truename.identity import ToolId, fold
from truename.ledger.checks import as_recorded, check_events, day_of, newly_bound, newly_owned, tool_meant
from truename.ledger.events import Break, Claim, Event, LedgerSettings, Redirect, Retire
from truename.ledger.identities import LedgerIdentities
from truename.ledger.likeness import ODD, likeness
from truename.ledger.rows import AllRows
from truename.ledger.store import MemoryLedger

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import date
    from typing import Self

    from truename.ledger.state import LedgerState, NamingScope, Standing
    from truename.ledger.store import LedgerStore
    from truename.storage import StateLocation

__all__ = ["MAX_CLAIMS", "Ledger", "open_ledger"]

# The largest real server lists 1,083 tools; a server gets room for that many in many spellings and upgrades.
MAX_CLAIMS: Final = 20_000


class LedgerCore:
    """The part that all views of one ledger share: the store, the state as last read, the lock between threads."""

    __slots__ = ("depth", "lock", "max_claims", "news", "readonly", "state", "store")

    def __init__(self, store: LedgerStore, max_claims: int, *, readonly: bool) -> None:
        self.store = store
        self.state: LedgerState = store.snapshot()
        self.max_claims = max_claims
        self.readonly = readonly
        self.lock = threading.RLock()
        self.depth = 0
        # Whether a transaction read changes by others that `refresh` has not reported yet.
        self.news = False

    def read(self) -> bool:
        """Read the changes by others, and return whether there were any."""
        before, revision = self.state, self.state.revision
        self.state = self.store.snapshot()
        return self.state is not before or self.state.revision != revision


class Ledger:
    """The memory of names: in memory (`memory`) or in a state database (`open`).

    A name belongs to the first tool that it was shown for, in every dialect, whatever joins, leaves or restarts. Only
    an operator can change what it leads to, by `redirect`, `retire` or `break_name`. Afterwards only the tool to which
    it was redirected may be shown under it.

    >>> ledger = Ledger.memory()
    >>> ledger.redirect("fs.list", "files@1/list@1")
    >>> ledger.standing("fs.list").id
    ToolId('files@1/list@1')
    """

    __slots__ = ("__weakref__", "_core", "scope")

    def __init__(self, core: LedgerCore, scope: str = "") -> None:
        self._core = core
        self.scope = scope

    @classmethod
    def memory(cls, *, max_claims: int = MAX_CLAIMS) -> Self:
        """Begin a ledger that is forgotten with the process."""
        return cls(LedgerCore(MemoryLedger(), max_claims, readonly=False))

    @classmethod
    def open(cls, path: str | Path, readonly: bool = False, *, max_claims: int = MAX_CLAIMS) -> Ledger:
        """Open, or create, a ledger in a file. With ``readonly``, nothing is created or changed.

        A journal (the earlier format) is imported and kept as ``PATH.journal``; with ``readonly`` it is only read.

        Raises `LedgerError`: ``corrupt`` (damaged, lost, or older than a recorded revision), ``newer``, ``busy``,
        ``unusable``.
        """
        return open_ledger(Path(path), readonly=readonly, max_claims=max_claims)

    def close(self) -> None:
        """Close the file. The part in memory stays readable."""
        self._core.store.close()

    def scoped(self, scope: str) -> Ledger:
        """Return a view with separate names, as for a client that sees only one server."""
        return type(self)(self._core, scope)

    @property
    def readonly(self) -> bool:
        """Whether this ledger only answers questions."""
        return self._core.readonly

    @property
    def settings(self) -> LedgerSettings | None:
        """The settings by which names are made; None before the first projection."""
        return self._scope.settings

    @property
    def revision(self) -> int:
        """The number of records that were read; another number means that something changed."""
        return self._core.state.revision

    @property
    def withdrawn(self) -> Mapping[str, Standing]:
        """The spellings that were redirected, retired or broken; the mapping is live and must not be changed."""
        return self._scope.withdrawn_names

    @property
    def withdrawals(self) -> int:
        """The number of withdrawals so far; it changes if and only if `withdrawn` changes."""
        return self._scope.withdrawals

    @property
    def scopes(self) -> tuple[str, ...]:
        """The naming scopes with records. A name that is withdrawn in one stays valid in the others."""
        return tuple(self._core.state.scopes)

    @property
    def _scope(self) -> NamingScope:
        state = self._core.state
        return state.scopes.get(self.scope) or state.scope(self.scope)

    def bindings(self) -> Mapping[tuple[str, str], ToolId]:
        """Return the recorded identities by (server id, upstream name), for `Catalog.from_mcp(bound=...)`.

        An id that was redirected to another tool stays with that tool once it was seen. A tool that the first server
        lists under the old name again gets a new id.

        >>> ledger = Ledger.memory()
        >>> old, new = ToolId.parse("fs/list"), ToolId.parse("files/list")
        >>> ledger.remember(None, (), [("fs", "list", old), ("files", "list", new)])
        True
        >>> ledger.redirect(str(old), new)
        >>> dict(ledger.bindings())
        {('files', 'list'): ToolId('files@1/list@1')}
        """
        return self._core.state.current_bindings()

    def bindings_of(self, servers: Iterable[str]) -> Mapping[tuple[str, str], ToolId]:
        """Return those of `bindings` that are of these servers. A ledger may have a million others.

        >>> ledger = Ledger.memory()
        >>> fs, git = ToolId.parse("fs/list"), ToolId.parse("git/push")
        >>> ledger.remember(None, (), [("fs", "list", fs), ("git", "push", git)])
        True
        >>> ledger.bindings_of(["fs"])
        {('fs', 'list'): ToolId('fs@1/list@1')}
        """
        return self._core.state.bindings_of(servers)

    @property
    def identities(self) -> int:
        """The number of identities that `origins` has."""
        return self._core.state.identities

    @property
    def identity_record(self) -> LedgerIdentities:
        """The present identities, for `admit`: to ask about one costs no reading of the others."""
        core = self._core
        return LedgerIdentities(lambda: core.state)

    def origins(self) -> Mapping[ToolId, tuple[str, str]]:
        """Return every recorded identity with its origin, as (server id, upstream name)."""
        return self._origins()

    def _origins(self, hides: Callable[[ToolId], bool] = lambda _: False) -> Mapping[ToolId, tuple[str, str]]:
        return AllRows(self._core.state.origins, hides=hides, show=lambda row: (row.server, row.name))

    def alike(self, texts: Collection[str], table: str) -> list[ToolId]:
        """Return the recorded tools of which one of these texts may be a name, and others with names like it.

        Names are the tool's own, the one in its id, and those that it held behind its server's part, all in the forms
        of all styles. The records of each in a table of names are read together, and none of other tools.

        >>> ledger = Ledger.memory()
        >>> ledger.remember(None, (), [("fs", "listFiles", ToolId.parse("fs/listfiles"))])
        True
        >>> ledger.alike(["list_files"], "universal"), ledger.alike(["files"], "universal")
        ([ToolId('fs@1/listfiles@1')], [])
        """
        return self._with_keys({likeness(text) for text in texts} - {ODD}, table)

    def oddly_named(self, table: str) -> list[ToolId]:
        """Return the recorded tools that `alike` does not find by all names: those with characters that keys lack.

        >>> ledger = Ledger.memory()
        >>> ledger.remember(None, (), [("fs", "list+", ToolId.parse("fs/list-e0acd8ff"))])
        True
        >>> ledger.alike(["list"], "universal"), ledger.oddly_named("universal")
        ([], [ToolId('fs@1/list-e0acd8ff@1')])
        """
        return self._with_keys({ODD}, table)

    def _with_keys(self, keys: Collection[str], table: str) -> list[ToolId]:
        state = self._core.state
        ids = list(state.likeness.alike(self.scope, keys))
        state.origins.group().read_ahead(ids)
        self._scope.expect_parts(self.held_by(ids, table).values())
        # Another process may have recorded some since the state was read.
        return [id for id in ids if state.origin(id) is not None]

    def servers(self) -> Collection[str]:
        """Return the ids of the servers on record."""
        return self._core.state.servers.group().rows.keys()

    def integrations(self) -> Collection[str]:
        """Return the integrations of all identities on record."""
        return self._core.state.integrations()

    @property
    def owners(self) -> Mapping[str, str]:
        """The server that each recorded URI belongs to."""
        return AllRows(self._core.state.owners)

    def own(self, uris: Iterable[tuple[str, str]]) -> None:
        """Record the server of each URI, ``(uri, server)``; a recorded URI keeps its server. See `newly_owned`."""
        with self.transaction():
            self.record(newly_owned(uris, self._core.state))

    def holder(self, key: str) -> ToolId | None:
        """Return the tool that holds the name with this fold, present or not."""
        return self._scope.holder(key)

    def is_withdrawn(self, key: str) -> bool:
        """Return whether the name with this fold was redirected, retired or broken."""
        return key in self._scope.withdrawn

    def bars(self, name: str, id: ToolId) -> bool:
        """Return whether a name was withdrawn and not redirected to this tool, so that the tool cannot have it."""
        return self._scope.bars(name, id)

    def is_heir(self, key: str, id: ToolId) -> bool:
        """Return whether the name with this fold, or the tool that holds it, was redirected to this tool."""
        return self._scope.is_heir(key, id)

    def successors(self, id: ToolId) -> Iterator[ToolId]:
        """Yield the tools to which this one was redirected, or that a clean break names, step by step."""
        return self._scope.successors(id)

    def shown_in(self, name: str, table: str) -> bool:
        """Return whether a name was in the list of this table; a name that was in no list counts as in every one."""
        tables = {event.table for event in self.history(name) if isinstance(event, Claim) and event.name == name}
        return table in tables or not tables

    def held(self, table: str) -> Mapping[ToolId, str]:
        """Return the names that tools hold in a table."""
        return self._scope.held(table)

    def held_by(self, ids: Collection[ToolId], table: str) -> dict[ToolId, str]:
        """Return the names that these tools hold in a table; no other row is read."""
        held = self._scope.held(table)
        held.read_ahead(ids)
        return {id: name for id in ids if (name := held.get(id)) is not None}

    def expect(self, names: Collection[str]) -> None:
        """Read at once what is on record about these names, each of which will be asked about."""
        self._scope.expect(names)

    def held_anywhere(self, id: ToolId, tables: Iterable[str]) -> Iterator[str]:
        """Yield the names that a tool holds in these tables."""
        scope = self._scope
        known = scope.tables()
        for table in tables if known is None else known:
            if (name := scope.held(table).get(id)) is not None:
                yield name

    def parts(self, name: str) -> tuple[str, int | None]:
        """Return the server's part that a name begins with, and its number: ``("sf_", 2)`` for ``sf_create_lead_2``."""
        return self._scope.parts(name)

    def first_version(self, id: ToolId) -> ToolId | None:
        """Return the version of this tool that was the first to be shown under a name without a number."""
        return self._scope.first_version(id)

    def spellings(self, key: str) -> Collection[str]:
        """Return the recorded names with this fold, verbatim."""
        return self._scope.spellings(key)

    def held_first(self, key: str) -> ToolId | None:
        """Return the tool that had the name with this fold first."""
        return self._scope.first_holder(key)

    def tells_of(self, _id: ToolId, /) -> bool:
        """Return whether the reader of this ledger may see a tool: always, except in a `SeenLedger`."""
        return True

    def hides(self, _name: str, /) -> bool:
        """Return whether exactly this spelling is recorded for a tool that the reader must not see."""
        return False

    def standing(self, name: str) -> Standing | None:
        """Return the `Standing` of a name in exactly this spelling; None if it was never shown."""
        return self._scope.standing(name)

    def standing_folded(self, key: str) -> Standing | None:
        """Return the meaning of any spelling with this fold; None if it has none."""
        return self._scope.standing_folded(key)

    def pinned(self, ids: Iterable[ToolId]) -> list[ToolId]:
        """Return the ids in fixed order: as first seen, new ones last, each server's together."""
        ids = tuple(ids)
        self._core.state.origins.group().read_ahead(ids)
        return sorted(ids, key=self.place)

    def place(self, id: ToolId) -> tuple[int, int]:
        """Return the place of an id in the fixed order, which never changes."""
        origins = self._core.state.origins.group()
        found = origins.rows.get(id) or origins.get(id)
        return (sys.maxsize, 0) if found is None else (found.server_rank, found.rank)

    def history(self, name: str) -> tuple[Event, ...]:
        """Return the events of a name, in any spelling, oldest first."""
        return self._core.store.history(self.scope, name)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Lock out other threads and processes, and read what they wrote. It may be nested.

        All records of the block are committed at its end; in a file, none if the block raises.
        """
        core = self._core
        with core.lock:
            if core.readonly or core.depth:
                yield
                return
            core.depth += 1
            try:
                with core.store.transaction():
                    core.news |= core.read()
                    yield
            except BaseException:
                with suppress(LedgerError):
                    core.state = core.store.snapshot()
                raise
            finally:
                core.depth -= 1

    def is_locked(self) -> bool:
        """Whether another process or thread is writing now, so that a writer has to wait."""
        core = self._core
        if not core.lock.acquire(blocking=False):
            return True
        try:
            return not core.depth and core.store.is_busy()
        finally:
            core.lock.release()

    def refresh(self, *, wait: bool = True) -> bool:
        """Read what others wrote, and return whether there was anything since the last call. Readers may call it too.

        Without ``wait``, nothing is read while another thread uses the ledger.
        """
        core = self._core
        if not core.lock.acquire(blocking=wait):
            return False
        try:
            if core.depth:
                return False
            found, core.news = core.read() or core.news, False
            return found
        finally:
            core.lock.release()

    def catch_up(self) -> None:
        """Read what others wrote; the next `refresh` still returns True for it."""
        core = self._core
        with core.lock:
            if not core.depth:
                core.news |= core.read()

    def has_news(self) -> bool:
        """Return, without waiting, whether `refresh` would find anything. False during a transaction of this ledger."""
        core = self._core
        return core.news or (not core.depth and core.store.has_news())

    @property
    def silence(self) -> float:
        """How many seconds ago the database answered last, as others write into it; 0 for a file and for memory."""
        return self._core.store.silence

    def record(self, events: Sequence[Event]) -> None:
        """Check the events against the constraints of the ledger, then store all of them, or none.

        Raises `LedgerError`: ``conflict``, ``full``, ``readonly``.
        """
        if not events:
            return
        with self.transaction():
            self._append(events)

    def _append(self, events: Sequence[Event]) -> bool:
        core = self._core
        if core.readonly:
            raise LedgerError(code="readonly", name=str(getattr(events[0], "name", "settings")))
        now = datetime.now(UTC).isoformat(timespec="seconds")
        stamped = [event.stamped(now, self.scope) for event in events]
        core.state.read_ahead(stamped)
        check_events(events, self._scope, core.state, core.max_claims)
        return core.store.append(stamped, core.state.revision)

    def check(self, wanted: LedgerSettings) -> None:
        """Raise `LedgerError` (``style_mismatch``) if the recorded settings make other names than ``wanted``."""
        recorded = self.settings
        if recorded is not None and not recorded.same(wanted):
            other = wanted.difference(recorded)
            raise LedgerError(code="style_mismatch", recorded=recorded.difference(wanted), wanted=other)

    def remember(
        self,
        settings: LedgerSettings | None,
        claims: Iterable[Claim],
        origins: Iterable[tuple[str, str, ToolId]],
        *,
        since: int | None = None,
    ) -> bool:
        """Record a projection in one transaction: the settings, the new names, and the new identities.

        ``since`` is the `revision` from which it was made: if another thread or process recorded anything later,
        nothing is recorded, and False is returned. Without ``since`` others are locked out, and True is returned.
        """
        if since is None:
            with self.transaction():
                self.record(self._unrecorded(settings, claims, origins))
                return True
        core = self._core
        with core.lock:
            core.read()
            if core.state.revision != since:
                # It is news for whoever looks, though it was read here.
                core.news = True
                return False
            events = self._unrecorded(settings, claims, origins)
            return not events or self._append(events)

    def _unrecorded(
        self, settings: LedgerSettings | None, claims: Iterable[Claim], origins: Iterable[tuple[str, str, ToolId]]
    ) -> list[Event]:
        first: list[Event] = [] if settings is None or self.settings is not None else [settings]
        return [*first, *claims, *newly_bound(origins, self._core.state)]

    def origin_of(self, id: ToolId) -> tuple[str, str] | None:
        """Return the origin of an identity, as (server id, upstream name); None if it was never seen."""
        return self._core.state.origin(id)

    def restyle(self, wanted: LedgerSettings) -> None:
        """Change how names are made: tools get new names at the next projection; the old names stay valid."""
        self.record([wanted])

    @property
    def server_names(self) -> tuple[str, ...]:
        """The keys under which clients know, or once knew, the server that shows these names; the present one first."""
        return tuple(reversed(self._scope.server_names))

    def retire(self, name: str, successor: str | None = None) -> None:
        """Withdraw a name for ever: calls of it get the error `RetiredName` with its successor.

        Raises `LedgerError` (``not_held``) if the name was never shown, `InvalidName` for an invalid text.
        """
        wanted = as_recorded(name)
        if successor is not None:
            as_recorded(successor)
        with self.transaction():
            is_told_of = self.standing(wanted) or self.standing_folded(fold(wanted)) or self._is_known(wanted)
            if not is_told_of:
                raise LedgerError(code="not_held", name=name)
            self.record([Retire(name=wanted, successor=successor)])

    def redirect(self, old: str, new: str | ToolId, until: str | date = "") -> None:
        """Make an old name mean the tool that ``new`` (a recorded name, an id or its text) means.

        Until a day (``2027-02-01``, inclusive) it is listed beside the present name too, because half of the clients
        refuse names that are no longer listed. If ``old`` is an id, the names of its tool lead to the new tool too.

        Raises `LedgerError`: ``not_held`` if ``new`` is neither, ``invalid_day``; `InvalidName` for an invalid
        text.

        >>> ledger = Ledger.memory()
        >>> ledger.redirect("fs.list", "files/list", until="2027-02-01")
        >>> ledger.standing("fs.list").until
        '2027-02-01'
        """
        wanted, day = as_recorded(old), day_of(until)
        with self.transaction():
            id = tool_meant(new, self._scope)
            if id is None:
                raise LedgerError(code="not_held", name=str(new))
            self.record([Redirect(name=wanted, id=id, until=day)])

    def break_name(
        self, old: str, new: str | ToolId | None = None, *, protocol: str = "", id: ToolId | None = None
    ) -> None:
        """Make a clean break: a call of the old name is refused for ever, and the error names the new one.

        ``new`` is a recorded or future name, or an id; ``id`` is its tool, if the name is not recorded yet.
        ``protocol`` is the version since which the old name does not exist. If only the spelling changes, all other
        spellings of the name stay valid (docs/concepts/names.md, "Names that moved").

        Raises `InvalidName` for a name that is empty, too long or not printable.

        >>> ledger = Ledger.memory()
        >>> ledger.break_name("powershell.exec", "powershell_exec", protocol="0.3")
        >>> ledger.standing("powershell.exec").status, ledger.standing_folded("powershell_exec")
        ('broken', None)
        """
        wanted, successor = as_recorded(old), as_recorded(str(new)) if new is not None else ""
        protocol = as_recorded(protocol) if protocol else ""
        with self.transaction():
            found = id if id is not None or new is None else tool_meant(new, self._scope)
            self.record([Break(name=wanted, id=found, successor=successor, protocol=protocol)])

    def _is_known(self, name: str) -> bool:
        return "/" in name and self._core.state.origin(ToolId.parse(name)) is not None


def open_ledger(
    where: StateLocation | Path | None,
    *,
    readonly: bool = False,
    max_claims: int = MAX_CLAIMS,
    patience: float | None = None,
) -> Ledger:
    """Open the ledger of a state database; without a file, one in memory.

    A reader reads the file of an earlier version as long as the database has no ledger. ``patience`` is how many
    seconds to wait for another process that writes. Raises `LedgerError` as `Ledger.open` does.
    """
    if where is None or (not isinstance(where, Path) and where.is_memory):
        return Ledger.memory(max_claims=max_claims)
    from truename.ledger.opening import open_store  # noqa: PLC0415 - SQLite, which a ledger in memory does not need

    return Ledger(LedgerCore(open_store(where, readonly=readonly, patience=patience), max_claims, readonly=readonly))
