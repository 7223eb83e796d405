"""Who is signed in is known without a look at the database until somebody signs in or out, at any gateway."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.support.cli_ending import until
from truename.auth.authorization_server import sessions as module
from truename.auth.authorization_server.sessions import SignInSession, SignInSessions
from truename.auth.vault import Vault
from truename.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.postgresql_wire import Wire
    from truename.storage import StateLocation

ANN = SignInSession(id="a", name="ann", issuer="https://idp.example", client="c", made=1, until=200)
BOB = replace(ANN, id="b", name="bob")


def test_a_session_that_nobody_changed_is_asked_for_once(place: StateLocation) -> None:
    one, other = SignInSessions(place, lambda: 100.0), SignInSessions(place, lambda: 100.0)
    with closing(one), closing(other):
        one.begin(ANN)
        until(lambda: not other.is_current())
        assert (other.asks("a"), other.good("a"), other.asks("a"), other.stands("a")) == (True, ANN, False, True)
        # One that is asked for before anybody heard of it.
        assert (other.good("b"), one.begin(BOB), other.good("b")) == (None, frozenset(), BOB)
        until(lambda: other.good("b") == BOB and not other.asks("b"))
        assert (other.good("a"), other.asks("a")) == (ANN, False)


def test_who_signs_out_or_is_in_other_groups_is_so_at_every_gateway(place: StateLocation) -> None:
    one, other = SignInSessions(place, lambda: 100.0), SignInSessions(place, lambda: 100.0)
    with closing(one), closing(other):
        one.begin(ANN)
        one.begin(BOB)
        assert (other.good("a"), other.good("b")) == (ANN, BOB)
        turned = one.turn(replace(ANN, groups=frozenset({"staff"})))
        until(lambda: other.good("a") == turned)
        one.end("a")
        until(lambda: other.good("a") is None)
        assert (other.stands("a"), one.stands("a"), other.stands("b")) == (False, False, True)


def test_a_session_ends_in_time_though_nobody_changes_it(place: StateLocation) -> None:
    now = [100.0]
    with closing(SignInSessions(place, lambda: now[0])) as sessions:
        sessions.begin(ANN)
        assert (sessions.good("a"), sessions.stands("a")) == (ANN, True)
        now[0] = 200.0
        assert (sessions.good("a"), sessions.stands("a")) == (None, False)


def test_while_the_database_is_away_who_is_signed_in_stays_so_for_a_while(
    wire: Wire, over_wire: StateLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(SignInSessions(over_wire, lambda: 100.0)) as sessions:
        sessions.begin(ANN)
        assert sessions.good("a") == ANN
        sessions.begin(BOB)
        wire.cut()
        assert (sessions.good("a"), sessions.asks("a"), sessions.stands("b")) == (ANN, False, True)
        with pytest.raises(StoreError, match="it cannot be used"):
            sessions.good("nobody")
        monkeypatch.setattr(module, "LONGEST_SILENCE", 0.0)
        with pytest.raises(StoreError, match="it has not answered for 0 minutes"):
            sessions.good("a")
        assert not sessions.stands("a")


def test_a_secret_that_nobody_changed_is_read_once(place: StateLocation) -> None:
    one, other = Vault(place, [bytes(32)]), Vault(place, [bytes(32)])
    with one, other:
        one.put("idp", "ann", b"1")
        assert (other.recent("idp", "ann"), other.asks("idp", "ann")) == (b"1", False)
        one.put("idp", "ann", b"2")
        until(lambda: other.asks("idp", "ann"))
        assert (other.recent("idp", "ann"), other.asks("idp", "ann")) == (b"2", False)
        assert other.remove("idp", "ann")
        assert (other.recent("idp", "ann"), other.asks("idp", "ann")) == (None, True)
        until(lambda: one.recent("idp", "ann") is None)


def test_a_known_secret_is_there_while_the_database_is_away(wire: Wire, over_wire: StateLocation) -> None:
    with Vault(over_wire, [bytes(32)]) as vault:
        vault.put("idp", "ann", b"1")
        assert vault.recent("idp", "ann") == b"1"
        wire.cut()
        assert vault.recent("idp", "ann") == b"1"
        failing: Callable[[], object] = lambda: vault.recent("idp", "bob")  # noqa: E731
        with pytest.raises(StoreError, match="it cannot be used"):
            failing()
