"""The plain form of events: what any store keeps."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ledger.stories import SETTINGS, claim
from truename import ToolId
from truename.errors import InvalidToolId
from truename.ledger import Bind, Break, Event, LedgerSettings, Redirect, Retire
from truename.ledger.events import from_plain
from truename.ledger.state import LedgerState

AB = ToolId.parse("a/b")


@pytest.mark.parametrize(
    "event",
    [
        SETTINGS,
        LedgerSettings(style="x", server_name="y", aliases={}, scope="one", at="2026-11-22T00:00:00+00:00"),
        Bind(server="a", name="b", id=AB),
        claim("天気\n", "a/b"),
        Retire(name="x"),
        Retire(name="x", successor="y"),
        Redirect(name="x", id=AB, scope="one"),
        Redirect(name="x", id=AB, until="2027-02-01"),
        Break(name="x"),
        Break(name="x", id=AB, successor="y", protocol="0.3"),
    ],
    ids=lambda event: event.kind,
)
def test_an_event_comes_back_from_its_plain_form(event: Event) -> None:
    assert from_plain(event.plain()) == event


def test_the_plain_form_has_no_empty_fields() -> None:
    assert Retire(name="x").plain() == {"event": "retire", "name": "x"}
    assert claim("x", "a/b").plain() == {
        "event": "claim",
        "name": "x",
        "id": "a@1/b@1",
        "table": "openai",
        "server": "a",
    }


def test_an_event_is_a_value_that_shows_what_it_says() -> None:
    one, other = Retire(name="x"), Retire(name="x", successor="y")

    assert one == Retire(name="x")
    assert one != other
    assert one != Redirect(name="x", id=AB)
    assert len({one, other, Retire(name="x")}) == 2
    assert repr(other) == "Retire(name='x', successor='y')"


def test_an_identity_is_no_matter_of_one_scope() -> None:
    state = LedgerState()

    state.apply(Bind(server="a", name="b", id=AB))

    assert (state.scopes, state.holders.under(), state.spellings.under()) == ({}, [], [])
    assert state.origin(AB) == ("a", "b")


@pytest.mark.parametrize(
    ("plain", "error"),
    [
        ({}, "unknown kind of event: None"),
        ({"event": "other"}, "unknown kind of event: 'other'"),
        ({"event": "retire"}, "name"),
        ({"event": "retire", "name": "x", "extra": 1}, "extra"),
        ({"event": "bind", "server": "a", "name": "b"}, "id"),
        ({"event": "redirect", "name": "x", "id": "a/b", "until": "soon"}, "isoformat"),
    ],
)
def test_what_is_no_event_is_refused(plain: dict[str, Any], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        from_plain(plain)


def test_a_bad_id_in_an_event_is_refused() -> None:
    with pytest.raises(InvalidToolId):
        from_plain({"event": "redirect", "name": "x", "id": "nothing"})


def test_two_ways_of_making_names_are_compared_and_told_apart_in_words() -> None:
    other = LedgerSettings(style="on-conflict", server_name="truename", aliases={})

    assert SETTINGS.same(
        LedgerSettings(style="prefixed", server_name="truename", aliases=dict(SETTINGS.aliases), at="now")
    )
    assert not SETTINGS.same(other)
    assert other.difference(SETTINGS) == "style = 'on-conflict', aliases = {}"


@pytest.mark.parametrize("number", ["2", 2.0, True])
def test_a_number_of_a_claim_that_is_none_is_refused(number: object) -> None:
    with pytest.raises(ValueError, match="is not a number"):
        from_plain({**claim("b_2", "a/b").plain(), "number": number})
