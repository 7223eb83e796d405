"""What the tests of the ledger share: short ways to show names and to write events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truename import Catalog, NameTable, ToolId, project
from truename.ledger import Claim, LedgerSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename import Ledger

__all__ = ["SETTINGS", "claim", "log_of", "settings", "show"]


def settings(style: str = "prefixed", aliases: Mapping[str, str] | None = None) -> LedgerSettings:
    return LedgerSettings(
        style=style, server_name="truename", aliases=dict(Catalog.of().aliases if aliases is None else aliases)
    )


SETTINGS = settings()


def claim(name: str, id: str, table: str = "openai", server: str = "a") -> Claim:
    return Claim(name=name, id=ToolId.parse(id), table=table, server=server)


def show(ledger: Ledger, *ids: str, client: str = "openai", style: str = "prefixed") -> NameTable:
    """Show these tools to a client, as a gateway does."""
    return project(Catalog.of(*ids), client, ledger=ledger, style=style)


def log_of(ledger: Ledger, name: str) -> list[str]:
    """Return the kinds of what happened to a name."""
    return [event.kind for event in ledger.history(name)]
