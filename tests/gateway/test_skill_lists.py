"""What is shown of lists of skills is kept in so many bytes, and only for the list of which it was made."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.gateway.endpoint import skill_lists
from truename.gateway.endpoint.skill_lists import SkillListCache, SkillListKey
from truename.gateway.protocol.pages import WrittenItem

pytestmark = pytest.mark.anyio

Skills = tuple[dict[str, Any], ...]


def key(server: str) -> SkillListKey:
    return SkillListKey(server, "names", is_alone=False)


def shown(size: int) -> list[WrittenItem]:
    return [WrittenItem({"a": "x" * (size - len('{"a":""}'))})]


async def test_what_was_used_longest_ago_makes_room() -> None:
    cache, skills = SkillListCache(100), ({"uri": "a"},)
    for server in "abc":
        cache.put(key(server), skills, shown(40), has_timed_out=False)
        cache.get(key("a"), skills)
    assert [cache.get(key(server), skills) is not None for server in "abc"] == [True, False, True]


async def test_a_list_that_is_longer_than_all_that_may_be_kept_is_not_kept() -> None:
    cache, skills = SkillListCache(100), ({"uri": "a"},)
    cache.put(key("a"), skills, shown(101), has_timed_out=False)
    assert cache.get(key("a"), skills) is None


async def test_what_was_made_of_another_list_is_not_shown() -> None:
    cache = SkillListCache(100)
    before: Skills = ({"uri": "a"},)
    after: Skills = ({"uri": "a"},)
    cache.put(key("a"), before, shown(40), has_timed_out=False)
    assert cache.get(key("a"), after) is None
    assert cache.get(key("a"), before) == shown(40)


async def test_what_timed_out_is_tried_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    cache, skills = SkillListCache(100), ({"uri": "a"},)
    cache.put(key("a"), skills, shown(40), has_timed_out=True)
    assert cache.get(key("a"), skills) == shown(40)
    monkeypatch.setattr(skill_lists, "RETRY_AFTER", 0.0)
    assert cache.get(key("a"), skills) is None


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.integers(8, 120)), max_size=30))
def test_never_more_is_kept_than_may_be(puts: list[tuple[str, int]]) -> None:
    async def kept() -> int:
        cache, skills = SkillListCache(200), ({"uri": "a"},)
        for server, size in puts:
            cache.put(key(server), skills, shown(size), has_timed_out=False)
        found = [cache.get(key(server), skills) for server in "abcde"]
        return sum(len(one.json) for items in found for one in items or ())

    last = puts[-1][1] if puts else 0
    assert last <= anyio.run(kept) <= 200
