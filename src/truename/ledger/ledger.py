"""Ledger: what was promised. A name once shown never means another tool."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from truename.dialects import Reason
from truename.errors import InvalidName, InvalidToolId, LedgerError
from truename.identity import MAX_FOREIGN, ToolId, fold
from truename.ledger.events import Bind, Claim, Event, Redirect, Retire, Settings
from truename.ledger.journal import Journal
from truename.ledger.state import Space, Standing, State
from truename.ledger.store import Core, Memory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Self

__all__ = ["MAX_CLAIMS", "Ledger"]

# The largest real server lists 1,083 tools; a server gets room for that many in many spellings and upgrades.
MAX_CLAIMS: Final = 20_000


class Ledger:
    """The memory of names: in memory (`memory`) or in a journal file (`open`).

    A name belongs to the first tool that it was shown for, in every dialect, whatever joins, leaves or restarts;
    only `retire` and `redirect`, which an operator calls, change what it answers, and neither gives it to a tool that
    claims it by itself.

    >>> ledger = Ledger.memory()
    >>> ledger.redirect("fs.list", "files@1/list@1")
    >>> ledger.standing("fs.list").id
    ToolId('files@1/list@1')
    """

    __slots__ = ("_core", "scope")

    def __init__(self, core: Core, scope: str = "") -> None:
        self._core = core
        self.scope = scope

    @classmethod
    def memory(cls, *, max_claims: int = MAX_CLAIMS) -> Self:
        """Begin a ledger that is forgotten with the process."""
        return cls(Core(Memory(), State(), max_claims, readonly=False))

    @classmethod
    def open(cls, path: str | Path, readonly: bool = False, *, max_claims: int = MAX_CLAIMS) -> Self:
        """Open, or begin, a journal file. Reading only never creates or changes a file.

        Raises `LedgerError`: ``corrupt`` with the line, ``newer``, ``busy`` when another process keeps the lock.
        """
        journal = Journal(path, readonly=readonly)
        with journal.locked():
            return cls(Core(journal, journal.refresh(State()), max_claims, readonly=readonly))

    def scoped(self, scope: str) -> Ledger:
        """Return a view in which names are a space of their own, as for a client that sees one server only."""
        return type(self)(self._core, scope)

    @property
    def readonly(self) -> bool:
        """Whether this ledger only answers questions."""
        return self._core.readonly

    @property
    def settings(self) -> Settings | None:
        """How names are made here, or None before the first projection."""
        return self._space.settings

    @property
    def withdrawn(self) -> set[str]:
        """The spellings that were retired or redirected; the set is live and must not be changed."""
        return self._space.withdrawn_names

    @property
    def _space(self) -> Space:
        return self._core.state.spaces[self.scope]

    def bindings(self) -> Mapping[tuple[str, str], ToolId]:
        """Return the identities on record by (server id, upstream name), for `Catalog.from_mcp(bound=...)`."""
        return MappingProxyType(self._core.state.bindings)

    def holder(self, key: str) -> ToolId | None:
        """Return the tool that holds the name with this fold, present or not; a withdrawn name has no holder."""
        return self._space.holders.get(key)

    def is_withdrawn(self, key: str) -> bool:
        """Tell whether the name with this fold was retired or redirected."""
        return key in self._space.withdrawn

    def held(self, table: str) -> Mapping[ToolId, str]:
        """Return the names that tools hold in a table."""
        return self._space.tables.get(table, {})

    def standing(self, name: str) -> Standing | None:
        """Return what exactly this spelling stands for, or None."""
        return self._space.standing(name)

    def standing_folded(self, key: str) -> Standing | None:
        """Return what any spelling with this fold stands for, or None."""
        return self._space.standing_folded(key)

    def pinned(self, ids: Iterable[ToolId]) -> list[ToolId]:
        """Return the ids in pinned order: as first seen, new ones last, each server's together."""
        ranks = self._core.state.ranks
        last = (len(ranks), 0)
        return sorted(ids, key=lambda id: ranks.get(id, last))

    def history(self, name: str) -> tuple[Event, ...]:
        """Return what happened to a name, in any spelling, oldest first."""
        return tuple(self._space.events.get(fold(name), ()))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Keep other threads and processes out, and see what they wrote; may be entered again within itself."""
        core = self._core
        with core.lock:
            if core.readonly or core.depth:
                yield
                return
            with core.store.locked():
                core.state = core.store.refresh(core.state)
                core.depth += 1
                try:
                    yield
                finally:
                    core.depth -= 1

    def refresh(self) -> bool:
        """See what others wrote since, for readers too; tell whether there was anything to look at."""
        core = self._core
        with core.lock:
            if core.depth or not core.store.changed():
                return False
            with core.store.locked():
                core.state = core.store.refresh(core.state)
            return True

    def record(self, events: Sequence[Event]) -> None:
        """Check the events against all promises, then keep them; all or none.

        Raises `LedgerError`: ``conflict``, ``full``, ``readonly``.
        """
        if not events:
            return
        with self.transaction():
            core = self._core
            if core.readonly:
                raise LedgerError(code="readonly", name=str(getattr(events[0], "name", "settings")))
            self._check(events)
            now = datetime.now(UTC).isoformat(timespec="seconds")
            stamped = [replace(event, at=now, scope=self.scope) for event in events]
            core.store.append(stamped)
            for event in stamped:
                core.state.apply(event)
            core.store.tidy(core.state)

    def _check(self, events: Sequence[Event]) -> None:
        space, state = self._space, self._core.state
        newcomers: dict[str, Claim] = {}
        for event in events:
            match event:
                case Claim(name=name, id=id):
                    key = fold(name)
                    holder = newcomers[key].id if key in newcomers else space.holders.get(key)
                    if key in space.withdrawn:
                        raise LedgerError(code="withdrawn", name=name, claimant=id)
                    if holder not in (None, id):
                        raise LedgerError(code="conflict", name=name, holder=holder, claimant=id)
                    if holder is None:
                        newcomers[key] = event
                case _:
                    pass
        added = Counter(claim.server for claim in newcomers.values())
        bound = Counter(event.server for event in events if isinstance(event, Bind))
        for counts, held in ((added, state.claims), (bound, state.bound)):
            for server, count in counts.items():
                if held[server] + count > self._core.max_claims:
                    raise LedgerError(code="full", origin=server, count=self._core.max_claims)

    def check(self, wanted: Settings) -> None:
        """Raise `LedgerError` (``style_mismatch``) if names are made otherwise here."""
        recorded = self.settings
        if recorded is not None and not recorded.same(wanted):
            raise LedgerError(
                code="style_mismatch",
                recorded=recorded.difference(wanted),
                wanted=wanted.difference(recorded),
            )

    def remember(
        self, settings: Settings | None, claims: Iterable[Claim], origins: Iterable[tuple[str, str, ToolId]]
    ) -> None:
        """Record a projection in one piece: how names are made, the new names, the identities not on record yet."""
        with self.transaction():
            events: list[Event] = [] if settings is None or self.settings is not None else [settings]
            events += claims
            recorded = self._core.state.origins
            for server, name, id in origins:
                origin = recorded.get(id)
                if origin is None:
                    events.append(Bind(server=server, name=name, id=id))
                elif origin != (server, name):
                    raise LedgerError(code="bound", claimant=id, origin=origin[0], name=origin[1])
            self.record(events)

    def is_bound(self, id: ToolId) -> bool:
        """Tell whether this identity was ever seen."""
        return id in self._core.state.origins

    def restyle(self, wanted: Settings) -> None:
        """Change how names are made: tools get new names at the next projection, and the old ones go on working."""
        self.record([wanted])

    @property
    def server_names(self) -> tuple[str, ...]:
        """The keys under which clients know, or once knew, what shows these names; the present one first."""
        return tuple(reversed(self._space.server_names))

    def retire(self, name: str, successor: str | None = None) -> None:
        """Withdraw a name for ever: calls of it are answered with `RetiredName` and its successor.

        Raises `LedgerError` (``not_held``) if the name was never shown, `InvalidName` for a text that can't be told.
        """
        wanted = as_recorded(name)
        if successor is not None:
            as_recorded(successor)
        with self.transaction():
            if self.standing_folded(fold(wanted)) is None and not self._is_known(wanted):
                raise LedgerError(code="not_held", name=name)
            self.record([Retire(name=wanted, successor=successor)])

    def redirect(self, old: str, new: str | ToolId) -> None:
        """Make an old name mean the tool that ``new`` (a name on record, an id or its text) means.

        Raises `LedgerError` (``not_held``) if ``new`` is neither, `InvalidName` for a text that can't be told.
        """
        wanted = as_recorded(old)
        with self.transaction():
            self.record([Redirect(name=wanted, id=self._target(new))])

    def _is_known(self, name: str) -> bool:
        return "/" in name and ToolId.parse(name) in self._core.state.origins

    def _target(self, new: str | ToolId) -> ToolId:
        if isinstance(new, ToolId):
            return new
        standing = self.standing(new)
        if standing is not None and standing.id is not None:
            return standing.id
        try:
            return ToolId.parse(new)
        except InvalidToolId as error:
            raise LedgerError(code="not_held", name=new) from error


def as_recorded(name: str) -> str:
    """Return the one form in which a name is kept: an id in any spelling as the id, any other text as it is.

    Raises `InvalidName` for what is empty, too long or can't be printed.
    """
    if not name.strip() or len(name) > MAX_FOREIGN or not name.isprintable():
        reason = Reason("text", f"it is empty, longer than {MAX_FOREIGN:,} characters, or can't be printed")
        raise InvalidName(name=name, dialect="a ledger", reasons=(reason,))
    try:
        return str(ToolId.parse(name))
    except InvalidToolId:
        return name
