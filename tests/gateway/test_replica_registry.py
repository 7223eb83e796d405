"""Replicas of one scope: who is alive, who holds what, and what a process that was stopped knows when it wakes up."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.conftest import ROOT
from tests.support.postgresql_server import PostgresqlServer
from tests.support.state_places import new_directory
from truename.errors import StoreError
from truename.gateway.protocol.turns import in_thread
from truename.gateway.replicas.liveness import EXPIRY, VALIDITY, Observations, Replica
from truename.gateway.replicas.registry import LeaseLostError, ReplicaRegistry
from truename.storage import StateLocation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.anyio


@contextmanager
def joined(place: StateLocation, address: str = "127.0.0.1:1", **clocks: Any) -> Iterator[ReplicaRegistry]:
    registry = ReplicaRegistry(place, address, **clocks)
    registry.start()
    try:
        yield registry
    finally:
        registry.close()


class OtherProcess:
    """A replica in a process of its own; it answers each line on its input (`tests.gateway.replica_process`)."""

    def __init__(self, place: StateLocation) -> None:
        paths = os.pathsep.join((str(ROOT), str(ROOT / "src")))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.gateway.replica_process", place.address or ""],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": paths},
            text=True,
        )
        self.id = self._line()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def ask(self, text: str) -> str:
        self.send(text)
        return self._line()

    def send(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        return self._line()

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def end(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def other(place: StateLocation) -> Iterator[OtherProcess]:
    found = OtherProcess(place)
    yield found
    found.end()


async def test_replicas_find_one_another_and_their_tokens_grow(place: StateLocation) -> None:
    with joined(place, "127.0.0.1:1") as first, joined(place, "127.0.0.1:2") as second:
        assert second.find(first.own.id) == first.own
        assert await first.found(second.own.id) == second.own
        assert second.own.fence > first.own.fence
        token = second.own.fence
    with joined(place) as third:
        # Those before gave their leases up when they ended.
        assert third.observed.replicas == (third.own,)
        assert third.own.fence > token


async def test_a_lease_has_one_holder_until_that_ends(place: StateLocation) -> None:
    with joined(place) as first:
        with joined(place) as second:
            taken = await in_thread(lambda: second.take("session"))
            assert taken.holder == second.own
            assert await in_thread(lambda: first.take("session")) == taken
            assert await in_thread(lambda: first.holder("session")) == taken
        later = await in_thread(lambda: first.take("session"))
        assert later.holder == first.own
        assert later.fence > taken.fence


async def test_of_many_that_want_a_lease_one_gets_it(place: StateLocation) -> None:
    with joined(place) as one, joined(place) as two, joined(place) as three:
        gate, found = threading.Barrier(6), list[Any]()

        def want(registry: ReplicaRegistry) -> None:
            gate.wait()
            found.append(registry.take("session", "somebody-who-is-gone"))

        threads = [threading.Thread(target=want, args=(one,)) for one in (one, two, three) * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            await in_thread(thread.join)
        assert len(set(found)) == 1


async def test_whoever_is_named_first_holds_a_lease_as_long_as_it_lives(place: StateLocation) -> None:
    with joined(place) as first:
        with joined(place) as second:
            assert (await in_thread(lambda: first.take("session", second.own.id))).holder == second.own
            named = second.own.id
        assert (await in_thread(lambda: first.take("session", named))).holder == first.own


async def test_a_process_that_was_stopped_knows_at_its_first_step_that_others_took_what_it_held(
    place: StateLocation, other: OtherProcess
) -> None:
    assert other.ask("take session") == other.id
    with joined(place) as registry:
        replica = await registry.found(other.id)
        assert replica is not None
        assert (await in_thread(lambda: registry.take("session"))).holder.id == other.id
        assert other.ask("check") == "True"
        other.signal(signal.SIGSTOP)
        with anyio.fail_after(20):
            while not registry.observed.is_expired(other.id):
                # It is asked while it sleeps: the answer is its first step.
                await registry.looked()
                assert (await in_thread(lambda: registry.take("session"))).holder.id in {other.id, registry.own.id}
        assert (await in_thread(lambda: registry.take("session"))).holder == registry.own
        other.send("is_current")
        other.signal(signal.SIGCONT)
        assert other.answer() == "False"
        assert other.ask("check") == "False"
        assert other.ask("own") != other.id
        # Under its new lease it takes what is free.
        assert other.ask("take another") == other.ask("own")
        assert other.ask("take session") == registry.own.id


async def test_a_killed_process_is_replaced_and_forgotten(place: StateLocation, other: OtherProcess) -> None:
    assert other.ask("take session") == other.id
    with joined(place) as registry:
        other.end()
        replica = await registry.found(other.id)
        assert replica is not None
        with anyio.fail_after(20):
            assert await registry.settled(replica, 15)
        assert (await in_thread(lambda: registry.take("session"))).holder == registry.own
        await registry.looked()
        await registry.looked()
        assert registry.observed.replicas == (registry.own,)


async def test_a_process_that_certainly_ended_is_replaced_at_once(place: StateLocation, other: OtherProcess) -> None:
    with joined(place) as registry:
        await registry.found(other.id)
        other.end()
        registry.observed.note_end(other.id)
        assert (await in_thread(lambda: registry.take("session", other.id))).holder == registry.own


async def test_a_lost_row_is_noticed_and_nothing_is_taken_under_it(place: StateLocation) -> None:
    changed = threading.Event()
    with joined(place, on_change=changed.set) as first, joined(place) as second:
        lost = first.own
        await second.found(lost.id)
        # What another replica does that watched it stand still.
        second.observed.note_end(lost.id)
        await in_thread(lambda: second.take("session", lost.id))
        with suppress(LeaseLostError):
            assert (await in_thread(lambda: first.take("another"))).holder != lost
        with anyio.fail_after(10):
            while await first.check(lost):
                await first.looked()
        assert first.own.fence > second.own.fence
        assert not first.is_current(lost)
        assert await first.check(first.own)
        assert await in_thread(lambda: changed.wait(10))


async def test_a_lone_process_writes_nothing_into_a_file(tmp_path: Path) -> None:
    place = StateLocation(tmp_path / "state.db")
    files = (tmp_path / "state.db", tmp_path / "state.db-wal")
    with joined(place) as one:
        own, before = one.own, [file.stat().st_mtime_ns for file in files]
        for _ in range(5):
            await one.looked()
        assert [file.stat().st_mtime_ns for file in files] == before
        assert one.beat == 0
        assert await one.check(own)
        with joined(place) as two:
            # The other one waits for it as long as for anybody.
            assert await one.found(two.own.id) == two.own
            assert await two.settled(own, 10)
            assert not two.observed.is_expired(own.id)
            assert one.beat > 0


async def test_those_who_close_wait_for_nobody(place: StateLocation) -> None:
    registry = ReplicaRegistry(place, "127.0.0.1:1")
    await in_thread(registry.start)
    own = registry.own
    await in_thread(registry.close)
    with anyio.fail_after(5):
        assert not await registry.check(own)
        await registry.looked()


@pytest.fixture
def server() -> Iterator[PostgresqlServer]:
    directory = new_directory()
    found = PostgresqlServer(directory / "server")
    found.create()
    found.start()
    try:
        yield found
    finally:
        found.remove()
        shutil.rmtree(directory, ignore_errors=True)


async def test_while_the_database_is_away_holders_go_on_and_nobody_takes_anything(server: PostgresqlServer) -> None:
    place = StateLocation.of(f"{server.url}&scope=away")
    with joined(place) as one, joined(place) as two:
        held = await in_thread(lambda: one.take("session"))
        await two.found(one.own.id)
        own = one.own
        server.stop(signal.SIGQUIT)
        until = anyio.current_time() + 3 * EXPIRY
        while anyio.current_time() < until:
            assert await one.check(own)
            # Nothing was heard of it for longer than a lease lasts, and that proves nothing.
            assert not two.observed.is_expired(own.id)
            with pytest.raises(StoreError):
                await in_thread(lambda: two.take("session"))
            await anyio.sleep(0.1)
        server.start()
        with anyio.fail_after(30):
            while True:
                with suppress(StoreError):
                    # When it is back, the holder beats before anybody may replace it.
                    assert await in_thread(lambda: two.take("session")) == held
                    break
                await anyio.sleep(0.05)
        for _ in range(20):
            assert await one.check(own)
            assert await in_thread(lambda: two.take("session")) == held
            await anyio.sleep(0.1)


ANN = Replica("ann", "127.0.0.1:1", "here", 1)


def test_an_observer_that_could_not_read_for_a_moment_begins_to_count_anew() -> None:
    """The holder may not have reached the database either, and goes on."""
    seen = Observations()
    for now in (10.0, 10.4):
        seen.read([(ANN, 7)], began=now, ended=now)
    seen.interrupt()
    for now in (10.8, 11.2, 11.6, 12.0):
        seen.read([(ANN, 7)], began=now, ended=now)
        assert not seen.is_expired("ann")
    seen.read([(ANN, 7)], began=12.4, ended=12.4)
    assert seen.is_expired("ann")


@given(
    st.lists(st.tuples(st.floats(0.01, 3.0), st.booleans(), st.booleans()), max_size=40),
    st.floats(0.0, 0.3),
)
def test_no_observer_declares_a_holder_dead_that_still_believes_in_its_lease(
    steps: list[tuple[float, bool, bool]], reading: float
) -> None:
    """Whatever the order of heartbeats and readings, and however long each takes."""
    now, beat, valid_until, seen = 0.0, 0, VALIDITY, Observations()
    for pause, beats, reads in steps:
        now += pause
        if beats and now < valid_until:
            valid_until, beat = now + VALIDITY, beat + 1
            now += reading
        if reads:
            began = now
            found = beat
            now += reading
            seen.read([(ANN, found)], began=began, ended=now)
            if seen.is_expired("ann"):
                # It was seen to stand still for longer than it believes in it.
                assert began >= valid_until
    assert VALIDITY < EXPIRY
