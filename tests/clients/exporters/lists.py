"""Tables of a few servers, and of the real catalogues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.corpus.collection import catalogues
from truename.catalog import Catalog
from truename.clients.exporters import GATEWAYS, Export, ExportSource, SoughtServer, choose_prefixes
from truename.naming import project

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from truename.ledger import Ledger
    from truename.naming import NameTable

__all__ = ["LISTS", "exported", "real", "sought", "table"]

LISTS: Final[dict[str, list[str]]] = {
    "desk": ["search", "get_ticket", "invoice.get", "desk_close"],
    "notes-mcp": ["search", "listNotes", "天気取得"],
    "文書": ["検索"],
}


def table(lists: Mapping[str, Sequence[Any]], ledger: Ledger | None = None, client: str = "universal") -> NameTable:
    """Return the names of some servers' tools."""
    bound = {} if ledger is None else ledger.bindings()
    catalog = Catalog.from_mcp({key: list(tools) for key, tools in lists.items()}, bound=bound, strict=False)
    return project(catalog, client, ledger=ledger)


def exported(gateway: str, names: NameTable, **more: Any) -> Export:
    """Export names, and record them as `truename export` does."""
    export, claims = GATEWAYS[gateway].export(ExportSource(names=names, **more))
    if names.ledger is not None:
        names.ledger.remember(None, claims, ())
    return export


def sought(names: NameTable, **urls: str) -> list[SoughtServer]:
    """Return the servers of a table as a gateway may know them."""
    servers = ExportSource(names=names).by_server()
    proposed = choose_prefixes(names, servers)
    return [SoughtServer(key=key, url=urls.get(key, ""), proposed=proposed[key]) for key in servers]


def real() -> dict[str, list[Any]]:
    """Return the lists of all real servers, each under a key of its own."""
    return {f"{row['server']}~{row['id'][:4]}": row["tools"] for row in catalogues() if row.get("kind", "mcp") == "mcp"}
