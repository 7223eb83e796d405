"""What contexts see of one view: those that see the same are one, and so are tools of which the same is said.

A header may say any platform and app. What no tool and no rule names makes no list of its own, however often it comes.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from truename.cache import LRUCache
from truename.catalog.globs import fits
from truename.policy import Caller
from truename.policy.former_ids import former_ids, formerly

if TYPE_CHECKING:
    from collections.abc import Hashable

    from truename.catalog import Tool
    from truename.gateway.views.view import View
    from truename.identity import ToolId
    from truename.policy import Context, Exposure, Policy

__all__ = ["VisibilityIndex"]

_MOST_KINDS: Final = 100
_MOST_ANSWERS: Final = 20_000


class VisibilityIndex:
    """Reads once what is said of each tool of a view; then a context costs what there is said, not what there is."""

    def __init__(self, view: View, exposure: Exposure, policy: Policy | None) -> None:
        self.view = view
        self._exposure = exposure
        self._policy = policy
        self._former = former_ids(view.table.ledger)
        self._platforms: set[str] = set()
        self._apps: set[str] = set()
        self._alike = self._grouped()
        rules = () if policy is None else policy.rules
        self._platform_globs = tuple({glob.casefold() for rule in rules for glob in rule.platforms})
        self._app_globs = tuple({glob.casefold() for rule in rules for glob in rule.apps})
        self._denied: LRUCache[Hashable, frozenset[ToolId]] = LRUCache(_MOST_KINDS)
        self._answers: LRUCache[Hashable, bool] = LRUCache(_MOST_ANSWERS)

    def _grouped(self) -> list[tuple[Tool, list[ToolId]]]:
        """Return the tools by what is said of them, each group with one that stands for all."""
        groups: defaultdict[Hashable, list[ToolId]] = defaultdict(list)
        for id in self.view.table:
            tool, before = self.view.table.catalog[id], self._former(id)
            said, faults = self._exposure.metadata_of(tool, before), self._exposure.errors(tool, before)
            self._platforms.update(said.platforms)
            self._apps.add(said.app)
            groups[said.platforms, said.app, said.is_for_llm, frozenset(faults)].append(id)
        return [(self.view.table.catalog[ids[0]], ids) for ids in groups.values()]

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
        unfit = (ids for tool, ids in self._alike if not self._exposure.visible(tool, context, self._former(tool.id)))
        return frozenset(id for ids in unfit for id in ids) | self._refused(context)

    def _refused(self, context: Context) -> frozenset[ToolId]:
        if self._policy is None:
            return frozenset()
        key = self._touched(context)
        if (known := self._denied.get(key)) is None:
            known = self._denied[key] = frozenset(id for id in self.view.table if self.is_denied(id, context))
        return known

    def is_denied(self, id: ToolId, context: Context) -> bool:
        """Tell whether rules deny every call of a tool, whatever its arguments."""
        if self._policy is None:
            return False
        # It is asked before each call. Ids may be redirected to the tool while the view stays.
        former = formerly(id, self.view.table.ledger)
        key = id, former, self._touched(context)
        if (known := self._answers.get(key)) is None:
            caller = Caller(client=self.view.spec.client or "").within(context)
            tool = self.view.table.catalog[id]
            known = self._answers[key] = self._policy.hides(tool, caller, former, whoever_calls=True)
        return known
