"""The hub: upstream lists become one catalogue, the catalogue becomes name tables, a call finds its one server."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import anyio

from truename import dialects
from truename.catalog import Catalog
from truename.errors import LedgerError, TruenameError
from truename.gateway.news import News
from truename.gateway.room import Room, share_of
from truename.gateway.telemetry.account import Accounts
from truename.gateway.traffic import Traffic
from truename.gateway.trust.approving import Approving
from truename.gateway.trust.decisions import Decisions
from truename.gateway.trust.vetting import Vetting
from truename.gateway.upstream.logs import Levels
from truename.gateway.upstream.watching import Watching
from truename.gateway.views.descriptors import described
from truename.gateway.views.large import Large
from truename.gateway.views.naming import Namer, check_identities
from truename.gateway.views.notices import idle_in, report
from truename.gateway.views.others import Others
from truename.gateway.views.profiled import Offered, Profiled
from truename.gateway.views.prompts import prompts_described
from truename.gateway.views.rights import Rights
from truename.gateway.views.shelf import Shelf
from truename.gateway.views.tasks import Tasks
from truename.gateway.views.texts import AS_THEY_ARE, Texts
from truename.gateway.views.view import View, ViewSpec
from truename.naming import utc_today
from truename.trust import PinBook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import date
    from pathlib import Path

    from truename.config import Config, Settings
    from truename.gateway.upstream.upstream import Upstream
    from truename.gateway.views.profiled import Everything, Names
    from truename.gateway.views.resources import Resources, ResourceView
    from truename.identity import ToolId
    from truename.ledger import Ledger
    from truename.naming import NameTable
    from truename.policy import Context

__all__ = ["Hub"]

log: Final = logging.getLogger("truename.gateway")

UNIVERSAL: Final = "universal"
# Where `openai_name` comes from, if a view shows other names.
_FLAT: Final = (UNIVERSAL, "openai")
_OTHERS: Final = ("prompts", "resources", "templates")
_LEDGER_PATIENCE: Final = 15.0
_LEDGER_PAUSE: Final = 0.02
_RESTART: Final = "Restart the gateway then; until then the names stay as they are."


class Hub:
    """All that is shown and called. The ledger sees to it that no tool that is present changes its name."""

    def __init__(
        self,
        fleet: Mapping[str, Upstream],
        ledger: Ledger,
        settings: Settings,
        today: Callable[[], date] = utc_today,
        *,
        pins: PinBook | None = None,
        approvals: Path | None = None,
    ) -> None:
        self.fleet = fleet
        self.ledger = ledger
        self.settings = settings
        self.levels = Levels()
        self.watching = Watching(fleet)
        self.streams = Room(share_of(settings, settings.max_sessions))
        self.traffic = Traffic()
        self.accounts = Accounts()
        self.tasks = Tasks(settings.max_tasks)
        self.stale = True
        self.catalog = Catalog.from_mcp({}, settings.aliases)
        self._shelf = Shelf(settings.max_views)
        self._changed: set[ViewSpec] = set()
        self._news = News()
        self._today = today
        self._day = today()
        self.vetting = Vetting(PinBook() if pins is None else pins, settings.trust, self._news, ledger)
        self.approving = Approving(Decisions(approvals, settings, self._news), settings, self._news)
        self.rights = Rights(settings, self._news, self.vetting, self.approving)
        self.profiled = Profiled(settings.profiles, self.rights.exposure)
        self.large = Large(self, self._news)
        self._namer = Namer(ledger, settings, self._news)
        self.others = Others(fleet, ledger, self._news, self.catalog)

    @property
    def resources(self) -> Resources:
        """The resources of all servers."""
        return self.others.resources

    @property
    def style(self) -> str:
        """The style of shared names: as set, as the ledger remembers, or by the number of servers."""
        return self._namer.style(len(self.fleet))

    async def prepare(self, spec: ViewSpec) -> None:
        """Wait, before a view is made, while another process writes into the ledger: its names are claimed there."""
        if self._shelf.get(spec) is None:
            with anyio.move_on_after(_LEDGER_PATIENCE):
                while self.ledger.is_locked():
                    await anyio.sleep(_LEDGER_PAUSE)

    def catch_up(self) -> None:
        """See what others wrote into the ledger: an operator who retires names, another gateway that claims some.

        Where the ledger can't be read any more, what is known goes on to hold, and that is told.
        """
        try:
            # On a new day old names may be due to leave the lists.
            # While another process writes, what is known goes on to hold: the loop can't wait for it.
            self.stale |= self.ledger.refresh(wait=False) or self.vetting.refresh() or self._today() != self._day
            if self.stale and not self.ledger.is_locked():
                self.rebuild()
        except LedgerError as error:
            self._news.tell("ledger", f"{error} Until then names stay as they are.")
        except Exception as error:  # whatever a list brings about: calls go on, and the next list may be better
            log.debug("the lists", exc_info=True)
            self._news.tell(
                "lists", f"the lists can't be renewed and stay as they were ({type(error).__name__}: {error})"
            )
            self.stale = False

    def rebuild(self) -> None:
        """Make the catalogue and all views in use anew; `changes` then has those whose lists are other ones.

        All of it is one transaction: another gateway on the same ledger can't give an id that is given here. A view
        that can't be built keeps its old list.
        """
        with self.ledger.transaction():
            self._day = self._today()
            self.rights.forget()
            self.large.forget()
            found = self._offered()
            self.catalog = self.settings.tools.over(self.vetting.admitted(self._namer.bind(found), self.fleet))
            self.profiled.forget()
            self.others.take(self.fleet, self._namer)
            for old in self._shelf.emptied():
                if self._rebuilt(old).tools != old.tools:
                    self._changed.add(old.spec)
            # What these showed is not known any more: whoever follows one has to look.
            self._changed |= self._shelf.dropped
        self.stale = False
        report(found.notices, self.catalog, self._news, idle_in(self.settings, self.catalog, self.fleet, self.ledger))

    def _offered(self) -> Catalog:
        listed = {key: upstream.tools for key, upstream in self.fleet.items() if upstream.tools is not None}
        return self._namer.admit(listed, self.fleet)

    async def vet(self) -> None:
        """Look at what servers list, beside the loop, so that `rebuild` does not have to."""
        with suppress(Exception):  # `catch_up` meets it again, and tells it
            await self.vetting.prepare(self._offered())
        self.stale = True

    def check(self, config: Config) -> None:
        """Raise `LedgerError`, or a group of naming errors, for a configuration under which names can't stay."""
        self.ledger.refresh(wait=False)
        Namer(self.ledger, check_identities(self.ledger, config).settings, self._news).check(self.catalog)

    def retune(self, settings: Settings) -> None:
        """Take other settings, and make all lists anew; when this raises, nothing is changed.

        Raises what `rebuild` raises.
        """
        kept, shown = dict(vars(self)), self._listed(self.rights.asked_for)
        try:
            self.settings = settings
            self.others = self.others.copied()
            self._namer = Namer(self.ledger, settings, self._news)
            self.vetting = self.vetting.under(settings.trust)
            self.approving = self.approving.under(settings)
            self.rights = self.rights.under(settings, self._news, self.vetting, self.approving)
            self.profiled = Profiled(settings.profiles, self.rights.exposure)
            self.rebuild()
        except BaseException:
            vars(self).update(kept)
            # Some may have been made under the new ones.
            self._shelf.emptied()
            self.stale = True
            raise
        now = self._listed(shown)
        self._changed |= {key[0] for key, tools in shown.items() if now[key] != tools}

    def _listed(self, whose: Iterable[tuple[ViewSpec, Context]]) -> dict[tuple[ViewSpec, Context], object]:
        """Return what is listed in these views and contexts."""
        return {
            (spec, context): self.large.listed(self.rights.limited(self.view(spec), context)).tools
            for spec, context in whose
        }

    def welcome(self, upstream: Upstream) -> None:
        """Have a server that is new here tell what clients asked to be told."""
        self.watching.take(upstream)
        upstream.follower.level = self.levels.lowest

    def other_changes(self) -> frozenset[tuple[str, str]]:
        """Return whose prompts or resources changed since this was last asked: ``(kind, server)``."""
        return self.others.changes()

    def changes(self) -> frozenset[ViewSpec]:
        """Return the views that changed since this was last asked."""
        changed, self._changed = frozenset(self._changed), set()
        return changed

    def _rebuilt(self, old: View) -> View:
        spec = old.spec
        try:
            return self.view(spec)
        except LedgerError as error:
            mended = _RESTART if error.code == "style_mismatch" else ""
            self._news.tell(("view", spec), f"{error} {mended}".strip())
        except TruenameError as error:
            self._news.tell(("view", spec), f"the list for {spec.dialect} stays as it was: {error}")
        except ExceptionGroup as group:
            self._news.tell(("view", spec), f"the list for {spec.dialect} stays as it was: {group.exceptions[0]}")
        # What was shown by profiles may be hidden now.
        return self._kept(old) if spec.profiles is None else old.without(frozenset(old.table))

    def view(self, spec: ViewSpec) -> View:
        """Return a view, built at first need. Raises `LedgerError` and groups of naming errors."""
        return self._shelf.get(spec) or self._kept(self._made(spec))

    def _made(self, spec: ViewSpec) -> View:
        table = self._table(spec)
        if spec.kind == "prompts":
            texts = self._texts_of_tools(spec)
            return View(spec, table, prompts_described(table, texts), texts=texts)
        flat = () if spec.only or spec.dialect in _FLAT else self._flat(table)
        texts = Texts.under(table) if self.settings.names_in_texts else AS_THEY_ARE
        view = View(spec, table, described(table, dialects.get("openai"), flat, self._day, texts), texts=texts)
        if spec.profiles is None:
            self.large.claim(view)
        return view

    def _table(self, spec: ViewSpec) -> NameTable:
        if spec.profiles is not None:
            # There is one space of names: who sees less sees the same names.
            return self.sight(spec.profiles).part(self.view(replace(spec, profiles=None)).table, spec.kind)
        whole = self.catalog if spec.kind == "tools" else self.others.prompts
        catalog = whole if spec.only is None else whole.only(spec.only)
        return self._namer.table(catalog, spec, spec.style or self.style)

    def sight(self, profiles: Names) -> Everything:
        """Return what these profiles show of what there is now."""
        return self.profiled.sight(profiles, Offered(self.catalog, self.others.prompts, self.ledger))

    def fleet_in(self, spec: ViewSpec) -> dict[str, Upstream]:
        """Return the servers that there are for an endpoint."""
        sight = self.sight(spec.profiles)
        return {key: one for key, one in self.fleet.items() if spec.only in {None, key} and sight.has_server(key)}

    def resources_in(self, spec: ViewSpec) -> ResourceView:
        """Return the resources that there are for an endpoint."""
        return self.sight(spec.profiles).resources(self.resources.view(spec.only))

    def _kept(self, view: View) -> View:
        for gone in self._shelf.put(view):
            self.rights.drop(gone)
            self.large.drop(gone)
        return view

    def _flat(self, names: NameTable) -> tuple[NameTable, ...]:
        """Return the tables of flat names: the universal one, and OpenAI's if the style names some tools only there."""
        tables: list[NameTable] = []
        for dialect in _FLAT:
            if all(any(id in table for table in tables) for id in names):
                break
            with suppress(ExceptionGroup):
                tables.append(self.view(ViewSpec(dialect)).table)
        return tuple(tables)

    def prompts_in(self, spec: ViewSpec, context: Context) -> View:
        """Return the prompts of an endpoint as they read in a context. Raises what `view` raises."""
        prompts = self.view(replace(spec, kind="prompts"))
        # Where its texts mention no tools by shown names, none is mentioned that is hidden.
        return prompts if prompts.texts is AS_THEY_ARE else self.rights.prompts(prompts, self.view(spec), context)

    def _texts_of_tools(self, spec: ViewSpec) -> Texts:
        """Return how texts beside the tools' own mention them; as they are where this view's tools have no names."""
        try:
            return self.view(replace(spec, kind="tools")).texts if self.settings.names_in_texts else AS_THEY_ARE
        except (ExceptionGroup, TruenameError):
            return AS_THEY_ARE

    def origin(self, view: View, id: ToolId) -> tuple[Upstream, str]:
        """Return the one server that has this tool, and its own name for it."""
        origin = view.table.catalog[id].origin
        return self.fleet[origin.server], origin.name
