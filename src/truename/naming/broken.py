"""Names that a clean break took away: none of their spellings leads to the successor (often it is but a dot)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truename.identity import fold
from truename.naming.spellings import plain_spellings, server_spellings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from truename.identity import ToolId
    from truename.ledger import Standing
    from truename.naming.table import NameTable

__all__ = ["BrokenNames"]


class BrokenNames:
    """The spellings of the broken names of one table, generated anew when the ledger has more of them."""

    __slots__ = ("_broken", "_exact", "_seen", "_table")

    def __init__(self, table: NameTable) -> None:
        self._table = table
        self._seen = 0
        self._broken: dict[str, Standing] = {}
        self._exact: set[str] = set()

    def standing(self, text: str) -> Standing | None:
        """Return what a text stands for that reads like a broken name and is not exactly a name of today."""
        ledger = self._table.ledger
        if ledger is None or "/" in text:
            return None
        if ledger.withdrawals != self._seen:
            seen = ledger.withdrawals
            self._broken, self._exact = self._read(tuple(ledger.withdrawn.items()))
            # Last of all: another thread may ask meanwhile.
            self._seen = seen
        return None if text in self._exact else self._broken.get(fold(text))

    def _read(self, withdrawn: Sequence[tuple[str, Standing]]) -> tuple[dict[str, Standing], set[str]]:
        """Return the broken names by fold, in how other styles spell them too, and what is exactly a successor's."""
        names = [(name, standing) for name, standing in withdrawn if standing.status == "broken" and "/" not in name]
        broken: dict[str, Standing] = {}
        exact = set(self._table.exact)
        for name, standing in names:
            broken[fold(name)] = standing
            if (id := self._present(standing.id)) is not None:
                for spelling in self._spelled(name, id):
                    broken.setdefault(fold(spelling), standing)
                exact.update(self._called(id))
        # The successor may be the same tool under another name: then the old one is a spelling of it, and ended.
        return broken, exact.difference(name for name, _ in names)

    def _spelled(self, name: str, id: ToolId) -> Iterator[str]:
        catalog = self._table.catalog
        origin, alias = catalog[id].origin, catalog.aliases.get(id.integration)
        yield name
        yield from server_spellings(name, id, origin.server, alias)

    def _called(self, id: ToolId) -> Iterator[str]:
        table, origin = self._table, self._table.catalog[id].origin
        yield from plain_spellings(id, origin.server, origin.name, table.catalog.aliases.get(id.integration))
        yield table.dialect.shown(table.server_name, table[id]) or table[id]

    def _present(self, id: ToolId | None) -> ToolId | None:
        ledger = self._table.ledger
        if id is None or ledger is None or id in self._table:
            return id
        return next((one for one in ledger.successors(id) if one in self._table), None)
