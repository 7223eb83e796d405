"""What a person is shown who decides on a call, and how the answer is read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.trust_pending import call, wanted
from truename.gateway.trust.forms import answer_in, form_of, shown_arguments

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), JSON, max_size=40))
def test_whatever_the_arguments_are_each_has_a_line_of_what_can_be_printed(arguments: dict[str, Any]) -> None:
    shown = shown_arguments(arguments)
    lines = shown.split("\n")
    assert all(line.isprintable() for line in lines)
    assert len(lines) <= max(1, len(arguments))
    assert 0 < len(shown) <= 6_000
    told = len(lines) < len(arguments) or "are not shown" in lines[-1]
    assert told or len(lines) == len(arguments) or not arguments


@pytest.mark.parametrize(
    "unseen", ["\u3164", "\u2800", "\u115f", "\uffa0", "\ufe01", "\U000e0101", "\u034f", "\u180b", "\u200b", "\u2003"]
)
def test_what_nobody_sees_is_written_out(unseen: str) -> None:
    for shown in shown_arguments({"text": f"to{unseen}you"}), shown_arguments({f"t{unseen}o": "you"}):
        assert unseen not in shown
        assert ascii(unseen)[1:-1] in shown
    assert shown_arguments({"text": "नमस्ते, cafe\u0301"}) == 'text: "नमस्ते, cafe\u0301"'


@pytest.mark.parametrize("name", ['to: "you"', "", " " * 40, 'a"b', "to:"])
def test_no_name_of_an_argument_looks_like_another_with_its_value(name: str) -> None:
    assert shown_arguments({name: 1, "to": "me"}) == f'{json.dumps(name)}: 1\nto: "me"'


@given(JSON, st.sets(st.sampled_from(["call", "arguments", "session", "always"])))
def test_whatever_a_client_answers_decides_nothing_that_was_not_offered(answer: Any, scopes: set[Any]) -> None:
    said = answer_in(answer, sorted(scopes))
    assert said is None or not said.approved


@pytest.mark.parametrize(
    "answer",
    [
        {"action": "accept"},
        {"action": "accept", "content": {}},
        {"action": "accept", "content": {"decision": ["allow once"]}},
        {"action": "accept", "content": {"decision": "allow for this session"}},
        {"action": "cancel", "content": {"decision": "allow once"}},
        {"action": "decline?", "content": {"decision": "allow once"}},
        {"content": {"decision": "always allow"}},
    ],
)
def test_what_is_no_answer_decides_nothing(answer: dict[str, Any]) -> None:
    assert answer_in(answer, ["call", "arguments", "always"]) is None


def test_the_form_offers_what_can_be_decided_and_nothing_by_default() -> None:
    schema = form_of(wanted(call(x=1)))["requestedSchema"]
    assert schema["required"] == ["decision"]
    assert schema["properties"]["decision"]["enum"] == [
        "allow once",
        "allow with these arguments",
        "always allow",
        "deny",
    ]
    assert "default" not in schema["properties"]["decision"]
