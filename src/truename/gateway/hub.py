"""The hub: upstream lists become one catalogue, the catalogue becomes name tables, a call finds its one server."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, cast

from truename import dialects
from truename.catalog import Catalog
from truename.errors import LedgerError, NoLegalName, excerpt
from truename.gateway.views import View, ViewSpec, described
from truename.naming import project

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.config import Settings
    from truename.gateway.upstream import Upstream
    from truename.identity import ToolId
    from truename.ledger import Ledger
    from truename.naming import NameTable

    # Texts of ids are ids too; mypy has the keys of a Mapping invariant.
    Overrides = Mapping[str, Mapping[ToolId | str, str]]

__all__ = ["Hub"]

log: Final = logging.getLogger("truename.gateway")

UNIVERSAL: Final = "universal"


class Hub:
    """All that is shown and called. The ledger sees to it that no tool that is present changes its name."""

    def __init__(self, fleet: Mapping[str, Upstream], ledger: Ledger, settings: Settings) -> None:
        self.fleet = fleet
        self.ledger = ledger
        self.settings = settings
        self.catalog = Catalog.from_mcp({}, settings.aliases)
        self._views: dict[ViewSpec, View] = {}
        self._told: set[str] = set()

    @property
    def style(self) -> str:
        """The style of shared names: as set, as the ledger remembers, or by the number of servers."""
        recorded = self.ledger.settings
        if self.settings.style is not None:
            return self.settings.style
        if recorded is not None:
            return recorded.style
        return "on-conflict" if len(self.fleet) == 1 else "prefixed"

    def rebuild(self) -> frozenset[ViewSpec]:
        """Make the catalogue and all views in use anew; return the views whose lists are other ones now.

        A view that can't be built keeps its old list. Raises whatever `project` raises when nothing was built before.
        """
        listed = {key: upstream.tools for key, upstream in self.fleet.items() if upstream.tools is not None}
        self.catalog = Catalog.from_mcp(listed, self.settings.aliases, bound=self.ledger.bindings(), strict=False)
        self._report()
        before, self._views = self._views, {}
        return frozenset(spec for spec, old in before.items() if self._rebuilt(spec, old).tools != old.tools)

    def _rebuilt(self, spec: ViewSpec, old: View) -> View:
        try:
            return self.view(spec)
        except Exception:  # one view that can't be named must not end the others
            log.warning("the list for %s can't be renewed and stays as it was", spec, exc_info=True)
            self._views[spec] = old
            return old

    def view(self, spec: ViewSpec) -> View:
        """Return a view, built at first need. Raises `LedgerError` and groups of naming errors."""
        if spec not in self._views:
            table = self._table(spec)
            universal = None if spec.only or spec.dialect == UNIVERSAL else self._universal()
            tools = described(table, dialects.get("openai"), universal)
            self._views[spec] = View(spec, table, tools)
        return self._views[spec]

    def _universal(self) -> NameTable | None:
        """Return the universal names; None in a style that universal names can't have."""
        try:
            return self.view(ViewSpec(UNIVERSAL)).table
        except ExceptionGroup:
            return None

    def origin(self, view: View, id: ToolId) -> tuple[Upstream, str]:
        """Return the one server that has this tool, and its own name for it."""
        origin = view.table.catalog[id].origin
        return self.fleet[origin.server], origin.name

    def _table(self, spec: ViewSpec) -> NameTable:
        catalog = self.catalog if spec.only is None else self.catalog.only(spec.only)
        while True:
            try:
                return project(
                    catalog,
                    spec.dialect,
                    style=spec.style or self.style,
                    ledger=self.ledger.scoped(spec.scope) if spec.scope else self.ledger,
                    overrides=cast("Overrides", self.settings.overrides) if spec.only is None else None,
                    server_name=self.settings.server_name,
                )
            except LedgerError as error:
                if error.code != "full":
                    raise
                newcomers = self._newcomers(catalog, spec, error.origin)
                if not newcomers:
                    raise
                catalog = self._without(catalog, newcomers, str(error))
            except ExceptionGroup as group:
                nameless = {error.id for error in group.exceptions if isinstance(error, NoLegalName)}
                if len(nameless) < len(group.exceptions) or len(nameless) == len(catalog):
                    raise
                catalog = self._without(catalog, nameless, str(group.exceptions[0]))

    def _newcomers(self, catalog: Catalog, spec: ViewSpec, server: str) -> set[ToolId]:
        held = self.ledger.scoped(spec.scope).held(dialects.get(spec.dialect).name)
        return {id for id, tool in catalog.items() if tool.origin.server_id == server and id not in held}

    def _without(self, catalog: Catalog, ids: set[ToolId], why: str) -> Catalog:
        self._tell(logging.WARNING, "%d tools are left out: %s", len(ids), why)
        kept = [tool for id, tool in catalog.items() if id not in ids]
        return Catalog(kept, catalog.aliases)

    def _report(self) -> None:
        for notice in self.catalog.notices:
            self._tell(logging.WARNING, "%s", notice.text)
        for name, tools in self.catalog.conflicts().items():
            servers = " and ".join(excerpt(tool.origin.server) for tool in tools)
            self._tell(logging.INFO, "the tool name %s is used by %s", excerpt(name), servers)

    def _tell(self, level: int, text: str, *values: object) -> None:
        """Log something once, however often the lists are made anew."""
        said = text % values
        if said not in self._told:
            self._told.add(said)
            log.log(level, "%s", said)
