"""The page of rules says of each rule what the rule itself says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.shared import ROOT
from truename.clients.doctor import RULES

if TYPE_CHECKING:
    from truename.conventions import Rule

PAGE = (ROOT / "docs" / "reference" / "doctor.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^### (TN\d{3} [a-z_]+)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))


def test_every_rule_has_a_section_in_the_order_of_codes_and_no_other_has() -> None:
    assert list(SECTIONS) == sorted(f"{rule.code} {rule.name}" for rule in RULES.values())


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.code)
def test_a_section_says_what_why_an_example_and_a_remedy(rule: Rule) -> None:
    section = SECTIONS[f"{rule.code} {rule.name}"]

    assert f"*{rule.severity.value}* - {rule.what} {rule.why}\n" in section
    assert re.search(r"^- Example: .+\.$", section, re.MULTILINE)
    assert re.search(r"^- Remedy: .+\.$", section, re.MULTILINE)


@pytest.mark.parametrize("page", ["README.md", "docs/start/quickstart.md"])
def test_the_page_is_linked_where_people_begin(page: str) -> None:
    assert "doctor.md)" in (ROOT / page).read_text("utf-8")
