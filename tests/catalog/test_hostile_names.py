"""Names that nobody should have: refused with a reason, all of them at once, or left out and reported."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.shared import UNHURRIED
from truename import Catalog
from truename.errors import InvalidName
from truename.identity import MAX_FOREIGN

HOSTILE = [
    pytest.param("", "empty", id="empty"),
    pytest.param(" \u00a0 ", "empty", id="blank"),
    pytest.param("a\nb", "character", id="newline"),
    pytest.param("a\x00", "character", id="nul"),
    pytest.param("\x1b[2Jx", "character", id="escape"),
    pytest.param("get\u202edata", "character", id="bidirectional"),
    pytest.param("get\u200bdata", "character", id="zero-width"),
    pytest.param("get\ufeffdata", "character", id="byte-order-mark"),
    pytest.param("\ud800", "character", id="surrogate"),
    pytest.param("\ue000", "character", id="private-use"),
    pytest.param("a" * (MAX_FOREIGN + 1), "length", id="long"),
    pytest.param("\u202e" * 10_000_000, "length", id="ten-megabytes"),
]
NO_TEXT = [1, None, True, 1.5, ["a"], {"a": 1}, b"bytes", pytest.param(10**5_000, id="10^5000")]


def raised(servers: Any) -> list[InvalidName]:
    with pytest.raises(ExceptionGroup) as caught:
        Catalog.from_mcp(servers)
    assert all(isinstance(error, InvalidName) for error in caught.value.exceptions)
    return [error for error in caught.value.exceptions if isinstance(error, InvalidName)]


@pytest.mark.parametrize(("name", "code"), HOSTILE)
def test_a_hostile_tool_name_is_refused_with_its_server(name: str, code: str) -> None:
    began = time.process_time()

    (error,) = raised({"weather": ["fine", {"name": name}]})

    assert (error.name, error.dialect) == (name, "a catalogue (server 'weather')")
    assert {reason.code for reason in error.reasons} == {code}
    assert str(error).isprintable()
    assert len(str(error)) < 1_000
    assert time.process_time() - began < UNHURRIED


@pytest.mark.parametrize(("key", "code"), HOSTILE)
def test_a_hostile_server_key_is_refused(key: str, code: str) -> None:
    (error,) = raised({key: ["fine"], "b": ["fine"]})

    assert (error.name, error.dialect) == (key, "a catalogue (as a server key)")
    assert {reason.code for reason in error.reasons} == {code}
    assert str(error).isprintable()


@pytest.mark.parametrize("name", NO_TEXT)
def test_a_name_that_is_no_text_is_refused(name: Any) -> None:
    (error,) = raised({"a": [{"name": name}, "fine"]})

    assert [reason.code for reason in error.reasons] == ["type"]
    assert len(str(error)) < 1_000


@pytest.mark.parametrize("entry", [{}, None, 1, [], (1, 2)], ids=repr)
def test_an_entry_without_a_name_is_refused(entry: Any) -> None:
    (error,) = raised({"a": [entry]})

    assert [reason.code for reason in error.reasons] == ["type"]


@pytest.mark.parametrize("key", [1, None, ("a", "b")])
def test_a_server_key_that_is_no_text_is_refused(key: Any) -> None:
    (error,) = raised([(key, ["fine"])])

    assert [reason.code for reason in error.reasons] == ["type"]


def test_everything_wrong_is_told_at_once() -> None:
    errors = raised({"": ["x"], "a": ["", "fine", "b\n"], "c": [{"title": "nameless"}]})

    assert [error.name for error in errors] == ["", "", "b\n", ""]


def test_not_strict_leaves_out_what_is_hostile_and_reports_it() -> None:
    catalog = Catalog.from_mcp({"": ["x"], "a": ["", "fine", "b\n"], "c\n": ["y"], "d": ["z"]}, strict=False)

    assert [str(id) for id in catalog] == ["a@1/fine@1", "d@1/z@1"]
    assert [(notice.code, notice.server, notice.name) for notice in catalog.notices] == [
        ("invalid", "", ""),
        ("invalid", "a", ""),
        ("invalid", "a", "b\n"),
        ("invalid", "c\n", "c\n"),
    ]
    assert all(notice.text.isprintable() for notice in catalog.notices)


def test_the_longest_name_is_admitted() -> None:
    (tool,) = Catalog.from_mcp({"s" * MAX_FOREIGN: ["t" * MAX_FOREIGN]}).values()

    assert tool.origin.name == "t" * MAX_FOREIGN


@pytest.mark.parametrize("listing", [None, 5, "get_data", {"tools": {"a": 1}}, {"tools": None}, {"result": 1}, {}])
def test_an_answer_of_a_wrong_shape_is_not_taken_for_an_empty_one(listing: Any) -> None:
    (error,) = raised({"a": listing})

    assert error.name == "a"
    assert len(Catalog.from_mcp({"a": listing, "b": ["x"]}, strict=False).notices) == 1


def test_ten_thousand_tools_are_admitted_in_a_second() -> None:
    names = [f"tool_{number}" for number in range(10_000)] + [f"Tool_{number}" for number in range(1_000)]
    began = time.process_time()

    catalog = Catalog.from_mcp({"a": names})

    assert len(catalog) == 11_000
    assert time.process_time() - began < UNHURRIED
