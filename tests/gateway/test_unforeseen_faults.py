"""What a server brings about that nobody thought of is told by its cause."""

from __future__ import annotations

import pytest

from truename.gateway.upstream_errors import unusable

CAUSE = ValueError("not a number: \x1b[31mx")


@pytest.mark.parametrize(
    "error",
    [
        CAUSE,
        ExceptionGroup("unhandled errors in a TaskGroup", [CAUSE]),
        ExceptionGroup("", [ExceptionGroup("", [CAUSE])]),
    ],
)
def test_the_error_names_what_happened_and_not_the_task_group_around_it(error: Exception) -> None:
    assert unusable("fs", error).problem == "cannot be used (ValueError: not a number: \\x1b[31mx)"
