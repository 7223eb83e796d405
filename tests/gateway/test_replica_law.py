"""The law of leases: whatever pauses between its steps, no two replicas hold one lease at once.

One thread plays several processes: between any two statements of one, time passes and others act. A statement that was
executed may be reported to have failed.
"""

from __future__ import annotations

import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.state_places import new_place
from truename.errors import StoreError
from truename.gateway.replicas.liveness import INTERVAL
from truename.gateway.replicas.registry import LeaseLostError, ReplicaRegistry
from truename.storage import StateLocation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from truename.gateway.replicas.liveness import Replica

NAME = "session"
COUNT = 2
STEPS = 60
# Where nothing waits for a disk.
FOLDER = "/dev/shm" if Path("/dev/shm").is_dir() else None
PAUSES = (0.0, 0.0, 0.0, 0.5, 0.5, 0.9, 1.39, 1.41, 1.49, 1.51)
LOST = StoreError(file="", key="", problem="the connection broke", remedy="Try again.", code="busy")
ACTIONS = ("look", "look", "take", "watch", "watch", "release")


class World:
    """Some processes, the time, and who holds what as it believes."""

    def __init__(self, folder: Path, chance: Random) -> None:
        self.now = 100.0
        self.depth = 0
        self.chance = chance
        self.place = StateLocation(folder / "state.db")
        self.registries = [self._registry() for _ in range(COUNT)]
        self.busy = set[int]()
        # What each process took, and as what.
        self.held: dict[int, Replica] = {}

    def _registry(self) -> ReplicaRegistry:
        registry = ReplicaRegistry(self.place, "127.0.0.1:1", clock=lambda: self.now, awake=lambda: self.now)
        registry._register()
        registry._data = cast("Any", Interrupted(registry._data, self))
        return registry

    def step(self) -> None:
        """Let time pass, and have a process do something that does nothing now."""
        self.now += self.chance.choice(PAUSES)
        self.check()
        number = self.chance.randrange(COUNT)
        if number in self.busy:
            return
        self.busy.add(number)
        try:
            self._act(number, self.chance.choice(ACTIONS))
        finally:
            self.busy.discard(number)
        self.check()

    def _act(self, number: int, action: str) -> None:
        registry = self.registries[number]
        own = registry.own
        with suppress(StoreError, LeaseLostError):
            if action == "look":
                self._look(registry)
            elif action in {"take", "watch"}:
                for _ in range(5 if action == "watch" else 0):
                    # Whoever holds it may stand still meanwhile.
                    self.now += INTERVAL
                    self._look(registry)
                own = registry.own
                if registry.take(NAME).holder == own:
                    self.held[number] = own
            elif self.held.pop(number, None) == own:
                registry.release([NAME], own)

    @staticmethod
    def _look(registry: ReplicaRegistry) -> None:
        try:
            registry._look()
        except StoreError:
            registry.observed.interrupt()
            raise

    def lose(self) -> None:
        """Lose the answer to what was stored, sometimes."""
        if self.chance.random() < 0.1:
            raise LOST

    def between(self) -> None:
        """Stand between two statements of a process."""
        if self.depth < 2 and self.chance.random() < 0.4:
            self.depth += 1
            try:
                self.step()
            finally:
                self.depth -= 1

    def check(self) -> None:
        believers = [number for number, own in self.held.items() if self.registries[number].is_current(own)]
        assert len(believers) <= 1, (believers, self.now)


class Interrupted:
    """A database of one process, before and after each use of which others act."""

    def __init__(self, inner: Any, world: World) -> None:
        self._inner = inner
        self._world = world

    def rows(self, *args: Any) -> Any:
        self._world.between()
        found = self._inner.rows(*args)
        self._world.between()
        return found

    def write_uncounted(self, *args: Any) -> int:
        self._world.between()
        count: int = self._inner.write_uncounted(*args)
        self._world.lose()
        self._world.between()
        return count

    @contextmanager
    def change(self) -> Iterator[Any]:
        self._world.between()
        with self._inner.change() as data:
            # A writer locks all others out: only time passes.
            self._world.now += self._world.chance.choice(PAUSES)
            yield data
        self._world.lose()
        self._world.between()

    def close(self) -> None:
        self._inner.close()


@settings(max_examples=30)
@example(5980)
@given(st.integers(0, 2**32))
def test_no_two_replicas_hold_one_lease_at_once(seed: int) -> None:
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        world = World(Path(folder), Random(seed))
        try:
            for _ in range(STEPS):
                world.step()
        finally:
            for registry in world.registries:
                registry._data.close()


