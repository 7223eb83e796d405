"""A ledger in a database answers as one in memory does, however much of it is in memory."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from itertools import count
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.ledger.stories import claim, show
from tests.ledger.stories import settings as made
from tests.support.ledger_journal import journal
from tests.support.state_places import new_place
from truename import Ledger, ToolId
from truename.catalog.admit import IdentityRecord, RecordedIdentities
from truename.errors import LedgerError
from truename.ledger import Bind, Event, LedgerSettings, Retire, open_ledger
from truename.ledger.ledger import MAX_CLAIMS, LedgerCore
from truename.ledger.sql import SqlLedger, check_ledger
from truename.ledger.store import MemoryLedger
from truename.storage import Schema, StateLocation, open_database

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAMES = ("x", "X", "a_b", "a.b", "a@1/x@1", "b/y")
IDS = tuple(map(ToolId.parse, ("a/x", "a@2/x", "b/y", "b/s.z")))
SCOPES = ("", "only/a")
_numbers = count()

names, ids, scopes = st.sampled_from(NAMES), st.sampled_from(IDS), st.sampled_from(SCOPES)
steps = st.one_of(
    st.tuples(st.just("claim"), scopes, names, ids, st.sampled_from(("openai", "cursor"))),
    st.tuples(st.just("redirect"), scopes, names, ids),
    st.tuples(st.just("retire"), scopes, names),
    st.tuples(st.just("break"), scopes, names, st.sampled_from((None, *NAMES)), st.sampled_from((None, *IDS))),
    st.tuples(st.just("restyle"), scopes, st.sampled_from(("prefixed", "on-conflict"))),
    st.tuples(st.just("bind"), st.sampled_from("ab"), st.sampled_from("xyz"), ids),
    st.tuples(st.just("own"), names, st.sampled_from("ab")),
)

_DO: dict[str, Callable[..., None]] = {
    "claim": lambda ledger, scope, name, id, table: ledger.scoped(scope).record(
        [claim(name, str(id), table, id.integration)]
    ),
    "redirect": lambda ledger, scope, name, id: ledger.scoped(scope).redirect(name, id),
    "retire": lambda ledger, scope, name: ledger.scoped(scope).retire(name),
    "break": lambda ledger, scope, name, new, id: ledger.scoped(scope).break_name(name, new, id=id),
    "restyle": lambda ledger, scope, style: ledger.scoped(scope).restyle(made(style)),
    "bind": lambda ledger, server, name, id: ledger.remember(None, (), [(server, name, id)]),
    "own": lambda ledger, uri, server: ledger.own([(uri, server)]),
}


def done(ledger: Ledger, step: tuple[object, ...]) -> str:
    """Take a step, and return the code of its refusal."""
    try:
        _DO[str(step[0])](ledger, *step[1:])
    except LedgerError as error:
        return error.code
    return ""


def answers(ledger: Ledger) -> dict[str, object]:
    """Return all that naming asks a ledger."""
    found: dict[str, object] = {
        "bindings": dict(ledger.bindings()),
        "bindings of a": dict(ledger.bindings_of(["a"])),
        "origins": dict(ledger.origins()),
        "order": ledger.pinned(reversed(IDS)),
        "owners": dict(ledger.owners),
        "scopes": set(ledger.scopes),
        "record": asked_of(ledger.identity_record),
    }
    for scope in SCOPES:
        one = ledger.scoped(scope)
        found[f"in {scope}"] = {
            "style": one.settings and (one.settings.style, one.server_names),
            "withdrawn": {name: standing._replace(since="") for name, standing in one.withdrawn.items()},
            "held": {table: dict(one.held(table)) for table in ("openai", "cursor")},
            "first": [one.first_version(id) for id in IDS],
            "names": [
                (
                    *(one.standing(name), one.standing_folded(name.lower()), one.holder(name.lower()), one.parts(name)),
                    *(one.held_first(name.lower()), one.is_withdrawn(name.lower()), set(one.spellings(name.lower()))),
                    *(one.shown_in(name, "openai"), [one.bars(name, id) for id in IDS]),
                    [one.is_heir(name.lower(), id) for id in IDS],
                    [(event.kind, event.plain() | {"at": ""}) for event in one.history(name)],
                )
                for name in NAMES
            ],
        }
    return _without_times(found)


def asked_of(record: RecordedIdentities) -> dict[str, object]:
    """Return all that the admission of tools asks about recorded identities."""
    return {
        "origins": record.origins(IDS),
        "servers": [set(record.servers_with(integration)) for integration in ("a", "b", "c")],
        **{
            server: (
                *(record.bound(server, "xyz"), [record.taken(server, (id,)) for id in IDS], record.taken(server, IDS)),
                [record.last(server, version) for version in (None, 1, 2)],
            )
            for server in "abc"
        },
    }


def _ordered(value: object) -> object:
    """Return a value in which no order is left that means nothing."""
    if isinstance(value, dict):
        return sorted(((repr(key), _ordered(one)) for key, one in value.items()), key=repr)
    if isinstance(value, set):
        return sorted(map(repr, value))
    return [_ordered(one) for one in value] if isinstance(value, list | tuple) else value


def _without_times(found: dict[str, object]) -> dict[str, object]:
    return {key: re.sub(r"\d{4}-\d\d-\d\dT[0-9:+]*", "", repr(_ordered(value))) for key, value in found.items()}


def lazy(path: StateLocation | Path, *, readonly: bool = False) -> Ledger:
    """Open a ledger of which every row is read when it is asked for, as of a large one."""
    store = SqlLedger(path, readonly=readonly, patience=1.0, at_once=0)
    return Ledger(LedgerCore(store, MAX_CLAIMS, readonly=readonly))


stories = st.lists(st.tuples(st.integers(0, 2), steps), max_size=25)


def tell(story: list[tuple[int, tuple[object, ...]]], path: StateLocation) -> None:
    """Take the steps of a story in memory and by two writers in a database, and compare all answers."""
    memory = Ledger.memory()
    whole, asked = open_ledger(path), lazy(path)
    for writer, step in story:
        if writer == 2:
            whole.close()
            whole = open_ledger(path)
        assert done(memory, step) == done((whole, asked, whole)[writer], step)
    expected = answers(memory)
    found, made_at_once = (
        asked_of(memory.identity_record),
        asked_of(IdentityRecord(memory.bindings(), memory.origins())),
    )
    # Servers that had an identity of an integration before are in a ledger's only, and are asked what they have now.
    assert found | {"servers": ()} == made_at_once | {"servers": ()}
    for ledger in (whole, asked):
        ledger.refresh()
        assert answers(ledger) == expected
        ledger.close()
    for ledger in (open_ledger(path), lazy(path), lazy(path, readonly=True)):
        assert answers(ledger) == expected
        ledger.close()
    assert check_ledger(path) == ()


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(stories)
def test_it_answers_as_one_in_memory_whoever_writes_and_however_much_was_read(
    tmp_path: Path, story: list[tuple[int, tuple[object, ...]]]
) -> None:
    tell(story, StateLocation(tmp_path / f"{next(_numbers)}"))


@settings(max_examples=25, deadline=None)
@given(stories)
def test_it_answers_so_in_postgresql_too(story: list[tuple[int, tuple[object, ...]]]) -> None:
    with new_place() as place:
        tell(story, place)


def test_a_claim_that_is_repeated_is_kept_once_and_every_holder_for_ever(ledger: Ledger) -> None:
    for _ in range(3):
        show(ledger, "a/x")
        ledger.restyle(made("on-conflict"))
        show(ledger, "a/x", style="on-conflict")
        ledger.restyle(made("prefixed"))

    assert [event.kind for event in ledger.history("a_x")] == ["claim"]
    ledger.redirect("a_x", "b/y")
    ledger.record([claim("a_x", "b/y", server="b")])
    ledger.redirect("a_x", "a/x")
    ledger.record([claim("a_x", "a/x")])
    assert [str(getattr(event, "id", "")) for event in ledger.history("A_X")] == [
        *("a@1/x@1", "b@1/y@1", "b@1/y@1", "a@1/x@1")
    ]


def test_rows_of_a_large_ledger_are_read_when_they_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    writer = Ledger.open(path)
    writer.record([made(), *(claim(f"n{number}", f"a/n{number}") for number in range(50))])
    writer.remember(None, (), [("a", f"n{number}", ToolId.parse(f"a/n{number}")) for number in range(50)])
    ledger = lazy(path)

    held, bindings = ledger.held("openai"), ledger.bindings()
    assert (held.get(ToolId.parse("a/n7")), held.get(ToolId.parse("a/x")), ToolId.parse("a/n8") in held) == (
        *("n7", None),
        True,
    )
    with pytest.raises(KeyError):
        bindings["a", "n50"]
    assert (len(bindings), len(list(held)), len(held.values()), len(dict(bindings))) == (50, 50, 50, 50)
    assert dict(held.items()) == dict(held)
    assert repr(ledger.scoped("none").held("openai")) == "{}"
    writer.record([claim("n50", "a/n50")])
    assert ledger.refresh()
    assert held[ToolId.parse("a/n50")] == "n50"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger_holder SET present = 'no id'",
        'UPDATE ledger_settings SET body = \'{"event": "retire", "name": "x"}\'',
        "UPDATE ledger_event SET body = 'no event'",
    ],
)
def test_a_row_that_means_nothing_is_refused(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "ledger"
    writer = Ledger.open(path)
    writer.record([made(), claim("x", "a/x")])
    writer.close()
    with closing(sqlite3.connect(path)) as data:
        data.execute(statement)
        data.commit()

    with pytest.raises(LedgerError, match=r"it is damaged \(a row cannot be read") as caught:
        Ledger.open(path).history("x")
    assert caught.value.code == "corrupt"


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(steps, max_size=25))
def test_a_check_finds_nothing_in_a_ledger_that_was_only_recorded_in(
    tmp_path: Path, story: list[tuple[object, ...]]
) -> None:
    path = tmp_path / f"{next(_numbers)}"
    with closing(Ledger.open(path)) as ledger:
        for step in story:
            done(ledger, step)
    assert check_ledger(StateLocation(path)) == ()


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE ledger_event SET once = once || 'x' WHERE number = 2", "event 2 of the ledger is damaged"),
        (
            "UPDATE ledger_holder SET first = 'a@1/z@1' WHERE fold = 'x'",
            "rows of ledger_holder that contradict the ledger's events: 1",
        ),
        ("DELETE FROM ledger_spelling", "rows of ledger_spelling that contradict the ledger's events: 2"),
        (
            "UPDATE ledger_holder SET present = 'a@1/y@1' WHERE fold = 'x'",
            "rows of ledger_holder that name a tool that never had the name: 1",
        ),
        ("UPDATE ledger_shown SET name = 'y'", "rows of ledger_shown whose name was never given: 1"),
        ("DELETE FROM ledger_withdrawn", "rows of ledger_withdrawn that contradict the ledger's events: 2"),
    ],
)
def test_a_check_finds_rows_that_contradict_the_history(tmp_path: Path, statement: str, problem: str) -> None:
    path = tmp_path / "ledger"
    with closing(Ledger.open(path)) as writer:
        writer.record([made(), claim("x", "a/x"), claim("y", "a/y"), Retire(name="y")])
    with closing(sqlite3.connect(path)) as data:
        data.execute(statement)
        data.commit()
    assert any(problem in found for found in check_ledger(StateLocation(path)))


def test_a_record_made_of_what_is_no_longer_so_is_not_kept(ledger: Ledger) -> None:
    since = ledger.revision
    bound = [("a", "x", ToolId.parse("a/x"))]
    assert ledger.remember(None, (), bound, since=since)
    assert not ledger.remember(None, [claim("x", "a/x")], (), since=since)
    assert ledger.holder("x") is None
    assert ledger.refresh()
    assert ledger.remember(None, [claim("x", "a/x")], (), since=ledger.revision)


def test_a_store_keeps_nothing_under_another_revision(tmp_path: Path) -> None:
    events: list[Event] = [Bind(server="a", name="x", id=IDS[0])]
    store = SqlLedger(tmp_path / "ledger", readonly=False, patience=1.0)
    assert not store.append(events, 7)
    assert store.append(events, 0)
    assert (store.snapshot().revision, store.snapshot().origin(IDS[0])) == (1, ("a", "x"))
    memory = MemoryLedger()
    assert (memory.append(events, 7), memory.append(events, 1), memory.snapshot().revision) == (False, True, 2)
    assert (memory.has_news(), memory.is_busy()) == (False, False)


def test_an_event_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    store = SqlLedger(tmp_path / "ledger", readonly=False)
    unwritable = LedgerSettings(style="prefixed", server_name="x", aliases={"a": object()})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="not JSON serializable"):
        store.append([Bind(server="a", name="x", id=IDS[0]), unwritable], 0)

    state = store.snapshot()
    assert (state.revision, state.origin(IDS[0]), state.scope("").settings) == (0, None, None)


def test_an_event_of_no_kind_changes_nothing(ledger: Ledger) -> None:
    ledger.record([Event()])

    assert (dict(ledger.withdrawn), dict(ledger.bindings()), ledger.settings) == ({}, {}, None)


def test_nobody_else_is_looked_for_within_a_transaction(ledger: Ledger) -> None:
    with ledger.transaction():
        ledger.record([claim("x", "a/x")])
        ledger.catch_up()

    assert ledger.holder("x") == IDS[0]


def test_a_reader_of_a_database_without_a_ledger_finds_nothing_until_there_is_one(tmp_path: Path) -> None:
    other = open_database(tmp_path / "state.db", Schema("word", (("CREATE TABLE word (text TEXT)",),)))
    reader = open_ledger(tmp_path / "state.db", readonly=True)
    assert (reader.revision, reader.history("x")) == (0, ())
    open_ledger(tmp_path / "state.db").record([claim("x", "a/x")])

    assert reader.refresh()
    assert reader.holder("x") == IDS[0]
    other.close()


@pytest.mark.parametrize("kind", ["journal", "database"])
def test_a_ledger_of_an_earlier_version_is_imported_once_and_kept(tmp_path: Path, kind: str) -> None:
    former = tmp_path / "names.ledger"
    if kind == "journal":
        former.write_bytes(journal([claim("x", "a/x"), Bind(server="a", name="x", id=IDS[0])]))
    else:
        writer = Ledger.open(former)
        writer.record([claim("x", "a/x"), Bind(server="a", name="x", id=IDS[0])])
        writer.close()
    before = former.read_bytes()
    where = StateLocation(tmp_path / "state.db", {"ledger": former})
    reader = open_ledger(where, readonly=True)
    assert (reader.holder("x"), (tmp_path / "state.db").exists()) == (IDS[0], False)

    ledger = open_ledger(where)
    assert (ledger.holder("x"), dict(ledger.bindings())) == (IDS[0], {("a", "x"): IDS[0]})
    assert [event.kind for event in ledger.history("X")] == ["claim"]
    ledger.record([claim("y", "b/y")])
    ledger.close()
    again = open_ledger(where)
    assert (again.holder("x"), again.holder("y"), open_ledger(where, readonly=True).holder("y")) == (
        *(IDS[0], IDS[2]),
        IDS[2],
    )
    assert former.read_bytes() == before


def test_names_that_an_earlier_version_gave_after_the_import_are_not_given_again(tmp_path: Path) -> None:
    former = tmp_path / "names.ledger"
    former.write_bytes(journal([claim("x", "a/x")]))
    where = StateLocation(tmp_path / "state.db", {"ledger": former})
    open_ledger(where).close()
    former.write_bytes(journal([claim("x", "a/x"), claim("y", "b/y")]))
    for readonly in (False, True):
        with pytest.raises(LedgerError, match="an earlier Truename wrote") as refused:
            open_ledger(where, readonly=readonly)
        assert refused.value.code == "corrupt"


@pytest.mark.parametrize("kind", ["journal", "database", "text"])
def test_a_damaged_ledger_of_an_earlier_version_is_refused_and_nothing_of_it_imported(
    tmp_path: Path, kind: str
) -> None:
    former = tmp_path / "names.ledger"
    if kind == "journal":
        former.write_bytes(journal([claim(f"n{number}", "a/x") for number in range(9)]))
        former.write_bytes(former.read_bytes().replace(b"n7", b"m7"))
    elif kind == "database":
        Ledger.open(former).close()
        with closing(sqlite3.connect(former)) as data:
            data.execute("DROP TABLE ledger_owner")
    else:
        former.write_text("no ledger at all " * 99)
    where = StateLocation(tmp_path / "state.db", {"ledger": former})
    for _ in range(2):
        with pytest.raises(LedgerError) as refused:
            open_ledger(where)
        assert (refused.value.code, refused.value.path) == ("corrupt", former)
    former.rename(tmp_path / "moved")

    assert open_ledger(where).history("n0") == ()


def test_a_ledger_that_is_gone_is_not_begun_anew(tmp_path: Path) -> None:
    Ledger.open(tmp_path / "ledger").close()
    (tmp_path / "ledger").unlink()
    for readonly in (False, True):
        with pytest.raises(LedgerError, match="it is missing, but it had 1 change"):
            Ledger.open(tmp_path / "ledger", readonly)


def test_without_a_file_a_ledger_ends_with_its_process() -> None:
    open_ledger(None).record([claim("x", "a/x")])

    assert open_ledger(None).holder("x") is None


def test_a_store_that_is_open_for_reading_takes_no_events(tmp_path: Path) -> None:
    events: list[Event] = [Bind(server="a", name="x", id=IDS[0])]
    absent = SqlLedger(tmp_path / "none", readonly=True)
    Ledger.open(tmp_path / "ledger").close()
    for reader in (absent, SqlLedger(tmp_path / "ledger", readonly=True)):
        with pytest.raises(LedgerError) as refused:
            reader.append(events, 0)
        assert refused.value.code == "readonly"
        assert (reader.snapshot().revision, reader.is_busy()) == (0, False)
        reader.close()
    assert not (tmp_path / "none").exists()
