"""A page of a list is sent as a text that was written before, and is what the list would be written as."""

from __future__ import annotations

import json
from itertools import chain
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.gateway.mcp.messages import encode, response
from truename.gateway.protocol.pages import Pages, WrittenItem

pytestmark = pytest.mark.slow

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
ITEMS = st.lists(st.dictionaries(TEXTS, VALUES, max_size=4), max_size=6)


def _all_of(made: Pages) -> list[bytes]:
    cursor, found = None, []
    while True:
        text, cursor = made.page_json(cursor)
        found.append(text)
        if cursor is None:
            return found


@given(items=ITEMS)
def test_a_page_is_sent_as_the_bytes_that_its_items_would_be_written_as(items: list[dict[str, Any]]) -> None:
    for made in (Pages(items), Pages([WrittenItem(item) for item in items])):
        text, _ = made.page_json(None)

        assert encode(response(1, {"tools": msgspec.Raw(text), "_meta": {}})) == encode(
            response(1, {"tools": items, "_meta": {}})
        )


@given(lengths=st.lists(st.integers(0, 900_000), max_size=12))
def test_pages_have_all_items_in_order_and_none_is_larger_than_clients_accept(lengths: list[int]) -> None:
    items = [WrittenItem({"name": str(number), "text": "x" * length}) for number, length in enumerate(lengths)]
    texts = _all_of(Pages(items))
    found = [json.loads(text) for text in texts]

    assert list(chain.from_iterable(found)) == items
    assert all(len(text) <= 800 * 1024 or len(page) == 1 for text, page in zip(texts, found, strict=True))


def test_a_page_that_was_sent_is_not_written_again() -> None:
    items = [{"name": "a"}, {"name": "b"}]
    made, same = Pages(items), Pages(items)

    assert made.page_json(None)[0] is made.page_json(None)[0]
    assert same.page_json(None)[0] is not made.page_json(None)[0]


def test_only_the_pages_that_were_asked_for_last_are_kept_and_the_others_are_written_anew() -> None:
    made = [Pages([{"number": number}]) for number in range(100)]
    first = [one.page_json(None)[0] for one in made]

    assert [one.page_json(None)[0] for one in made] == first
    assert made[-1].page_json(None)[0] is made[-1].page_json(None)[0]
    assert made[0].page_json(None)[0] is not first[0]


def test_half_of_a_character_in_one_item_leaves_the_others_readable() -> None:
    text, _ = Pages([WrittenItem({"name": "\ud83d"}), WrittenItem({"name": "b"})]).page_json(None)

    assert text == b'[{"name": "\\ud83d"},{"name":"b"}]'