def test_whoever_beats_at_the_last_moment_keeps_what_it_holds(place: StateLocation) -> None:
    now = 100.0

    def clock() -> float:
        return now

    one, two = (ReplicaRegistry(place, "127.0.0.1:1", clock=clock, awake=clock) for _ in range(2))
    try:
        for registry in (one, two):
            registry._register()
            registry._look()
        one._look()
        held = one.take(NAME)
        for _ in range(5):
            now += INTERVAL
            two._look()
        assert two.observed.is_expired(one.own.id)
        one._look()
        assert two.take(NAME) == held
        # Without that, it loses it, and knows it at once.
        two._look()
        for _ in range(5):
            now += INTERVAL
            two._look()
        assert two.take(NAME).holder == two.own
        assert not one.is_current(held.holder)
        one._look()
        assert one.own.id != held.holder.id
    finally:
        for registry in (one, two):
            registry._data.close()


def test_whoever_was_stopped_alone_while_another_joined_holds_nothing_that_the_other_may_take(
    place: StateLocation,
) -> None:
    now = 100.0

    def clock() -> float:
        return now

    one = ReplicaRegistry(place, "127.0.0.1:1", clock=clock, awake=clock)
    two = ReplicaRegistry(place, "127.0.0.1:1", clock=clock, awake=clock)
    try:
        one._register()
        one._look()
        held = one.take(NAME)
        # Here it is stopped.
        two._register()
        for _ in range(5):
            now += INTERVAL
            two._look()
        assert two.observed.is_expired(one.own.id)
        one._look()
        assert two.take(NAME) == held
        assert one.is_current(held.holder)
    finally:
        for registry in (one, two):
            registry._data.close()


@pytest.mark.parametrize("what", ["heartbeat", "entry"])
def test_what_was_stored_though_it_was_reported_to_have_failed_is_not_stored_again_as_the_same(
    place: StateLocation, what: str
) -> None:
    """Others would count from the first time, and the holder from the second."""
    now = 100.0

    def clock() -> float:
        return now

    one, two = (ReplicaRegistry(place, "127.0.0.1:1", clock=clock, awake=clock) for _ in range(2))
    try:
        two._register()
        if what == "heartbeat":
            one._register()
        database = one._data
        one._data = cast("Any", Unanswered(database))
        with pytest.raises(StoreError):
            one._look()
        one._data = database
        two._look()
        now += INTERVAL
        two._look()
        now += INTERVAL
        one._look()
        held = one.take(NAME)
        for _ in range(2):
            two._look()
            now += INTERVAL
        two._look()
        assert two.take(NAME) == held
        assert one.is_current(held.holder)
    finally:
        for registry in (one, two):
            registry._data.close()


class Unanswered:
    """A database whose connection breaks after each write."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.rows = inner.rows

    def write_uncounted(self, *args: Any) -> int:
        self._inner.write_uncounted(*args)
        raise LOST

    @contextmanager
    def change(self) -> Iterator[Any]:
        with self._inner.change() as data:
            yield data
        raise LOST


def test_whoever_was_stopped_while_it_asked_the_database_holds_nothing_until_that_answers(place: StateLocation) -> None:
    now = 100.0
    registry = ReplicaRegistry(place, "127.0.0.1:1", clock=lambda: now, awake=lambda: now)
    registry._register()
    own, found = registry.own, list[bool]()

    class Stopped(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:  # noqa: ARG002 - time passes by `now`
            nonlocal now
            if now > 100.0:
                found.append(registry.is_current(own))
                registry._end.set()
                return True
            # Here it is stopped, so long that others may have taken what it holds.
            now += 1.6
            return False

    registry._done = Stopped()
    registry._hurry.set()
    try:
        registry._keep()
        assert found == [False]
    finally:
        registry._data.close()


class Late:
    """A transaction during which somebody else acts, just before a row is removed."""

    def __init__(self, inner: Any, act: Callable[[], None]) -> None:
        self._inner = inner
        self._act = act

    def execute(self, query: str, *values: Any) -> Any:
        if query.startswith("DELETE FROM replica "):
            self._act()
        return self._inner.execute(query, *values)


def test_whoever_beats_while_it_is_being_replaced_keeps_what_it_holds() -> None:
    """A heartbeat waits for no other writer in PostgreSQL."""
    now = 100.0

    def clock() -> float:
        return now

    with new_place() as place:
        one, two = (ReplicaRegistry(place, "127.0.0.1:1", clock=clock, awake=clock) for _ in range(2))
        for registry in (one, two):
            registry._register()
            registry._look()
        one._look()
        held = one.take(NAME)
        for _ in range(5):
            now += INTERVAL
            two._look()
        database = two._data

        @contextmanager
        def interrupted() -> Iterator[Any]:
            with database.change() as data:
                yield Late(data, one._look)

        two._data = cast("Any", SimpleNamespace(change=interrupted, close=database.close))
        assert two.take(NAME) == held
        assert one.is_current(held.holder)
        for registry in (one, two):
            registry._data.close()
