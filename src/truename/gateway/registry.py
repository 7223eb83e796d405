"""The registry: what is shown, made anew beside the event loop and swapped in whole, in the order of what servers list.

One server may list twenty thousand tools, and to admit, screen and name them takes seconds. Meanwhile the old lists
answer. One renewal runs at a time, from lists as they stood when it began; what comes later, comes with the next one.
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio

from truename.errors import LedgerError, TruenameError
from truename.gateway.background import LoopTurn
from truename.gateway.call_quotas import CallQuotas
from truename.gateway.heap import Heap, growing
from truename.gateway.protocol.turns import beside_loop
from truename.gateway.shown import ShownTools, standing
from truename.gateway.views.choice import UNIVERSAL
from truename.gateway.views.naming import Namer, check_identities
from truename.naming import utc_today
from truename.policy import Context
from truename.storage import StateLocation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
    from datetime import date

    from truename.config import Config, ServerConfig, Settings
    from truename.gateway.elicitation.request_states import RequestStates
    from truename.gateway.shown import Listings
    from truename.gateway.upstream.upstream import Upstream
    from truename.gateway.views.view import View, ViewSpec
    from truename.ledger import Ledger
    from truename.trust import PinStore

__all__ = ["Registry"]

log: Final = logging.getLogger("truename.gateway")

_LEDGER_PATIENCE: Final = 15.0
_LEDGER_PAUSE: Final = 0.02
# To make a view of so few takes some milliseconds.
_FEW: Final = 200
_TRIES: Final = 3
# Codes of errors of the ledger that end by themselves, or when an operator makes room.
_PASSING: Final = frozenset({"busy", "unusable", "readonly"})


class Registry(ShownTools):
    """All that is shown and called, and the turns in which it changes."""

    def __init__(
        self,
        pool: Mapping[str, Upstream],
        ledger: Ledger,
        settings: Settings,
        today: Callable[[], date] = utc_today,
        *,
        pins: PinStore | None = None,
        approvals: StateLocation | None = None,
        states: RequestStates | None = None,
        resting: int = 0,
    ) -> None:
        super().__init__(pool, ledger, settings, today, pins=pins, approvals=approvals, states=states, resting=resting)
        self.stale = True
        # Not set while servers are starting for whose lists requests wait.
        self.joined = anyio.Event()
        self.joined.set()
        # The view that is made first, and why it, or the lists, could not be made.
        self._first = UNIVERSAL
        self._unmade: LedgerError | None = None
        self._turn = anyio.Lock()
        self._making = anyio.Lock()
        self._swaps = 0
        self._turn_of_loop = LoopTurn()
        self._heap = Heap()
        self._is_at_server = approvals is not None and approvals.url is not None
        self.quotas = CallQuotas(approvals or StateLocation())

    async def begin(self) -> None:
        """Make all for the first time, after other processes that write. Raises what `rebuild` raises."""
        async with self._turn:
            await self._begun(_LEDGER_PATIENCE)

    async def _begun(self, patience: float) -> None:
        deadline = anyio.current_time() + patience
        while True:
            try:
                return await self._renewed()
            except LedgerError as error:
                if error.code != "busy" or anyio.current_time() > deadline:
                    raise
            await anyio.sleep(_LEDGER_PAUSE)

    @asynccontextmanager
    async def joining(self, spec: ViewSpec) -> AsyncIterator[None]:
        """Have each request that depends on a list wait for the block's end, and for the lists that are made then.

        The view ``spec`` is the first to be made. None of what they have then is a change that clients are told. While
        the state cannot be written there are no lists: requests that depend on one are refused with the reason, and
        each tries again to make them.

        Raises what `rebuild` and `view` raise, except for a state that is ``busy`` or ``unusable``.
        """
        async with self._turn:
            self.stale, self.joined, self._first = True, anyio.Event(), spec
            yield
            await self._join(_LEDGER_PATIENCE)

    async def _join(self, patience: float) -> None:
        try:
            await self._begun(patience)
            await self._make(self._first, Context())
            self.view(self._first)
        except LedgerError as error:
            if error.code not in _PASSING:
                raise
            self.stale, self._unmade = True, error
            self._tell(error)
            return
        self.changes()
        self.other_changes()
        self._end_joining()

    def _end_joining(self) -> None:
        self._unmade = None
        self.joined.set()

    async def renew(self) -> None:
        """Have the lists be those that the servers give now: made beside the loop, unless they are these already.

        Where they cannot be made, what is known goes on to hold, and that is told.
        """
        async with self._turn:
            with self._telling():
                if not self.joined.is_set():
                    await self._join(0.0)
                    return
                self._look()
                is_whole = self.stale
                if is_whole or self._is_behind():
                    self.stale = True
                    if not self.ledger.is_locked():
                        await self._renewed(in_part=not is_whole)

    async def _renewed(self, *, in_part: bool = False) -> None:
        with self._answering():
            made = await self._made_beside(in_part=in_part)
        self.take(made)
        self._swapped()

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Answer what made the lists stale up to now; what does so meanwhile counts for the next renewal."""
        self.stale = False
        try:
            yield
        except BaseException:
            self.stale = True
            raise

    async def _made_beside(self, *, in_part: bool) -> Registry:
        while True:
            made, swaps = self.beside_with(standing(self.pool)), self._swaps
            with growing():
                await beside_loop(partial(made.make, in_part=in_part))
            # What was swapped in meanwhile is later.
            if swaps == self._swaps:
                return made

    def _swapped(self) -> None:
        self._swaps += 1
        self._heap.keep(self.views, len(self.catalog))

    def _is_behind(self) -> bool:
        now, taken = standing(self.pool), self._taken
        return taken is None or [*now] != [*taken] or not all(one.is_same(taken[key]) for key, one in now.items())

    async def caught_up(self) -> None:
        """Wait until what others wrote counts: an operator who retires names, another gateway that claims some.

        While lists are made anew nobody has to wait for them, but for a word that somebody said meanwhile.
        """
        if not self._turn.locked():
            self._look_once()
            if not self.stale:
                return
        elif self.joined.is_set() and not (self.stale or self.ledger.has_news() or self.vetting.has_word()):
            return
        await self.renew()

    def is_current(self, spec: ViewSpec, context: Context) -> bool:
        """Return whether a request can be answered at once: nobody wrote anything new, and its view is made."""
        if self._turn.locked():
            return False
        self._look_once()
        return not self.stale and self.is_ready(spec, context)

    def ready(self, spec: ViewSpec, context: Context) -> tuple[View, View] | None:
        """Return a view of tools and what a context sees of it; None where that has to be made, or made anew, first."""
        if self._turn.locked():
            return None
        self._look_once()
        if self.stale or (view := self._view_cache.get(spec)) is None:
            return None
        shown = self.access.known(spec, context)
        return None if shown is None else (view, shown)

    def _look_once(self) -> None:
        """Look at what others wrote, once in a turn of the event loop.

        All requests of a turn have come before the look, so none could know of a later change.
        """
        if self._turn_of_loop.is_new():
            try:
                self._look()
            except Exception as error:  # noqa: BLE001 - calls go on, and the next look may be better
                self._tell(error)

    def catch_up(self) -> None:
        """See what others wrote, as `caught_up` does, and make the lists anew at once; it holds the loop.

        Raises `LedgerError` while no lists could be made.
        """
        if self._unmade is not None:
            raise self._unmade
        if not self._turn.locked():
            self._look_once()
            if self.stale:
                with self._telling():
                    if not self.ledger.is_locked():
                        self.rebuild()

    def _look(self) -> None:
        # On a new day old names may be due to leave the lists.
        # While another process writes, what is known goes on to hold: the loop cannot wait for it.
        self.stale |= self.ledger.refresh(wait=False) or self.vetting.refresh() or self._today() != self._day

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - calls go on, and the next list may be better
            self._tell(error)

    def _tell(self, error: Exception) -> None:
        if isinstance(error, LedgerError):
            self._log.tell("ledger", f"{error} Until then, the names do not change.")
            return
        log.debug("the lists", exc_info=error)
        self._log.tell(
            "lists", f"the tool lists cannot be refreshed and do not change ({type(error).__name__}: {error})"
        )
        self.stale = False

    def rebuild(self) -> None:
        """Make the catalogue and all views in use anew, at once; it holds the loop.

        Raises `LedgerError` and groups of naming errors; then nothing is changed.
        """
        made = self.beside_with(standing(self.pool))
        with self._answering():
            made.make()
        self.take(made)
        self._swapped()

    @property
    def _takes_long(self) -> bool:
        """Whether to make a view would keep all requests waiting; claims of names may wait for a server."""
        return self._is_at_server or len(self.catalog) > _FEW

    async def prepare(self, spec: ViewSpec, context: Context) -> None:
        """Have everything ready for a request beside the loop: what others wrote, the view, what is listed of it.

        Where the view cannot be made nothing is raised: the request meets it again.
        """
        await self.caught_up()
        for _ in range(_TRIES):
            if self.is_ready(spec, context) or not (self._turn.locked() or self._takes_long):
                break
            async with self._making:
                if not self.is_ready(spec, context):
                    await self._make(spec, context)
        if not self.has_view(spec):
            # Another process writes, and the names are claimed there.
            with anyio.move_on_after(_LEDGER_PATIENCE):
                while self.ledger.is_locked():
                    await anyio.sleep(_LEDGER_PAUSE)

    async def _make(self, spec: ViewSpec, context: Context) -> None:
        """Make a view beside the loop; where it cannot be, `view` raises why."""
        made = self.beside()
        with suppress(TruenameError, ExceptionGroup), growing():
            await beside_loop(partial(made.make_ready, spec, context))
        self.take_views(made)
        self._heap.keep(self.views, len(self.catalog))

    async def check(self, config: Config) -> None:
        """Raise `LedgerError`, or a group of naming errors, for a configuration under which names cannot stay."""
        async with self._turn:
            self.stale |= self.ledger.refresh(wait=False)
            namer = Namer(self.ledger, check_identities(self.ledger, config).settings, self._log)
            await beside_loop(partial(namer.check, self.catalog))

    async def reload(self, settings: Settings, servers: Iterable[ServerConfig], swapped: Callable[[], object]) -> None:
        """Take other settings, and make all lists anew, of these servers; when this raises, nothing is changed.

        ``swapped`` is called in the same turn of the loop in which the new ones count. Raises what `rebuild` raises.
        """
        servers = tuple(servers)
        async with self._turn:
            with self._answering():
                made, before, now = await self._made_under(settings, servers)
            swapped()
            self.take_under(made)
            self._swapped()
            self._end_joining()
            self.note_changes(before, now)

    async def _made_under(
        self, settings: Settings, servers: tuple[ServerConfig, ...]
    ) -> tuple[Registry, Listings, Listings]:
        while True:
            made, swaps = self.beside_under(settings, servers), self._swaps
            before = self.listed_in(self.access.asked_for)
            with growing():
                now = await beside_loop(partial(made.made_and_listed, tuple(before)))
            if swaps == self._swaps:
                return made, before, now
