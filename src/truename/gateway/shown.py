"""What is shown: upstream lists become one catalogue, the catalogue becomes name tables, a call finds its one server.

All of it is made from lists as they stood at one moment, and put in its place in one step (`take`). So it may be made
in a thread, beside what is shown meanwhile (`beside`).
"""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from truename import dialects
from truename.catalog import Catalog
from truename.errors import LedgerError, TruenameError
from truename.gateway.call_records import CallRecords
from truename.gateway.drain import DrainTracker
from truename.gateway.elicitation.request_states import RequestStates
from truename.gateway.protocol.turns import go_on
from truename.gateway.quota import Quota, share_of
from truename.gateway.rate_limited_log import RateLimitedLog
from truename.gateway.trust.approving import Approving
from truename.gateway.trust.decisions import Decisions
from truename.gateway.trust.server_renames import ServerRenames
from truename.gateway.trust.vetting import Vetting
from truename.gateway.upstream.known import KnownServer
from truename.gateway.upstream.logs import Levels
from truename.gateway.upstream.watching import MOST_WATCHED, Watching
from truename.gateway.views.access_control import AccessControl
from truename.gateway.views.descriptors import described, described_again
from truename.gateway.views.naming import Namer
from truename.gateway.views.notices import idle_in, report
from truename.gateway.views.others import Others
from truename.gateway.views.profiled import Offered, Profiled
from truename.gateway.views.prompts import prompts_described
from truename.gateway.views.task_record import TaskRecord
from truename.gateway.views.tasks import Tasks
from truename.gateway.views.texts import AS_THEY_ARE, ServerTexts
from truename.gateway.views.tool_search import ToolSearch
from truename.gateway.views.view import View, ViewSpec
from truename.gateway.views.view_cache import ViewCache
from truename.naming import utc_today
from truename.naming.listing import former_names
from truename.naming.project import follows
from truename.trust import PinStore
from truename.trust.renames import RenameStore

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from datetime import date
    from typing import Self

    from truename.catalog import AdmissionNotice, Tool
    from truename.config import ServerConfig, Settings
    from truename.gateway.upstream.upstream import Upstream
    from truename.gateway.views.profiled import Everything, Limits
    from truename.gateway.views.resources import Resources, ResourceView
    from truename.identity import ToolId
    from truename.ledger import Ledger
    from truename.naming import NameTable
    from truename.policy import Context
    from truename.storage import StateLocation

    Listings = Mapping[tuple[ViewSpec, Context], object]

__all__ = ["ShownTools", "standing"]

UNIVERSAL: Final = "universal"
# Where `openai_name` comes from, if a view shows other names.
_FLAT: Final = (UNIVERSAL, "openai")
_FLAT_VIEWS: Final = frozenset(map(ViewSpec, _FLAT))
# Lists that are made anew at once, of those that were asked for; the others are made when they are asked for again.
_MOST_READY: Final = 16
_ATTEMPTS: Final = 3
# Codes of errors of the ledger that end by themselves.
_PASSING: Final = frozenset({"busy", "unusable"})
_RESTART: Final = "Then restart the gateway; until then, the names do not change."


