"""A small, fixed part of the fuzzing, so that a target that always fails is seen at once."""

from __future__ import annotations

import pytest

from tests.fuzz.__main__ import tried
from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_random_input_gives_a_right_answer_or_a_typed_error(target: str) -> None:
    findings = [found for case in range(100) if (found := tried(target, 7, case))]

    assert findings == []
