"""The names that clients see, or would see: nothing is recorded because somebody looks at them."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Final

from truename import dialects
from truename.gateway.rate_limited_log import RateLimitedLog
from truename.gateway.views.choice import view_for
from truename.gateway.views.naming import Namer
from truename.ledger.unwritten import UnwrittenLedger

if TYPE_CHECKING:
    from truename.gateway import Gateway
    from truename.naming import NameTable

__all__ = ["MAIN_CLIENT", "NamePreviews"]

MAIN_CLIENT: Final = "universal"
_MOST_TABLES: Final = 16


class NamePreviews:
    """Name tables by client, made from the catalogue and the ledger as they are, and kept until either changes.

    The table of a client that has not connected yet says what it would see: names that are not on record may still go
    to another tool before it connects.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._tables: dict[str, tuple[tuple[int, int], NameTable]] = {}
        self._lock = Lock()

    def table(self, client: str = MAIN_CLIENT) -> NameTable:
        """Return the names of a client. Waits for the state; raises `UnknownDialect`, `LedgerError`, naming errors."""
        if client == MAIN_CLIENT:
            return self._gateway.table()
        registry = self._gateway.registry
        dialect = dialects.get(client)
        with self._lock:
            now = id(registry.catalog), registry.ledger.revision
            known = self._tables.get(dialect.name)
            if known is not None and known[0] == now:
                return known[1]
            namer = Namer(UnwrittenLedger.of(registry.ledger), registry.settings, RateLimitedLog())
            table = namer.table(registry.catalog, view_for(dialect.name), registry.style)
            if len(self._tables) >= _MOST_TABLES:
                self._tables.clear()
            self._tables[dialect.name] = now, table
            return table
