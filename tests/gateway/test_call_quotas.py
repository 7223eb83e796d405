"""Quotas of calls hold over several replicas, whoever of them has the load, and while the database is away."""

from __future__ import annotations

import heapq
import itertools
import json
import subprocess
import sys
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shared import ROOT
from truename.config.quotas import PrincipalLimits, Quotas
from truename.errors import StoreError
from truename.gateway import listening
from truename.gateway.call_quotas.budgets import MINUTE, Budgets, Lease, LeaseAnswer, QuotaDecision
from truename.gateway.call_quotas.lease_store import SCHEMA, LeaseStore
from truename.gateway.views.descriptors import META_PREFIX
from truename.policy.principal import Principal
from truename.storage import StateLocation, open_database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.gateway.conftest import Lab
    from truename.gateway.call_quotas.budgets import LeaseRequest

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

START = 1_790_000_000.0
LATENCY = 0.02


class Replicas:
    """Replicas in a time of their own: calls come, end and wait; wishes reach one real store after a while."""

    def __init__(self, location: StateLocation, count: int, limits: PrincipalLimits) -> None:
        self.now, self.limits = 0.0, limits
        self.budgets = [Budgets(0.0) for _ in range(count)]
        self.stores = [
            LeaseStore(location, f"replica {number}", clock=lambda _: START + self.now) for number in range(count)
        ]
        self.in_flight = [False] * count
        self.is_away = False
        self.renewed = [0.0] * count
        self.begun: list[tuple[float, int]] = []
        self.refused: list[tuple[float, int, str]] = []
        self.running = [0] * count
        self.most_running = 0
        self._events: list[tuple[float, int, partial[None]]] = []
        self._number = itertools.count()
        for number in range(count):
            self._at(0.1 * number, partial(self._tick, number))

    def _at(self, time: float, what: partial[None]) -> None:
        heapq.heappush(self._events, (time, next(self._number), what))

    def run(self, until: float) -> None:
        while self._events and self._events[0][0] <= until:
            self.now, _, what = heapq.heappop(self._events)
            what()
        self.now = until

    def load(self, replica: int, every: float, until: float, *, lasts: float = 0.0, begin: float = 0.0) -> None:
        """Have calls of one principal come to a replica at a rate."""
        time = begin + every * (replica + 1) / 10
        while time < until:
            self._at(time, partial(self.call, replica, lasts))
            time += every

    def call(self, replica: int, lasts: float, waits_until: float | None = None) -> None:
        budgets = self.budgets[replica]
        verdict = budgets.take("ann", self.limits, self.now)
        deadline = self.now + 0.25 if waits_until is None else waits_until
        if not verdict.may_begin and verdict.limit is None:
            if self.now >= deadline:
                budgets.is_alone = True
                verdict = budgets.take("ann", self.limits, self.now)
            else:
                budgets.wait("ann", 1)
                self._exchange(replica)
                self._at(self.now + 0.01, partial(self._again, replica, lasts, deadline))
                return
        if budgets.is_short("ann", self.now):
            self._exchange(replica)
        self._decided(replica, verdict, lasts)

    def _again(self, replica: int, lasts: float, deadline: float) -> None:
        self.budgets[replica].wait("ann", -1)
        self.call(replica, lasts, deadline)

    def _decided(self, replica: int, verdict: QuotaDecision, lasts: float) -> None:
        if verdict.limit is not None:
            self.refused.append((self.now, replica, verdict.limit))
            return
        assert verdict.may_begin
        self.begun.append((self.now, replica))
        self.running[replica] += 1
        self.most_running = max(self.most_running, sum(self.running))
        self._at(self.now + lasts, partial(self.end, replica))

    def end(self, replica: int) -> None:
        """End a call of a replica."""
        self.running[replica] -= 1
        self.budgets[replica].end("ann")

    def _tick(self, replica: int) -> None:
        self._exchange(replica, is_tick=True)
        self._at(self.now + 1.0, partial(self._tick, replica))

    def _exchange(self, replica: int, *, is_tick: bool = False) -> None:
        budgets = self.budgets[replica]
        if self.in_flight[replica]:
            return
        is_due = is_tick and self.now - self.renewed[replica] > 4
        wishes = budgets.wishes(self.now, renews=is_due)
        if is_due:
            self.renewed[replica] = self.now
        if wishes:
            self.in_flight[replica] = True
            sent = self.now
            self._at(sent + LATENCY, partial(self._answered, replica, wishes, sent))

    def _answered(self, replica: int, wishes: tuple[LeaseRequest, ...], sent: float) -> None:
        self.in_flight[replica] = False
        if self.is_away:
            self.budgets[replica].is_alone = True
            return
        self.budgets[replica].apply(self.stores[replica].exchange(wishes), wishes, sent, self.now)

    def stop(self, replica: int) -> None:
        """Let a replica do nothing until it goes on."""
        self._events = [one for one in self._events if one[2].args[0] != replica]
        heapq.heapify(self._events)
        self.in_flight[replica] = False

    def go_on(self, replica: int) -> None:
        """Let a replica that was stopped go on, with what it knew then."""
        self._at(self.now + 1.0, partial(self._tick, replica))

    def kill(self, replica: int) -> None:
        """Let a replica do nothing more, and give nothing back."""
        self.budgets[replica] = Budgets(self.now)
        self.running[replica] = 0
        self.stop(replica)

    def in_minute(self, number: int) -> int:
        """Return how many calls were begun in a minute of the database."""
        offset = START % MINUTE
        return sum(int((time + offset) // MINUTE) == number for time, _ in self.begun)


@contextmanager
def replicas(folder: Path, count: int, **limits: int) -> Iterator[Replicas]:
    found = Replicas(StateLocation(folder / "state.db"), count, PrincipalLimits(**limits))
    try:
        yield found
    finally:
        for store in found.stores:
            store._database.close()


@pytest.mark.parametrize("limit", [60, 600, 6_000])
@pytest.mark.parametrize("load", [(1, 1, 1, 1), (1, 0, 0, 0), (10, 1, 1, 0), (5, 5, 1, 1)])
def test_a_limit_of_calls_a_minute_holds_within_a_tenth_over_four_replicas(
    tmp_path: Path, limit: int, load: tuple[int, ...]
) -> None:
    with replicas(tmp_path, 4, calls_per_minute=limit) as found:
        # Three times as many calls come as may be made.
        rate = 3 * limit / MINUTE / sum(load)
        for replica, share in enumerate(load):
            if share:
                found.load(replica, 1 / (rate * share), 200.0)
        found.run(200.0)
        for minute in (1, 2):
            assert 0.9 * limit <= found.in_minute(minute) <= 1.1 * limit
        assert {limit for _, _, limit in found.refused} == {"calls_per_minute"}


def test_load_that_moves_from_one_replica_to_another_gets_nearly_all(tmp_path: Path) -> None:
    with replicas(tmp_path, 4, calls_per_minute=600) as found:
        for replica in range(4):
            found.load(replica, 0.04, 15.0 * (replica + 1), begin=15.0 * replica)
            found.load(replica, 0.04, 60 + 15.0 * (replica + 1), begin=60 + 15.0 * replica)
        found.run(120.0)
        offset = START % MINUTE
        first = int(offset // MINUTE) + 1
        assert 540 <= found.in_minute(first) <= 660


@pytest.mark.parametrize("limit", [8, 40, 400])
@pytest.mark.parametrize("load", [(1, 1, 1, 1), (1, 0, 0, 0), (10, 1, 1, 0)])
def test_a_limit_of_calls_at_a_time_holds_within_a_tenth(tmp_path: Path, limit: int, load: tuple[int, ...]) -> None:
    with replicas(tmp_path, 4, concurrent_calls=limit) as found:
        # Many more calls come than may run: a place that becomes free is taken at once.
        rate = 20 * limit / 5.0 / sum(load)
        for replica, share in enumerate(load):
            if share:
                found.load(replica, 1 / (rate * share), 60.0, lasts=5.0)
        found.run(30.0)
        samples = []
        for step in range(20):
            found.run(30.0 + step)
            samples.append(sum(found.running))
        assert found.most_running <= 1.1 * limit
        assert 0.9 * limit <= sum(samples) / len(samples)


def test_places_of_a_replica_that_died_are_free_after_some_seconds(tmp_path: Path) -> None:
    with replicas(tmp_path, 2, concurrent_calls=40) as found:
        found.load(0, 0.05, 5.0, lasts=1_000.0)
        found.run(5.0)
        assert found.running[0] >= 36
        found.kill(0)
        found.load(1, 0.05, 40.0, lasts=1_000.0, begin=6.0)
        found.run(12.0)
        assert found.running[1] <= 4
        found.run(40.0)
        assert 36 <= found.running[1] <= 40


def test_a_replica_that_was_stopped_has_no_more_places_than_others_left(tmp_path: Path) -> None:
    with replicas(tmp_path, 2, concurrent_calls=40) as found:
        found.load(0, 0.05, 5.0, lasts=1_000.0)
        found.run(5.0)
        assert found.running[0] >= 36
        # It is stopped for a minute, in which the other one takes all places, and its own calls end.
        found.stop(0)
        found.load(1, 0.05, 60.0, lasts=1_000.0, begin=21.0)
        found.run(80.0)
        assert 36 <= found.running[1] <= 40
        found.go_on(0)
        for _ in range(found.running[0]):
            found.end(0)
        found.load(0, 0.01, 82.0, lasts=1_000.0, begin=80.0)
        found.run(82.0)
        assert sum(found.running) <= 42


def test_while_the_database_is_away_each_replica_has_what_it_holds_and_its_fraction(tmp_path: Path) -> None:
    with replicas(tmp_path, 4, calls_per_minute=600) as found:
        for replica in range(4):
            found.load(replica, 0.05, 400.0)
        found.run(130.0)
        found.is_away = True
        found.run(400.0)
        offset = START % MINUTE
        whole = int((offset + 200) // MINUTE), int((offset + 260) // MINUTE)
        for minute in whole:
            assert 540 <= found.in_minute(minute) <= 660
        found.is_away = False


@settings(max_examples=12, deadline=None)
@given(
    limit=st.integers(1, 2_000),
    places=st.integers(1, 200),
    count=st.integers(1, 6),
    loads=st.lists(st.tuples(st.integers(0, 5), st.floats(0.05, 3.0), st.floats(0.0, 4.0)), min_size=1, max_size=6),
)
def test_whatever_the_load_no_minute_has_more_than_a_twentieth_over_the_limit(
    tmp_path_factory: pytest.TempPathFactory,
    limit: int,
    places: int,
    count: int,
    loads: list[tuple[int, float, float]],
) -> None:
    folder = tmp_path_factory.mktemp("quotas")
    with replicas(folder, count, calls_per_minute=limit, concurrent_calls=places) as found:
        for replica, every, lasts in loads:
            found.load(replica % count, every, 110.0, lasts=lasts)
        found.run(110.0)
        for minute in range(4):
            assert found.in_minute(minute) <= limit * 1.05
        assert found.most_running <= places * 1.05


def test_a_tick_looks_at_those_who_call_and_forgets_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    budgets, limits = Budgets(0.0), PrincipalLimits(calls_per_minute=600)
    looked: list[str] = []
    wish = Budgets._wish

    def counted(self: Budgets, key: str, *args: Any, **more: Any) -> Any:
        looked.append(key)
        return wish(self, key, *args, **more)

    monkeypatch.setattr(Budgets, "_wish", counted)

    def tick(now: float) -> None:
        looked.clear()
        wishes = budgets.wishes(now)
        grants = {one.key: Lease(max(one.calls, 0), one.places) for one in wishes}
        budgets.apply(
            LeaseAnswer(window=int(now // MINUTE), left=MINUTE - now % MINUTE, replicas=1, grants=grants),
            wishes,
            now,
            now,
        )

    tick(0.0)
    for number in range(200):
        assert budgets.take(f"p{number}", limits, 1.0).may_begin
        budgets.end(f"p{number}")
    tick(2.0)
    assert len(looked) == 200
    for now in (6.0, 7.0):
        assert budgets.take("p7", limits, now).may_begin
        budgets.end("p7")
        tick(now)
    # The others gave back what they held.
    assert (looked, len(budgets)) == (["p7"], 200)
    tick(75.0)
    assert (looked, len(budgets)) == (["p7"], 1)


def test_a_small_limit_holds_exactly(tmp_path: Path) -> None:
    with replicas(tmp_path, 4, calls_per_minute=7) as found:
        for replica in range(4):
            found.load(replica, 0.7, 200.0)
        found.run(200.0)
        assert [found.in_minute(minute) for minute in (1, 2)] == [7, 7]


def test_the_limits_of_a_principal_are_its_own_or_those_of_its_groups() -> None:
    quotas = Quotas(
        calls_per_minute=60,
        groups={
            "batch": PrincipalLimits(calls_per_minute=600),
            "slow": PrincipalLimits(calls_per_minute=6, concurrent_calls=1),
        },
        principals={
            "root": PrincipalLimits(calls_per_minute=6_000),
            '["https://idp", "ann"]': PrincipalLimits(concurrent_calls=3),
        },
    )

    def limits(name: str, *groups: str, issuer: str = "") -> tuple[int | None, int | None]:
        found = quotas.of(Principal(name=name, issuer=issuer, groups=frozenset(groups)))
        assert found is not None
        return found.calls_per_minute, found.concurrent_calls

    assert limits("ann") == (60, None)
    assert limits("ann", "batch", "slow") == (600, 1)
    assert limits("ann", "slow", issuer="https://idp") == (6, 3)
    assert limits("root", "slow") == (6_000, 1)
    assert Quotas().of(Principal(name="ann")) is None
    assert Quotas(groups={"batch": PrincipalLimits(calls_per_minute=1)}).of(Principal(name="ann")) is None


def test_what_is_leased_is_in_both_kinds_of_databases(place: StateLocation) -> None:
    budgets, limits = Budgets(0.0), PrincipalLimits(calls_per_minute=100, concurrent_calls=10)
    with closing(LeaseStore(place, "one")) as one, closing(LeaseStore(place, "two")) as two:
        assert budgets.take("ann", limits, 0.0) == QuotaDecision(may_begin=False)
        budgets.wait("ann", 1)
        wishes = budgets.wishes(0.0)
        answer = one.exchange(wishes)
        assert (answer.replicas, answer.grants["ann"].calls, answer.grants["ann"].places) == (1, 2, 1)
        assert 0 < answer.left <= MINUTE
        (wish,) = wishes
        other = two.exchange([wish._replace(calls=1_000, places=1_000)])
        assert (other.replicas, other.grants["ann"].calls, other.grants["ann"].places) == (2, 98, 9)
        given_back = two.exchange([wish._replace(window=other.window, calls=-50, places=0)])
        assert (given_back.grants["ann"].calls, given_back.grants["ann"].places) == (-50, 0)
        again = one.exchange([wish._replace(calls=1_000, places=1_000)])
        assert (again.grants["ann"].calls, again.grants["ann"].places) == (50, 10)


# Makes calls of one principal as fast as it is told, in one process, and says how many were begun and refused.
CALLER = """
import asyncio, json, sys
from truename.config.quotas import Quotas
from truename.errors import QuotaExceeded
from truename.gateway.call_quotas import CallQuotas
from truename.gateway.views.descriptors import META_PREFIX
from truename.policy.principal import Principal
from truename.storage import StateLocation

async def main():
    quotas = CallQuotas(StateLocation.of(sys.argv[1]), patience=30.0)
    settings, ann = Quotas(**json.loads(sys.argv[2])), Principal(name="ann")
    running = asyncio.ensure_future(quotas.run(is_used=True))
    print("ready", flush=True)
    for line in sys.stdin:
        count, holds = json.loads(line)
        begun, refused, held = 0, 0, []
        for _ in range(count):
            try:
                place = await quotas.take(ann, settings)
                begun += 1
                held.append(place) if holds else place.release()
            except QuotaExceeded:
                refused += 1
            await asyncio.sleep(0.002)
        print(json.dumps([begun, refused, quotas.is_well]), flush=True)
        for place in held:
            place.release()
    running.cancel()
    await asyncio.wait([running])

asyncio.run(main())
"""


class Caller:
    """A process that makes calls."""

    def __init__(self, location: StateLocation, **limits: int) -> None:
        arguments = [sys.executable, "-c", CALLER, str(location.address), json.dumps(limits)]
        self.process = subprocess.Popen(
            arguments, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def tell(self, count: int, *, holds: bool) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([count, holds]) + "\n")


@contextmanager
def callers(location: StateLocation, **limits: int) -> Iterator[list[Caller]]:
    found = [Caller(location, **limits) for _ in range(4)]
    try:
        for one in found:
            assert one.hear() == "ready\n"
        yield found
    finally:
        for one in found:
            one.process.kill()
            one.process.communicate()


def minute_of(location: StateLocation) -> int:
    with closing(LeaseStore(location, "clock")) as store:
        return store.minute()


def test_limits_hold_over_four_processes(place: StateLocation) -> None:
    limit, places = 400, 80
    with callers(place, calls_per_minute=limit, concurrent_calls=places) as found:
        began = minute_of(place)
        # Uneven, as fast as they are answered: calls that go on, then calls that end at once.
        for one, count in zip(found, (150, 40, 20, 20), strict=True):
            one.tell(count, holds=True)
        at_once = [json.loads(one.hear()) for one in found]
        for one, count in zip(found, (600, 100, 100, 100), strict=True):
            one.tell(count, holds=False)
        more = [json.loads(one.hear()) for one in found]
        minutes = minute_of(place) - began + 1
    assert 0.9 * places <= sum(begun for begun, _, _ in at_once) <= 1.1 * places
    assert 0.9 * limit <= sum(begun for begun, _, _ in (*at_once, *more)) <= 1.1 * limit * minutes
    assert all(is_well for _, _, is_well in (*at_once, *more))


def test_a_store_that_cannot_be_opened_says_so(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(b"no database" * 100)
    with pytest.raises(StoreError):
        LeaseStore(StateLocation(tmp_path / "state.db"), "one")


async def test_a_call_beyond_a_limit_is_refused_and_says_when_to_come_again(
    lab: Lab, connect: Callable[..., Any], era: str
) -> None:
    server = lab.normal("w", "read")
    async with (
        lab.serving(server, quotas=Quotas(calls_per_minute=2)) as address,
        connect(f"{address}/mcp", era) as client,
    ):
        results = [await client.call_tool("read", {}) for _ in range(3)]
    assert [one.is_error for one in results[:2]] == [False, False]
    refused = results[2]
    assert refused.is_error
    assert "local has made 2 calls in this minute, which is the limit; nothing was run." in refused.content[0].text
    assert refused.meta is not None
    assert refused.meta[f"{META_PREFIX}error"] == "quota_exceeded"
    assert 0 < refused.meta[f"{META_PREFIX}retry_after"] <= 61


async def test_a_call_that_ended_makes_room_for_the_next(
    lab: Lab, connect: Callable[..., Any], era: str, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    server = lab.script("j", "journal", str(ran), "note", "hold")
    async with (
        lab.serving(server, quotas=Quotas(concurrent_calls=1)) as address,
        connect(f"{address}/mcp", era) as client,
        connect(f"{address}/mcp", era) as other,
    ):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "hold", {})
            while not ran.exists():
                await anyio.sleep(0.02)
            refused = await other.call_tool("note", {})
            ran.with_suffix(".gate").touch()
        assert (refused.is_error, refused.meta[f"{META_PREFIX}error"]) == (True, "quota_exceeded")
        assert "Try again when one of them has ended." in refused.content[0].text
        assert not (await other.call_tool("note", {})).is_error


async def test_without_quotas_nothing_is_leased(lab: Lab, connect: Callable[..., Any], tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    async with lab.gateway(lab.normal("w", "read"), state=str(state)) as gateway, listening(gateway) as address:
        async with connect(f"{address}/mcp", "legacy") as client:
            assert not (await client.call_tool("read", {})).is_error
        assert gateway.registry.quotas.is_well is None
    with closing(open_database(StateLocation(state), SCHEMA, readonly=True)) as database:
        assert not database.is_begun
