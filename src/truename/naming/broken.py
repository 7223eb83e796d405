"""Names that a clean break took away: none of their spellings leads to the successor (often it is but a dot)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truename.identity import fold
from truename.naming.derive import plain_spellings

if TYPE_CHECKING:
    from collections.abc import Iterable

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
            self._seen = ledger.withdrawals
            self._read(ledger.withdrawn.items())
        return None if text in self._exact else self._broken.get(fold(text))

    def _read(self, withdrawn: Iterable[tuple[str, Standing]]) -> None:
        self._broken, self._exact = {}, set(self._table.exact)
        for name, standing in withdrawn:
            if standing.status == "broken" and "/" not in name:
                self._broken[fold(name)] = standing
                self._add_spellings(name, standing)

    def _add_spellings(self, name: str, standing: Standing) -> None:
        """Take in how other styles spell the old name, and keep what is exactly the successor's apart from it."""
        table, id = self._table, self._present(standing.id)
        if id is None:
            return
        tool, alias = table.catalog[id], table.catalog.aliases.get(id.integration)
        for spelling in plain_spellings(id, tool.origin.server, name, alias):
            self._broken.setdefault(fold(spelling), standing)
        shown = table.dialect.shown(table.server_name, table[id])
        self._exact.update(plain_spellings(id, tool.origin.server, tool.origin.name, alias), [shown] if shown else ())

    def _present(self, id: ToolId | None) -> ToolId | None:
        ledger = self._table.ledger
        if id is None or ledger is None or id in self._table:
            return id
        return next((one for one in ledger.successors(id) if one in self._table), None)
