"""What is admitted with a ledger's record is what is admitted with all of its identities in memory."""

from __future__ import annotations

from contextlib import closing, suppress
from itertools import count
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.state_places import new_place
from truename import Ledger, ToolId
from truename.catalog import ServerIdentity
from truename.catalog.admit import IdentityRecord, admit
from truename.errors import LedgerError
from truename.ledger.ledger import MAX_CLAIMS, LedgerCore
from truename.ledger.sql import SqlLedger
from truename.storage import StateLocation
from truename.storage.sqlite import SqliteDatabase

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

    from truename.catalog.admit import RecordedIdentities

_numbers = count()
SERVERS = ("w", "W", "x")
# One of them is the digest of another.
NAMES = ("get", "Get", "s.get", "S.get", "set", "get-5fb9c3ab")
PLAIN, W = ServerIdentity(), ServerIdentity(integration="w")
SECOND = ServerIdentity(integration="x", version=2, versions={"get": 3})
IDENTITIES = (PLAIN, W, SECOND, ServerIdentity(version=2))

listings = st.dictionaries(st.sampled_from(SERVERS), st.lists(st.sampled_from(NAMES), unique=True), min_size=1)
declared = st.dictionaries(st.sampled_from(SERVERS), st.sampled_from(IDENTITIES), max_size=2)
present = st.sets(st.sampled_from(SERVERS))
lists = st.tuples(st.just("list"), listings, declared, present)
redirects = st.tuples(st.just("redirect"), st.integers(0, 99), st.integers(0, 99))
lives = st.lists(st.one_of(lists, lists, redirects), min_size=1, max_size=6)


def admitted(record: RecordedIdentities, step: tuple[object, ...]) -> list[object]:
    _, listed, identities, others = step
    assert isinstance(listed, dict)
    assert isinstance(identities, dict)
    assert isinstance(others, set)
    tools, notices = admit(listed.items(), record, identities, strict=False, present=sorted(others))
    return [*((tool.id, tool.origin) for tool in tools), *notices]


def lived(ledger: Ledger, life: list[tuple[object, ...]], *, at_once: bool) -> Iterator[list[object]]:
    """Yield what is admitted at each step, of a record that is asked, or of one that was made of everything."""
    for step in life:
        if step[0] == "redirect":
            ids = sorted(ledger.origins())
            if ids:
                old, new = (ids[int(str(number)) % len(ids)] for number in step[1:])
                ledger.redirect(str(old), new)
            continue
        record: RecordedIdentities = ledger.identity_record
        if at_once:
            record = IdentityRecord(ledger.bindings(), ledger.origins())
        found = admitted(record, step)
        bound = [one for one in found if isinstance(one, tuple) and isinstance(one[0], ToolId)]
        with suppress(LedgerError):
            ledger.remember(None, (), [(origin.server_id, origin.name, id) for id, origin in bound])
        yield found


def asked(place: StateLocation) -> Ledger:
    return Ledger(LedgerCore(SqlLedger(place, readonly=False, at_once=0), MAX_CLAIMS, readonly=False))


def compared(life: list[tuple[object, ...]], place: StateLocation) -> None:
    expected = list(lived(Ledger.memory(), life, at_once=True))
    assert list(lived(Ledger.memory(), life, at_once=False)) == expected
    with closing(asked(place)) as ledger:
        assert list(lived(ledger, life, at_once=False)) == expected


# Identities of three kinds in one server: which is the last one, there and while it is absent?
KINDS = {"a": PLAIN, "b": W, "c": SECOND}
MIXED: list[tuple[object, ...]] = [("list", {"x": [name]}, {"x": kind}, set()) for name, kind in KINDS.items()]


@example([*MIXED, ("list", {"x": ["d"], "w": ["get"]}, {}, set())])
@example([*MIXED, ("list", {"w": ["get"]}, {}, set())])
@example([*MIXED, ("list", {"w": ["get"]}, {}, {"x"})])
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(lives)
def test_a_record_that_is_asked_admits_the_same_tools_as_all_identities_at_once(
    tmp_path: Path, life: list[tuple[object, ...]]
) -> None:
    compared(life, StateLocation(tmp_path / f"{next(_numbers)}"))


@settings(max_examples=25, deadline=None)
@given(lives)
def test_it_admits_them_with_postgresql_too(life: list[tuple[object, ...]]) -> None:
    with new_place() as place:
        compared(life, place)


def test_to_admit_tools_reads_no_row_of_others_and_asks_once_for_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Ledger.open(tmp_path / "ledger")) as writer:
        recorded = [("s", f"n{number}", ToolId.parse(f"s/n{number}")) for number in range(3000)]
        writer.remember(None, (), [*recorded, ("other", "n1", ToolId.parse("other/n1"))])
    ledger = asked(StateLocation(tmp_path / "ledger"))
    read: list[int] = []
    rows = SqliteDatabase.rows

    def counted(data: SqliteDatabase, query: str, *values: object) -> list[tuple[object, ...]]:
        found = rows(data, query, *values)
        read.append(len(found))
        return found

    monkeypatch.setattr(SqliteDatabase, "rows", counted)
    names = ["N1", *(f"n{number}" for number in range(600)), *(f"m{number}" for number in range(600))]

    tools, notices = admit([("s", names), ("fresh", ["n1"])], ledger.identity_record, {}, strict=True)

    ledger.close()
    assert (len(tools), notices) == (len(names) + 1, ())
    # Bindings and origins of those on record, and what stands in the way of `N1`.
    assert sum(read) < 1300
    assert len(read) < 30
