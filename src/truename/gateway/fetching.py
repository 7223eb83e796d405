"""Tools of servers without a gateway: started, listed, stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truename.catalog import Catalog
from truename.gateway.events import ignore_event
from truename.gateway.upstream.server_pool import running_pool
from truename.ledger import open_ledger

if TYPE_CHECKING:
    from truename.config import Config
    from truename.gateway.events import OnEvent

__all__ = ["fetch_catalog"]


async def fetch_catalog(config: Config, on_event: OnEvent = ignore_event) -> Catalog:
    """Start the servers, take what they list, and stop them.

    A server that fails is told through ``on_event`` and missing in the catalogue. The configuration's ledger, if there
    is one, is only read: its identities are kept.
    """
    known = open_ledger(config.state_location(), readonly=True)
    async with running_pool(config, _ignore_change, on_event) as pool:
        listed = {key: upstream.tools for key, upstream in pool.items() if upstream.tools is not None}
        return Catalog.from_mcp(
            listed,
            config.settings.aliases,
            bound=known.bindings(),
            owners=known.origins(),
            identities=config.identities,
            strict=False,
        )


def _ignore_change() -> None:
    pass
