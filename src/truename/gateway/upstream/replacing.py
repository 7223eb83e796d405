"""Which change of a server's entry needs another connection, and which counts on the one that there is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from truename.config import ServerConfig, Settings

__all__ = ["is_same_connection", "limits_of"]


def is_same_connection(before: ServerConfig, now: ServerConfig) -> bool:
    """Tell whether the connection of the first entry serves for the second.

    They differ at most in limits of calls, in what they declare of the ids of tools, and in metadata.
    """
    limits = {
        "timeout": now.timeout,
        "tool_timeouts": now.tool_timeouts,
        "idempotent": now.idempotent,
        "max_concurrent": now.max_concurrent,
        "max_waiting": now.max_waiting,
        "start": now.start,
        "idle_timeout": now.idle_timeout,
        "identity": now.identity,
        "registry_name": now.registry_name,
    }
    return replace(before, **limits) == now  # type: ignore[arg-type]  # each under its own name


def limits_of(server: ServerConfig, settings: Settings) -> Hashable:
    """Return the limits of its calls: where these stay, so do the calls that are counted, and what is known of it."""
    return (
        *(server.timeout or settings.call_timeout, tuple(server.tool_timeouts.items()), server.idempotent),
        *(server.max_concurrent or settings.max_concurrent, server.max_waiting or settings.max_waiting),
        *(settings.breaker_failures, settings.breaker_seconds),
    )
