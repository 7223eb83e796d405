"""Make the configurations of processes that serve together: limits hold for all of them, addresses are their own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from truename.config.model import Config
    from truename.config.servers import ServerConfig

__all__ = ["DIVIDED", "of_worker"]

DIVIDED: Final = (
    *("max_concurrent", "max_waiting", "max_held", "max_held_bytes", "max_tasks", "max_isolated"),
    *("max_incoming", "max_unread", "max_sessions", "resume_total"),
)
"""The settings that bound what a gateway holds or sends at a time: for several processes, the sum of theirs counts."""


def of_worker(config: Config, number: int, processes: int) -> Config:
    """Return the configuration of process ``number`` (from 1 on) of several: its part of each limit, rounded up.

    So where a limit is smaller than the number of processes, each may hold one. The first process has the port of
    ``replica_address``, each other one the next.
    """
    settings = config.settings
    parts: dict[str, Any] = {name: _part(getattr(settings, name), processes) for name in DIVIDED}
    if settings.replica_address is not None:
        parts["replica_address"] = _address(settings.replica_address, number)
    servers = tuple(_divided_server(server, processes) for server in config.servers)
    return replace(config, settings=replace(settings, **parts), servers=servers)


def _divided_server(server: ServerConfig, processes: int) -> ServerConfig:
    own = {name: getattr(server, name) for name in ("max_concurrent", "max_waiting")}
    parts: dict[str, Any] = {name: _part(value, processes) for name, value in own.items() if value is not None}
    return replace(server, **parts)


def _address(text: str, number: int) -> str:
    host, _, port = text.rpartition(":")
    return text if int(port) == 0 else f"{host}:{int(port) + number - 1}"


def _part(limit: int, processes: int) -> int:
    return -(-limit // processes)
