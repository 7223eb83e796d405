"""ToolId as a value: its laws, its order, and that nothing changes it."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename import ToolId, ToolRef
from truename.errors import InvalidToolId
from truename.identity import percent_encode, tilde_encode

NAMES = st.from_regex(r"[a-z0-9_-]{0,8}[a-z0-9][a-z0-9_-]{0,8}", fullmatch=True)
SUITES = st.none() | st.lists(NAMES, min_size=1, max_size=3).map(".".join)
VERSIONS = st.integers(min_value=1, max_value=10**18 - 1)
IDS = st.builds(ToolId, NAMES, VERSIONS, SUITES, NAMES, VERSIONS)


@given(IDS)
def test_an_id_is_read_as_it_is_written(id: ToolId) -> None:
    assert id == ToolId.parse(str(id))
    assert id == ToolId.parse(id.short)
    assert id == ToolRef.parse(str(id)).complete()


@given(IDS)
def test_an_id_survives_both_encodings_and_any_case(id: ToolId) -> None:
    text = str(id)

    assert id == ToolId.parse(percent_encode(text))
    assert id == ToolId.parse(tilde_encode(text))
    assert id == ToolId.parse(text.upper())
    assert id == ToolId.parse(text.replace("@", "@v"))


@given(IDS, IDS)
def test_ids_are_equal_exactly_when_their_texts_are(one: ToolId, other: ToolId) -> None:
    assert (str(one) == str(other)) is (one == other)
    assert one != other or hash(one) == hash(other)


@given(IDS)
def test_an_id_never_equals_a_text(id: ToolId) -> None:
    assert id != str(id)
    assert str(id) not in {id: 1}
    assert id != (id.integration, id.integration_version, id.suite, id.tool, id.version)


@given(IDS)
def test_an_id_is_the_same_after_pickling_and_copying(id: ToolId) -> None:
    for twin in (pickle.loads(pickle.dumps(id)), copy.copy(id), copy.deepcopy(id)):
        assert (id, hash(id), id.short, id.family) == (twin, hash(twin), twin.short, twin.family)


@given(st.lists(IDS, max_size=8))
def test_order_is_total_and_by_the_parts(ids: list[ToolId]) -> None:
    def parts(id: ToolId) -> tuple[Any, ...]:
        return id.integration, id.integration_version, id.suite or "", id.tool, id.version

    assert sorted(ids, key=parts) == sorted(ids)


def test_versions_are_ordered_as_numbers() -> None:
    texts = ["a@1/b@1", "a@1/b@2", "a@1/b@10", "a@2/b@1", "a@10/b@1", "b@1/a@1"]

    assert texts == [str(id) for id in sorted(map(ToolId.parse, reversed(texts)))]


def test_all_four_comparisons_work() -> None:
    one, two = ToolId.parse("a/b"), ToolId.parse("a/b@2")

    assert one < two
    assert two > one
    assert one <= two
    assert two >= one
    assert one <= ToolId.parse("a/b")


@pytest.mark.parametrize("other", ["a@1/b@1", 1, None])
def test_an_id_is_not_compared_with_anything_else(other: Any) -> None:
    with pytest.raises(TypeError):
        assert ToolId.parse("a/b") < other


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("salesforce@1/get_leads@1", "salesforce/get_leads"),
        ("salesforce@2/get_leads@1", "salesforce@2/get_leads"),
        ("data-grout@1/prism.refract@3", "data-grout/prism.refract@3"),
    ],
)
def test_the_short_form_leaves_out_versions_that_are_1(text: str, short: str) -> None:
    assert short == ToolId.parse(text).short


def test_the_parts_are_as_they_were_given() -> None:
    id = ToolId.parse("data-grout@2/prism.light.refract@3")

    assert (
        id.integration,
        id.integration_version,
        id.suite,
        id.tool,
        id.version,
    ) == ("data-grout", 2, "prism.light", "refract", 3)
    assert id.family == ("data-grout", "prism.light", "refract")
    assert repr(id) == "ToolId('data-grout@2/prism.light.refract@3')"


@pytest.mark.parametrize("name", ["tool", "version", "_text", "anything"])
def test_nothing_of_an_id_can_be_set_or_deleted(name: str) -> None:
    id = ToolId.parse("a/b")

    with pytest.raises(AttributeError, match="cannot be changed"):
        setattr(id, name, "x")
    with pytest.raises(AttributeError, match="cannot be changed"):
        delattr(id, name)

    assert str(id) == "a@1/b@1"


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        (("A", 1, None, "b", 1), "invalid_tool_id"),
        (("a", 1, None, "B", 1), "invalid_tool_id"),
        (("a", 1, "", "b", 1), "invalid_tool_id"),
        (("a", 1, "x..y", "b", 1), "invalid_tool_id"),
        (("a/b", 1, None, "c", 1), "invalid_tool_id"),
        (("a", 1, None, "b.c", 1), "invalid_tool_id"),
        (("a\n", 1, None, "b", 1), "invalid_tool_id"),
        (("a", 1, None, "b" * 600, 1), "invalid_tool_id"),
        (("a", 0, None, "b", 1), "invalid_version"),
        (("a", 1, None, "b", -1), "invalid_version"),
        (("a", 1, None, "b", True), "invalid_version"),
        (("a", 1, None, "b", 1.0), "invalid_version"),
        (("a", 1, None, "b", "1"), "invalid_version"),
        (("a", "1", None, "b", 1), "invalid_version"),
        (("a", 1, None, "b", None), "invalid_version"),
        (("a", 1, None, "b", 10**18), "invalid_version"),
    ],
)
def test_the_constructor_is_strict(parts: tuple[Any, ...], code: str) -> None:
    with pytest.raises(InvalidToolId) as caught:
        ToolId(*parts)

    assert code == caught.value.code


def test_a_version_too_large_to_be_written_is_refused_as_one() -> None:
    with pytest.raises(InvalidToolId):
        ToolId("a", 10**5_000, None, "b", 1)
