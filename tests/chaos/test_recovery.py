"""What the page says of a loss holds: two of its rows, on each kind of state one; `make recovery` tries all."""

from __future__ import annotations

import pytest

from tests.chaos.recovery import SCENARIOS, tried

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("name", "is_server"), [("process killed", False), ("database restored from a backup", True)])
def test_a_gateway_recovers_as_the_page_says(name: str, *, is_server: bool) -> None:
    assert name in SCENARIOS
    ((_, result),) = tried([name], is_server=is_server)
    assert "audit log whole" in result
