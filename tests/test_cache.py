"""Caches never hold more than they may, and evict by use or by age."""

from __future__ import annotations

from collections import OrderedDict
from threading import Thread
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from truename.cache import LRUCache, TTLCache

if TYPE_CHECKING:
    from collections.abc import Sequence

STEPS = st.lists(st.tuples(st.sampled_from(["get", "put", "pop", "in"]), st.integers(0, 5)), max_size=40)


@given(STEPS, st.integers(1, 4))
def test_the_entries_are_those_used_last(steps: Sequence[tuple[str, int]], most: int) -> None:
    cache, uses = LRUCache[int, str](most), OrderedDict[int, str]()
    for number, (step, key) in enumerate(steps):
        match step:
            case "get":
                assert cache.get(key) == uses.get(key)
                if key in uses:
                    uses.move_to_end(key)
            case "put":
                cache[key] = uses[key] = str(number)
                uses.move_to_end(key)
            case "pop":
                assert cache.pop(key) == uses.pop(key, None)
            case _:
                assert (key in cache) == (key in uses)
        uses = OrderedDict(list(uses.items())[-most:])
        assert (list(cache), cache.values(), len(cache)) == (list(uses), tuple(uses.values()), len(uses))


def test_a_copy_goes_its_own_way() -> None:
    cache = LRUCache[str, int](2)
    cache["a"], cache["b"] = 1, 2
    copy = cache.copy()
    copy["c"] = 3
    cache.pop("b")

    assert (list(cache), list(copy)) == (["a"], ["b", "c"])


def test_a_cleared_cache_is_empty_and_can_be_filled_again() -> None:
    cache = LRUCache[str, int](1)
    cache["a"] = 1
    cache.clear()
    cache["b"] = 2

    assert (cache.get("a"), cache.get("b")) == (None, 2)


def test_threads_may_share_a_cache() -> None:
    cache, failures = LRUCache[int, int](3), list[BaseException]()

    def use(start: int) -> None:
        try:
            for number in range(start, start + 3_000):
                cache[number % 7] = number
                cache.get(number % 5)
                cache.pop(number % 11)
        except BaseException as error:  # noqa: BLE001 - reported below
            failures.append(error)

    threads = [Thread(target=use, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert len(cache) <= 3


def test_an_entry_expires_at_its_time_and_not_before() -> None:
    now = 100.0
    cache = TTLCache[str, int](10, ttl=60.0, clock=lambda: now)
    cache.put("short", 1, until=130.0)
    cache.put("long", 2, until=500.0)
    cache.put("usual", 3)
    seen = {}
    for now in (129.9, 130.0, 159.9, 160.0):
        seen[now] = [cache.get(key) for key in ("short", "long", "usual")]

    assert seen == {129.9: [1, 2, 3], 130.0: [None, 2, 3], 159.9: [None, 2, 3], 160.0: [None, None, None]}


def test_a_value_put_again_lives_anew() -> None:
    now = 0.0
    cache = TTLCache[str, int](10, ttl=60.0, clock=lambda: now)
    cache.put("a", 1)
    now = 50.0
    cache.put("a", 2)
    now = 100.0

    assert cache.get("a") == 2


def test_entries_that_live_are_bounded_too() -> None:
    cache = TTLCache[int, int](3, ttl=60.0, clock=lambda: 0.0)
    for number in range(10):
        cache.put(number, number)

    assert [cache.get(number) for number in range(10)] == [*[None] * 7, 7, 8, 9]
