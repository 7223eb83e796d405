"""A state database of PostgreSQL while its server, its network and its operators do what they do."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shared import ROOT
from tests.support.cli_ending import until
from tests.support.postgresql_server import PostgresqlServer
from tests.support.postgresql_wire import Wire
from tests.support.state_database import SCHEMA, put, words
from tests.support.state_places import new_directory, new_place, shared_server
from truename.auth.authorization_server.sessions import SignInSession, SignInSessions
from truename.auth.inbound import static_tokens
from truename.auth.inbound.authentication import Authenticators
from truename.auth.inbound.static_tokens import StaticTokenStore, create_token
from truename.errors import StoreError
from truename.ledger import open_ledger
from truename.ledger.sql import check_ledger
from truename.storage import (
    Schema,
    StateLocation,
    accept_state,
    check_state,
    compare_states,
    known_revision,
    open_database,
    postgresql,
)
from truename.storage import postgresql_link as link
from truename.storage.postgresql_link import unlink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from truename.storage import Database


@pytest.fixture
def place() -> Iterator[StateLocation]:
    with new_place() as location:
        yield location


@pytest.fixture
def server() -> Iterator[PostgresqlServer]:
    """Return a server that a test has for itself."""
    directory = new_directory()
    server = PostgresqlServer(directory / "server")
    server.create()
    server.start()
    yield server
    server.remove()
    directory.rmdir()


def direct(place: StateLocation) -> psycopg.Connection[tuple[object, ...]]:
    """Connect as an operator does."""
    data = psycopg.connect(shared_server().url, autocommit=True)
    data.execute(f"SET search_path = truename_{place.scope}".encode())
    return data


def cut_off(place: StateLocation) -> None:
    """End all sessions of a scope, as a server that is restarted does."""
    with closing(direct(place)) as data:
        query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s"
        data.execute(query, [f"truename_{place.scope}"])


def test_scopes_of_one_database_share_nothing() -> None:
    with (
        new_place() as one,
        new_place() as other,
        closing(open_database(one, SCHEMA)) as here,
        closing(open_database(other, SCHEMA)) as there,
    ):
        there.has_news()
        put(here, "a")
        assert (words(here), words(there), there.has_news()) == (["a"], [], False)
        assert here.revision().database != there.revision().database


def test_a_password_is_in_no_message_and_in_no_name() -> None:
    place = StateLocation.of("postgresql://ann:s3cret@127.0.0.1:1/names?scope=team_a&sslpassword=s3cret")
    assert place.name == "postgresql://ann@127.0.0.1:1/names?scope=team_a"
    assert "s3cret" not in repr(place)
    with pytest.raises(StoreError, match="it cannot be used") as refused:
        open_database(place, SCHEMA)
    assert (refused.value.code, "s3cret" in str(refused.value)) == ("unusable", False)


@pytest.mark.parametrize("scope", ["", "A", "1a", "a-b", "a;b", "a" * 41, "a&scope=b"])
def test_a_scope_is_a_plain_word(scope: str) -> None:
    with pytest.raises(StoreError, match="the scope in the URL is not valid"):
        StateLocation.of(f"postgresql://db.example/names?scope={scope}")


def test_without_its_package_it_is_refused_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("psycopg", "truename.storage.postgresql"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError, match=r"Run pip install 'truename\[postgres\]'") as refused:
        open_database("postgresql://db.example/names", SCHEMA)
    assert refused.value.code == "unusable"


_WRITER = """
import sys
from tests.support.state_database import SCHEMA, put
from truename.storage import open_database
file = open_database(sys.argv[1], SCHEMA)
for line in sys.stdin:
    put(file, line.strip())
    print("done", flush=True)
