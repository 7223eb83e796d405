"""Start servers, list their tools, and stop them, with progress on stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from truename.cli._logs import log_to_stderr
from truename.cli._progress import Progress
from truename.gateway import UpstreamError, fetch_catalog
from truename.gateway.upstream.server_pool import running_pool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from truename.catalog import Catalog
    from truename.config import Config
    from truename.gateway import OnEvent

__all__ = ["list_tools", "list_tools_of_each"]


def list_tools(config: Config) -> tuple[Catalog, tuple[str, ...]]:
    """Return the tools of all servers that could be started, and the keys of the others."""
    log_to_stderr()
    with Progress([server.key for server in config.enabled]) as progress:
        catalog = anyio.run(fetch_catalog, config, progress.on_event)
    return catalog, tuple(progress.failed)


def list_tools_of_each(config: Config) -> Mapping[str, Sequence[object] | UpstreamError]:
    """Return the tools of each server by key, or the `UpstreamError` why they could not be listed."""
    log_to_stderr()
    with Progress([server.key for server in config.enabled]) as progress:
        return anyio.run(_lists, config, progress.on_event)


async def _lists(config: Config, on_event: OnEvent) -> dict[str, Sequence[object] | UpstreamError]:
    found: dict[str, Sequence[object] | UpstreamError] = {}
    async with running_pool(config, lambda: None, on_event) as pool:
        for key, upstream in pool.items():
            lost = UpstreamError(server=key, kind="lost", problem="did not list its tools", remedy="Start it by hand.")
            found[key] = upstream.problem or lost if upstream.tools is None else list(upstream.tools)
    return found
