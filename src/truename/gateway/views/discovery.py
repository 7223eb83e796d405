"""The index of what is there now: made at the first search, beside the calls, and made anew when the tools change."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import anyio

from truename.gateway.protocol.turns import in_thread
from truename.gateway.views.search import ToolIndex, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.catalog import Catalog
    from truename.identity import ToolId

__all__ = ["Discovery"]


class Discovery:
    """One index for all views and contexts: identities are searched, whatever they are called for whom."""

    def __init__(self) -> None:
        self._lock = anyio.Lock()
        self._catalog: Catalog | None = None
        self._ids: tuple[ToolId, ...] = ()
        self._index = ToolIndex(())

    async def search(self, catalog: Catalog, query: str) -> Iterator[ToolId]:
        """Return the tools of a catalogue that have something of a query, the best first; read them at once."""
        if catalog is not self._catalog:
            async with self._lock:
                await self._follow(catalog)
        return (self._ids[number] for number in self._index.search(query))

    async def _follow(self, catalog: Catalog) -> None:
        if catalog is self._catalog:
            return
        if self._catalog is None or list(self._catalog.items()) != list(catalog.items()):
            index = await in_thread(partial(_indexed, catalog))
            before, self._index, self._ids = self._index, index, tuple(catalog)
            before.close()
        self._catalog = catalog


def _indexed(catalog: Catalog) -> ToolIndex:
    return ToolIndex(map(words_of, catalog.values()))
