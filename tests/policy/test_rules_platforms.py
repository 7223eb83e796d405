"""Rules of platforms: the part of the name, what the tool says, and whether two tools should be one (seed 003)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.policy.ruling import found, linted, takes, texts_of, tool
from truename.conventions import Convention, Declaration, lint

TEXT = {"type": "string"}


def split(**parameters: Any) -> list[Declaration]:
    """Return one tool for each platform; ``ios`` and ``android`` are their parameters."""
    return [
        tool(name := f"myapp_{platform}_openCart", definition=takes(name, **given))
        for platform, given in parameters.items()
    ]


def test_the_platform_of_a_name_is_that_of_the_tool() -> None:
    assert found(tool("myapp_ios_scroll", platforms=("ios",))) == []
    assert found(tool("myapp_ios_scroll", platforms=("IOS",))) == []
    assert found(tool("myapp_ios_scroll", platforms=("android",))) == ["E platform_mismatch"]
    assert found(tool("myapp_ios_scroll", platforms=("ios", "android"))) == ["E platform_mismatch"]


def test_a_tool_that_says_nothing_is_for_all_platforms() -> None:
    assert found(tool("myapp_ios_scroll"), tool("tap", platforms=("ios", "android"))) == []


def test_a_platform_that_the_convention_does_not_know_is_told() -> None:
    (one,) = linted(tool("tap", platforms=("windows",)))

    assert one.fact == "The metadata of 'tap' says windows, which the convention does not know."
    assert found(tool("tap", platforms=("windows",)), convention=Convention()) == []


def test_tools_that_take_the_same_parameters_need_no_platform() -> None:
    pair = split(ios={"id": TEXT}, android={"id": {**TEXT, "description": "The id on Android."}})

    assert found(*pair) == ["W needless_platform_split"]
    assert "'myapp_android_openCart' and 'myapp_ios_openCart' take the same parameters" in texts_of(*pair)[0]


DIFFERENT: list[tuple[Any, Any]] = [
    ({"id": TEXT, "card": TEXT}, {"id": TEXT, "overlay": TEXT}),
    ({"id": TEXT}, {"id": {"type": "integer"}}),
    ({"id": TEXT}, {}),
    ({"id": {"enum": [1]}}, {"id": {"enum": ["1"]}}),
    (
        {"id": {"type": "object", "properties": {"title": TEXT}}},
        {"id": {"type": "object", "properties": {"title": {"type": "integer"}}}},
    ),
    (
        {"id": {"type": "object", "properties": {"title": TEXT}}},
        {"id": {"type": "object", "properties": {}}},
    ),
]


@pytest.mark.parametrize(("ios", "android"), DIFFERENT)
def test_schemas_that_differ_materially_are_a_good_reason(ios: Any, android: Any) -> None:
    assert found(*split(ios=ios, android=android)) == []


def test_what_has_to_be_given_is_a_difference() -> None:
    first, second = split(ios={"id": TEXT}, android={"id": TEXT})
    definition = dict(second.definition)
    definition["inputSchema"] = {**definition["inputSchema"], "required": ["id"]}

    assert found(first, tool(second.name, definition=definition)) == []


def test_only_tools_of_one_app_and_one_version_are_compared() -> None:
    names = ["myapp_ios_openCart", "payments_android_openCart", "myapp_android_openCart_v2", "android_openCart"]

    assert found(*(tool(name, definition=takes(name)) for name in names)) == []


def test_a_tool_whose_parameters_are_not_known_is_not_compared() -> None:
    assert found("myapp_ios_openCart", "myapp_android_openCart") == []


def test_three_platforms_are_told_once() -> None:
    seed = Convention.of("trailblaze", platforms=["ios", "android", "web"])

    assert found(*split(ios={}, android={}, web={}), convention=seed) == ["W needless_platform_split"]


def test_parameters_for_some_platforms_only_are_told() -> None:
    conditional = {"virtualCard": ("IOS",), "overlay": ("android",), "id": ("ios", "android"), "unbound": ()}
    (one,) = linted(tool("myapp_launch", platforms=("ios", "android"), parameter_platforms=conditional))

    assert one.rule.name == "platform_conditional_parameter"
    assert one.fact == (
        "'myapp_launch' has parameters for some of its platforms only: 'overlay' (android) and 'virtualCard' (ios)."
    )


@pytest.mark.parametrize(
    ("name", "platforms", "expected"),
    [
        ("myapp_launch", (), ["W platform_conditional_parameter"]),
        ("myapp_launch", ("ios",), []),
        ("myapp_ios_launch", (), []),
        ("myapp_android_launch", (), ["W platform_conditional_parameter"]),
    ],
)
def test_the_platforms_of_the_tool_are_what_a_parameter_is_measured_by(
    name: str, platforms: tuple[str, ...], expected: list[str]
) -> None:
    assert found(tool(name, platforms=platforms, parameter_platforms={"virtualCard": ("ios",)})) == expected


@pytest.mark.parametrize("around", [lambda inner: {"items": [inner]}, lambda inner: [inner]])
def test_a_hostile_schema_is_compared_within_bounds(around: Any) -> None:
    deep: Any = "end"
    for _ in range(5_000):
        deep = around(deep)
    pair = split(ios={"id": deep}, android={"id": deep})

    assert {one.rule.name for one in lint(pair, Convention.of("trailblaze")).findings} <= {"needless_platform_split"}
