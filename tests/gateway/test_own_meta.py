"""What clients read in ``_meta`` under the gateway's own keys is the gateway's word, and never a server's."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from truename.gateway.protocol.own_meta import OWN_PREFIX, without_own_meta

KEYS = st.sampled_from(["_meta", "_meta", "content", "x", OWN_PREFIX, f"{OWN_PREFIX}error", "a/b", "dev.truename.x/y"])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.sampled_from([OWN_PREFIX, "\ud800"])
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4))


def _metas(content: Any) -> list[dict[str, Any]]:
    """Return all that stands as a table under ``_meta``, wherever."""
    if isinstance(content, list):
        return [meta for one in content for meta in _metas(one)]
    if not isinstance(content, dict):
        return []
    own = [content["_meta"]] if isinstance(content.get("_meta"), dict) else []
    return own + [meta for one in content.values() for meta in _metas(one)]


def _without(content: Any) -> Any:
    """Empty all tables under ``_meta`` of the gateway's keys, by hand and in place."""
    for meta in _metas(content):
        for key in [key for key in meta if key[: len(OWN_PREFIX)] == OWN_PREFIX]:
            del meta[key]
    return content


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_no_key_of_the_gateway_is_left_in_any_meta_and_all_else_is(content: dict[str, Any]) -> None:
    before = copy.deepcopy(content)
    left = without_own_meta(content)
    assert not any(key.startswith(OWN_PREFIX) for meta in _metas(left) for key in meta)
    assert repr(left) == repr(_without(copy.deepcopy(content)))
    assert repr(content) == repr(before)


@given(VALUES)
def test_what_has_none_is_not_copied(content: Any) -> None:
    found = without_own_meta(content)
    assert without_own_meta(found) == found or repr(without_own_meta(found)) == repr(found)


def test_a_result_without_any_is_the_same_object() -> None:
    content = {"content": [{"type": "text", "text": "x"}], "_meta": {"a/b": 1}}
    assert without_own_meta(content) is content
