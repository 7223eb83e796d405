"""Canonical JSON of records: the quick way writes what the standard's own implementation writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from truename.audit.chain import canonical

if TYPE_CHECKING:
    from collections.abc import Callable

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**54), 2**54)
    | st.floats()
    | st.floats(1e-8, 1e-2)
    | st.text(st.characters())
    | st.text(st.sampled_from('\x00\x1f\x7f\u2028\ud800\U0001f600\\"/é'))
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)


def outcome(write: Callable[[dict[str, Any]], bytes], table: dict[str, Any]) -> bytes | None:
    try:
        return write(table)
    except ValueError:
        return None


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=8))
@example({"\ue000": 1, "\U0001f600": 2})
@example({"seconds": 1e-7, "more": 0.0001, "whole": 2.0, "none": -0.0, "much": 1e16, "less": -0.5})
def test_a_table_has_the_one_form_that_the_standard_gives_it(table: dict[str, Any]) -> None:
    assert outcome(canonical, table) == outcome(rfc8785.dumps, table)
