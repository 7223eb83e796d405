"""Protocol versions: counted up, and compared number by number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.errors import MigrationError
from truename.migration import bump, compare_versions, version_parts
from truename.migration.protocol_versions import CHANGES

NUMBERS = st.lists(st.integers(0, 999_999_998), min_size=1, max_size=4)
VERSIONS = NUMBERS.map(lambda numbers: ".".join(map(str, numbers)))


@pytest.mark.parametrize(
    ("version", "change", "after"),
    [
        ("0.2", "rename", "0.3"),
        ("0.9", "rename", "0.10"),
        ("0.2.5", "rename", "0.3.0"),
        ("1.4", "rename", "2.0"),
        ("1.4.2", "breaking", "2.0.0"),
        ("3", "removed", "4"),
        ("v0.2", "rename", "v0.3"),
        ("0", "rename", "0.1"),
        ("0.2", "added", "0.3"),
        ("1.4", "added", "1.5"),
        ("1", "added", "1.1"),
        ("1.4", "fixed", "1.4.1"),
        ("0.2.5.7", "fixed", "0.2.6.0"),
    ],
)
def test_a_change_counts_up_the_number_that_it_stands_for(version: str, change: str, after: str) -> None:
    assert bump(version, change) == after


@pytest.mark.parametrize(
    ("left", "right", "order"),
    [
        ("0.10", "0.9", 1),
        ("0.9", "0.10", -1),
        ("0.3", "0.3.0", 0),
        ("v1.0", "1", 0),
        ("1.0.0.1", "1", 1),
        ("2", "10", -1),
    ],
)
def test_versions_are_compared_number_by_number(left: str, right: str, order: int) -> None:
    assert compare_versions(left, right) == order


@pytest.mark.parametrize(
    "text",
    ["", "0.3-beta", "1.", ".1", "01.2", "1.2.3.4.5", "٣.1", "1,2", "0.2\n", " 0.2", "9999999999", "vv1", "latest"],
)
def test_what_is_no_version_is_refused_with_what_to_write(text: str) -> None:
    for ask in (bump, version_parts):
        with pytest.raises(MigrationError, match="Write one to four numbers") as caught:
            ask(text)
        assert caught.value.code == "invalid_version"


def test_an_unknown_change_lists_those_that_there_are() -> None:
    with pytest.raises(ValueError, match="Use one of rename, removed, breaking, added, fixed"):
        bump("0.2", "refactored")


@given(VERSIONS, st.sampled_from(sorted(CHANGES)))
def test_a_version_that_was_counted_up_is_newer(version: str, change: str) -> None:
    assert compare_versions(bump(version, change), version) == 1


@given(NUMBERS, NUMBERS)
def test_the_order_is_that_of_the_numbers(left: list[int], right: list[int]) -> None:
    wide = [[*numbers, *[0] * (4 - len(numbers))] for numbers in (left, right)]
    expected = (wide[0] > wide[1]) - (wide[0] < wide[1])

    assert compare_versions(".".join(map(str, left)), ".".join(map(str, right))) == expected
