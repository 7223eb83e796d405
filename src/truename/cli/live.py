"""Asking real servers: they are started, listed and ended, with progress on stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from truename.cli.logs import log_to_stderr
from truename.cli.progress import Progress
from truename.gateway import fetch_catalog

if TYPE_CHECKING:
    from truename.catalog import Catalog
    from truename.config import Config

__all__ = ["ask"]


def ask(config: Config) -> tuple[Catalog, tuple[str, ...]]:
    """Return the tools of all servers of a configuration that could be started, and the keys of the others."""
    log_to_stderr()
    with Progress([server.key for server in config.enabled]) as progress:
        catalog = anyio.run(fetch_catalog, config, progress.on_event)
    return catalog, tuple(progress.failed)
