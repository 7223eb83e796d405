"""The engine: order, severities, what is taken back and what took nothing back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policy.ruling import SEED, found, tool
from truename.conventions import Convention, Declaration, Location, Suppression, lint
from truename.conventions.convention import PRESETS
from truename.conventions.rules import CHECKS

AT = Location(file="tools.py", line=3, column=5)


def test_without_a_convention_only_the_plain_one_is_asked_for() -> None:
    assert [one.rule.name for one in lint([tool("myapp.ios.scroll"), tool("a b")]).findings] == ["illegal_name"]


def test_findings_are_in_order_of_file_line_and_code() -> None:
    places = [("b.py", 1), ("a.py", 20), ("a.py", 3), ("a.py", 3)]
    names = ["Tap", "input_text", "fs.LIST", "x_v1"]
    tools = [
        tool(name, location=Location(file=file, line=line)) for name, (file, line) in zip(names, places, strict=True)
    ]
    result = lint(tools, SEED).findings

    keys = [(one.location.file, one.location.line, one.rule.code) for one in result if one.location]
    assert keys == sorted(keys)
    assert {file for file, _, _ in keys} == {"a.py", "b.py"}


def test_the_convention_says_how_bad_a_rule_is_or_that_it_is_off() -> None:
    changed = Convention.of("trailblaze", severities={"device_type": "note", "TN121": "off"})

    assert found("phone_scroll", "scrollOnPhone", "InputText", convention=changed) == ["N device_type", "N device_type"]


def test_a_suppression_takes_back_what_it_names_and_says_why() -> None:
    entry = Suppression(rule="separator", tools=("fs.*",), reason="until March")
    result = lint([tool("fs.list"), tool("net.flush")], Convention.of("trailblaze", suppressions=(entry,)))

    assert [one.tools for one in result.findings] == [("net.flush",)]
    assert [(one.finding.tools, one.reason, one.by) for one in result.suppressed] == [
        (("fs.list",), "until March", entry)
    ]
    assert result.unused == ()


def test_a_suppression_that_takes_nothing_back_is_told() -> None:
    used, stale, strange = (
        Suppression(rule="TN120", tools=("fs.*",), reason="old"),
        Suppression(rule="TN121", tools=("fs.*",), reason="old"),
        Suppression(rule="TN999", tools=("fs.*",), reason="old"),
    )
    result = lint([tool("fs.list")], Convention.of("trailblaze", suppressions=(used, stale, strange)))

    assert result.unused == (stale,)


def test_of_two_that_fit_neither_is_unused() -> None:
    both = (Suppression(rule="TN120", reason="a"), Suppression(rule="separator", tools=("fs*",), reason="b"))

    assert lint([tool("fs.list")], Convention.of("trailblaze", suppressions=both)).unused == ()


@pytest.mark.parametrize("reason", ["", "  "])
def test_without_a_reason_nothing_is_taken_back(reason: str) -> None:
    entry = Suppression(rule="TN120", reason=reason)
    result = lint(
        [tool("fs.list", location=AT, ignored={"TN120": reason})], Convention.of("trailblaze", suppressions=[entry])
    )

    assert [one.rule.name for one in result.findings] == ["separator"]
    assert (result.unused, result.unused_ignored, result.suppressed) == ((), (), ())


def test_a_comment_at_the_place_takes_back_by_code_or_by_name() -> None:
    said = {"TN120": "a trail", "casing": "a demo", "TN104": "?", "TN999": "?"}
    one = tool("MyApp.scroll", location=AT, ignored=said)
    result = lint([one, tool("net.flush")], SEED)

    assert [(gone.finding.rule.name, gone.reason, gone.by) for gone in result.suppressed] == [
        ("separator", "a trail", None),
        ("casing", "a demo", None),
    ]
    assert {kept.tools for kept in result.findings if kept.rule.name == "separator"} == {("net.flush",)}
    assert (one, "TN104") in result.unused_ignored
    assert (one, "TN999") not in result.unused_ignored


def test_every_rule_has_a_page_and_a_place_in_the_order_of_codes() -> None:
    assert list(CHECKS) == sorted(CHECKS)
    for code, check in CHECKS.items():
        rule = check.rule
        assert code == rule.code
        assert rule.name.replace("_", "").isalpha()
        assert all((rule.what, rule.why, rule.example, rule.instead))
    assert len({check.rule.name for check in CHECKS.values()}) == len(CHECKS)


NAMES = st.sampled_from(
    [
        "tap",
        "Tap",
        "tap_v2",
        "fs.list",
        "fs_list",
        "fs-list",
        "ios_x",
        "myapp_ios_x",
        "myapp_android_x",
        "a b",
        "",
        "v2",
    ]
)
TOOLS = st.builds(
    tool,
    NAMES,
    server=st.sampled_from(["", "one", "two"]),
    owner=st.sampled_from(["", "core"]),
    platforms=st.sampled_from([(), ("ios",), ("ios", "android")]),
    location=st.none() | st.builds(Location, file=st.sampled_from(["a.py", "b.py"]), line=st.integers(0, 3)),
    definition=st.sampled_from([{}, {"inputSchema": {"type": "object"}}, {"description": "Call `tap` first."}]),
)


@given(st.lists(TOOLS, max_size=8), st.sampled_from(sorted(PRESETS)), st.randoms())
def test_the_order_in_which_tools_are_given_changes_nothing(tools: list[Declaration], preset: str, random: Any) -> None:
    convention = Convention.of(preset, owners={"tap": "core"}, reserved=["fs*"], clients=["mastra", "openai"])
    shuffled = list(tools)
    random.shuffle(shuffled)

    assert lint(tools, convention).findings == lint(shuffled, convention).findings


@given(st.lists(st.builds(tool, st.text(max_size=30)), max_size=6), st.sampled_from(sorted(PRESETS)))
def test_no_name_makes_it_raise_and_what_it_says_can_be_printed(tools: list[Declaration], preset: str) -> None:
    for one in lint(tools, Convention.of(preset)).findings:
        assert str(one).isprintable()
