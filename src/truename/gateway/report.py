"""How a gateway stands: what the command line prints when it has started."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from truename.identity import ToolId

__all__ = ["Report", "ServerReport"]


@dataclass(frozen=True, kw_only=True)
class ServerReport:
    """One server: ``state`` is starting, ready, reconnecting or failed; ``error`` says why it is not ready."""

    key: str
    state: str
    tools: int
    seconds: float | None
    error: str | None


@dataclass(frozen=True, kw_only=True)
class Report:
    """All servers in the order of the configuration, the names on the main endpoint, the style, the ledger's file."""

    servers: tuple[ServerReport, ...]
    names: Mapping[ToolId, str]
    style: str
    ledger: Path | None

    @property
    def failed(self) -> tuple[ServerReport, ...]:
        """The servers that give no tools."""
        return tuple(server for server in self.servers if server.state == "failed")
