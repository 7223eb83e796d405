"""Every promise is tested of both stores: in memory and in a database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from truename import Ledger
from truename.ledger import MAX_CLAIMS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(params=["memory", "database"])
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Ledger]:
    if request.param == "memory":
        return Ledger.memory

    def begin(max_claims: int = MAX_CLAIMS) -> Ledger:
        return Ledger.open(tmp_path / "ledger", max_claims=max_claims)

    return begin


@pytest.fixture
def ledger(fresh: Callable[..., Ledger]) -> Ledger:
    return fresh()
