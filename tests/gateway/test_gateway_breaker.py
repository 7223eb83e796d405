"""The breaker: open after failures in a row, half-open one call at a time, and never for good."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from truename.gateway.upstream.circuit_breaker import LEASE, BreakerPermit, CircuitBreaker

MOST = 3
SECONDS = 60.0


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def _breaker(clock: Clock) -> CircuitBreaker:
    return CircuitBreaker(failures=MOST, seconds=SECONDS, clock=clock)


def _admitted(breaker: CircuitBreaker) -> BreakerPermit:
    permit = breaker.admit()
    assert permit is not None
    return permit


def _fail(breaker: CircuitBreaker, times: int = MOST) -> None:
    for _ in range(times):
        breaker.failed(_admitted(breaker))


def _admissions(breaker: CircuitBreaker, times: int = 3) -> list[bool]:
    return [breaker.admit() is not None for _ in range(times)]


def test_it_opens_after_failures_in_a_row_only() -> None:
    breaker = _breaker(Clock())
    for _ in range(5):
        _fail(breaker, MOST - 1)
        breaker.succeeded(_admitted(breaker))
    assert breaker.state == "closed"

    _fail(breaker)

    assert (breaker.state, breaker.admit()) == ("open", None)


def test_when_the_time_is_over_one_probe_is_let_through_and_its_outcome_decides() -> None:
    clock = Clock()
    breaker = _breaker(clock)
    _fail(breaker)
    clock.now = SECONDS

    probe = _admitted(breaker)
    assert _admissions(breaker) == [False, False, False]
    breaker.failed(probe)
    assert (breaker.state, breaker.admit()) == ("open", None)

    clock.now = 2 * SECONDS
    breaker.succeeded(_admitted(breaker))
    assert _admissions(breaker) == [True, True, True]


def test_a_probe_that_its_client_gives_up_makes_room_for_another() -> None:
    clock = Clock()
    breaker = _breaker(clock)
    _fail(breaker)
    clock.now = SECONDS

    breaker.abandoned(_admitted(breaker))

    assert _admissions(breaker) == [True, False, False]


def test_a_call_that_is_no_probe_gives_no_place_away() -> None:
    clock = Clock()
    breaker = _breaker(clock)
    old = [_admitted(breaker) for _ in range(2)]
    _fail(breaker)
    clock.now = SECONDS
    _admitted(breaker)

    for permit in old:
        breaker.abandoned(permit)
        breaker.failed(permit)
        breaker.succeeded(permit)

    assert (breaker.state, breaker.admit()) == ("half-open", None)


def test_a_probe_that_never_ends_holds_its_place_for_a_while_only() -> None:
    clock = Clock()
    breaker = _breaker(clock)
    _fail(breaker)
    clock.now = SECONDS
    first = _admitted(breaker)
    clock.now += LEASE

    second = _admitted(breaker)
    assert breaker.admit() is None
    breaker.abandoned(first)
    assert breaker.admit() is None

    breaker.succeeded(first)
    assert breaker.state == "closed"
    breaker.failed(second)
    assert breaker.failures == 0


def test_a_sign_of_life_lets_a_probe_through_before_the_time_is_over() -> None:
    breaker = _breaker(Clock())
    _fail(breaker)

    breaker.revive()

    assert breaker.state == "half-open"
    assert _admissions(breaker) == [True, False, False]


def test_the_answer_to_a_call_from_before_is_a_sign_of_life_and_its_failure_is_nothing() -> None:
    clock = Clock()
    breaker = _breaker(clock)
    answered, lost = _admitted(breaker), _admitted(breaker)
    _fail(breaker)

    states: list[str] = []
    for said, permit in ((breaker.failed, lost), (breaker.succeeded, answered)):
        said(permit)
        states.append(breaker.state)
    breaker.succeeded(_admitted(breaker))
    for _ in range(MOST):
        breaker.failed(lost)
    assert [*states, breaker.state] == ["open", "half-open", "closed"]


class Lives(RuleBasedStateMachine):
    """Calls that end in any order, while time goes by and servers show signs of life."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.breaker = _breaker(self.clock)
        self.running: list[BreakerPermit] = []
        self.probes: list[tuple[float, BreakerPermit]] = []

    @rule()
    def call(self) -> None:
        before, permit = self.breaker.state, self.breaker.admit()
        assert permit is None or before != "open"
        assert permit is not None or before != "closed"
        if permit is None:
            return
        self.running.append(permit)
        if before == "half-open":
            young = [one for at, one in self.probes if self.clock.now < at + LEASE and one.period == permit.period]
            assert young == []
            self.probes.append((self.clock.now, permit))

    @rule(choose=st.integers(0, 50), how=st.sampled_from(["succeeded", "failed", "abandoned"]))
    def ends(self, choose: int, how: str) -> None:
        if not self.running:
            return
        permit = self.running.pop(choose % len(self.running))
        before, is_old = (self.breaker.state, self.breaker.failures), permit.period != self.breaker._period
        getattr(self.breaker, how)(permit)
        self.probes = [(at, one) for at, one in self.probes if one != permit]
        after = (self.breaker.state, self.breaker.failures)
        if is_old and how == "succeeded":
            assert after in {before, ("half-open", before[1])}
        elif is_old or how == "abandoned":
            assert after == before

    @rule(seconds=st.sampled_from([0.1, LEASE / 2, LEASE, SECONDS / 2, SECONDS]))
    def time_goes_by(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule()
    def shows_a_sign_of_life(self) -> None:
        before = self.breaker.state
        self.breaker.revive()
        assert self.breaker.state == ("half-open" if before == "open" else before)

    @invariant()
    def is_never_stuck(self) -> None:
        clock = Clock()
        clock.now = self.clock.now + SECONDS + LEASE
        self.breaker._clock = clock
        try:
            assert self.breaker.state != "open"
            leased, probe = self.breaker._leased, self.breaker._probe
            assert self.breaker.admit() is not None
            self.breaker._leased, self.breaker._probe = leased, probe
        finally:
            self.breaker._clock = self.clock


TestLives = Lives.TestCase
TestLives.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
