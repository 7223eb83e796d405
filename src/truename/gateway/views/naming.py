"""How the registry makes names: with the ledger's settings where none are set, and without what cannot be named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from truename import dialects
from truename.catalog import Catalog, identity_changes, identity_mismatch
from truename.catalog.admit import admit
from truename.errors import DuplicateTool, InvalidName, LedgerError, NoLegalName, excerpt
from truename.identity import ToolId, fold
from truename.ledger import LedgerSettings as Recorded
from truename.naming import DEFAULT_SERVER_NAME, project, reproject
from truename.naming.style import style_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from truename.catalog import Tool
    from truename.config import Config, Settings
    from truename.gateway.rate_limited_log import RateLimitedLog
    from truename.gateway.upstream.known import KnownServer
    from truename.gateway.views.view import ViewSpec
    from truename.ledger import Ledger
    from truename.naming import NameTable

    # Texts of ids are ids too; mypy has the keys of a Mapping invariant.
    Overrides = Mapping[str, Mapping[ToolId | str, str]]

__all__ = ["Namer", "check_identities"]

_LONE: Final = "on-conflict"
_SEVERAL: Final = "prefixed"


def check_identities(ledger: Ledger, config: Config) -> Config:
    """Return the configuration; raise `LedgerError` (``identity_mismatch``) where a server is another one on record."""
    if changes := identity_changes(ledger.bindings_of(config.identities), config.identities):
        raise identity_mismatch(changes)
    return config


class Namer:
    """Names a catalogue for a view. What the configuration leaves open is as the ledger remembers it."""

    def __init__(self, ledger: Ledger, settings: Settings, news: RateLimitedLog) -> None:
        self._ledger = ledger
        self._settings = settings
        self._log = news

    def style(self, servers: int) -> str:
        """Return the style of shared names: as set, as remembered, or by the number of servers."""
        if self._settings.style is not None:
            return self._settings.style
        recorded = self._ledger.settings
        return recorded.style if recorded is not None else _LONE if servers == 1 else _SEVERAL

    @property
    def aliases(self) -> Mapping[str, str] | None:
        """The aliases: as set, or as remembered; None is the built-in table."""
        recorded = self._ledger.settings
        return self._settings.aliases if self._settings.aliases is not None or recorded is None else recorded.aliases

    @property
    def _server_name(self) -> str:
        chosen, recorded = self._settings.server_name, self._ledger.settings
        return recorded.server_name if chosen == DEFAULT_SERVER_NAME and recorded is not None else chosen

    def check(self, catalog: Catalog) -> None:
        """Raise `LedgerError` (style_mismatch, conflict), or a group of naming errors, for settings that cannot be."""
        if (recorded := self._ledger.settings) is not None:
            style = style_of(self._settings.style or recorded.style).recorded
            aliases = dict(Catalog((), self.aliases).aliases)
            self._ledger.check(Recorded(style=style, server_name=self._server_name, aliases=aliases))
        for dialect, declared in self._settings.overrides.items():
            for id, name in ((ToolId.parse(text), name) for text, name in declared.items()):
                holder = self._ledger.holder(fold(name))
                if holder not in {None, id} and not self._ledger.is_heir(fold(name), id):
                    raise LedgerError(code="conflict", name=name, holder=holder, claimant=id)
            self._try_overrides(catalog, dialect)

    def _try_overrides(self, catalog: Catalog, dialect: str) -> None:
        """Raise a group of errors that only a name which the operator fixed can bring about."""
        try:
            project(catalog, dialects.get(dialect), overrides=cast("Overrides", self._settings.overrides))
        except ExceptionGroup as group:
            if (found := group.subgroup((InvalidName, DuplicateTool))) is not None:
                raise found from group

    def admit(self, listed: Mapping[str, Any], pool: Mapping[str, KnownServer]) -> Catalog:
        """Return the catalogue of what servers list, with the ids on record, and those that their entries declare.

        Servers of ``pool`` that are not listed must be on record with all that they have (`unsettled`).
        """
        identities = {key: upstream.config.identity for key, upstream in pool.items()}
        record = self._ledger.identity_record
        tools, notices = admit(listed.items(), record, identities, strict=False, present=pool)
        return Catalog(tools, self.aliases, notices)

    def unsettled(self, catalog: Catalog) -> list[Tool]:
        """Return the tools that the ledger does not have under the ids that they have here."""
        record = self._ledger.identity_record
        names = {key: [tool.origin.name for tool in catalog.of_server(key)] for key in catalog.servers}
        bound = {server: record.bound(server, own) for server, own in names.items()}
        return [tool for tool in catalog.values() if bound[tool.origin.server_id].get(tool.origin.name) != tool.id]

    def bound(self, catalog: Catalog) -> Catalog:
        """Record which tool has which id, while others are kept out; see `bind`."""
        found = self.bind(catalog, since=None)
        assert found is not None  # noqa: S101 - nobody else wrote
        return found

    def bind(self, catalog: Catalog, *, since: int | None) -> Catalog | None:
        """Record which tool has which id, before any is shown; return the catalogue without those beyond the limit.

        None, and nothing is recorded, if the ledger has another revision than ``since``.
        """
        while not self._ledger.readonly:
            try:
                new = self.unsettled(catalog)
                origins = ((tool.origin.server_id, tool.origin.name, tool.id) for tool in new)
                if not self._ledger.remember(None, (), origins, since=since):
                    return None
                break
            except LedgerError as error:
                unbound = {
                    id
                    for id, tool in catalog.items()
                    if tool.origin.server_id == error.origin and self._ledger.origin_of(id) is None
                }
                if error.code != "full" or not unbound:
                    raise
                catalog = self._without(catalog, unbound, error.origin, str(error))
        return catalog

    def table(self, catalog: Catalog, spec: ViewSpec, style: str) -> NameTable:
        """Return the names of a view, without tools that can have none. Raises what `project` raises."""
        overrides = self._settings.overrides if spec.scope == "" else {}
        while True:
            try:
                return self._project(catalog, spec, style, overrides)
            except LedgerError as error:
                if error.code == "style_mismatch" and spec.scope and self._restyled(catalog, spec, style):
                    continue
                newcomers = self._newcomers(catalog, spec, error.origin) if error.code == "full" else set()
                if not newcomers:
                    raise
                catalog = self._without(catalog, newcomers, error.origin, str(error))
            except ExceptionGroup as group:
                if overrides and (faulty := _faulty_override(group)):
                    # One name that cannot be is no reason to show none.
                    text = f"the overrides for {spec.dialect} are ignored, because one is invalid: {faulty}"
                    self._log.tell(("overrides", spec), text)
                    overrides = {}
                    continue
                unnamed = {error.id for error in group.exceptions if isinstance(error, NoLegalName)}
                nameless = {id for id in catalog if id in unnamed}
                if len(nameless) < len(group.exceptions) or len(nameless) == len(catalog):
                    raise
                catalog = self._without(catalog, nameless, spec.dialect, str(group.exceptions[0]))

    def table_again(self, names: NameTable, catalog: Catalog, changed: Collection[ToolId], spec: ViewSpec) -> NameTable:
        """Return the names of a view whose catalogue was changed in part. Raises what `reproject` raises."""
        overrides = self._settings.overrides if spec.scope == "" else {}
        return reproject(names, catalog, changed, overrides=cast("Overrides", overrides) or None)

    def _project(
        self, catalog: Catalog, spec: ViewSpec, style: str, overrides: Mapping[str, Mapping[str, str]]
    ) -> NameTable:
        return project(
            catalog,
            spec.rules,
            style=style,
            ledger=self._scoped(spec),
            overrides=cast("Overrides", overrides) or None,
            server_name=self._server_name,
        )

    def _scoped(self, spec: ViewSpec) -> Ledger:
        return self._ledger.scoped(spec.scope) if spec.scope else self._ledger

    def _restyled(self, catalog: Catalog, spec: ViewSpec, style: str) -> bool:
        """Have a server's own view follow the shared names, which an operator changed (`truename rename --all`)."""
        ledger = self._scoped(spec)
        chosen = style_of(style).recorded
        wanted = Recorded(style=chosen, server_name=self._server_name, aliases=dict(catalog.aliases))
        if ledger.settings is None or ledger.settings.same(wanted):
            return False
        ledger.restyle(wanted)
        return True

    def _newcomers(self, catalog: Catalog, spec: ViewSpec, server: str) -> set[ToolId]:
        held = self._scoped(spec).held(spec.rules.name)
        return {id for id, tool in catalog.items() if tool.origin.server_id == server and id not in held}

    def _without(self, catalog: Catalog, ids: set[ToolId], whose: str, why: str) -> Catalog:
        are = "1 tool is" if len(ids) == 1 else f"{len(ids):,} tools are"
        text = f"{are} omitted ({excerpt(whose)}): {why}"
        self._log.tell(("left out", whose), text, about=frozenset(ids))
        kept = [tool for id, tool in catalog.items() if id not in ids]
        return Catalog(kept, catalog.aliases)


def _faulty_override(group: ExceptionGroup[Exception]) -> str | None:
    """Say the first thing that only a name which the operator fixed can bring about."""
    return next((str(error) for error in group.exceptions if isinstance(error, InvalidName | DuplicateTool)), None)
