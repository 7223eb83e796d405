"""Divide the limits of a gateway among processes that serve together, so that the limits hold for all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from truename.config.model import Config
    from truename.config.servers import ServerConfig

__all__ = ["DIVIDED", "divided"]

DIVIDED: Final = (
    *("max_concurrent", "max_waiting", "max_held", "max_held_bytes", "max_tasks", "max_isolated"),
    *("max_incoming", "max_unread", "max_sessions", "resume_total"),
)
"""The settings that bound what a gateway holds or sends at a time: for several processes, the sum of theirs counts."""


def divided(config: Config, processes: int) -> Config:
    """Return the configuration of one of several processes: its part of each limit, rounded up.

    So where a limit is smaller than the number of processes, each may hold one.
    """
    settings = config.settings
    parts: dict[str, Any] = {name: _part(getattr(settings, name), processes) for name in DIVIDED}
    servers = tuple(_divided_server(server, processes) for server in config.servers)
    return replace(config, settings=replace(settings, **parts), servers=servers)


def _divided_server(server: ServerConfig, processes: int) -> ServerConfig:
    own = {name: getattr(server, name) for name in ("max_concurrent", "max_waiting")}
    parts: dict[str, Any] = {name: _part(value, processes) for name, value in own.items() if value is not None}
    return replace(server, **parts)


def _part(limit: int, processes: int) -> int:
    return -(-limit // processes)
