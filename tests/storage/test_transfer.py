"""A state is copied between files and PostgreSQL whole or not at all, and comes back as it was."""

from __future__ import annotations

from contextlib import closing, suppress
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.state_database import SCHEMA, put, words
from tests.support.state_places import new_place
from truename.auth import vault
from truename.auth.authorization_server import sessions
from truename.auth.inbound import static_tokens
from truename.errors import StoreError
from truename.gateway.http import session_record
from truename.ledger import sql as ledger
from truename.ledger.sql import check_ledger
from truename.policy import sql as approvals
from truename.storage import (
    Schema,
    StateLocation,
    check_state,
    compare_states,
    copy_state,
    insert,
    open_database,
)
from truename.trust import approval_queue, pins

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow


ALL = (
    *(ledger.SCHEMA, pins.SCHEMA, approvals.SCHEMA, approval_queue.SCHEMA, static_tokens.SCHEMA),
    *(sessions.SCHEMA, vault.SCHEMA, session_record.SCHEMA),
)
_numbers = count()
texts = st.text(max_size=12).map(lambda text: text.encode("utf-8", "replace").decode())
VALUES = {
    "TEXT": texts | st.sampled_from(["\0", "\ufdd0", "a\tb\n", "é" * 50]),
    "INTEGER": st.integers(-(2**63), 2**63 - 1),
    "REAL": st.floats(allow_nan=False),
    "BLOB": st.binary(max_size=30),
}


def filled(place: StateLocation, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
    """Put rows of any values into all tables of a file."""
    for schema in ALL:
        with closing(open_database(place, schema)) as data:
            for table in schema.tables:
                columns = dict(data.rows("SELECT name, type FROM pragma_table_info(?) ORDER BY cid", table))
                for row in draw(st.lists(st.tuples(*(VALUES[kind] for kind in columns.values())), max_size=3)):
                    # What the constraints forbid is not stored.
                    with suppress(StoreError), data.change() as change:
                        change.execute(insert(table, tuple(columns)), row)


@settings(max_examples=12, deadline=None, suppress_health_check=[*HealthCheck])
@given(data=st.data())
def test_any_state_that_goes_to_postgresql_and_back_is_equal(tmp_path: Path, data: st.DataObject) -> None:
    number = next(_numbers)
    first, last = StateLocation(tmp_path / f"{number}.db"), StateLocation(tmp_path / f"{number}-back.db")
    filled(first, data.draw)
    with new_place() as there:
        copied = copy_state(first, there, ALL)
        assert compare_states(first, there) == ()
        back = copy_state(there, last, ALL)
    assert compare_states(first, last) == ()
    assert copied == back
    for schema in ALL:
        for table in schema.tables:
            with closing(open_database(first, schema)) as one, closing(open_database(last, schema)) as other:
                query = f"SELECT * FROM {table}"
                assert sorted(map(repr, one.rows(query))) == sorted(map(repr, other.rows(query)))


def test_a_copy_goes_on_where_its_source_was(tmp_path: Path, place: StateLocation) -> None:
    source = StateLocation(tmp_path / "source.db")
    with closing(open_database(source, SCHEMA)) as file:
        put(file, "a", "b")
        before = file.revision()
    told: list[tuple[str, int]] = []
    copied = copy_state(source, place, (SCHEMA,), lambda table, rows: told.append((table, rows)))
    assert (copied.revision, copied.rows, told) == (before, 2, [("word", 2), ("imported", 0)])
    with closing(open_database(place, SCHEMA)) as file:
        assert (words(file), file.revision()) == (["a", "b"], before)
        put(file, "c")
        assert file.revision() == (before.database, before.number + 1)
    assert check_state(place, (SCHEMA,)).problems == ()
    found = compare_states(source, place)
    assert any("word: 2 rows are not the 3 rows of the other" in sentence for sentence in found)


def test_a_place_that_has_a_state_is_left_alone(tmp_path: Path, place: StateLocation) -> None:
    source = StateLocation(tmp_path / "source.db")
    for one, text in ((source, "a"), (place, "b")):
        with closing(open_database(one, SCHEMA)) as file:
            put(file, text)
    with pytest.raises(StoreError, match=r"exists already|has a state already"):
        copy_state(source, place, (SCHEMA,))
    with closing(open_database(place, SCHEMA)) as file:
        assert words(file) == ["b"]


def test_a_copy_that_fails_leaves_nothing(tmp_path: Path, place: StateLocation) -> None:
    source = StateLocation(tmp_path / "source.db")
    with closing(open_database(source, SCHEMA)) as file:
        put(file, "a")

    def changes(table: str, _: int) -> None:
        if table != "word":
            return
        with closing(open_database(source, SCHEMA)) as file:
            put(file, "b")

    with pytest.raises(StoreError, match="it was changed while it was copied"):
        copy_state(source, place, (SCHEMA,), changes)
    with pytest.raises(KeyboardInterrupt):
        copy_state(source, place, (SCHEMA,), interrupted)
    assert [path.name for path in tmp_path.iterdir() if "draft" in path.name or path.name.startswith("state")] == []
    copy_state(source, place, (SCHEMA,))
    with closing(open_database(place, SCHEMA)) as file:
        assert words(file) == ["a", "b"]


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_tables_that_are_not_known_are_never_left_behind(tmp_path: Path, place: StateLocation) -> None:
    source = StateLocation(tmp_path / "source.db")
    with closing(open_database(source, SCHEMA)) as file:
        put(file, "a")
    open_database(source, Schema("more", (("CREATE TABLE more (x TEXT)",),))).close()
    with pytest.raises(StoreError, match=r"newer Truename \(more 1\)"):
        copy_state(source, place, (SCHEMA,))
    later = Schema("word", (*SCHEMA.migrations, ("ALTER TABLE word ADD COLUMN note TEXT",)))
    with pytest.raises(StoreError, match=r"older Truename \(word 1\)"):
        copy_state(source, place, (later, Schema("more", (("CREATE TABLE more (x TEXT)",),))))


def test_names_that_moved_are_still_whole(tmp_path: Path) -> None:
    from tests.ledger.stories import show  # noqa: PLC0415 - naming, which the other tests here do not need
    from truename.ledger import open_ledger  # noqa: PLC0415

    source, back = StateLocation(tmp_path / "source.db"), StateLocation(tmp_path / "back.db")
    with closing(open_ledger(source)) as one:
        show(one, "a/get", "b/get", style="on-conflict")
        one.retire("b_get")
        known = {name: one.standing(name) for name in ("b_get", "a_get")}
    with new_place() as there:
        copy_state(source, there, ALL)
        assert check_ledger(there) == ()
        with closing(open_ledger(there)) as one:
            assert {name: one.standing(name) for name in known} == known
        copy_state(there, back, ALL)
    assert check_ledger(back) == ()
    with closing(open_ledger(back)) as one:
        assert {name: one.standing(name) for name in known} == known
