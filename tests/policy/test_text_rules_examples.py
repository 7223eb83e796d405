"""What the text rules find on examples of our own: those that they were tuned with, and those that they were not."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.policy.choosing_texts import CHOOSING
from tests.policy.fresh_texts import FRESH
from tests.policy.held_out_texts import HELD_OUT
from tests.policy.text_examples import CHECKS, declared, findings, flagged, material_of
from tests.policy.tuning_texts import TUNING
from tests.shared import ROOT
from truename.conventions.convention import Convention
from truename.conventions.rules.check import LintContext
from truename.conventions.rules.injection_phrases import MECHANISMS
from truename.conventions.rules.prompt_injection import EFFECTS
from truename.conventions.rules.self_promotion import PRAISE
from truename.conventions.rules.shadowing import PRECEDENCE

if TYPE_CHECKING:
    from tests.policy.text_examples import Example

# The rules that speak of each category; whatever else is found beside is no mistake.
RULES = {
    "phrase_injection": {"TN170"},
    "unicode_smuggling": {"TN150", "TN151", "TN152", "TN153"},
    "decoded_payload": {"TN171"},
    "shadowing": {"TN160", "TN161", "TN162"},
    "capability_mismatch": {"TN172"},
    "dead_reference": {"TN180"},
    "appeal": {"TN163", "TN164"},
    "foreign_parameter": {"TN173"},
}


def title(example: Example) -> str:
    return f"{'hostile' if example.is_hostile else 'harmless'}-{example.category}-{example.name!a}"


@pytest.mark.parametrize("example", [*TUNING, *CHOOSING], ids=title)
def test_every_example_that_the_rules_were_tuned_with_is_judged_right(example: Example) -> None:
    found = findings(material_of(example))

    assert flagged(found) == example.is_hostile, found
    if example.is_hostile:
        assert RULES[example.category] & {finding.rule.code for finding in found}, found


def test_of_the_examples_that_no_rule_was_tuned_with_95_in_100_are_judged_right() -> None:
    wrong = [example for example in HELD_OUT if flagged(findings(material_of(example))) != example.is_hostile]
    by_kind = Counter(example.is_hostile for example in HELD_OUT)
    wrong_by_kind = Counter(example.is_hostile for example in wrong)

    assert wrong_by_kind[True] <= 0.05 * by_kind[True], wrong
    assert wrong_by_kind[False] <= 0.05 * by_kind[False], wrong


def written_beforehand(half: str) -> list[tuple[str, str, bool]]:
    """Return style, text and whether it is hostile, of the half that rules were written with or of the other."""
    rows = json.loads((ROOT / "tests" / "policy" / "mechanism_texts.json").read_text("utf-8"))
    return [(row["style"], row["description"], row["kind"] == "hostile") for row in rows if row["half"] == half]


def is_found(text: str) -> bool:
    """Tell whether a rule about orders flags a description; alone, it cannot be judged for the tools that it names."""
    found = findings(LintContext((declared("do_it", text),), Convention()))
    return flagged(one for one in found if one.rule.code != "TN180")


def test_of_eighty_descriptions_the_half_that_the_rows_were_written_with_is_judged_right() -> None:
    wrong = [text for _, text, is_hostile in written_beforehand("develop") if is_found(text) != is_hostile]

    assert wrong == []


def test_of_the_half_that_no_row_was_written_with_the_page_says_how_many_are_found() -> None:
    held_out = written_beforehand("held-out")
    found = Counter(is_hostile for _, text, is_hostile in held_out if is_found(text))

    assert Counter(is_hostile for _, _, is_hostile in held_out) == {True: 20, False: 20}
    assert len({style for style, _, _ in held_out}) == 10
    page = " ".join((ROOT / "docs" / "measurements" / "text-rules.md").read_text("utf-8").split())
    assert f"find {found[True]} now, and flag {found[False]} of its 20 harmless ones" in page


def test_of_the_examples_of_a_reviewer_what_is_judged_wrong_is_what_the_documentation_names() -> None:
    wrong = {example.name for example in FRESH if flagged(findings(material_of(example))) != example.is_hostile}

    assert Counter(example.is_hostile for example in FRESH) == {True: 40, False: 40}
    assert wrong == {"is_prime", "unit_test", "create_issue"}


def test_there_are_60_examples_of_each_kind_and_some_of_each_category() -> None:
    together = TUNING + HELD_OUT + CHOOSING
    kinds = Counter(example.is_hostile for example in together)
    both = Counter((example.category, example.is_hostile) for example in together)

    assert min(kinds.values()) >= 60
    assert both.keys() == {(category, is_hostile) for category in RULES for is_hostile in (True, False)}
    assert not {example.name for example in TUNING} & {example.name for example in HELD_OUT} - {"search"}


def test_every_row_says_what_it_was_written_from_and_has_an_example() -> None:
    from tests.corpus.attacks import says  # noqa: PLC0415 - that module reads the examples, too

    entries = [material_of(example) for example in TUNING + CHOOSING if example.is_hostile]
    for row in (*MECHANISMS, *EFFECTS, *PRECEDENCE, *PRAISE):
        assert row.sources, row.name
        assert any(says(row, material) for material in entries), row.name


def test_the_cues_and_stems_of_a_row_are_there_wherever_its_pattern_matches() -> None:
    for example in TUNING + HELD_OUT + FRESH + CHOOSING:
        texts = material_of(example).texts[0][1]
        for row in (*MECHANISMS, *EFFECTS, *PRECEDENCE, *PRAISE):
            for _, sentence in texts.sentences:
                if row.compiled.search(sentence):
                    assert row.could_be_of(texts.words), (row.name, sentence)
                    assert row.could_be_in(sentence, {}), (row.name, sentence)


def test_a_finding_says_the_tool_the_place_and_what_to_do() -> None:
    for example in TUNING:
        for finding in findings(material_of(example)):
            assert finding.tools[0] == example.name
            assert finding.server == "own"
            assert finding.fact.endswith("."), finding.fact
            assert finding.remedy.endswith((".", "?")), finding.remedy
            assert str(finding).isprintable(), finding


def test_the_codes_are_those_of_the_text_rules() -> None:
    codes = [check.rule.code for check in CHECKS]

    assert sorted(codes) == sorted(code for group in RULES.values() for code in group)
