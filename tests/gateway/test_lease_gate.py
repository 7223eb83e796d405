"""Nothing passes while it is not sure that the lease is this process's; after a pause the database has the word."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import anyio
import pytest

from truename.errors import StoreError
from truename.gateway.replicas.liveness import Replica
from truename.gateway.replicas.registry import HeldLease
from truename.gateway.upstream.sharing.lease_gate import LeaseGate, PauseDetector

if TYPE_CHECKING:
    from truename.gateway.replicas.registry import ReplicaRegistry

pytestmark = pytest.mark.anyio

OWN, OTHER = Replica("own", "x:1", "m", 1), Replica("other", "x:2", "m", 2)


@dataclass
class Registry:
    """A registry whose database says what a test lets it say."""

    own: Replica = OWN
    holds: HeldLease | None = field(default_factory=lambda: HeldLease(OWN, 7))
    is_away: bool = False
    asked: int = 0
    is_sure: bool = True

    def is_current(self, own: Replica) -> bool:
        return self.is_sure and own is self.own

    is_excused: bool = False

    def is_confirmed(self, own: Replica) -> bool:
        return not self.is_excused and self.is_current(own)

    def holder(self, _: str) -> HeldLease | None:
        self.asked += 1
        if self.is_away:
            raise StoreError(file="", key="", problem="away", remedy="", code="unusable")
        return self.holds

    async def looked(self) -> None:
        self.is_sure = True


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def gate_of(registry: Registry, clock: Clock, *, is_strict: bool = True) -> LeaseGate:
    known = cast("ReplicaRegistry", registry)
    return LeaseGate(known, "program:x", HeldLease(OWN, 7), PauseDetector(clock), is_strict=is_strict)


async def test_nothing_is_asked_while_there_is_no_pause() -> None:
    registry, clock = Registry(), Clock()
    gate = gate_of(registry, clock)
    for _ in range(20):
        clock.now += 0.5
        assert gate.is_open()
        assert await gate.passed()

    assert registry.asked == 0


@pytest.mark.parametrize(
    ("holds", "passes"),
    [(HeldLease(OWN, 7), True), (HeldLease(OTHER, 8), False), (HeldLease(OWN, 9), False), (None, False)],
)
async def test_after_a_pause_the_database_is_asked(holds: Any, passes: bool) -> None:
    registry, clock = Registry(holds=holds), Clock()
    gate = gate_of(registry, clock)
    clock.now += 5

    assert not gate.is_open()
    assert await gate.passed() is passes
    assert gate.is_open() is passes
    assert gate.is_lost is not passes
    assert registry.asked == 1


async def test_a_pause_is_remembered_until_the_database_answers() -> None:
    registry, clock = Registry(is_away=True), Clock()
    gate = gate_of(registry, clock)
    clock.now += 5

    assert not gate.is_open()
    # Meanwhile the registry goes on as usual, and no other pause comes.
    assert not gate.is_open()
    with anyio.move_on_after(0.3) as waiting:
        await gate.passed()
    assert waiting.cancelled_caught
    registry.is_away = False
    assert await gate.passed()


async def test_a_lease_that_the_registry_is_not_sure_of_is_asked_about() -> None:
    registry, clock = Registry(is_sure=False), Clock()
    gate = gate_of(registry, clock)

    assert await gate.passed()
    assert registry.asked > 0


@pytest.mark.parametrize("is_strict", [False, True])
async def test_without_a_database_only_those_go_on_that_nobody_else_can_take_over(is_strict: bool) -> None:
    registry, clock = Registry(is_away=True, is_excused=True), Clock()
    gate = gate_of(registry, clock, is_strict=is_strict)

    assert gate.is_open() is not is_strict


async def test_whoever_registered_anew_has_lost_what_it_held() -> None:
    registry, clock = Registry(), Clock()
    gate = gate_of(registry, clock)
    registry.own, registry.holds = OTHER, None

    assert not await gate.passed()
    assert gate.is_lost
