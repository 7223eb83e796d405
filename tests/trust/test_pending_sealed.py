"""The arguments of calls that wait are encrypted, each bound to its call, with a key that is not in the database."""

from __future__ import annotations

import base64
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.trust_pending import call, wanted
from truename.errors import StoreError
from truename.storage import Schema, StateLocation, open_database
from truename.trust.approval_queue import SCHEMA, ApprovalQueue, PendingCall

if TYPE_CHECKING:
    from pathlib import Path

KEYS = [base64.b64encode(bytes([number]) * 32).decode() for number in range(3)]
BEFORE = Schema(SCHEMA.part, SCHEMA.migrations[:1])
"""The tables of the version before."""

COLUMNS = (
    *("key", "principal", "agent", "session", "fingerprint", "tool", "digest", "shape", "server", "name", "endpoint"),
    *("arguments_digest", "arguments", "wire_name", "client", "rule", "reason", "at", "until", "number"),
)


def ask(queue: ApprovalQueue, text: str) -> PendingCall:
    one = replace(wanted(call(text=text)), arguments=f'text: "{text}"')
    return queue.ask(one, most=10, lasts=60.0)


def raw(place: StateLocation, statement: str, *values: object) -> list[tuple[Any, ...]]:
    with closing(open_database(place, SCHEMA)) as data, data.change() as change:
        rows = change.execute(statement, values)
        return rows.fetchall() if statement.startswith("SELECT") else []


def test_arguments_are_in_no_column(place: StateLocation) -> None:
    with ApprovalQueue(place) as queue:
        one = ask(queue, "canary-4711")
        assert "canary" not in str(raw(place, "SELECT * FROM pending_call"))
        assert queue.find(one.key) == one
    with ApprovalQueue(place) as queue:
        assert [found.arguments for found in queue.all()] == ['text: "canary-4711"']


def test_arguments_that_were_changed_or_moved_to_another_call_are_refused(place: StateLocation) -> None:
    with ApprovalQueue(place) as queue:
        one, other = ask(queue, "delete all"), ask(queue, "harmless")
        ((sealed,),) = raw(place, "SELECT sealed FROM pending_call WHERE key = ?", other.key)
        name = sealed.partition(":")[0]
        for forged in (sealed, sealed[:-4], f"{name}:", f"{name}:?"):
            raw(place, "UPDATE pending_call SET sealed = ? WHERE key = ?", forged, one.key)
            with pytest.raises(StoreError, match="were changed, or are those of another call") as refused:
                queue.find(one.key)
            assert refused.value.code == "corrupt"


def test_what_an_earlier_version_kept_as_it_is_is_encrypted_by_a_gateway(place: StateLocation) -> None:
    one = replace(wanted(call(text="x")), key="k1", arguments="canary: 4711", at=1.0, until=9e9)
    about = one.subject._asdict()
    values = {**vars(one), **about, "tool": str(one.subject.id), "number": 1}
    places = ", ".join("?" * len(COLUMNS))
    with closing(open_database(place, BEFORE)) as data, data.change() as change:
        change.execute(
            f"INSERT INTO pending_call ({', '.join(COLUMNS)}) VALUES ({places})",
            [values[name] for name in COLUMNS],
        )
    with ApprovalQueue(place) as queue:
        assert queue.find("k1") == one
        assert (queue.encrypt_plain(), queue.encrypt_plain()) == (1, 0)
        assert queue.find("k1") == one
    assert "canary" not in str(raw(place, "SELECT * FROM pending_call"))
    if place.path is not None:
        assert b"canary" not in place.path.read_bytes()


def test_a_decision_that_an_earlier_version_writes_counts(place: StateLocation) -> None:
    with ApprovalQueue(place) as queue:
        one = ask(queue, "x")
        raw(place, "UPDATE pending_call SET arguments = '', until = ? WHERE key = ?", 9e9, one.key)
        found = queue.find(one.key)
        assert found is not None
        assert (found.is_open, found.arguments) == (False, "")


def test_who_has_another_key_sees_the_call_and_not_its_arguments(
    place: StateLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUENAME_VAULT_KEY", KEYS[0])
    with ApprovalQueue(place) as queue:
        one = ask(queue, "x")
    monkeypatch.setenv("TRUENAME_VAULT_KEY", KEYS[1])
    with ApprovalQueue(place) as queue:
        (found,) = queue.all()
        assert (found.key, found.is_open) == (one.key, True)
        assert "encrypted with a key that is not here" in found.arguments
        with pytest.raises(StoreError, match="unknown key"):
            queue.rotate()
        # Whoever makes the call again tells its arguments.
        assert ask(queue, "x") == one
        assert queue.all() == [one]


def test_the_key_is_changed_by_a_rotation(place: StateLocation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUENAME_VAULT_KEY", KEYS[0])
    with ApprovalQueue(place) as queue:
        known = [ask(queue, "x"), ask(queue, "y")]
    monkeypatch.setenv("TRUENAME_VAULT_KEY", f"{KEYS[1]},{KEYS[0]}")
    with ApprovalQueue(place) as queue:
        assert (queue.rotate(), queue.rotate()) == (2, 0)
    monkeypatch.setenv("TRUENAME_VAULT_KEY", KEYS[1])
    with ApprovalQueue(place) as queue:
        assert queue.all() == known


def test_without_a_usable_key_nothing_is_queued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUENAME_VAULT_KEY", "no key")
    with ApprovalQueue(tmp_path / "state.db") as queue:
        with pytest.raises(StoreError, match="not a key of 32 bytes") as refused:
            ask(queue, "x")
        assert (refused.value.code, queue.all()) == ("unusable", [])
