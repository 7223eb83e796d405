"""Tables of a later version: those one version newer are used, and a gateway that cannot use them does not serve."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.gateway.restarts import Place
from tests.support.auth_entrance import known
from truename.errors import LedgerError, StoreError
from truename.gateway.http.served_tables import SERVED
from truename.storage import open_database

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gateway.conftest import Lab
    from truename.storage import StateLocation

pytestmark = [pytest.mark.slow, pytest.mark.anyio]


async def test_whatever_tables_are_two_versions_newer_nothing_is_served(
    lab: Lab, tmp_path: Path, place: StateLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    gateway = Place(tmp_path, lab.normal("w", "get"), state=place.address, access=known("ann")[1])
    async with gateway.gateway():
        pass
    for schema in SERVED:
        open_database(place, schema).close()
    parts = [schema.part for schema in SERVED]
    # Whoever adds an owner of tables adds it to those that are checked.
    with closing(open_database(place, SERVED[0])) as data:
        assert {part for (part,) in data.rows("SELECT name FROM part")} == set(parts)

        def put(part: str, more: int) -> None:
            with data.change() as change:
                change.execute("UPDATE part SET version = version + ? WHERE name = ?", (more, part))

        for part in parts:
            put(part, 2)
            with pytest.raises(
                (StoreError, LedgerError), match=rf"written by a newer Truename \({part} \d+\)"
            ) as refused:
                async with gateway.gateway():
                    raise AssertionError(part)
            assert refused.value.code == "newer"
            put(part, -1)
        async with gateway.gateway():
            pass
