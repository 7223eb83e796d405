"""Sealed values: nobody reads or changes one, it opens for what it was made for, and it is used once by whomever."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.auth import sealed_values
from truename.auth.sealed_values import CLOCKS_APART, OpenedValue, SealedValues
from truename.auth.vault import open_vault_at
from truename.errors import StoreError
from truename.storage import StateLocation

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXTS = st.text(max_size=12)
BOUND = st.lists(TEXTS, max_size=4)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def opened(place: StateLocation | None = None, clock: Clock | None = None) -> SealedValues:
    values = SealedValues(place) if clock is None else SealedValues(place, clock=clock)
    values.open()
    return values


@pytest.fixture(scope="module")
def values() -> Iterator[SealedValues]:
    with closing(opened()) as found:
        yield found


def certain(found: OpenedValue | None) -> OpenedValue:
    assert found is not None
    return found


@given(TEXTS, BOUND, JSON)
def test_a_value_says_to_its_gateway_what_was_sealed(
    values: SealedValues, purpose: str, bound: list[str], content: Any
) -> None:
    text = values.seal(purpose, bound, content, lasts=60)
    assert certain(values.opened(purpose, bound, text)).content == content
    assert text.isascii()


@given(st.tuples(TEXTS, BOUND), st.tuples(TEXTS, BOUND))
def test_a_value_opens_for_what_it_was_made_for_and_for_nothing_else(
    values: SealedValues, one: tuple[str, list[str]], other: tuple[str, list[str]]
) -> None:
    text = values.seal(*one, "content", lasts=60)
    assert (values.opened(*other, text) is not None) == (one == other)


@given(st.integers(0, 2_000), st.integers(0, 2_000))
def test_no_bit_of_a_value_can_be_changed_and_no_part_left_out(values: SealedValues, bit: int, length: int) -> None:
    text = values.seal("form", ["ann"], {"asked": 1}, lasts=60)
    raw = bytearray(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    raw[bit // 8 % len(raw)] ^= 1 << bit % 8
    changed = base64.urlsafe_b64encode(bytes(raw)).decode().rstrip("=")
    cut = text[: length % len(text)]
    assert values.opened("form", ["ann"], changed) is None
    assert values.opened("form", ["ann"], cut) is None


@given(st.text())
def test_what_is_no_value_opens_for_nobody(values: SealedValues, text: str) -> None:
    assert values.opened("form", ["ann"], text) is None


def test_a_value_has_one_spelling(values: SealedValues) -> None:
    text = values.seal("form", [], None, lasts=60)
    for other in (f"{text}=", f" {text}", f"{text}\n", text.replace(text[0], f"{text[0]}!", 1)):
        assert values.opened("form", [], other) is None


def test_another_gateway_of_the_state_opens_a_value_and_one_of_another_state_does_not(
    place: StateLocation, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = StateLocation(tmp_path_factory.mktemp("other") / "state.db")
    with closing(opened(place)) as first, closing(opened(place)) as second, closing(opened(other)) as third:
        text = first.seal("form", ["ann"], 1, lasts=60)
        assert certain(second.opened("form", ["ann"], text)).content == 1
        assert third.opened("form", ["ann"], text) is None
    with closing(opened(place)) as later:
        assert certain(later.opened("form", ["ann"], text)).content == 1


@given(st.tuples(TEXTS, JSON), st.tuples(TEXTS, JSON))
def test_a_mark_is_of_one_content_for_one_purpose(
    values: SealedValues, one: tuple[str, Any], other: tuple[str, Any]
) -> None:
    assert (values.mark(*one) == values.mark(*other)) == (json.dumps(one) == json.dumps(other))
    assert values.mark(*one).isascii()


def test_all_gateways_of_a_state_make_one_mark_and_nobody_else_makes_it(
    place: StateLocation, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = StateLocation(tmp_path_factory.mktemp("other") / "state.db")
    with closing(opened(place)) as first, closing(opened(place)) as second, closing(opened(other)) as third:
        mark = first.mark("form", ["ann", 1])
        assert (second.mark("form", ["ann", 1]), third.mark("form", ["ann", 1]) != mark) == (mark, True)
        assert opened().mark("form", ["ann", 1]) != mark
    with closing(opened(place)) as later:
        assert later.mark("form", ["ann", 1]) == mark


def test_a_value_is_over_in_time_and_used_once_whatever_a_clock_says(place: StateLocation) -> None:
    clock = Clock()
    with closing(opened(place, clock)) as values, closing(opened(place, late := Clock())) as slow:
        text = values.seal("form", [], 1, lasts=60)
        found = certain(values.opened("form", [], text))
        assert values.use(found, "ann")
        clock.now += 61
        assert values.opened("form", [], text) is None
        # A gateway with a fast clock forgets nothing that one with a slow clock takes for good.
        clock.now += CLOCKS_APART - 100
        values.use(certain(values.opened("form", [], values.seal("form", [], 2, lasts=60))), "ann")
        late.now += 59
        assert not slow.use(certain(slow.opened("form", [], text)), "ann")


def test_of_many_gateways_that_use_a_value_at_once_one_does(place: StateLocation) -> None:
    gateways = [opened(place) for _ in range(4)]
    texts = [gateways[0].seal("form", [], number, lasts=60) for number in range(10)]
    gate = threading.Barrier(8)

    def use(number: int) -> list[bool]:
        values = gateways[number % 4]
        gate.wait()
        return [values.use(certain(values.opened("form", [], text)), "ann") for text in texts]

    with ThreadPoolExecutor(8) as threads:
        used = [*threads.map(use, range(8))]
    assert [sum(one) for one in zip(*used, strict=True)] == [1] * 10
    for values in gateways:
        values.close()


_USE = """
import sys
from truename.auth.sealed_values import SealedValues
from truename.storage import StateLocation
values = SealedValues(StateLocation.of(sys.argv[1]))
values.open()
print("ready", flush=True)
sys.stdin.readline()
print(sum(values.use(values.opened("form", [], text), "ann") for text in sys.argv[2:]))
"""


def test_of_several_processes_that_use_values_at_once_one_uses_each(place: StateLocation) -> None:
    with closing(opened(place)) as values:
        texts = [values.seal("form", [], number, lasts=60) for number in range(20)]
    address = place.address
    assert address is not None
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _USE, address, *texts], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    said = [process.communicate("go\n", timeout=60)[0] for process in processes]
    assert sum(map(int, said)) == len(texts)


def test_who_uses_too_many_is_refused_and_nobody_else(place: StateLocation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealed_values, "MOST_USED", 3)
    with closing(opened(place)) as values:

        def use(whose: str) -> bool:
            return values.use(certain(values.opened("form", [], values.seal("form", [], 1, lasts=60))), whose)

        assert [use("eve") for _ in range(3)] == [True] * 3
        with pytest.raises(StoreError) as refused:
            use("eve")
        assert refused.value.code == "full"
        assert use("ann")


def test_the_key_is_in_the_state_only_encrypted_and_outlives_a_new_key_of_the_vault(
    place: StateLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2))
    monkeypatch.setenv("TRUENAME_VAULT_KEY", first)
    with closing(opened(place)) as values:
        text = values.seal("form", [], 1, lasts=60)
    monkeypatch.setenv("TRUENAME_VAULT_KEY", f"{second},{first}")
    with open_vault_at(place) as vault:
        assert vault.rotate() == 1
    monkeypatch.setenv("TRUENAME_VAULT_KEY", second)
    with closing(opened(place)) as values:
        assert certain(values.opened("form", [], text)).content == 1
    monkeypatch.setenv("TRUENAME_VAULT_KEY", first)
    if place.path is None:
        with pytest.raises(StoreError, match="the same on every machine"):
            SealedValues(place).open()
        # Nobody else could read what a command with this key stores.
        with pytest.raises(StoreError, match="the same on every machine"):
            open_vault_at(place)
        open_vault_at(place, checks=False).close()
        return
    # Nobody else uses a file: a key that is lost is made anew.
    with closing(opened(place)) as values:
        assert values.opened("form", [], text) is None
        text = values.seal("form", [], 1, lasts=60)
    with closing(opened(place)) as values:
        assert certain(values.opened("form", [], text)).content == 1


def test_values_are_opened_before_they_are_used() -> None:
    with pytest.raises(RuntimeError, match="Call `open` first"):
        SealedValues(None).seal("form", [], 1, lasts=60)
