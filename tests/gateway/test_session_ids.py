"""The ids of sessions: what they say, for whom they open, and how long they are."""

from __future__ import annotations

import json
import string
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.gateway_session_ids import ANN, INFO, agreed, hello
from truename.gateway.http.session_ids import LONGEST, SessionIds, handshake_of

VISIBLE = frozenset(chr(number) for number in range(0x21, 0x7F))
VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")

texts = st.text(max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def issued(ids: SessionIds, place: str = ANN, body: dict[str, Any] | None = None) -> str:
    return ids.issue(place, agreed(body or hello()), now=1_000.0, lasts=60.0)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_id_says_what_was_agreed_on(version: str) -> None:
    ids, body = SessionIds(bytes(32)), hello(version)
    opened = ids.open(ANN, issued(ids, body=body))
    assert opened is not None
    assert (opened.issued, opened.lasts) == (1_000.0, 60.0)
    assert opened.handshake == agreed(body)
    assert opened.handshake.version == version


def test_of_a_version_that_nobody_knows_the_one_that_is_answered_is_agreed_on() -> None:
    assert agreed(hello("2999-01-01")).version == "2025-11-25"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"method": "tools/list"},
        {"method": "initialize"},
        {"method": "initialize", "params": 7},
        {"method": "initialize", "params": {"protocolVersion": 7, "capabilities": {}, "clientInfo": {}}},
    ],
)
def test_what_is_no_handshake_gets_an_id_that_says_nothing(body: dict[str, Any]) -> None:
    ids = SessionIds(bytes(32))
    assert handshake_of(body) is None
    id = ids.issue(ANN, None, now=0.0, lasts=60.0)
    assert set(id) <= VISIBLE
    assert ids.open(ANN, id) is None


@given(capabilities=st.dictionaries(texts, st.dictionaries(texts, values, max_size=3), max_size=3), info=values)
def test_whatever_a_client_says_its_id_is_short_and_visible_and_says_it_again_or_nothing(
    capabilities: Any, info: Any
) -> None:
    body = hello(capabilities={"experimental": capabilities}, info={**INFO, "description": json.dumps(info)})
    handshake, ids = handshake_of(body), SessionIds(bytes(32))
    assume(handshake is not None)
    assert handshake is not None
    id = ids.issue(ANN, handshake, now=0.0, lasts=60.0)
    assert len(id) <= LONGEST
    assert set(id) <= VISIBLE
    opened = ids.open(ANN, id)
    if opened is not None:
        assert opened.handshake is not None
        assert opened.handshake.client.capabilities == handshake.client.capabilities
        assert opened.handshake.client.name == handshake.client.name


def test_who_says_much_of_itself_is_known_by_name_and_who_can_do_too_much_is_not_known_again() -> None:
    ids, noise = SessionIds(bytes(32)), "".join(chr(0x4E00 + number * 7) for number in range(2_000))
    opened = ids.open(ANN, issued(ids, body=hello(info={**INFO, "title": noise})))
    assert opened is not None
    assert opened.handshake is not None
    assert opened.handshake.client.capabilities == agreed(hello()).client.capabilities
    assert opened.handshake.client.said()["clientInfo"] == {"name": "claude-code", "version": "2.1.330"}
    assert ids.open(ANN, issued(ids, body=hello(capabilities={"sampling": {"context": {"y": noise}}}))) is None


def test_an_id_names_the_replica_that_issued_it_whatever_its_client_says() -> None:
    ids, noise = SessionIds(bytes(32)), "".join(chr(0x4E00 + number * 7) for number in range(2_000))
    said, much = hello(), hello(capabilities={"sampling": {"context": {"y": noise}}})
    for body, is_resumable in ((said, True), (much, False)):
        id = ids.issue(ANN, handshake_of(body), now=0.0, lasts=60.0, owner="rep-1")
        assert len(id) <= LONGEST
        opened = ids.open(ANN, id)
        assert opened is not None
        assert opened.owner == "rep-1"
        assert (opened.handshake is not None) == is_resumable
        assert ids.open("bob at /mcp", id) is None


def test_no_two_sessions_have_one_id() -> None:
    ids = SessionIds(bytes(32))
    assert len({issued(ids) for _ in range(100)}) == 100


@given(place=st.text(max_size=30), key=st.binary(min_size=32, max_size=32))
def test_an_id_opens_for_its_place_and_key_alone(place: str, key: bytes) -> None:
    ids = SessionIds(bytes(32))
    id = issued(ids)
    assert ids.open(ANN, id) is not None
    assert (ids.open(place, id) is not None) == (place == ANN)
    assert (SessionIds(key).open(ANN, id) is not None) == (key == bytes(32))


@given(data=st.data())
def test_an_altered_id_opens_for_nobody(data: st.DataObject) -> None:
    """Also what base64 decodes to the same bytes: an ended session has no second spelling."""
    ids = SessionIds(bytes(32))
    id = issued(ids)
    place = data.draw(st.integers(0, len(id)))
    cut = data.draw(st.integers(0, 3))
    put = data.draw(st.text(string.ascii_letters + string.digits + "-_=+/ \n\xff\u0100", max_size=3))
    altered = id[:place] + put + id[place + cut :]
    assume(altered != id)
    assert ids.open(ANN, altered) is None
    assert ids.open(ANN, altered.rstrip("=") + "=") is None


@given(st.text(max_size=2 * LONGEST) | st.text(string.ascii_letters + string.digits + "-_", max_size=2 * LONGEST))
def test_what_was_never_issued_opens_for_nobody(text: str) -> None:
    assert SessionIds(bytes(32)).open(ANN, text) is None
