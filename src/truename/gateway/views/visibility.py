"""What contexts see of one view: those that see the same are one, and so are tools of which the same is said.

A header may say any platform and app. What no tool and no rule names makes no list of its own, however often it comes.
"""

from __future__ import annotations

from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Final

from truename.cache import LRUCache
from truename.catalog.globs import fits
from truename.policy import Caller, Context
from truename.policy.former_ids import former_ids, formerly
from truename.policy.lineage import no_lineage

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable

    from truename.catalog import Tool
    from truename.gateway.views.view import View
    from truename.identity import ToolId
    from truename.policy import Exposure, Policy
    from truename.policy.exposure import Availability
    from truename.policy.lineage import Lineage, LineageOf

__all__ = ["VisibilityIndex"]

_MOST_KINDS: Final = 100
_MOST_ANSWERS: Final = 20_000


class VisibilityIndex:
    """Reads once what is said of each tool of a view; then a context costs what there is said, not what there is."""

    def __init__(self, view: View, exposure: Exposure, policy: Policy | None, lineage: LineageOf = no_lineage) -> None:
        self.view = view
        self._exposure = exposure
        self._policy = policy
        self._lineage = lineage
        self._former = former_ids(view.table.ledger)
        # The tools by what is said of them.
        self._alike: dict[Availability, dict[ToolId, None]] = {}
        # By tool what it perhaps is, if it is judged as that; the new tools of one list share it.
        self._perhaps: dict[ToolId, Lineage] = {}
        self._group(view.table)
        rules = () if policy is None else policy.rules
        self._platform_globs = tuple({glob.casefold() for rule in rules for glob in rule.platforms})
        self._app_globs = tuple({glob.casefold() for rule in rules for glob in rule.apps})
        # With a context of those for which it was found.
        self._denied: LRUCache[Hashable, tuple[frozenset[ToolId], Context]] = LRUCache(_MOST_KINDS)
        self._answers: LRUCache[Hashable, bool] = LRUCache(_MOST_ANSWERS)

    def _group(self, ids: Iterable[ToolId]) -> None:
        groups = self._alike
        for id in ids:
            groups.setdefault(self._said_of(self.view.table.catalog[id]), {})[id] = None
            if (lineage := self._lineage(id)).judged_as:
                self._perhaps[id] = lineage
        said = {*groups, *(self._said_of(one) for lineage in {*self._perhaps.values()} for one in lineage.judged_as)}
        self._platforms = frozenset[str]().union(*(one.platforms for one in said))
        self._apps = {one.app for one in said}

    def _said_of(self, tool: Tool) -> Availability:
        return self._exposure.availability(tool, self._former(tool.id))

    def changed(self, view: View, changed: Collection[ToolId]) -> VisibilityIndex:
        """Return the index of the view that this one became, in which these tools are gone, new or others."""
        other: VisibilityIndex = copy(self)
        other.view = view
        other._alike = {said: ids.copy() for said, ids in self._alike.items()}
        for id in changed:
            if id in self.view.table:
                del other._alike[self._said_of(self.view.table.catalog[id])][id]
        other._alike = {said: ids for said, ids in other._alike.items() if ids}
        other._perhaps = {id: lineage for id, lineage in self._perhaps.items() if id not in changed}
        there = [id for id in changed if id in view.table]
        other._group(there)
        other._answers = LRUCache(_MOST_ANSWERS)
        other._denied = LRUCache(_MOST_KINDS)
        for key in tuple(self._denied):
            denied, context = self._denied.get(key) or (frozenset(), Context())
            now = frozenset(id for id in there if other.is_denied(id, context))
            other._denied[key] = denied.difference(changed) | now, context
        return other

    def kind(self, context: Context) -> Hashable:
        """Return what is the same for all contexts that see the same."""
        platform, app = context.platform, context.app
        return (
            platform if platform in self._platforms else bool(platform),
            app if app in self._apps else bool(app),
            context.origin,
            self._touched(context),
        )

    def _touched(self, context: Context) -> Hashable:
        """Return which globs of rules fit a context."""
        if not self._platform_globs and not self._app_globs:
            return ()
        return (
            bool(context.platform),
            bool(context.app),
            tuple(fits(glob, context.platform.casefold()) for glob in self._platform_globs),
            tuple(fits(glob, context.app.casefold()) for glob in self._app_globs),
        )

    def hidden(self, context: Context) -> frozenset[ToolId]:
        """Return the tools that do not exist for a context, or are not for it."""
        groups = ((self.view.table.catalog[next(iter(ids))], ids) for ids in self._alike.values())
        unfit = (ids for tool, ids in groups if not self._exposure.visible(tool, context, self._former(tool.id)))
        return frozenset(id for ids in unfit for id in ids) | self._suspected(context) | self._refused(context)

    def _suspected(self, context: Context) -> frozenset[ToolId]:
        """Return the tools that perhaps are others which are not for a context."""

        @cache
        def is_unfit(lineage: Lineage) -> bool:
            return any(not self._exposure.visible(one, context, lineage.formerly(one)) for one in lineage.judged_as)

        return frozenset(id for id, lineage in self._perhaps.items() if is_unfit(lineage))

    def _refused(self, context: Context) -> frozenset[ToolId]:
        if self._policy is None:
            return frozenset()
        key = self._touched(context)
        if (known := self._denied.get(key)) is None:
            denied = frozenset(id for id in self.view.table if self.is_denied(id, context))
            known = self._denied[key] = denied, context
        return known[0]

    def is_denied(self, id: ToolId, context: Context) -> bool:
        """Tell whether rules deny every call of a tool, whatever its arguments."""
        if self._policy is None:
            return False
        # It is asked before each call. Ids may be redirected to the tool while the view stays.
        former = formerly(id, self.view.table.ledger)
        lineage = self._lineage(id)
        key = id, former, lineage, self._touched(context)
        if (known := self._answers.get(key)) is None:
            caller = Caller(client=self.view.spec.caller).within(context)
            tool = self.view.table.catalog[id]
            known = self._answers[key] = self._policy.hides(tool, caller, former, lineage, whoever_calls=True)
        return known
