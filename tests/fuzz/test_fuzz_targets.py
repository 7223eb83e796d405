"""A small, fixed part of the fuzzing, so that a target that always fails is seen at once."""

from __future__ import annotations

import pytest

from tests.fuzz.chance import seeded
from tests.fuzz.judging import judged
from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_random_input_gives_a_right_answer_or_a_typed_error(target: str) -> None:
    findings = [found for case in range(100) if (found := judged(target, TARGETS[target], seeded(7, target, case)))]

    assert findings == []
