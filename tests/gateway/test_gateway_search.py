"""Tools are found by what they are called, do and take; whatever a query is, it is only words."""

from __future__ import annotations

import gzip
import json
import random
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shared import shared
from truename.catalog import Catalog
from truename.gateway.views.search import ToolIndex, Words, terms, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = (
    Words("GitHub create_issue", "Open a new ticket in a repository.", "owner repo title body"),
    Words("GitHub list_issues", "Show the tickets of a repository.", "owner repo state"),
    Words("Weather getForecast", "What the weather will be in the next days.", "city days"),
    Words("mail send", "Deliver a message to people.", "to subject body"),
    Words("mail sendAll", "Deliver a message to people.", "to subject body"),
    Words("wetter 天気", "", ""),
)


@pytest.fixture(scope="module")
def index() -> Iterator[ToolIndex]:
    made = ToolIndex(ROWS)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("create issue", 0),
        ("createIssue", 0),
        ("CREATE-ISSUE", 0),
        ("creates issues", 0),
        ("open a ticket", 0),
        ("list the issues of github", 1),
        ("forecast for tomorrow", 2),
        ("get forecast", 2),
        ("weather", 2),
        ("subject", 3),
        ("send", 3),
        ("forec", 2),
        ("forcast", 2),
        ("forecsat", 2),
        ("foreecast", 2),
        ("firecast", 2),
        ("天気", 5),
        ("what will it be", 2),
    ],
)
def test_a_query_finds_its_tool_first(index: ToolIndex, query: str, first: int) -> None:
    assert next(index.search(query)) == first


@pytest.mark.parametrize("query", ["", "   ", "\0", "zzzzzz qqqq", "zz", "…", '"', "*", "()", "\ud800", "xyz" * 10_000])
def test_a_query_without_a_known_word_finds_nothing(index: ToolIndex, query: str) -> None:
    assert list(index.search(query)) == []


@pytest.mark.parametrize(
    "query",
    [
        'send" OR "a',
        "send NEAR(",
        "name:send",
        "send*",
        "^send",
        "-send",
        "{name} : send",
        "send AND NOT",
        "send\0",
        "'; DROP TABLE tools; -- send",
    ],
)
def test_what_looks_like_the_index_language_is_words(index: ToolIndex, query: str) -> None:
    assert {3, 4} <= set(index.search(query))


@given(st.text(max_size=200))
def test_no_text_is_an_error_and_no_tool_comes_twice(text: str) -> None:
    made = ToolIndex(ROWS)
    try:
        found = list(made.search(text))
    finally:
        made.close()
    assert len(found) == len(set(found))
    assert set(found) <= set(range(len(ROWS)))


def test_equal_tools_come_in_their_order_and_always_the_same(index: ToolIndex) -> None:
    assert [list(index.search("deliver message")) for _ in range(3)] == [[3, 4]] * 3
    twins = ToolIndex([Words("twin", "same", "")] * 50)
    assert list(twins.search("same")) == list(range(50))
    twins.close()


STUFFED = [
    Words("", "send mail " * 30, ""),
    Words("send mail " * 10, "send mail", ""),
    Words("send mail", "", "send mail " * 50),
    Words("", " ".join(f"word{number}" for number in range(500)) + " send mail recipient", ""),
]


@pytest.mark.parametrize("stuffed", STUFFED)
def test_who_says_a_word_often_is_not_found_before_who_has_all_of_them(stuffed: Words) -> None:
    rows = [Words(f"other {number}", "send a mail or something else", "") for number in range(30)]
    honest = Words("mail send mail", "Send a mail to a recipient.", "recipient subject")
    with closing(ToolIndex([stuffed, *rows, honest])) as index:
        assert next(index.search("send a mail to a recipient")) == len(rows) + 1


def test_what_is_said_again_can_not_be_searched_for() -> None:
    with closing(ToolIndex([Words("twice twice", "", ""), Words("once", "", "")])) as index:
        assert list(index.search("\ue000")) == list(index.search("nothing")) == []


def test_an_empty_index_finds_nothing() -> None:
    empty = ToolIndex([])
    assert list(empty.search("anything")) == []
    assert empty.size > 0
    empty.close()


def test_very_common_words_count_only_beside_rare_ones() -> None:
    rows = [Words(f"common tool {number}", "shared", "") for number in range(5_000)]
    rows += [Words(f"rest {number}", "shared", "") for number in range(10_000)]
    rows[4_321] = Words("common special", "shared", "")
    rows[6_000] = Words("rest special", "shared", "")
    many = ToolIndex(rows)
    assert list(many.search("common special")) == [4_321, 6_000]
    assert list(islice(many.search("common"), 3)) == [4_321, 0, 1]
    assert list(many.search("shared")) == []
    many.close()


def test_words_are_the_naming_layers() -> None:
    assert terms("getURLs-HTTPServer fs.list read_file") == [
        "get",
        "url",
        "http",
        "server",
        "fs",
        "list",
        "read",
        "file",
    ]
    assert terms("is this class status gas queries boxes") == ["is", "this", "class", "status", "gas", "query", "box"]


@pytest.mark.parametrize(
    "definition",
    [
        {"description": 7, "title": ["x"], "inputSchema": None},
        {"inputSchema": {"properties": ["a"]}},
        {"inputSchema": ["properties"]},
        {"description": "x" * 1_000_000, "inputSchema": {"properties": {str(n): {} for n in range(5_000)}}},
    ],
)
def test_hostile_definitions_are_indexed_as_far_as_they_can_be_read(definition: dict[str, Any]) -> None:
    catalog = Catalog.from_mcp({"s": [{"name": "odd_tool", **definition}]})
    made = ToolIndex(map(words_of, catalog.values()))
    assert list(made.search("odd")) == [0]
    assert made.size < 300_000
    made.close()


def test_four_of_five_real_tools_are_found_without_any_word_of_their_name() -> None:
    """The figures are in docs/measurements/tool-search.md (bench/search.py); this only sees that they don't fall."""
    path = shared("corpus", "open.jsonl.gz")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        servers = [json.loads(line) for line in islice(lines, 300)]
    catalog = Catalog.from_mcp({server["id"]: server["tools"] for server in servers}, strict=False)
    tools = list(catalog.values())
    made = ToolIndex(map(words_of, tools))
    queries = [
        (number, _telling(tool.origin.name, tool.definition.get("description"))) for number, tool in enumerate(tools)
    ]
    sample = random.Random(1).sample([(number, words) for number, words in queries if len(words) >= 4], 100)
    found = sum(number in islice(made.search(" ".join(words)), 5) for number, words in sample)
    made.close()
    assert found >= 80


def _telling(name: str, description: object) -> list[str]:
    own = set(terms(name))
    return [word for word in terms(str(description or "").partition(".")[0]) if word not in own]
