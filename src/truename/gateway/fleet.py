"""All upstream servers of a configuration, started together, none in the way of another."""

from __future__ import annotations

import math
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import anyio
from mcp_types import Implementation

from truename.gateway.background import background
from truename.gateway.events import ignore_event
from truename.gateway.holding import Holding
from truename.gateway.isolation import Isolation
from truename.gateway.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from truename.config import Config, ServerConfig, Settings
    from truename.gateway.events import OnEvent
    from truename.gateway.questions import Asker

__all__ = ["own_version", "running_fleet"]


def own_version() -> str:
    """Return the version of this package."""
    try:
        return version("truename")
    except PackageNotFoundError:
        return "0"


@asynccontextmanager
async def running_fleet(
    config: Config, changed: Callable[[], None], on_event: OnEvent, *, wait: float | None = None
) -> AsyncIterator[dict[str, Upstream]]:
    """Start the enabled servers and wait until each is ready or has failed; end them with the block.

    ``wait`` bounds the waiting, in seconds: who is later joins later.

    ``changed`` is called whenever the tools of one are other ones; ``on_event`` is told the progress.
    """
    identity = Implementation(name=config.settings.server_name, version=own_version())
    fleet = {
        server.key: Upstream(server, config.settings, identity, changed=changed, on_event=on_event)
        for server in config.enabled
    }
    async with background() as owners:
        holding = Holding(owners, config.settings)
        for upstream in fleet.values():
            upstream.holding = holding
            if upstream.config.isolation == "session":
                make = partial(_own, upstream.config, config.settings, identity)
                upstream.isolation = Isolation(make, owners, config.settings)
            owners.start_soon(upstream.run)
        with anyio.move_on_after(math.inf if wait is None else wait):
            for upstream in fleet.values():
                await upstream.settled.wait()
        yield fleet


def _own(server: ServerConfig, settings: Settings, identity: Implementation, owner: Asker) -> Upstream:
    """Make a session's own connection. What is listed there is what the shared one lists, which follows the changes."""
    return Upstream(server, settings, identity, changed=_ignore, on_event=ignore_event, owner=owner)


def _ignore() -> None:
    pass