"""


def test_a_process_hears_of_another_s_change_without_asking(place: StateLocation) -> None:
    with closing(open_database(place, SCHEMA)) as file:
        file.has_news()
        # It listens from the second question on.
        assert not file.has_news()
        command = [sys.executable, "-c", _WRITER, str(place.address)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as writer:
            assert writer.stdin is not None
            assert writer.stdout is not None
            for text in ("a", "b", "c"):
                writer.stdin.write(f"{text}\n")
                writer.stdin.flush()
                assert writer.stdout.readline() == "done\n"
                until(file.is_behind)
                assert (file.has_news(), file.has_news(), words(file)[-1]) == (True, False, text)
            writer.stdin.close()


def test_tables_are_made_however_long_it_takes_also_by_a_thread_with_an_event_loop(
    place: StateLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It would not wait for anything else.
    monkeypatch.setattr(postgresql, "ANSWER_IN_LOOP", 0.0)

    async def opened() -> Database:
        return open_database(place, SCHEMA)

    with closing(asyncio.run(opened())) as file:
        put(file, "a")
        assert words(file) == ["a"]


def start_to_listen(here: Database, other: Database) -> None:
    """Return when a thread of ``here`` has its connection: it hears of a change that nobody asked for."""
    here.has_news()
    # It listens from the second question on.
    here.has_news()
    put(other, "first")
    until(here.is_behind)
    here.has_news()


def test_a_listener_that_is_cut_off_silently_is_not_relied_on(
    wire: Wire, over_wire: StateLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "POLL", 0.2)
    monkeypatch.setattr(link, "STALENESS", 0.5)
    with new_place() as place:
        there = StateLocation(url=place.url, scope=over_wire.scope)
        with closing(open_database(over_wire, SCHEMA)) as here, closing(open_database(there, SCHEMA)) as other:
            start_to_listen(here, other)
            wire.is_silent = True
            put(other, "a")
            wire.is_silent = False
            until(here.has_news)
            assert words(here) == ["a", "first"]


def test_while_nobody_listens_each_look_asks_the_server(
    wire: Wire, over_wire: StateLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "STALENESS", 3_600.0)
    connected = link.ServerLink._new

    def refusing(self: link.ServerLink) -> link.PostgresqlConnection:
        if threading.current_thread().name == "truename-listen":
            raise psycopg.OperationalError
        return connected(self)

    with new_place() as place:
        there = StateLocation(url=place.url, scope=over_wire.scope)
        with closing(open_database(over_wire, SCHEMA)) as here, closing(open_database(there, SCHEMA)) as other:
            start_to_listen(here, other)
            monkeypatch.setattr(link.ServerLink, "_new", refusing)
            wire.cut_all()
            put(other, "a")
            until(here.has_news)
            put(other, "b")
            assert here.has_news()
            assert words(here) == ["a", "b", "first"]


def test_while_the_server_is_away_what_is_known_goes_on_and_nothing_is_changed(server: PostgresqlServer) -> None:
    with closing(open_database(f"{server.url}&scope=a", SCHEMA)) as file:
        put(file, "a")
        file.has_news()
        server.stop(signal.SIGQUIT)
        assert (file.has_news(), file.is_behind()) == (False, False)
        began = time.monotonic()
        for _ in range(3):
            with pytest.raises(StoreError, match="it cannot be used") as refused:
                put(file, "b")
            assert refused.value.code == "unusable"
            with pytest.raises(StoreError, match="it cannot be used"):
                words(file)
        assert time.monotonic() - began < 10
        assert not file.has_news()
        server.start()
        until(lambda: not fails(lambda: put(file, "c")))
        assert words(file) == ["a", "c"]


def fails(what: Callable[[], object]) -> bool:
    try:
        what()
    except StoreError:
        return True
    return False


def test_an_event_loop_waits_for_no_server_that_does_not_answer(wire: Wire, over_wire: StateLocation) -> None:
    waited: list[float] = []

    async def use() -> None:
        end = time.monotonic() + 2.5
        while time.monotonic() < end:
            for what in (lambda: put(file, "a"), file.has_news, file.is_busy, lambda: words(file)):
                began = time.monotonic()
                fails(what)
                waited.append(time.monotonic() - began)

    with closing(open_database(over_wire, SCHEMA)) as file:
        file.has_news()
        put(file, "known")
        wire.is_silent = True
        asyncio.run(use())
        wire.is_silent = False
        wire.cut_all()
        until(lambda: not fails(lambda: words(file)))
    # The first waits for an answer that does not come, and all others for nothing.
    assert (max(waited) < 2.0, sum(seconds for seconds in waited if seconds > 0.1) < 2.0) == (True, True)


def test_a_commit_that_did_not_reach_the_server_stored_nothing(wire: Wire, over_wire: StateLocation) -> None:
    with closing(open_database(over_wire, SCHEMA)) as file:
        put(file, "before")
        file.has_news()
        wire.cut_before = b"COMMIT"
        with pytest.raises(StoreError, match="nothing was changed") as refused:
            put(file, "a")
        assert refused.value.code == "unusable"
        assert (words(file), file.has_news(), file.revision().number) == (["before"], False, 2)
        put(file, "a")
        assert words(file) == ["a", "before"]


def test_a_commit_whose_answer_was_lost_is_looked_up_and_counts(wire: Wire, over_wire: StateLocation) -> None:
    with closing(open_database(over_wire, SCHEMA)) as file:
        put(file, "before")
        file.has_news()
        wire.cut_after = b"COMMIT"
        put(file, "a")
        assert (words(file), file.has_news(), file.revision().number) == (["a", "before"], False, 3)


def test_a_commit_that_cannot_be_looked_up_is_said_to_be_unknown(
    wire: Wire, over_wire: StateLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("truename.storage.postgresql.PATIENCE", 0.3)
    with closing(open_database(over_wire, SCHEMA)) as file:
        put(file, "before")
        file.has_news()
        there, wire.cut_after, wire.is_down_then = wire.server, b"COMMIT", True
        with pytest.raises(StoreError, match="whether it was is not known") as refused:
            put(file, "a")
        assert "nothing was changed" not in str(refused.value)
        wire.server = there
        until(lambda: not fails(lambda: words(file)))
        assert words(file) == ["a", "before"]
        until(file.has_news)


def test_a_database_that_was_restored_from_an_older_copy_is_recognised_while_it_is_in_use(
    place: StateLocation,
) -> None:
    with closing(open_database(place, SCHEMA)) as file, closing(open_database(place, SCHEMA)) as other:
        put(file, "a")
        file.has_news()
        with closing(direct(place)) as operator:
            for statement in ("UPDATE part SET revision = 1", "DELETE FROM word", "DELETE FROM written"):
                operator.execute(statement.encode())
        cut_off(place)
        for _ in range(2):
            for use in (lambda: put(other, "b"), lambda: words(file)):
                with pytest.raises(StoreError, match="but it had 2 changes") as refused:
                    use()
                assert refused.value.code == "corrupt"
            assert not file.has_news()
    with pytest.raises(StoreError, match="it has 1 change, but it had 2 changes"):
        open_database(place, SCHEMA)
    before = accept_state(place)
    assert before is not None
    assert before.number == 1
    with closing(open_database(place, SCHEMA)) as file:
        put(file, "c")
        assert (words(file), file.revision().database, file.revision().number) == (["c"], before.database, 4)


def test_a_database_that_was_emptied_or_replaced_is_refused_until_it_is_accepted(place: StateLocation) -> None:
    with closing(open_database(place, SCHEMA)) as file:
        put(file, "a")
        known = file.revision()
    with closing(direct(place)) as operator:
        operator.execute(f"DROP SCHEMA truename_{place.scope} CASCADE".encode())
    with pytest.raises(StoreError, match="it is empty, but it had 2 changes"):
        open_database(place, SCHEMA)
    assert accept_state(place) is None
    assert known_revision(place) is None
    elsewhere = StateLocation(url=place.url, scope=place.scope, known=known)
    with closing(open_database(place, SCHEMA)) as file:
        assert file.revision().database != known.database
    with pytest.raises(StoreError, match="another database was put in its place"):
        open_database(elsewhere, SCHEMA)
    accept_state(elsewhere)
    with closing(open_database(elsewhere, SCHEMA)) as file:
        assert file.revision() > known


def test_a_server_that_only_answers_questions_is_read(place: StateLocation) -> None:
    with closing(open_database(place, SCHEMA)) as file:
        put(file, "a")
        with closing(direct(place)) as operator:
            role = f"reader_{place.scope}"
            operator.execute(f"CREATE ROLE {role} LOGIN".encode())
            operator.execute(f"ALTER ROLE {role} SET default_transaction_read_only = on".encode())
            operator.execute(f"GRANT ALL ON SCHEMA truename_{place.scope} TO {role}".encode())
            operator.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA truename_{place.scope} TO {role}".encode())
        assert place.url is not None
        standby = StateLocation(url=place.url.replace("truename@", f"{role}@"), scope=place.scope)
        with closing(open_database(standby, SCHEMA)) as reader:
            assert words(reader) == ["a"]
            with pytest.raises(StoreError, match="the server only answers questions") as refused:
                put(reader, "b")
            assert refused.value.code == "unusable"
        while unlink(standby):
            pass


def test_a_role_that_may_create_nothing_works_on_tables_that_another_made(place: StateLocation) -> None:
    role = f"plain_{place.scope}"
    assert place.url is not None
    plain = StateLocation(url=place.url.replace("truename@", f"{role}@"), scope=place.scope)
    with closing(direct(place)) as operator:
        operator.execute(f"CREATE ROLE {role} LOGIN".encode())
        with pytest.raises(StoreError, match=r"its role must not do that.*`truename state upgrade`"):
            open_database(plain, SCHEMA)
        open_database(place, SCHEMA).close()
        operator.execute(f"GRANT USAGE ON SCHEMA truename_{place.scope} TO {role}".encode())
        operator.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA truename_{place.scope} TO {role}".encode())
        with closing(open_database(plain, SCHEMA)) as file:
            put(file, "a")
            assert words(file) == ["a"]
        while unlink(plain):
            pass


def test_a_state_that_a_role_may_not_use_is_not_said_to_be_none(place: StateLocation) -> None:
    role = f"outsider_{place.scope}"
    assert place.url is not None
    outside = StateLocation(url=place.url.replace("truename@", f"{role}@"), scope=place.scope)
    with closing(direct(place)) as operator:
        operator.execute(f"CREATE ROLE {role} LOGIN".encode())
        with pytest.raises(StoreError, match="it has no state"):
            compare_states(outside, outside)
        open_database(place, SCHEMA).close()
        for use in (lambda: compare_states(outside, place), lambda: open_database(outside, SCHEMA, readonly=True)):
            with pytest.raises(StoreError, match=rf"role must not do that: .*truename_{place.scope};"):
                use()
        while unlink(outside):
            pass


def test_a_constraint_that_is_missing_is_found(place: StateLocation) -> None:
    with closing(open_database(place, SCHEMA)) as file:
        put(file, "a")
    assert check_state(place, (SCHEMA,)).problems == ()
    with closing(direct(place)) as operator:
        operator.execute(b"ALTER TABLE word DROP CONSTRAINT word_pkey")
    found = check_state(place, (SCHEMA,))
    assert found.parts == (("word", 2),)
    assert any("constraint word word_pkey is not as it was made" in problem for problem in found.problems)


def test_a_process_that_stops_in_the_middle_of_a_change_loses_its_turn(
    place: StateLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "_SESSION", link._SESSION.replace("20000", "300"))
    with closing(open_database(place, SCHEMA)) as stopped, closing(open_database(place, SCHEMA)) as other:

        def stop() -> None:
            with stopped.change() as data:
                data.execute("INSERT INTO word (text) VALUES ('a')")
                # It has the lock, so the other one gets its turn when the server ends the transaction.
                put(other, "b")
                put(stopped, "c")

        with pytest.raises(StoreError, match="nothing was changed") as refused:
            stop()
        assert refused.value.code in {"busy", "unusable"}
        assert words(other) == ["b"]


def test_an_old_server_is_refused(place: StateLocation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "_OLDEST_SERVER", 99_00_00)
    with pytest.raises(StoreError, match="Use PostgreSQL 15 or later"):
        open_database(place, Schema("word", SCHEMA.migrations))


VALUES = Schema("value", (("CREATE TABLE value (key TEXT PRIMARY KEY, whole INTEGER, real REAL, raw BLOB)",),))
texts = st.text(st.characters(codec="utf-8")).map(lambda text: text.replace("z", "\0").replace("y", "\ufdd0"))
rows = st.lists(
    st.tuples(
        texts,
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.floats(allow_nan=False),
        st.none() | st.binary(max_size=20),
    ),
    max_size=60,
    unique_by=lambda row: row[0],
)


@settings(max_examples=60, deadline=None)
@given(rows, st.booleans())
def test_every_value_comes_back_as_it_does_from_a_file(
    engines: tuple[Database, Database], found: list[tuple[object, ...]], has_bytes: bool
) -> None:
    wanted = found if has_bytes else [(*row[:3], None) for row in found]
    insert = "INSERT INTO value (key, whole, real, raw) VALUES (?, ?, ?, ?)"
    read = []
    for database in engines:
        with database.change() as data:
            data.execute("DELETE FROM value")
            data.executemany(insert, wanted)
        read.append(database.rows("SELECT key, whole, real, raw FROM value"))
        assert all(database.rows("SELECT whole FROM value WHERE key = ?", row[0]) == [(row[1],)] for row in wanted[:5])
    assert sorted(read[0], key=repr) == sorted(read[1], key=repr) == sorted(wanted, key=repr)


@pytest.fixture(scope="module")
def engines() -> Iterator[tuple[Database, Database]]:
    with (
        new_place() as place,
        closing(open_database(None, VALUES)) as one,
        closing(open_database(place, VALUES)) as two,
    ):
        yield one, two


@pytest.mark.parametrize("count", [1, 30])
@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, "\ud800"])
def test_what_no_database_takes_is_refused_by_both(
    engines: tuple[Database, Database], value: object, count: int
) -> None:
    rows: list[tuple[object, object]] = [(f"key {number}", number) for number in range(count)]
    rows[-1] = (value, 0) if isinstance(value, str) else ("last", value)
    for database in engines:
        with database.change() as data:
            data.execute("DELETE FROM value")
        with pytest.raises((OverflowError, UnicodeEncodeError)), database.change() as data:
            data.executemany("INSERT INTO value (key, whole) VALUES (?, ?)", rows)


@pytest.mark.parametrize("count", [3, 30, 6_000])
def test_many_rows_are_inserted_as_one_after_the_other(engines: tuple[Database, Database], count: int) -> None:
    upsert = "INSERT INTO value (key, whole) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET whole = excluded.whole"
    given = [(f"key {number % 7 if number % 11 == 0 else number}", number) for number in range(count)]
    for database in engines:
        with database.change() as data:
            data.execute("DELETE FROM value")
            data.executemany(upsert, given)
    here, there = (database.rows("SELECT key, whole FROM value ORDER BY key") for database in engines)
    assert here == there
    assert dict(here) == dict(given)


def test_a_configuration_that_is_read_again_while_the_server_is_away_locks_nobody_out(server: PostgresqlServer) -> None:
    place = StateLocation.of(f"{server.url}&scope=open")
    authenticators = Authenticators(StaticTokenStore(place, {}))
    with closing(authenticators):
        assert authenticators.are_open
        server.stop(signal.SIGQUIT)
        try:
            authenticators.reload(StaticTokenStore(place, {}), token=None, token_name="")
            assert authenticators.are_open
        finally:
            server.start()


def test_tokens_count_for_a_while_when_the_server_is_away_and_not_for_ever(
    server: PostgresqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, kept = create_token("ann", groups=(), scopes=(), expires=None)
    with StaticTokenStore(StateLocation.of(f"{server.url}&scope=a"), {}) as store:
        store.add(kept)
        assert store.holder(text, 0.0) == kept
        server.stop()
        assert store.holder(text, 0.0) == kept
        monkeypatch.setattr(static_tokens, "LONGEST_SILENCE", 0.0)
        with pytest.raises(StoreError, match="it has not answered for 0 minutes"):
            store.holder(text, 0.0)


def test_names_stay_with_their_tools_while_the_server_crashes_and_connections_are_cut(
    server: PostgresqlServer, tmp_path: Path
) -> None:
    shown: dict[str, set[str]] = {}
    with Wire(server) as wire, ExitStack() as ending:
        places = [f"{server.url}&scope=a", wire.url("a"), wire.url("a")]
        outputs = [tmp_path / name for name in "abc"]
        claimers = [claiming(place, path) for place, path in zip(places, outputs, strict=True)]
        for claimer in claimers:
            ending.callback(claimer.wait)
            ending.callback(claimer.kill)
        for fault in (*("before", "after", "cut", "crash") * 3, "stop", "end"):
            counts = [path.stat().st_size for path in outputs]
            until(lambda counts=counts: all(p.stat().st_size > n for p, n in zip(outputs, counts, strict=True)))  # type: ignore[misc]
            match fault:
                case "before":
                    wire.cut_before = b"COMMIT"
                case "after":
                    wire.cut_after = b"COMMIT"
                case "cut":
                    wire.cut_all()
                case _:
                    server.stop(signal.SIGQUIT if fault == "crash" else signal.SIGINT)
                    server.start()
        assert [claimer.poll() for claimer in claimers] == [None] * len(claimers)
    for path in outputs:
        for line in path.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                id, name = line.split()
                shown.setdefault(name, set()).add(id)
    assert len(shown) > 100
    assert {name: ids for name, ids in shown.items() if len(ids) > 1} == {}
    place = StateLocation.of(places[0])
    with closing(open_ledger(place, readonly=True)) as ledger:
        assert all(str(ledger.holder(name)) in ids for name, ids in shown.items())
    assert check_ledger(place) == ()


def claiming(place: str, path: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.storage.claiming", place, path.name]
    with path.open("wb") as file:
        return subprocess.Popen(command, stdout=file, cwd=ROOT)


def test_a_refresh_token_is_used_once_and_sessions_end_for_all_gateways(place: StateLocation) -> None:
    one, other = SignInSessions(place, lambda: 100.0), SignInSessions(place, lambda: 100.0)
    session = SignInSession(id="s", name="ann\0", issuer="https://idp.example", client="c", made=1, until=200)
    with closing(one), closing(other):
        assert one.begin(session) == frozenset()
        assert other.get("s") == session
        turned = one.turn(session)
        assert turned is not None
        assert (other.turn(session), other.get("s"), other.all()) == (None, turned, (turned,))
        assert (other.end("s"), one.get("s"), one.end("s")) == (True, None, False)


def test_a_change_goes_no_further_after_a_statement_that_failed(place: StateLocation) -> None:
    with closing(open_database(place, SCHEMA)) as file:
        put(file, "a")

        def go_on() -> None:
            with file.change():
                assert fails(lambda: put(file, "a"))
                put(file, "b")

        with pytest.raises(StoreError, match="an earlier statement of the change failed") as refused:
            go_on()
        assert (refused.value.code, words(file)) == ("unusable", ["a"])
