"""Processes that share a socket take about as many connections each, and one with fewer goes first."""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from truename.gateway.http.shared_listener import ConnectionCounts, SharedListener
from truename.telemetry.metrics import Metrics
from truename.telemetry.worker_metrics import exposition_of, snapshot

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


@given(st.lists(st.integers(0, 5), min_size=2, max_size=4))
def test_whoever_has_more_than_another_waits(tmp_path_factory: pytest.TempPathFactory, held: list[int]) -> None:
    path = tmp_path_factory.mktemp("counts") / "connections"
    counts = [ConnectionCounts(path, number, len(held)) for number in range(1, len(held) + 1)]
    for one, connections in zip(counts, held, strict=True):
        one.add(connections)

    assert [one.is_most for one in counts] == [connections > min(held) for connections in held]


def test_a_process_that_has_not_begun_keeps_nobody_waiting(tmp_path: Path) -> None:
    counts = ConnectionCounts(tmp_path / "connections", 1, 3)
    counts.add(7)

    assert not counts.is_most


def test_two_listeners_at_one_socket_take_as_many_connections_each(tmp_path: Path) -> None:
    taken = asyncio.run(_taken(tmp_path, 20))

    assert taken == [10, 10]


async def _taken(folder: Path, connections: int) -> list[int]:
    taken, every, loop = [0, 0], asyncio.Event(), asyncio.get_running_loop()

    def counting(place: int, counts: ConnectionCounts) -> asyncio.Protocol:
        class Counted(asyncio.Protocol):
            def connection_made(self, _: asyncio.BaseTransport) -> None:
                counts.add(1)
                taken[place] += 1
                if sum(taken) == connections:
                    every.set()

        return Counted()

    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        listeners = []
        for place in range(2):
            counts = ConnectionCounts(folder / "connections", place + 1, 2)
            listeners.append(SharedListener(bound, partial(counting, place, counts), counts, 100))
        clients = [await loop.create_connection(asyncio.Protocol, *bound.getsockname()) for _ in range(connections)]
        async with asyncio.timeout(10):
            await every.wait()
        for transport, _ in clients:
            transport.close()
        for listener in listeners:
            listener.close()
            await listener.wait_closed()
    return taken


def test_a_worker_that_does_not_answer_is_shown_as_down() -> None:
    metrics = Metrics()
    metrics.record_request("tools/list", 0.1, "")

    text = exposition_of({1: snapshot(metrics.registry), 2: None}).decode()

    assert 'truename_worker_up{worker="1"} 1.0' in text
    assert 'truename_worker_up{worker="2"} 0.0' in text
    assert 'mcp_method_name="tools/list",server="",worker="1"} 1.0' in text
