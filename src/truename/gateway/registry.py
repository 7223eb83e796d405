"""The registry: what is shown, made anew beside the event loop and swapped in whole, in the order of what servers list.

One server may list twenty thousand tools, and to admit, screen and name them takes seconds. Meanwhile the old lists
answer. One renewal runs at a time, from lists as they stood when it began; what comes later, comes with the next one.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio

from truename.errors import LedgerError, TruenameError, UnknownTool
from truename.gateway.background import LoopTurn
from truename.gateway.call_quotas import CallQuotas
from truename.gateway.heap import Heap, growing
from truename.gateway.protocol.turns import beside_loop
from truename.gateway.shown import ShownTools, standing
from truename.gateway.views.choice import UNIVERSAL
from truename.gateway.views.naming import Namer, check_identities
from truename.identity import fold
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
    from truename.naming import NameTable, Resolution
    from truename.trust import PinStore
    from truename.trust.renames import RenameStore

__all__ = ["Registry"]

log: Final = logging.getLogger("truename.gateway")

_LEDGER_PATIENCE: Final = 15.0
_LEDGER_PAUSE: Final = 0.02
# How long requests wait for lists that have to be made anew. Another gateway may have stopped in a change, or the
# database may be silent; calls of known names go on then, within two seconds of whatever happened.
_NEWS_PATIENCE: Final = 1.0
_AGAIN: Final = "Try again; nothing was run."
# What was tried in vain for longer than that is tried again so often.
_NEWS_PAUSE: Final = 0.5
# A database that was silent for longer may have news that nobody heard: each look asked it in vain then.
_SILENCE: Final = 5.0
# Steps of a resolution that found a name which was shown, or an id; by the others a text is only like one of a tool.
_CERTAIN: Final = frozenset({"table", "ledger", "canonical"})
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
        renames: RenameStore | None = None,
        resting: int = 0,
    ) -> None:
        super().__init__(
            pool,
            ledger,
            settings,
            today,
            pins=pins,
            approvals=approvals,
            states=states,
            renames=renames,
            resting=resting,
        )
        self.stale = True
        # Not set while servers are starting for whose lists requests wait.
        self.joined = anyio.Event()
        self.joined.set()
        # The view that is made first, and why it, or the lists, could not be made.
        self._first = UNIVERSAL
        self._unmade: LedgerError | None = None
        self._turn = anyio.Lock()
        self._making = anyio.Lock()
        # What renews the lists next, for all requests that came before it began.
        self._next: asyncio.Task[None] | None = None
        self._renewals: set[asyncio.Task[None]] = set()
        # Since when requests wait for lists that are not made yet, and when it was last tried in vain.
        self._behind_since: float | None = None
        self._failed_at = float("-inf")
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
            await self._renew_in_turn()

    async def _renew_next(self) -> None:
        async with self._turn:
            # Whoever comes from now on may know of something later than what is read here.
            self._next = None
            await self._renew_in_turn()

    async def _renew_in_turn(self) -> None:
        with self._telling():
            if not self.joined.is_set():
                await self._join(0.0)
            else:
                self._look()
                is_whole = self.stale
                if is_whole or self._is_behind():
                    self.stale = True
                    if not self.ledger.is_locked():
                        await self._renewed(in_part=not is_whole)
        if self.stale:
            self._failed_at = time.monotonic()
        else:
            self._behind_since = None

    async def end(self) -> None:
        """Give up what is made anew for requests that did not wait for it to its end, and close the record of tasks."""
        renewals = tuple(self._renewals)
        for one in renewals:
            one.cancel()
        if renewals:
            await asyncio.wait(renewals)
        self.task_record.close()

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

        While lists are made anew nobody has to wait for them, but for a word that somebody said meanwhile. Nobody waits
        for longer than a second altogether, but for servers that start: another gateway may have stopped in the middle
        of a change, or the database may be silent. Then what is known goes on to hold (`check_read`).
        """
        if not self._turn.locked():
            self._look_once()
            if not self.stale:
                self._behind_since = None
                return
        elif self.joined.is_set() and not (self.stale or self._has_word()):
            return
        if not self.joined.is_set() and self._unmade is None:
            await self.renew()
            return
        now = time.monotonic()
        if self._behind_since is None:
            self._behind_since = now
        left = self._behind_since + _NEWS_PATIENCE - now
        if left <= 0 and (self._turn.locked() or now < self._failed_at + _NEWS_PAUSE):
            return
        await asyncio.wait((self._begun_next(),), timeout=max(left, 0.0))

    def _has_word(self) -> bool:
        return self.ledger.has_news() or self.vetting.has_word() or self.renames.has_word()

    def _begun_next(self) -> asyncio.Task[None]:
        """Return the next renewal. It is nobody's own: a request that gives up waiting leaves it to the others."""
        if self._next is None or self._next.done():
            self._next = asyncio.create_task(self._renew_next())
            self._renewals.add(self._next)
            self._next.add_done_callback(self._renewals.discard)
        return self._next

    @property
    def _is_late(self) -> bool:
        """Whether requests do not wait any more for lists that cannot be made."""
        return self._behind_since is not None and time.monotonic() > self._behind_since + _NEWS_PATIENCE

    @property
    def is_behind(self) -> bool:
        """Whether others may have written something that could not be read in time."""
        is_awaited = self._behind_since is not None and (self.stale or self._turn.locked())
        return is_awaited or self.ledger.silence > _SILENCE

    def check_read(self, name: str, found: Resolution | None, names: NameTable) -> None:
        """Raise `UnknownTool` (reason ``unread``) for a name that may mean something by what could not be read in time.

        ``found`` is what it means by what is known, None if it is unknown. A name that was shown means its tool for
        ever; a text that is only like one of a tool may be what another gateway has shown for another tool since.

        For example, while the database is silent ``fs_list``, which is listed, can be called, and ``list``, which only
        one known tool is called at its server, cannot.
        """
        if not self.is_behind:
            return
        ledger = names.whole.ledger
        if found is not None and (
            found.step in _CERTAIN or (ledger is not None and ledger.holder(fold(name)) == found.id)
        ):
            return
        raise UnknownTool(text=name, reason="unread", code="busy")

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
            if self.stale and not self._is_late:
                with self._telling():
                    if not self.ledger.is_locked():
                        self.rebuild()

    def check_free(self, spec: ViewSpec) -> None:
        """Raise `LedgerError` (``busy``) for a view that is not made while somebody writes: the loop cannot wait."""
        if not self.has_view(spec) and self.ledger.is_locked():
            raise LedgerError(code="busy", path="The state", reason="another process is writing", remedy=_AGAIN)

    def _look(self) -> None:
        # On a new day old names may be due to leave the lists.
        # While another process writes, what is known goes on to hold: the loop cannot wait for it.
        has_news = self.ledger.refresh(wait=False) or self.vetting.refresh() or self.renames.refresh()
        self.stale |= has_news or self._today() != self._day

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
            if not await self._make_in_turn(spec, context):
                break
        if not self.has_view(spec):
            # Another process writes, and the names are claimed there.
            with anyio.move_on_after(_LEDGER_PATIENCE):
                while self.ledger.is_locked():
                    await anyio.sleep(_LEDGER_PAUSE)

    async def _make_in_turn(self, spec: ViewSpec, context: Context) -> bool:
        """Make a view after others that are being made; return False if these take too long."""
        with anyio.move_on_after(_NEWS_PATIENCE if self.has_view(spec) else _LEDGER_PATIENCE) as waiting:
            await self._making.acquire()
        if waiting.cancelled_caught:
            return False
        try:
            if not self.is_ready(spec, context):
                await self._make(spec, context)
        finally:
            self._making.release()
        return True

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
