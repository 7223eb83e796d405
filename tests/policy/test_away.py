"""Decisions while the database is away: what does not depend on unread ones is known, and nothing is invented."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.policy.calls import search_of
from tests.support.cli_ending import until
from tests.support.state_places import new_place, shared_server
from truename.errors import StoreError
from truename.policy import Approvals, SqlApprovalStore
from truename.storage import StateLocation
from truename.storage.postgresql_link import unlink

if TYPE_CHECKING:
    from tests.support.postgresql_wire import Wire


def states(approvals: Approvals, *servers: str) -> list[str]:
    found: list[str] = []
    for server in servers:
        try:
            found.append(approvals.status(search_of(server, "another")).state)
        except StoreError as error:
            found.append(error.code)
    return found


def test_what_was_decided_just_before_the_database_went_away_counts_and_changes_nothing_else(
    wire: Wire, over_wire: StateLocation
) -> None:
    approvals = Approvals.open(over_wire)
    approvals.reject(search_of("mail", "c1"), "always")
    approvals.approve(search_of("docs", "c2"), "always")
    wire.cut()

    assert states(approvals, "mail", "docs", "wiki") == ["rejected", "approved", "undecided"]


def test_a_decision_that_cannot_be_stored_takes_nothing_that_is_known(wire: Wire, over_wire: StateLocation) -> None:
    approvals = Approvals.open(over_wire)
    approvals.reject(search_of("mail", "c1"), "always")
    wire.cut()
    with pytest.raises(StoreError, match="it cannot be used"):
        approvals.approve(search_of("docs", "c2"), "always")

    assert states(approvals, "mail", "docs", "wiki") == ["rejected", "undecided", "undecided"]


def test_a_decision_whose_commit_is_not_known_of_is_asked_for_again(
    wire: Wire, over_wire: StateLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("truename.storage.postgresql.PATIENCE", 0.3)
    approvals = Approvals.open(over_wire)
    approvals.reject(search_of("mail", "c1"), "always")
    there, wire.cut_after, wire.is_down_then = wire.server, b"COMMIT", True
    with pytest.raises(StoreError, match="whether it was is not known"):
        approvals.reject(search_of("docs", "c2"), "always")
    assert states(approvals, "docs") == ["unusable"]

    wire.server = there
    until(lambda: states(approvals, "docs") == ["rejected"])


def test_news_of_another_process_that_were_not_read_are_not_passed_over(wire: Wire, over_wire: StateLocation) -> None:
    store = SqlApprovalStore(over_wire)
    approvals = Approvals(store)
    store.read()
    there = StateLocation(url=StateLocation.of(shared_server().url).url, scope=over_wire.scope)
    Approvals.open(there).reject(search_of("mail", "c1"), "always")
    until(store.has_news)
    server = wire.server
    wire.cut()
    assert states(approvals, "mail", "wiki") == ["unusable", "unusable"]
    assert states(approvals, "mail", "wiki") == ["unusable", "unusable"]

    wire.server = server
    until(lambda: states(approvals, "mail", "wiki") == ["rejected", "undecided"])
    wire.cut()
    assert states(approvals, "mail", "wiki") == ["rejected", "undecided"]
    assert not approvals.reads(search_of("mail", "c3"))
    unlink(there)


def test_who_asks_what_is_known_does_not_wait_for_the_server() -> None:
    with new_place() as place:
        asked_and_known(place)


def asked_and_known(place: StateLocation) -> None:
    store = SqlApprovalStore(place)
    approvals = Approvals(store)
    store.read()
    approvals.approve(search_of("docs", "c1"), "always")
    assert [approvals.reads(search_of(server, "c2")) for server in ("docs", "mail")] == [False, False]
    # There is a record of this call.
    assert approvals.reads(search_of("docs", "c1"))

    Approvals.open(place).reject(search_of("mail", "c3"), "always")
    until(lambda: approvals.reads(search_of("docs", "c2")))
    approvals.refresh()
    assert [approvals.reads(search_of(server, "c2")) for server in ("docs", "mail", "wiki")] == [True, True, False]
    assert states(approvals, "docs", "mail") == ["approved", "rejected"]
    assert [approvals.reads(search_of(server, "c2")) for server in ("docs", "mail", "wiki")] == [False, False, False]
