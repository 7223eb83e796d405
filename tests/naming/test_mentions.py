"""Names in texts: what is a mention of a tool, what is left alone, and that nothing else of a text changes."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shared import UNHURRIED
from truename.naming.mentions import MOST_READ, TextMentions

OWN = (
    "get_data",
    "getData",
    "fs.list",
    "list-all-items",
    "web-search",
    "text-to-speech",
    "search",
    "user_id",
    "delete_data",
)
NAMES = TextMentions({own: f"x_{own.replace('.', '_').replace('-', '_')}" for own in OWN}, {"user_id"})

MENTIONED = [
    ("Call get_data first.", "Call x_get_data first."),
    ("get_data", "x_get_data"),
    ("See get_data: it is faster", "See x_get_data: it is faster"),
    ("`get_data`, 'getData' and \"fs.list\"", "`x_get_data`, 'x_getData' and \"x_fs_list\""),
    ("\u201cget_data\u201d", "\u201cx_get_data\u201d"),
    ("get_data's answer", "x_get_data's answer"),
    ("get_data(id=1) -> text", "x_get_data(id=1) -> text"),
    ("before get_data/delete_data.", "before x_get_data/x_delete_data."),
    ("先使用get_data工具", "先使用x_get_data工具"),
    ("get_data \u2192 delete_data", "x_get_data \u2192 x_delete_data"),
    ("[get_data](https://example.com)", "[x_get_data](https://example.com)"),
    ("The update of list-all-items", "The update of x_list_all_items"),
    # A compound of two words, and one that the language has: marked, called or asked for.
    ("Use web-search, or `web-search`, or web-search(q)", "Use x_web_search, or `x_web_search`, or x_web_search(q)"),
    ("Prefer text-to-speech", "Prefer x_text_to_speech"),
    # One word: where the text says that it is a tool.
    ("the search tool", "the x_search tool"),
    ("The search MCP tool", "The x_search MCP tool"),
    ("`search` tool", "`x_search` tool"),
    ("Use the tool 'search'.", "Use the tool 'x_search'."),
    ("tools: `search`, others", "tools: `x_search`, others"),
    # What a parameter is called too, likewise.
    ("the user_id tool", "the x_user_id tool"),
    ("{a} get_data {b}", "{a} x_get_data {b}"),
    ("} get_data {", "} x_get_data {"),
]
LEFT_ALONE = [
    "",
    "Nothing of it.",
    "Search for things, with one search. A search tool. Tool search. search(q) `search`",
    "Any web-search or text-to-speech",
    "GET_DATA Get_Data",
    "https://example.com/get_data?x=get_data and /get_data and ./get_data and C:\\get_data",
    "get_data.py get_data_now my_get_data client.get_data $get_data @get_data --get_data get_data=1 x/get_data",
    "na\u00efve\u00e9get_data get_data\u00e9",
    '{"tool": "get_data", "arguments": {"x": ["get_data"]}} {{get_data}}',
    '"tool": "get_data", tool="get_data", "get_data": 1, \'get_data\' = 1',
    "<get_data> </get_data>",
    "the `get_data` parameter, get_data fields, get_data column",
    "user_id: whose it is; `user_id`",
]


@pytest.mark.parametrize(("text", "read"), MENTIONED)
def test_a_mention_is_read_under_the_name_that_is_shown(text: str, read: str) -> None:
    assert NAMES.rewritten(text) == read


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_what_may_be_something_else_is_left_alone(text: str) -> None:
    assert NAMES.rewritten(text) == text


def test_names_that_are_spared_are_left_alone() -> None:
    said = NAMES.named('{"path": "/v1/get_data.", "x": "fs.list", "y": "see search"}')

    assert said == {"get_data", "fs.list", "search"}
    assert NAMES.rewritten("get_data failed; call getData", said) == "get_data failed; call x_getData"


def test_names_that_are_shown_as_they_are_and_names_of_several_words_cost_nothing() -> None:
    same = TextMentions({"get_data": "get_data", "Users Tool": "users_tool"})
    assert same.rewritten("get_data `Users Tool`") == "get_data `Users Tool`"


def test_tools_that_exchange_their_names_are_each_read_under_the_right_one() -> None:
    swapped = TextMentions({"get_a": "get_b", "get_b": "get_a"})
    assert swapped.rewritten("get_a, then get_b") == "get_b, then get_a"


def test_only_the_beginning_of_a_long_text_is_looked_through_and_no_name_is_cut() -> None:
    # It ends where the name in "getData_and_more" would end.
    long = "a " * ((MOST_READ - len(" getData")) // 2)

    assert NAMES.rewritten(f"get_data {long} get_data") == f"x_get_data {long} get_data"
    assert NAMES.rewritten(f"{long} getData_and_more") == f"{long} getData_and_more"
    assert NAMES.rewritten("-" * MOST_READ + "get_data") == "-" * MOST_READ + "get_data"


def test_a_text_of_nothing_but_names_does_not_grow_without_bounds() -> None:
    read = NAMES.rewritten("get_data " * 5_000)
    assert (read.count("x_get_data"), read.count("get_data")) == (256, 5_000)


@pytest.mark.parametrize(
    "piece", ["{", "}", "{}", "{get_data}", "get_data/", "'get_data':", "get_data ", "=", "\u201c"]
)
def test_hostile_texts_take_no_time(piece: str) -> None:
    text = piece * MOST_READ
    began = time.process_time()
    NAMES.rewritten(text)
    NAMES.named(text)
    assert time.process_time() - began < UNHURRIED


_PIECES = st.sampled_from([*OWN, " ", "the ", "tool ", "`", "'", '"', "{", "}", "/", ":", ".", "(", "é", "x", "use "])
TEXTS = st.lists(_PIECES, max_size=30).map("".join) | st.text(max_size=60)


@given(TEXTS)
def test_a_text_that_was_read_once_stays_as_it_is(text: str) -> None:
    once = NAMES.rewritten(text)
    assert NAMES.rewritten(once) == once


@given(TEXTS)
def test_nothing_but_names_changes_and_only_to_the_one_shown_for_it(text: str) -> None:
    marked = TextMentions({own: f"\x00{number}\x00" for number, own in enumerate(OWN)}, {"user_id"})
    read = marked.rewritten(text.replace("\x00", ""))
    for number, own in enumerate(OWN):
        read = read.replace(f"\x00{number}\x00", own)
    assert read == text.replace("\x00", "")


@given(TEXTS)
def test_a_text_without_any_name_is_the_same(text: str) -> None:
    if not NAMES.named(text):
        assert NAMES.rewritten(text) == text
