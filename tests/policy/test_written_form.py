"""The written form: imported once from an earlier version, refused with its place when it is damaged or not ours."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policy.calls import ADA, search_of
from truename.errors import CallRepeated, StoreError
from truename.policy import Approvals, Caller, MemoryStore, SqlApprovalStore
from truename.policy.approvals_json import read_book, written_book
from truename.storage import StateLocation

if TYPE_CHECKING:
    from pathlib import Path

GOOD_GRANT: dict[str, Any] = {
    "key": "k1",
    "approved": True,
    "scope": "always",
    "id": "docs@1/search@1",
    "digest": "sha256:0",
    "server": "docs",
    "name": "search",
    "principal": "ada",
}
GOOD_CALL: dict[str, Any] = {
    "id": "docs@1/search@1",
    "principal": "ada",
    "call_id": "c1",
    "arguments": "sha256:0",
    "state": "seen",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "approvals.json"


def written(path: Path, **content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"truename-approvals": 1, "grants": [], "calls": [], **content}))
    return path


def imported(path: Path) -> SqlApprovalStore:
    """Open a database that is new, where an earlier version left this file."""
    return SqlApprovalStore(StateLocation(path.with_name("state.db"), {"approval": path}))


DAMAGED: list[tuple[str, str, str]] = [
    ("", "line 1", "it is not JSON (Expecting value)"),
    ('{"truename-approvals": 1,\n"grants": [', "line 2", "it is not JSON (Expecting value)"),
    ("[]", "", "it holds no approvals of Truename"),
    ('{"mcpServers": {}}', "truename-approvals", "it holds no approvals of Truename"),
    ('{"truename-approvals": true}', "truename-approvals", "it holds no approvals of Truename"),
    ('{"truename-approvals": 0}', "truename-approvals", "it holds no approvals of Truename"),
    ('{"truename-approvals": 1, "truename-approvals": 1}', "truename-approvals", "it occurs twice"),
    ("[" * 99_999, "", "it is not JSON (RecursionError)"),
    ("\udcff", "", "it is not JSON (UnicodeDecodeError)"),
    ('{"truename-approvals": 1}', "grants", "it is not a list of at most 20,000"),
    ('{"truename-approvals": 1, "grants": []}', "calls", "it is not a list of at most 10,000"),
    ('{"truename-approvals": 1, "grants": [], "calls": [], "more": 1}', "more", "it is not a field of this schema"),
    ('{"truename-approvals": 1, "grants": [7], "calls": []}', "grants[0]", "it is not an object"),
]


@pytest.mark.parametrize(("text", "key", "problem"), DAMAGED)
def test_a_damaged_file_is_refused_with_its_place_and_kept(path: Path, text: str, key: str, problem: str) -> None:
    path.parent.mkdir()
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(StoreError) as caught:
        Approvals(imported(path))

    assert (caught.value.code, caught.value.key, caught.value.problem) == ("corrupt", key, problem)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == text.encode("utf-8", "surrogateescape")


FIELDS: list[tuple[str, str, Any, str]] = [
    ("grants", "key", "", "it is missing"),
    ("grants", "key", 7, "it is not a text of at most 8,192 characters"),
    ("grants", "approved", "true", "it is neither true nor false"),
    ("grants", "approved", None, "it is neither true nor false"),
    ("grants", "scope", "for ever", "'for ever' is not one of call, arguments, session, always"),
    ("grants", "scope", None, "it is not a text of at most 8,192 characters"),
    ("grants", "id", "docs", "'docs' is not a tool id: there is no '/' between integration and tool"),
    ("grants", "id", "Docs/search", "'Docs/search' is not written as ids are"),
    ("grants", "digest", "", "it is missing"),
    ("grants", "principal", ["ada"], "it is not a text of at most 8,192 characters"),
    ("grants", "message", "x" * 9_000, "it is not a text of at most 8,192 characters"),
    ("grants", "expires", "soon", "it is not a field of this schema"),
    ("calls", "id", "x", "'x' is not a tool id: there is no '/' between integration and tool"),
    ("calls", "call_id", "", "it is missing"),
    ("calls", "arguments", "", "it is missing"),
    ("calls", "state", "gone", "'gone' is not one of seen, running, done, failed"),
    ("calls", "agent", "a", "it is not a field of this schema"),
]


# As the first version wrote it; every later one has to read it, digests and all.
FIRST_SCHEMA = """{
"truename-approvals": 1,
"revision": "bbbd003fed388186",
"grants": [
{"key": "463dc01c026364fe", "approved": true, "scope": "always", "id": "docs@1/search@1", "digest": "DIGEST", \
"shape": "SHAPE", "server": "docs", "name": "search", "principal": "ada", "agent": "writer", "session": "monday", \
"call_id": "c1", "arguments": "ARGUMENTS", "by": "eve", "at": "2026-11-22T06:13:32+00:00", "wire_name": "search"},
{"key": "e79e2f99a14a0c9b", "approved": false, "scope": "call", "id": "docs@1/search@1", "digest": "DIGEST", \
"shape": "SHAPE", "server": "docs", "name": "search", "principal": "ada", "agent": "writer", "session": "monday", \
"call_id": "c2", "arguments": "NONE", "message": "no", "at": "2026-11-22T06:13:32+00:00", "wire_name": "search"}
],
"calls": [
{"id": "docs@1/search@1", "principal": "ada", "session": "monday", "call_id": "c1", "arguments": "ARGUMENTS", \
"state": "seen", "at": "2026-11-22T06:13:32+00:00"},
{"id": "docs@1/search@1", "principal": "ada", "session": "monday", "call_id": "c3", "arguments": "NONE", \
"state": "done", "at": "2026-11-22T06:13:32+00:00"}
]
}
"""
DIGESTS = {
    "DIGEST": "sha256:d0d966c4bfc842ac3c1b64a4140b66e66a1b5b1487b618d77694e8392dbe6bf7",
    "SHAPE": "sha256:3d0ab6531f113ff56d6bc49caac1719857728c886812715123a41cfd218305a6",
    "ARGUMENTS": "sha256:6ae0f660046dadcf5fe8462c0e00a062db4c8d67be82f4098c5ea4208d19b076",
    "NONE": "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
}


def test_what_the_first_version_wrote_is_understood(path: Path) -> None:
    text = FIRST_SCHEMA
    for word, digest in DIGESTS.items():
        text = text.replace(word, digest)
    path.parent.mkdir()
    path.write_text(text)
    approvals = Approvals(imported(path))

    assert approvals.status(search_of("docs", "c9")).state == "approved"
    assert approvals.status(search_of("docs", "c2")).state == "rejected"
    with pytest.raises(CallRepeated, match="it is done"):
        approvals.begin(search_of("docs", "c3"))
    with pytest.raises(CallRepeated, match="another call"):
        approvals.begin(search_of("docs", "c1"))


def test_a_file_of_an_earlier_version_is_imported_once_and_kept(path: Path) -> None:
    written(path, grants=[GOOD_GRANT], calls=[GOOD_CALL])
    before = path.read_bytes()
    store = imported(path)
    with store.change() as book:
        assert [grant.key for grant in book.grants()] == ["k1"]
        book.drop("k1")
    store.close()

    assert imported(path).read().grants() == []
    assert path.read_bytes() == before


def test_a_damaged_file_of_an_earlier_version_leaves_nothing_half_imported(path: Path) -> None:
    written(path, grants=[GOOD_GRANT], calls=[{**GOOD_CALL, "state": "gone"}])
    for _ in range(2):
        with pytest.raises(StoreError, match="restore it from a copy, or move it away to start without it"):
            imported(path)
    written(path, grants=[GOOD_GRANT])

    assert [grant.key for grant in imported(path).read().grants()] == ["k1"]


@pytest.mark.parametrize(("what", "field", "value", "problem"), FIELDS)
def test_a_field_that_is_not_understood_is_named(path: Path, what: str, field: str, value: Any, problem: str) -> None:
    good = {"grants": GOOD_GRANT, "calls": GOOD_CALL}[what]
    other = {**good, "key": "k2"} if what == "grants" else {**good, "call_id": "c2"}
    with pytest.raises(StoreError) as caught:
        imported(written(path, **{what: [good, {**other, field: value}]}))

    assert (caught.value.key, caught.value.problem) == (f"{what}[1].{field}", problem)


@pytest.mark.parametrize(("scope", "field"), [("call", "call_id"), ("arguments", "arguments"), ("session", "session")])
def test_a_grant_that_lost_its_limit_is_refused(path: Path, scope: str, field: str) -> None:
    with pytest.raises(StoreError) as caught:
        imported(written(path, grants=[{**GOOD_GRANT, "scope": scope}]))

    assert caught.value.key == f"grants[0].{field}"


@pytest.mark.parametrize(("what", "entry"), [("grants", GOOD_GRANT), ("calls", GOOD_CALL)])
def test_what_stands_twice_is_refused(path: Path, what: str, entry: dict[str, Any]) -> None:
    with pytest.raises(StoreError, match=rf"{what}: one of them occurs twice"):
        imported(written(path, **{what: [entry, entry]}))


def test_a_file_of_a_later_version_is_refused_and_not_touched(path: Path) -> None:
    written(path, **{"truename-approvals": 3, "grants": "of another form"})
    before = path.read_bytes()
    with pytest.raises(StoreError) as caught:
        Approvals(imported(path))

    assert caught.value.code == "newer"
    assert "written by a newer Truename (schema 3). Upgrade Truename; nothing was changed." in str(caught.value)
    assert path.read_bytes() == before


VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(sorted(map(str, GOOD_GRANT.values())))
)
ENTRIES = st.lists(st.dictionaries(st.sampled_from([*GOOD_GRANT, *GOOD_CALL]), VALUES) | VALUES, max_size=2)


@given(ENTRIES | VALUES, ENTRIES | VALUES, st.integers(0, 3))
def test_whatever_a_file_holds_is_a_book_or_a_typed_error(grants: Any, calls: Any, schema: int) -> None:
    content = {"truename-approvals": schema, "grants": grants, "calls": calls}
    with suppress(StoreError):
        book = read_book(json.dumps(content).encode(), "approvals.json")
        assert (len(book.grants()), len(book.calls())) == (len(grants), len(calls))


@given(st.text(max_size=40), st.text(max_size=40), st.sampled_from(["call", "arguments", "session", "always"]))
def test_every_decision_comes_back_as_it_was_written(message: str, agent: str, scope: Any) -> None:
    store = MemoryStore()
    approvals = Approvals(store)
    caller = Caller(principal=ADA.principal, agent=agent, session="s")
    approvals.reject(search_of("docs", caller=caller), scope, message=message)
    book = store.read()
    again = read_book(written_book(book, "x"), "x")

    assert again.grants() == book.grants()
    assert again.calls() == book.calls()
