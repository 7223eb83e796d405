"""The workers of `truename serve --workers`: how many connections each has, and the metrics of all."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio

from truename.gateway.http.shared_listener import ConnectionCounts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from truename.telemetry.metrics import Metrics

__all__ = ["WorkerGroup"]

# Seconds that a worker has to answer.
_PATIENCE: Final = 2.0


@dataclass(frozen=True, kw_only=True)
class WorkerGroup:
    """The workers of one supervisor, seen by worker ``number`` of ``count``.

    ``directory`` is private to the user who runs them; each worker listens at a Unix socket in it.
    """

    number: int
    count: int
    directory: Path

    def connection_counts(self) -> ConnectionCounts:
        """Return the counts by which workers accept connections in turns."""
        return ConnectionCounts(self.directory / "connections", self.number, self.count)

    @asynccontextmanager
    async def answering(self, metrics: Metrics | None) -> AsyncIterator[None]:
        """Answer the other workers while the block lasts, if there are metrics."""
        if metrics is None:
            yield
            return
        from truename.telemetry.worker_metrics import snapshot  # noqa: PLC0415 - optional package

        async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError):
                writer.write(snapshot(metrics.registry))
                await writer.drain()
            writer.close()

        place = self._socket(self.number)
        # A worker that was killed leaves its socket.
        place.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(answer, place)
        try:
            yield
        finally:
            server.close()
            place.unlink(missing_ok=True)

    async def exposition(self, metrics: Metrics) -> bytes:
        """Return the metrics of all workers in the text format of Prometheus."""
        from truename.telemetry.worker_metrics import exposition_of, snapshot  # noqa: PLC0415 - optional package

        others = [number for number in range(1, self.count + 1) if number != self.number]
        answers = await asyncio.gather(*map(self._ask, others))
        found = dict(zip(others, answers, strict=True)) | {self.number: snapshot(metrics.registry)}
        return exposition_of(dict(sorted(found.items())))

    async def _ask(self, number: int) -> bytes | None:
        """Return what another worker answers; None if it does not."""
        found: bytes | None = None
        with anyio.move_on_after(_PATIENCE), suppress(OSError):
            reader, writer = await asyncio.open_unix_connection(self._socket(number))
            try:
                found = await reader.read(-1) or None
            finally:
                writer.close()
        return found

    def _socket(self, number: int) -> Path:
        return self.directory / str(number)
