"""What profiles, and addresses of some servers, show of what there is now.

A part of a view is made as if nothing else were there: its catalogue, its texts, its suggestions, what the ledger says.
So nothing that is hidden has to be left out of an answer, for it never was in what the answer is made of.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.cache import LRUCache
from truename.catalog import Catalog
from truename.gateway.views.own_tools import is_own
from truename.ledger import SeenLedger
from truename.policy.former_ids import former_ids
from truename.policy.lineage import no_lineage

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from truename.catalog import Tool
    from truename.gateway.views.resources import ResourceView
    from truename.identity import ToolId
    from truename.ledger import Ledger
    from truename.naming import NameTable
    from truename.policy import Exposure
    from truename.policy.lineage import LineageOf
    from truename.policy.principal import Principal
    from truename.policy.profiles import Choice, Profiles

__all__ = ["Everything", "LimitedView", "Limits", "Names", "Offered", "Profiled"]

Names = tuple[str, ...] | None
"""The names of profiles, sorted; None is everything, where there are no profiles or an operator looks."""
_MOST_SIGHTS: Final = 200
_MOST_PEOPLE: Final = 2_000


class Limits(NamedTuple):
    """What limits a view: profiles of which any shows a thing, and servers of which it has to be; None is no limit."""

    profiles: Names = None
    servers: tuple[str, ...] | None = None


class Everything:
    """What is shown where nothing is hidden: all of it."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    def has_server(self, _: str) -> bool:
        """Tell whether there is such a server."""
        return True

    def has(self, _kind: str, _server: str) -> bool:
        """Tell whether a server's prompts or resources are shown."""
        return True

    def part(self, table: NameTable, _: str) -> NameTable:
        """Return the part of a table that is shown."""
        return table

    def resources(self, whole: ResourceView) -> ResourceView:
        """Return the part of the resources that is shown."""
        return whole


_UNLIMITED: Final = Limits()


class Offered(NamedTuple):
    """All that there is: tools, prompts, and what names are on record."""

    tools: Catalog
    prompts: Catalog
    ledger: Ledger
    lineage: LineageOf = no_lineage


class LimitedView(Everything):
    """What one set of limits leaves of what there is."""

    def __init__(self, choice: Choice, offered: Offered, exposure: Exposure) -> None:
        there, self._prompts, ledger, lineage = offered
        former = former_ids(ledger)

        def shown(tool: Tool) -> bool:
            before = former(tool.id)
            return choice.shows_as_all(tool, exposure.metadata_of, before, lineage(tool.id))

        super().__init__(Catalog(filter(shown, there.values()), there.aliases))
        self._choice = choice
        self._ledger = ledger
        self._there = there
        self._servers = {tool.origin.server for tool in self.catalog.values()}
        self._asked: dict[str, bool] = {}
        self._resources: dict[bool | str, ResourceView] = {}

    def has_server(self, server: str) -> bool:
        """Tell whether there is such a server: one whose tools are shown, or that a profile names."""
        if server not in self._asked:
            self._asked[server] = server in self._servers or self._choice.shows_server(server)
        return self._asked[server]

    def has(self, kind: str, server: str) -> bool:
        """Tell whether a server's ``prompts`` or ``resources`` are shown."""
        return self._choice.shows_prompts(server) if kind == "prompts" else self._choice.shows_resources(server)

    def part(self, table: NameTable, kind: str) -> NameTable:
        """Return the part of a table of tools or prompts that is shown, as if there were no others."""
        if kind == "tools":
            return self._among(table, self.catalog.keys(), self._sees)
        origins = ((id, table.catalog[id].origin.server) for id in table)
        shown = {id for id, server in origins if self._choice.shows_prompts(server)}

        def sees(id: ToolId) -> bool:
            # Tools and prompts of one server share their ids: what was a tool must not be told of either.
            return id in shown or (self._sees(id) and self._is_of(id, self._sees_prompt))

        return self._among(table, shown, sees)

    def resources(self, whole: ResourceView) -> ResourceView:
        """Return the part of the resources that is shown; what belongs to hidden servers belongs to nobody."""
        key = whole.is_whole or next(iter(whole.servers), False)
        if key not in self._resources:
            sees = lru_cache(maxsize=None)(self._choice.shows_resources)
            self._resources[key] = replace(
                whole,
                resources=tuple(one for one in whole.resources if sees(one.place.server)),
                templates=tuple(one for one in whole.templates if sees(one.place.server)),
                servers=frozenset(filter(sees, whole.servers)),
                owners={uri: server for uri, server in whole.owners.items() if sees(server)},
            )
        return self._resources[key]

    def _sees(self, id: ToolId) -> bool:
        if id in self._there:
            return id in self.catalog
        # What is only a prompt is told of as one, or not at all.
        prompt = self._prompts.get(id)
        is_hidden = prompt is not None and not self._choice.shows_prompts(prompt.origin.server)
        return not is_hidden and self._is_of(id, self._choice.shows_absent)

    def _among(self, table: NameTable, ids: Container[ToolId], sees: Callable[[ToolId], bool]) -> NameTable:
        return table.among(ids, None if table.ledger is None else SeenLedger(table.ledger, sees, self._is_own))

    def _is_own(self, id: ToolId) -> bool:
        """Tell whether it is a tool of the gateway, which shows no names of its own where nothing is searched."""
        origin = self._ledger.origin_of(id)
        return origin is not None and is_own(origin[0])

    def _sees_prompt(self, _: ToolId, server: str) -> bool:
        return self._choice.shows_prompts(server)

    def _is_of(self, id: ToolId, shows: Callable[[ToolId, str], bool]) -> bool:
        """Tell whether something that is not there now would be shown; of the gateway's own tools nobody asks here."""
        origin = self._ledger.origin_of(id)
        return origin is not None and not is_own(origin[0]) and shows(id, origin[0])


class Profiled:
    """Who is in which profiles, and what those show of what there is now."""

    def __init__(self, profiles: Profiles, exposure: Exposure) -> None:
        self._profiles = profiles
        self._exposure = exposure
        self._visibility: LRUCache[Limits, LimitedView] = LRUCache(_MOST_SIGHTS)
        self._of = lru_cache(maxsize=_MOST_PEOPLE)(profiles.of)

    def of(self, principal: Principal, one: str | None = None) -> Names:
        """Return the profiles by which somebody sees; ``one`` of them, where the path asks for it, or none at all."""
        names = self._of(principal)
        if one is None:
            return names
        return (one,) if names is not None and one in names else ()

    def forget(self) -> None:
        """Forget what was there."""
        self._visibility.clear()

    def copied(self) -> Profiled:
        """Return the same, which goes its own way from now on."""
        other = Profiled(self._profiles, self._exposure)
        other._visibility = self._visibility.copy()
        return other

    def follow(self, other: Profiled) -> None:
        """Have what another one found out."""
        self._visibility = other._visibility

    def sight(self, limits: Limits, offered: Offered) -> Everything:
        """Return what these limits leave, which is found out at first need."""
        if limits == _UNLIMITED:
            return Everything(offered.tools)
        if (found := self._visibility.get(limits)) is None:
            found = self._visibility[limits] = LimitedView(self._profiles.choice(*limits), offered, self._exposure)
        return found
