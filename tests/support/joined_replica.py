"""Test support: one more replica of a configuration's state, in this process, that is no whole gateway."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from truename.gateway.http.app import limits_of
from truename.gateway.http.replica_listener import joined_replicas
from truename.gateway.replicas.replicas import Replicas

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from truename.config import Config
    from truename.gateway.http.session_record import SessionRecord

__all__ = ["joined"]


@asynccontextmanager
async def joined(config: Config, record: SessionRecord) -> AsyncIterator[Replicas]:
    """Be a replica while the block lasts; the database has to be there."""
    found = list[Replicas]()

    @asynccontextmanager
    async def among(replicas: Replicas) -> AsyncIterator[None]:
        found.append(replicas)
        yield

    async with joined_replicas(config, record, limits_of(config, is_internal=True), among):
        yield found[0]
