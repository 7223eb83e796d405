"""The ids that a tool would have had if nothing had been folded and no digest been needed to tell it from another.

Which of two look-alikes carries a digest depends on who was there first. What is forbidden under the plain id stays
forbidden for both.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.errors import InvalidToolId
from truename.identity import ToolId, component, dotted_component, is_told_apart, plain_names

if TYPE_CHECKING:
    from truename.catalog.tool import Origin

__all__ = ["Unfolded", "unfolded"]

_MOST: Final = 65_536


class Unfolded(NamedTuple):
    """An id that a tool would have had; its parts need not be names."""

    integration: str
    integration_version: int
    tool: str
    version: int
    suite: str | None = None

    def __str__(self) -> str:
        return f"{self.integration}@{self.integration_version}/{self.tool}@{self.version}"

    @property
    def id(self) -> ToolId | None:
        """The same as an id, None where no tool could have it."""
        try:
            return ToolId.parse(str(self))
        except InvalidToolId:
            return None


@lru_cache(maxsize=_MOST)
def unfolded(id: ToolId, origin: Origin) -> tuple[Unfolded, ...]:
    """Return the ids that a tool would have had without a digest or a fold, but its own; most tools have none.

    An id that was declared, or comes from elsewhere, has no digest of its origin, and so stands for itself.

    >>> from truename import Catalog
    >>> catalog = Catalog.from_mcp({"alpha": ["Danger", "danger", "drop table"]})
    >>> for tool in catalog.values():
    ...     print(tool.id.short, [str(one) for one in unfolded(tool.id, tool.origin)])
    alpha/danger-8412c070 ['alpha@1/danger@1']
    alpha/danger []
    alpha/drop-table-a94e7494 ['alpha@1/drop table@1', 'alpha@1/drop-table@1']
    """
    own = f"{id.suite}.{id.tool}" if id.suite else id.tool
    integrations, tools = {id.integration, *_integrations(id, origin)}, {own, *_tools(id, origin.name)}
    found = {Unfolded(left, id.integration_version, right, id.version) for left in integrations for right in tools}
    return tuple(sorted(found - {Unfolded(id.integration, id.integration_version, own, id.version)}, key=str))


def _integrations(id: ToolId, origin: Origin) -> set[str]:
    if not is_told_apart(id.integration, component(origin.server_id).name, origin.server_id):
        return set()
    # The second server of one label has that label, too.
    return {name for key in (origin.server_id, origin.server) for name in plain_names(key)}


def _tools(id: ToolId, name: str) -> set[str]:
    part = dotted_component(name)
    if id.suite != part.suite or not is_told_apart(id.tool, part.name, name):
        return set()
    return set(plain_names(name)) if part.lossy else {f"{part.suite}.{part.name}" if part.suite else part.name}
