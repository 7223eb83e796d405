"""Start servers, list their tools, and stop them, with progress on stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

from truename.cli._logs import log_to_stderr
from truename.cli._progress import Progress
from truename.gateway import UpstreamError, fetch_catalog
from truename.gateway.upstream.fleet import running_fleet

if TYPE_CHECKING:
    from collections.abc import Mapping

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


def list_tools_of_each(config: Config) -> Mapping[str, Any]:
    """Return the tools of each server by key, or the `UpstreamError` why they could not be listed."""
    log_to_stderr()
    with Progress([server.key for server in config.enabled]) as progress:
        return anyio.run(_lists, config, progress.on_event)


async def _lists(config: Config, on_event: OnEvent) -> dict[str, Any]:
    async with running_fleet(config, _ignore_change, on_event) as fleet:
        return {
            key: list(upstream.tools) if upstream.tools is not None else upstream.problem or _unknown(key)
            for key, upstream in fleet.items()
        }


def _unknown(key: str) -> UpstreamError:
    return UpstreamError(server=key, kind="lost", problem="did not list its tools", remedy="Start it by hand.")


def _ignore_change() -> None:
    pass
