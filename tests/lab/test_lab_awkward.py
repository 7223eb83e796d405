"""The awkward server: over forty names, both eras, and a tool that renames another."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

import pytest

from lab.awkward import CONSTRUCTS, Answers, WebServer, awkward_names, construct_of, many_names
from lab.awkward.names import sized

if TYPE_CHECKING:
    from collections.abc import Mapping


def _ask(answers: Answers, method: str, **params: Any) -> dict[str, Any]:
    told: list[Mapping[str, Any]] = []
    answer = answers.answer({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, told.append)
    assert answer is not None
    return answer | {"told": told}


def _answers(*names: str, modern: bool = False) -> Answers:
    return Answers(names, modern=modern, pause=lambda _: None)


def test_there_are_over_forty_awkward_names_and_each_has_one_construct() -> None:
    names = awkward_names()
    assert len(names) == len(set(names)) > 40
    assert all(construct_of(name) in CONSTRUCTS for name in names)
    assert len({construct.name for construct in CONSTRUCTS}) == len(CONSTRUCTS)
    assert len(many_names(200)) == 200


@pytest.mark.parametrize("length", [46, 64, 129])
def test_a_sized_name_says_its_length_at_both_ends(length: int) -> None:
    name = sized(length)
    assert (len(name), name[:5], name[-5:]) == (length, f"n{length:03d}_", f"_e{length:03d}")


def test_descriptions_carry_marks_and_duplicates_keep_one_each() -> None:
    tools = _ask(_answers("same", "same"), "tools/list")["result"]["tools"]
    assert [(tool["name"], tool["description"]) for tool in tools] == [
        ("same", "[lab:1] awkward tool"),
        ("same", "[lab:2] awkward tool"),
    ]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a/b", "UPSTREAM-OK a/b k1"),
        ("err_iserror", "ISERROR-WORDING"),
        ("err_jsonrpc", "JSONRPC-WORDING"),
        ("a_b", "UPSTREAM-UNKNOWN a_b"),
    ],
)
def test_a_call_is_answered_by_exactly_that_name(name: str, told: str) -> None:
    assert told in json.dumps(_ask(_answers("a/b"), "tools/call", name=name, arguments={"q": "k1"}))


def test_renaming_is_announced_and_the_old_name_is_gone() -> None:
    answers = _answers("get_weather", "rename_now")
    assert [one["method"] for one in _ask(answers, "tools/call", name="rename_now")["told"]] == [
        "notifications/tools/list_changed"
    ]
    listed = _ask(answers, "tools/list")["result"]["tools"]
    assert [(tool["name"], tool["description"][:9]) for tool in listed] == [
        ("get_weather_v2", "[lab:900]"),
        ("rename_now", "[lab:2] a"),
    ]
    assert "error" in _ask(answers, "tools/call", name="get_weather")


def test_the_two_eras_differ_in_the_first_message() -> None:
    legacy, modern = _answers("a"), _answers("a", modern=True)
    assert "error" in _ask(legacy, "server/discover")
    assert _ask(modern, "server/discover")["result"]["supportedVersions"] == ["2026-07-28"]
    assert _ask(legacy, "initialize", protocolVersion="2025-06-18")["result"]["protocolVersion"] == "2025-06-18"
    assert _ask(modern, "tools/list")["result"]["resultType"] == "complete"


def test_over_http_every_message_is_noted_with_its_headers() -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    with WebServer(_answers("a")) as server, urlopen(Request(server.url, body, {"User-Agent": "me/1"})) as answer:
        assert [tool["name"] for tool in json.load(answer)["result"]["tools"]] == ["a"]
    (noted,) = server.answers.received
    assert (noted.message["method"], noted.headers["User-Agent"]) == ("tools/list", "me/1")
