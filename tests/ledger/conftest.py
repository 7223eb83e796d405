"""Every promise is tested of all stores: in memory, in a file, and in a PostgreSQL database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.state_places import new_url
from truename import Ledger
from truename.ledger import MAX_CLAIMS, open_ledger
from truename.storage import StateLocation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Ledger]]:
    if request.param == "memory":
        yield Ledger.memory
        return

    place = StateLocation(tmp_path / "ledger") if request.param == "sqlite" else StateLocation.of(new_url())

    def begin(max_claims: int = MAX_CLAIMS) -> Ledger:
        opened.append(open_ledger(place, max_claims=max_claims))
        return opened[-1]

    opened: list[Ledger] = []
    yield begin
    for ledger in opened:
        ledger.close()


@pytest.fixture
def ledger(fresh: Callable[..., Ledger]) -> Ledger:
    return fresh()
