"""A call with its digests computed beforehand is the same call, and a copy that may be changed is a plain one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policy.calls import search_of
from truename.errors import TruenameError
from truename.policy import Approvals
from truename.policy.arguments import MAX_DEPTH, MAX_ENTRIES, read_arguments
from truename.policy.call import digested

pytestmark = pytest.mark.slow

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), JSON))
def test_digests_are_those_of_the_plain_call_and_a_copy_follows_its_arguments(arguments: dict[str, Any]) -> None:
    plain = search_of("docs", arguments=arguments)
    known = digested(plain)

    assert (known.arguments_digest, known.fingerprint) == (plain.arguments_digest, plain.fingerprint)
    again = replace(known, call_id=plain.call_id)
    assert again.fingerprint == plain.fingerprint
    copy = known.copied()
    copy.arguments["other"] = object.__hash__(copy)  # type: ignore[index]  # a copy may be changed
    assert copy.arguments_digest != known.arguments_digest
    assert known.arguments == arguments


def test_a_decision_for_its_arguments_covers_the_plain_call_too() -> None:
    approvals = Approvals()
    approvals.approve(digested(search_of("docs", arguments={"rows": [1, 2]})), scope="arguments")

    assert approvals.status(search_of("docs", "c2", arguments={"rows": [1, 2]})).state == "approved"
    assert approvals.status(search_of("docs", "c3", arguments={"rows": [1]})).state == "undecided"


@pytest.mark.parametrize("as_text", [False, True])
def test_arguments_have_a_bound_of_keys_and_items(as_text: bool) -> None:
    half = MAX_ENTRIES // 2
    text = f'{{"a": [{"1," * (half - 2)}1], "b": [{"1," * (half - 2)}1]}}'
    assert len(read_arguments(text)["a"]) == half - 1

    wide: object = text.replace("[1,", "[1,1,") if as_text else {"a": [1] * half, "b": {str(n): 1 for n in range(half)}}
    with pytest.raises(TruenameError, match="arguments contains more than 200,000 keys and items"):
        read_arguments(wide)


@given(JSON, st.lists(st.text("ab.[", max_size=3) | st.integers(0, 3), max_size=MAX_DEPTH - 8))
def test_what_is_refused_says_where_it_stands(around: Any, path: list[str | int]) -> None:
    value: Any = object()
    for step in reversed(path):
        value = {step: value} if isinstance(step, str) else [*([around] * step), value]
    where = "".join(f".{step}" if isinstance(step, str) else f"[{step}]" for step in path)

    with pytest.raises(TruenameError) as caught:
        read_arguments({"here": value, "": around})

    assert getattr(caught.value, "field", None) == f"arguments.here{where}"
