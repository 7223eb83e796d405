"""The hub: upstream lists become one catalogue, the catalogue becomes name tables, a call finds its one server."""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final

from truename import dialects
from truename.catalog import Catalog
from truename.errors import LedgerError, TruenameError, excerpt
from truename.gateway.descriptors import described
from truename.gateway.large import Large
from truename.gateway.lists import NOTHING
from truename.gateway.logs import Levels
from truename.gateway.naming import Namer
from truename.gateway.news import News
from truename.gateway.prompts import prompts_described
from truename.gateway.resources import Resources
from truename.gateway.rights import Rights
from truename.gateway.room import Room
from truename.gateway.texts import AS_THEY_ARE, Texts
from truename.gateway.traffic import Traffic
from truename.gateway.views import View, ViewSpec
from truename.gateway.watching import Watching

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from truename.catalog import Notice
    from truename.config import Settings
    from truename.gateway.upstream import Upstream
    from truename.identity import ToolId
    from truename.ledger import Ledger
    from truename.naming import NameTable

__all__ = ["Hub", "utc_today"]

log: Final = logging.getLogger("truename.gateway")

UNIVERSAL: Final = "universal"
_OTHERS: Final = ("prompts", "resources", "templates")
_RESTART: Final = "Restart the gateway then; until then the names stay as they are."


def utc_today() -> date:
    """Return the day in UTC: until when an old name is listed is a day there."""
    return datetime.now(UTC).date()


class Hub:
    """All that is shown and called. The ledger sees to it that no tool that is present changes its name."""

    def __init__(
        self, fleet: Mapping[str, Upstream], ledger: Ledger, settings: Settings, today: Callable[[], date] = utc_today
    ) -> None:
        self.fleet = fleet
        self.ledger = ledger
        self.settings = settings
        self.levels = Levels()
        self.watching = Watching(fleet)
        self.streams = Room(settings.max_sessions)
        self.traffic = Traffic()
        self.stale = True
        self.catalog = Catalog.from_mcp({}, settings.aliases)
        self.prompts = self.catalog
        self.resources = Resources(dict.fromkeys(fleet, NOTHING))
        self._others: set[tuple[str, str]] = set()
        self._views: dict[ViewSpec, View] = {}
        self._changed: set[ViewSpec] = set()
        self._news = News()
        self._today = today
        self._day = today()
        self.rights = Rights(settings, self._news)
        self.large = Large(self, self._news)
        self._namer = Namer(ledger, settings, self._news)

    @property
    def style(self) -> str:
        """The style of shared names: as set, as the ledger remembers, or by the number of servers."""
        return self._namer.style(len(self.fleet))

    def catch_up(self) -> None:
        """See what others wrote into the ledger: an operator who retires names, another gateway that claims some.

        Where the ledger can't be read any more, what is known goes on to hold, and that is told.
        """
        try:
            # On a new day old names may be due to leave the lists.
            self.stale |= self.ledger.refresh() or self._today() != self._day
            if self.stale:
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
            listed = {key: upstream.tools for key, upstream in self.fleet.items() if upstream.tools is not None}
            found = Catalog.from_mcp(listed, self._namer.aliases, bound=self.ledger.bindings(), strict=False)
            self.catalog = self._namer.bind(found)
            self._take_others()
            before, self._views = self._views, {}
            for spec, old in before.items():
                if self._rebuilt(spec, old).tools != old.tools:
                    self._changed.add(spec)
        self.stale = False
        self._report(found.notices)

    def _take_others(self) -> None:
        """Take prompts, named by the machinery for tools in a scope of their own (`ViewSpec.scope`), and resources."""
        lists, before = {key: upstream.lists for key, upstream in self.fleet.items()}, self.resources.lists
        changed = {
            (kind, key)
            for key, now in lists.items()
            for kind in _OTHERS
            if getattr(now, kind) != getattr(before.get(key, NOTHING), kind)
        }
        if not changed:
            return
        self._others |= {("prompts" if kind == "prompts" else "resources", key) for kind, key in changed}
        listed = {key: one.prompts for key, one in lists.items() if one.prompts}
        found = Catalog.from_mcp(listed, self._namer.aliases, bound=self.ledger.bindings(), strict=False)
        for notice in found.notices:
            self._news.tell(("prompt", notice.server, notice.code), f"a prompt is left out: {notice.text}")
        self.prompts = self._namer.bind(found)
        # Last: what it has is what the next lists are compared with.
        self.resources = Resources(lists, self.resources)

    def other_changes(self) -> frozenset[tuple[str, str]]:
        """Return whose prompts or resources changed since this was last asked: ``(kind, server)``."""
        changed, self._others = frozenset(self._others), set()
        return changed

    def changes(self) -> frozenset[ViewSpec]:
        """Return the views that changed since this was last asked."""
        changed, self._changed = frozenset(self._changed), set()
        return changed

    def _rebuilt(self, spec: ViewSpec, old: View) -> View:
        try:
            return self.view(spec)
        except LedgerError as error:
            mended = _RESTART if error.code == "style_mismatch" else ""
            self._news.tell(("view", spec), f"{error} {mended}".strip())
        except TruenameError as error:
            self._news.tell(("view", spec), f"the list for {spec.dialect} stays as it was: {error}")
        except ExceptionGroup as group:
            self._news.tell(("view", spec), f"the list for {spec.dialect} stays as it was: {group.exceptions[0]}")
        self._views[spec] = old
        return old

    def view(self, spec: ViewSpec) -> View:
        """Return a view, built at first need. Raises `LedgerError` and groups of naming errors."""
        if spec not in self._views:
            whole = self.catalog if spec.kind == "tools" else self.prompts
            catalog = whole if spec.only is None else whole.only(spec.only)
            table = self._namer.table(catalog, spec, spec.style or self.style)
            if spec.kind == "prompts":
                texts = self._texts_of_tools(spec)
                return self._views.setdefault(spec, View(spec, table, prompts_described(table, texts), texts=texts))
            universal = None if spec.only or spec.dialect == UNIVERSAL else self._universal()
            texts = Texts.under(table) if self.settings.names_in_texts else AS_THEY_ARE
            tools = described(table, dialects.get("openai"), universal, self._day, texts)
            self._views[spec] = View(spec, table, tools, texts=texts)
        return self._views[spec]

    def _universal(self) -> NameTable | None:
        """Return the universal names; None in a style that universal names can't have."""
        try:
            return self.view(ViewSpec(UNIVERSAL)).table
        except ExceptionGroup:
            return None

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

    def _report(self, notices: tuple[Notice, ...]) -> None:
        by_cause: defaultdict[tuple[str, str], list[Notice]] = defaultdict(list)
        for notice in notices:
            by_cause[notice.server, notice.code].append(notice)
        for cause, found in by_cause.items():
            names = frozenset(notice.name for notice in found)
            self._news.tell(("notice", cause), _summary(found), about=(len(found), names))
        for name, tools in self.catalog.conflicts().items():
            servers = " and ".join(excerpt(tool.origin.server) for tool in tools)
            text = f"the tool name {excerpt(name)} is used by {servers}"
            self._news.tell(("conflict", name), text, level=logging.INFO)


def _summary(found: list[Notice]) -> str:
    first = found[0]
    if len(found) == 1:
        return first.text
    what = "are listed twice" if first.code == "duplicate" else "are left out"
    return f"{len(found):,} tools of {excerpt(first.server)} {what}; the first: {first.text}"