class ShownTools:
    """All that is shown and called. The ledger sees to it that no tool that is present changes its name.

    ``states`` has what clients of the stateless era bring back.
    ``resting`` is how many servers of the configuration are not started here: another gateway shows them, under names
    of the same ledger.
    """

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
        self.pool = pool
        self.ledger = ledger
        self.settings = settings
        self._resting = resting
        self.levels = Levels()
        self.watching = Watching(pool, share_of(settings, MOST_WATCHED))
        self.streams = Quota(share_of(settings, settings.max_sessions))
        self.drain_tracker = DrainTracker()
        self.call_records = CallRecords()
        self.tasks = Tasks(settings.max_tasks)
        self.task_record = TaskRecord(approvals, settings.max_tasks)
        self.catalog = Catalog((), settings.aliases)
        # As servers offer them: what is shown instead, and in which words, differs.
        self._offers = self.catalog
        # Servers with tools that have no identity on record, since they have too many.
        self._unsettled: frozenset[str] = frozenset()
        self._view_cache = ViewCache(settings.max_views)
        self._changed: set[ViewSpec] = set()
        self._log = RateLimitedLog()
        self._today = today
        self._day = today()
        self._standing: Mapping[str, KnownServer] = standing(pool)
        self._taken: Mapping[str, KnownServer] | None = None
        self._withdrawals = 0
        # Why views that are in use could not be made anew, and show what they showed before: codes of errors.
        self._outdated: set[str] = set()
        pins = PinStore() if pins is None else pins
        renames = RenameStore() if renames is None else renames
        self.renames = ServerRenames(renames, settings, self._log, ledger, pins, today)
        self.vetting = Vetting(pins, settings.trust, self._log, ledger, renames=self.renames)
        decisions = Decisions(approvals, settings, self._log)
        self.approving = Approving(decisions, settings, self._log, states or RequestStates())
        self.access = AccessControl(settings, self._log, self.vetting, self.approving)
        self.profiled = Profiled(settings.profiles, self.access.exposure)
        self.tool_search = ToolSearch(self, self._log)
        self._namer = Namer(ledger, settings, self._log)
        self.others = Others(pool, ledger, self._log, self.catalog)

    @property
    def resources(self) -> Resources:
        """The resources of all servers."""
        return self.others.resources

    @property
    def style(self) -> str:
        """The style of shared names: as set, as the ledger remembers, or by the number of servers, started or not."""
        return self._namer.style(len(self._standing) + self._resting)

    def beside(self) -> Self:
        """Return the same; what is made in it is shown to nobody until it is taken (`take`, `take_views`)."""
        other = copy(self)
        vars(other).update(_view_cache=self._view_cache.copied(), _changed=set())
        other.others = self.others.copied()
        other.vetting = self.vetting.with_settings(self.settings.trust)
        other.access = self.access.copied(other.vetting)
        other.profiled = self.profiled.copied()
        other.tool_search = self.tool_search.over(other)
        return other

    def beside_with(self, servers: Mapping[str, KnownServer]) -> Self:
        """Return the same, over servers as they stand at one moment."""
        other = self.beside()
        vars(other).update(_standing=servers)
        return other

    def beside_under(self, settings: Settings, servers: Iterable[ServerConfig]) -> Self:
        """Return what there is to be under another configuration, of which nothing is shown before it is taken."""
        known = standing(self.pool)
        other = self.beside_with({server.key: known.get(server.key, KnownServer(server)) for server in servers})
        other.settings = settings
        vars(other).update(_namer=Namer(self.ledger, settings, self._log))
        other.renames = self.renames.with_settings(settings)
        other.vetting = self.vetting.with_settings(settings.trust, other.renames)
        other.approving = self.approving.with_settings(settings)
        other.access = self.access.with_settings(settings, self._log, other.vetting, other.approving)
        other.profiled = Profiled(settings.profiles, other.access.exposure)
        return other

    def make(self, *, in_part: bool = False) -> None:
        """Make the catalogue and all views in use anew; `changes` then has those whose lists are other ones.

        Which tool has which id is one transaction, and so is which has which name: another gateway on the same ledger
        cannot give one that is given here. A view that cannot be built keeps its old list. In a thread it ends early
        when who waits for it does.

        ``in_part``: nothing is different but what some servers list. Then it costs what they have, and not what all
        have, unless that is most of it, or an operator withdrew a name meanwhile.
        """
        withdrawals, kept_back, self._outdated = self.ledger.withdrawals, self.vetting.hidden, set()
        servers = self._changed_servers() if in_part and withdrawals == self._withdrawals else None
        asked_for = self.access.asked_for[-_MOST_READY:]
        self.access.forget(in_part=servers is not None)
        self.tool_search.forget()
        self.profiled.forget()
        if servers is None:
            self._make_whole()
        else:
            self._make_in_part(servers)
        if self._outdated:
            # The old lists have them, and what they are kept back for may not hold for the new lists.
            self.vetting.keep_back(kept_back, soon=not _PASSING.isdisjoint(self._outdated))
        # What these showed is not known any more: whoever follows one has to look.
        self._changed |= self._view_cache.dropped
        for spec, context in asked_for:
            go_on()
            if spec in self._view_cache:
                self.make_ready(spec, context)
        self._taken, self._withdrawals = self._standing, withdrawals

    def _make_whole(self) -> None:
        self._day = self._today()
        found, self._offers = self._bound(self._standing)
        self._unsettled = self._without_identities(found)
        go_on()
        self.renames.propose(self._standing, self._offers, self.vetting.digest_of)
        vetted = self.vetting.admitted(self._offers, self._standing)
        self.catalog = self.settings.tools.over(vetted, self.renames.lineage)
        go_on()
        self.others.take(self._standing, self._namer)
        for old in self._view_cache.emptied():
            go_on()
            if self._rebuilt(old).tools != old.tools:
                self._changed.add(old.spec)
        self._report(found.notices)

    def _changed_servers(self) -> frozenset[str] | None:
        """Return the servers that list something else now; None if more than that is different, or most of it."""
        now, taken = self._standing, self._taken
        if taken is None or [*now] != [*taken] or self._today() != self._day:
            return None
        changed = {key for key, one in now.items() if not one.is_same(taken[key])}
        if any(now[key].config is not taken[key].config for key in changed):
            return None
        # Which integration a new server gets depends on others that have none on record.
        changed |= self._unsettled | {key for key, one in now.items() if one.tools == ()}
        count = sum(len(one.tools or ()) for one in map(now.__getitem__, changed))
        return frozenset(changed) if 2 * count <= len(self.catalog) else None

    def _make_in_part(self, servers: frozenset[str]) -> None:
        standing = {key: self._standing[key] for key in servers}
        found, bound = self._bound(standing)
        self._unsettled = self._without_identities(found)
        before = {tool.id: tool for key in servers for tool in self._offers.of_server(key)}
        offered = [tool for id, tool in bound.items() if id not in before or _is_other(before[id], tool)]
        gone = {id for id, tool in before.items() if id not in bound or not _is_same(bound[id], tool)}
        part = Catalog(offered, bound.aliases)
        offers, changed = self._offers.changed(gone, offered)
        replaced = [tool for id, tool in before.items() if id in gone or id in part]
        self.renames.propose(standing, bound, self.vetting.digest_of)
        vetted = self.vetting.admitted_in_part(offers, part, replaced, standing)
        shown = self.settings.tools.over(vetted, self.renames.lineage)
        go_on()
        then = self.catalog
        if then is self._offers and shown is part:
            self.catalog = offers
        else:
            self.catalog, more = then.changed(gone, shown.values())
            changed |= more
        self._offers = offers
        if self._taken is None or any(one.lists is not self._taken[key].lists for key, one in standing.items()):
            self.others.take(self._standing, self._namer)
        self._make_views_again(then, changed, servers)
        self._report(found.notices, changed)

    def _without_identities(self, found: Catalog) -> frozenset[str]:
        return frozenset(tool.origin.server for tool in self._namer.unsettled(found))

    def _make_views_again(self, then: Catalog, changed: frozenset[ToolId], servers: frozenset[str]) -> None:
        known = self._view_cache.emptied()
        # The others take names from the first, and parts are made of what they are parts of.
        for old in sorted(known, key=lambda view: (view.spec not in _FLAT_VIEWS, _is_part(view.spec))):
            go_on()
            view = self._again(old, then, changed, servers)
            if view is not old and view.tools != old.tools:
                self._changed.add(old.spec)
        for old in known:
            self._view_cache.get(old.spec)
        self.access.forget_but(self.views)

    def _again(self, old: View, then: Catalog, changed: frozenset[ToolId], servers: frozenset[str]) -> View:
        """Return a view that was made of the catalogue ``then``, in which these tools of these servers changed."""
        spec = old.spec
        if spec.kind != "tools" or not follows(old.table):
            # An operator withdrew a name a moment ago, say: what is listed of other servers may be called otherwise.
            return self._rebuilt(old)
        if spec.only is not None and not any(id in old.table for id in changed):
            if spec.only not in servers:
                return self._kept(old)
        elif spec.unlimited is spec and old.table.catalog is then and spec.only is None:
            with suppress(TruenameError, ExceptionGroup):  # the whole way meets it again, and has remedies
                return self._kept(self._changed_view(old, changed, servers))
        return self._rebuilt(old)

    def _changed_view(self, old: View, changed: frozenset[ToolId], servers: frozenset[str]) -> View:
        spec = old.spec
        table = self._namer.table_again(old.table, self.catalog, changed, spec)
        texts = AS_THEY_ARE
        told = changed
        if self.settings.names_in_texts:
            texts = old.texts.changed(table, servers)
            # Other tools of the server may mention them.
            told |= {tool.id for key in servers for tool in table.catalog.of_server(key)}
        openai = dialects.get("openai")
        flat = () if spec.dialect in _FLAT else self._flat([id for id in told if id in table])
        if len(old.described) == len(old.table) and not former_names(table, self._day):
            rows = described_again(old.described, (old.table, table), told, openai=openai, flat=flat, texts=texts)
        else:
            rows = described(table, openai, () if spec.dialect in _FLAT else self._flat(table), self._day, texts)
        view = View(spec, table, rows, texts=texts)
        self.tool_search.claim(view)
        self.access.follow_view(old, view, changed)
        return view

    def made_and_listed(self, whose: Iterable[tuple[ViewSpec, Context]]) -> Listings:
        """Make all anew, in a thread, and return what is listed then."""
        self.make()
        return self.listed_in(whose)

    def _report(self, notices: tuple[AdmissionNotice, ...], changed: frozenset[ToolId] | None = None) -> None:
        unmet = idle_in(self.settings, self.catalog, self._standing, self.ledger)
        about = self.catalog if changed is None else changed
        report(notices, self.catalog.conflicts(about), self._log, unmet)

    def _bound(self, servers: Mapping[str, KnownServer]) -> tuple[Catalog, Catalog]:
        """Return what servers offer, and what of it has an identity on record; anew if others wrote meanwhile."""
        for _ in range(_ATTEMPTS):
            self.ledger.catch_up()
            since = self.ledger.revision
            found = self._offered(servers)
            # What came while others were away has to be known before it has an identity.
            self.renames.note(servers, found, self.vetting.digest_of)
            if (bound := self._namer.bind(found, since=since)) is not None:
                return found, bound
        with self.ledger.transaction():
            found = self._offered(servers)
            return found, self._namer.bound(self.renames.noted(found))

    def _offered(self, servers: Mapping[str, KnownServer]) -> Catalog:
        listed = {key: one.tools for key, one in servers.items() if one.tools is not None}
        return self._namer.admit(listed, self._standing)

    def take(self, made: Self) -> None:
        """Show what was made beside this, by the same settings. What refers to these goes on with what is new."""
        self._take_shelf(made)
        self._day, self._standing = made._day, made._standing
        self._taken, self._withdrawals = made._taken, made._withdrawals
        self.catalog, self._offers, self._unsettled = made.catalog, made._offers, made._unsettled
        self.vetting.follow(made.vetting)
        self.access.follow(made.access)
        self.profiled.follow(made.profiled)
        self.tool_search.follow(made.tool_search)
        self.others.follow(made.others)

    def take_under(self, made: Self) -> None:
        """Show what was made beside this, under its settings."""
        self.settings, self._namer = made.settings, made._namer
        self.renames = made.renames
        self.vetting, self.approving, self.access = made.vetting, made.approving, made.access
        self.profiled = made.profiled
        self.access.recording.begin()
        self.take(made)

    def _take_shelf(self, made: Self) -> None:
        # What was built meanwhile shows what there was before.
        self._changed |= made._changed | self._view_cache.dropped | (self._view_cache.specs - made._view_cache.specs)
        self._view_cache = made._view_cache

    def make_ready(self, spec: ViewSpec, context: Context) -> None:
        """Make a view, what is listed of it in a context, and the spellings by which its tools are called."""
        table = self.view(spec).table
        for names in (table, table.whole):
            names.spellings.prepare()
        view = self.view(replace(spec, kind="tools"))
        self.tool_search.listed(self.access.limited(view, context)).pages.prepare()

    def is_ready(self, spec: ViewSpec, context: Context) -> bool:
        """Tell whether a view is made, and what is listed of it in a context."""
        tools = spec if spec.kind == "tools" else replace(spec, kind="tools")
        return self.has_view(spec) and self.has_view(tools) and self.access.has(tools, context)

    @property
    def views(self) -> tuple[View, ...]:
        """The views that are made."""
        return self._view_cache.beyond(ViewCache(0))

    def has_view(self, spec: ViewSpec) -> bool:
        """Tell whether a view is made."""
        return spec in self._view_cache

    def take_views(self, made: Self) -> None:
        """Keep the views that were made beside this, unless others were made here meanwhile."""
        if made.catalog is not self.catalog or not made._view_cache.agrees(self._view_cache):
            return
        self.access.follow(made.access)
        self.profiled.follow(made.profiled)
        self.tool_search.follow(made.tool_search)
        for view in made._view_cache.beyond(self._view_cache):
            self._kept(view)

    def note_changes(self, before: Listings, now: Listings) -> None:
        """Note, for `changes`, the views of which something else is listed now."""
        self._changed |= {key[0] for key, tools in before.items() if now[key] != tools}

    def listed_in(self, whose: Iterable[tuple[ViewSpec, Context]]) -> Listings:
        """Return what is listed in these views and contexts."""
        return {
            (spec, context): self.tool_search.listed_with_apps(self.access.limited(self.view(spec), context)).tools
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
            self._outdated.add(error.code)
            mended = _RESTART if error.code == "style_mismatch" else ""
            self._log.tell(("view", spec), f"{error} {mended}".strip())
        except TruenameError as error:
            self._outdated.add(error.code)
            self._log.tell(("view", spec), f"the list for {spec.dialect} was not changed: {error}")
        except ExceptionGroup as group:
            self._outdated.add("")
            self._log.tell(("view", spec), f"the list for {spec.dialect} was not changed: {group.exceptions[0]}")
        # What was shown by profiles may be hidden now.
        return self._kept(old) if spec.profiles is None else old.without(frozenset(old.table))

    def view(self, spec: ViewSpec) -> View:
        """Return a view, built at first need. Raises `LedgerError` and groups of naming errors."""
        return self._view_cache.get(spec) or self._kept(self._made(spec))

    def _made(self, spec: ViewSpec) -> View:
        table = self._table(spec)
        if spec.kind == "prompts":
            texts = self._texts_of_tools(spec)
            return View(spec, table, prompts_described(table, texts), texts=texts)
        flat = () if spec.only or spec.dialect in _FLAT else self._flat(table)
        texts = ServerTexts.under(table) if self.settings.names_in_texts else AS_THEY_ARE
        is_alone = spec.only is not None
        rows = described(table, dialects.get("openai"), flat, self._day, texts, is_alone=is_alone)
        view = View(spec, table, rows, texts=texts)
        if spec.unlimited is spec:
            self.tool_search.claim(view)
        return view

    def _table(self, spec: ViewSpec) -> NameTable:
        if (whole := spec.unlimited) is not spec:
            # There is one space of names: who sees less sees the same names.
            return self.sight(spec.limits).part(self.view(whole).table, spec.kind)
        all_of_it = self.catalog if spec.kind == "tools" else self.others.prompts
        catalog = all_of_it if spec.only is None else all_of_it.only(spec.only)
        return self._namer.table(catalog, spec, spec.style or self.style)

    def sight(self, limits: Limits) -> Everything:
        """Return what these limits leave of what there is now."""
        offered = Offered(self.catalog, self.others.prompts, self.ledger, self.renames.lineage)
        return self.profiled.sight(limits, offered)

    def servers_in(self, spec: ViewSpec) -> dict[str, Upstream]:
        """Return the servers that there are for an endpoint."""
        sight = self.sight(spec.limits)
        return {key: one for key, one in self.pool.items() if spec.only in {None, key} and sight.has_server(key)}

    def resources_in(self, spec: ViewSpec) -> ResourceView:
        """Return the resources that there are for an endpoint."""
        return self.sight(spec.limits).resources(self.resources.view(spec.only))

    def _kept(self, view: View) -> View:
        for gone in self._view_cache.put(view):
            self.access.drop(gone)
            self.tool_search.drop(gone)
        return view

    def _flat(self, names: Collection[ToolId]) -> tuple[NameTable, ...]:
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
        return prompts if prompts.texts is AS_THEY_ARE else self.access.prompts(prompts, self.view(spec), context)

    def _texts_of_tools(self, spec: ViewSpec) -> ServerTexts:
        """Return how texts beside the tools' own mention them; as they are where this view's tools have no names."""
        try:
            return self.view(replace(spec, kind="tools")).texts if self.settings.names_in_texts else AS_THEY_ARE
        except (ExceptionGroup, TruenameError):
            return AS_THEY_ARE

    def origin(self, view: View, id: ToolId) -> tuple[Upstream, str]:
        """Return the one server that has this tool, and its own name for it."""
        origin = view.table.catalog[id].origin
        return self.pool[origin.server], origin.name


def _is_same(one: Tool, other: Tool) -> bool:
    """Return whether two tools with one id are the same tool of the same server."""
    return (one.origin.server_id, one.origin.name) == (other.origin.server_id, other.origin.name)


def _is_other(before: Tool, now: Tool) -> bool:
    """Return whether a server offers another definition, or another tool under the id."""
    return before.definition is not now.definition or not _is_same(before, now)


def _is_part(spec: ViewSpec) -> bool:
    return spec.unlimited is not spec or spec.kind != "tools"


def standing(pool: Mapping[str, Upstream]) -> dict[str, KnownServer]:
    """Return how the servers stand now."""
    return {key: upstream.standing for key, upstream in pool.items()}
