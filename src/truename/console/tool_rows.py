"""All tools as rows of a table, kept until catalogue, names or reviews are other ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from truename.identity import ToolId, fold

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from truename.catalog import Catalog
    from truename.gateway import Gateway
    from truename.gateway.trust.vetting import Vetting
    from truename.naming import NameTable

__all__ = ["ToolRow", "ToolRows"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolRow:
    """A tool in the table. ``state`` is ``listed``, or why clients are not shown it; ``key`` is what is searched."""

    id: ToolId
    server: str
    own_name: str
    name: str
    state: str
    shares_name: bool
    key: str


class ToolRows:
    """The rows of all tools, made anew only when catalogue, names or reviews are other ones."""

    def __init__(self) -> None:
        self._made_from: tuple[object, ...] = ()
        self._rows: Sequence[ToolRow] = ()

    def rows(self, gateway: Gateway, table: NameTable) -> Sequence[ToolRow]:
        """Return the rows of all tools, in the catalogue's order."""
        now = gateway.catalog, table, gateway.registry.vetting.hidden
        if not self._made_from or any(one is not other for one, other in zip(self._made_from, now, strict=True)):
            self._rows = list(_rows(gateway.catalog, table, gateway.registry.vetting))
            self._made_from = now
        return self._rows


def _rows(catalog: Catalog, table: NameTable, vetting: Vetting) -> Iterator[ToolRow]:
    hidden = vetting.hidden
    for id, tool in catalog.items():
        name = table.get(id)
        yield ToolRow(
            id=id,
            server=tool.origin.server,
            own_name=tool.origin.name,
            name=name or "",
            state="pending review" if id in hidden else "no legal name" if name is None else "listed",
            shares_name=tool.origin.has_conflict,
            key=fold(f"{id} {tool.origin.name} {name or ''}"),
        )
