"""A server whose tools change without end says no more in the log than one that changes once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.gateway.staged import Stage
from truename.config import Settings
from truename.config.trust import Trust

if TYPE_CHECKING:
    import pytest


def test_a_flood_of_changes_is_told_by_its_number(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(Settings(trust=Trust(drift="quarantine")))
    for turn in range(5):
        stage.lists(*({"name": f"t{n}", "description": f"{turn}", "inputSchema": {}} for n in range(40)))
        stage.registry.catch_up()
    told = [record.getMessage() for record in caplog.records]
    what = "40 definitions of server fs: each changed and is quarantined pending review."
    assert told == [f"{what} `truename pins list` names them."]


def test_a_few_changes_are_told_each_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(Settings(trust=Trust(drift="quarantine")))
    for text in "Read.", "Read all.":
        stage.lists({"name": "read", "description": text, "inputSchema": {}})
        stage.registry.catch_up()
    (told,) = [record.getMessage() for record in caplog.records]
    assert told.startswith("fs@1/read@1 changed and is quarantined pending review: description: ")
