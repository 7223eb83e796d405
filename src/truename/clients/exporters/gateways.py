"""The gateways to which names can be exported."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from truename.clients.exporters.fastmcp import FASTMCP, fastmcp

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from truename.clients.exporters.export import Export, ExportSource
    from truename.ledger import Claim

__all__ = ["GATEWAYS", "ExportKind"]


@dataclass(frozen=True, kw_only=True)
class ExportKind:
    """A gateway to which names can be exported: its title, its exporter, and the version whose rules it follows."""

    title: str
    version: str
    export: Callable[[ExportSource], tuple[Export, list[Claim]]]


GATEWAYS: Final[Mapping[str, ExportKind]] = MappingProxyType(
    {FASTMCP: ExportKind(title="FastMCP", version="4.2.3", export=fastmcp)}
)
