"""The page about conventions is true: its file is read, its Python runs, its tables have every key and preset."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.shared import ROOT
from truename.config import find_convention
from truename.conventions import Convention, classify, read_convention
from truename.conventions.clauses import CLAUSES, ENDINGS
from truename.conventions.convention import PRESETS
from truename.conventions.rules import CHECKS

PAGE = (ROOT / "docs" / "teams" / "conventions.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_page_s_file_is_read() -> None:
    (text,) = blocks("toml")
    found = read_convention(tomllib.loads(text)["convention"])

    assert found.preset == "trailblaze"
    known = {word for check in CHECKS.values() for word in (check.rule.code, check.rule.name)}
    assert {rule for _, rule in found.named_rules} <= known


def test_the_page_s_example_runs() -> None:
    (example,) = blocks("python")
    exec(compile(example, "docs/teams/conventions.md", "exec"), {})


@pytest.mark.parametrize("key", ["preset", *CLAUSES])
def test_every_key_has_a_row(key: str) -> None:
    assert f"\n| `{key}` |" in PAGE


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_has_a_row(preset: str) -> None:
    assert f"\n| `{preset}` |" in PAGE


def test_the_presets_categories_are_those_of_the_page_and_its_examples_are_right() -> None:
    seed = Convention.of("trailblaze", apps=["myapp", "payments"])
    rows = re.findall(r"^\| `(\w+)` \| `(\S*\{verbNoun\})` \| `(\w+)`", PAGE, re.MULTILINE)

    assert {category: form for category, form, _ in rows} == seed.categories
    assert {category: classify(name, seed).category for category, _, name in rows} == {row[0]: row[0] for row in rows}
    assert all(f"{{{word}}}" in PAGE for word in ENDINGS)


def test_every_family_of_rules_is_in_the_table_of_what_is_found() -> None:
    spans = re.findall(r"^\| TN(\d+) to TN(\d+) \|", PAGE, re.MULTILINE)
    covered = {number for first, last in spans for number in range(int(first), int(last) + 1)}

    assert {int(code.removeprefix("TN")) for code in CHECKS} <= covered


def test_this_project_itself_has_no_convention_above_it_that_is_broken() -> None:
    find_convention(ROOT)
