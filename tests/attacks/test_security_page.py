"""The page of security names each test of the attacks, and for each claim of the threat model a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

from tests.shared import ROOT


def test_the_page_has_every_attack() -> None:
    here = Path(__file__).parent
    sources = "".join(one.read_text() for one in here.glob("test_*.py"))
    tests = re.findall(r"^async def (test_\w+)", sources, re.MULTILINE)
    page = (ROOT / "docs" / "security" / "threat-model.md").read_text("utf-8")
    assert sorted(re.findall(r"`(test_\w+)` \|$", page, re.MULTILINE)) == sorted(tests)


def test_each_claim_of_the_threat_model_names_tests_that_exist() -> None:
    page = (ROOT / "docs" / "security" / "threat-model.md").read_text("utf-8")
    claims = re.findall(
        r"^\| (.+) \| ([\d, ]+) \| (.+) \|$", page.partition("### Claims")[2].partition("\n### ")[0], re.MULTILINE
    )
    attackers = set(re.findall(r"^(\d)\. ", page.partition("### Attackers")[2].partition("\n### ")[0], re.MULTILINE))

    assert len(claims) >= 30
    assert {number for _, by, _ in claims for number in by.split(", ")} == attackers
    for claim, _, tests in claims:
        named = [re.fullmatch(r"`(tests/[\w/]+\.py)::(test_\w+)`", one) for one in tests.split(", ")]
        assert all(named), claim
        for one in named:
            assert one
            source = (ROOT / one[1]).read_text("utf-8")
            assert re.search(rf"^(?:async )?def {one[2]}\(", source, re.MULTILINE), one[0]


def test_what_the_page_says_of_tests_elsewhere_is_there() -> None:
    page = (ROOT / "docs" / "security" / "threat-model.md").read_text("utf-8")
    named = re.findall(r"`(tests/\w+/\w+\.py)::(test_\w+)`", page)

    assert named
    for file, test in named:
        assert re.search(rf"^(?:async )?def {test}\(", (ROOT / file).read_text("utf-8"), re.MULTILINE), (file, test)
