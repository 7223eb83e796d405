"""A small, fixed part of the fuzzing, by all engines, so that a target that always fails is seen at once."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz import house
from tests.fuzz.chance import Fed, seeded
from tests.fuzz.judging import Broken, judged, must
from tests.fuzz.targets import TARGETS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

# Those that go through a whole gateway, or begin one.
SLOW = {"requests", "lines_of_clients", "answers_of_servers", "lists_of_servers", "sign_ins"}
SLOW |= {"accounts", "audit_journals", "recordings", "journals", "consents"}


@pytest.fixture(autouse=True, scope="module")
def _a_gateway_at_most() -> Iterator[None]:
    yield
    house.close()


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_random_input_gives_a_right_answer_or_a_typed_error(target: str) -> None:
    cases = range(15 if target in SLOW else 60)
    findings = [found for case in cases if (found := judged(target, TARGETS[target], seeded(7, target, case)))]

    assert findings == []


@pytest.mark.parametrize("target", sorted(TARGETS.keys() - SLOW))
def test_so_does_input_that_can_be_made_smaller(target: str) -> None:
    @settings(max_examples=3, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(st.randoms(use_true_random=False))
    def check(chance: Random) -> None:
        assert judged(target, TARGETS[target], chance) is None

    check()


@pytest.mark.parametrize("target", sorted(TARGETS.keys() - SLOW))
def test_so_does_input_out_of_bytes(target: str) -> None:
    for raw in (b"", b"\0" * 64, b"\xff" * 64, bytes(range(256))):
        assert judged(target, TARGETS[target], Fed(raw)) is None


@pytest.mark.parametrize(
    ("wrong", "told"),
    [(Broken("it holds"), "it holds"), (KeyError("x"), "KeyError"), (ExceptionGroup("x", [OSError("y")]), "OSError")],
)
def test_what_is_no_typed_error_is_a_finding(wrong: Exception, told: str) -> None:
    def target(_: Random) -> None:
        raise wrong

    found = judged("target", target, seeded(1, "target", 0))
    assert found is not None
    assert told in found.text


def test_what_is_logged_with_a_traceback_is_a_finding() -> None:
    def target(_: Random) -> None:
        try:
            must(False, "x")
        except Broken:
            logging.getLogger("somebody").exception("unforeseen")

    found = judged("target", target, seeded(1, "target", 0))
    assert found is not None
    assert "unforeseen" in found.text
