"""The pages of security name each test of the attacks, and for each claim a test that exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tests.shared import ROOT

_ATTACKS: Final = (ROOT / "docs" / "measurements" / "attacks.md").read_text("utf-8")
_CLAIMS: Final = (ROOT / "docs" / "security" / "claims.md").read_text("utf-8")
_THREAT_MODEL: Final = (ROOT / "docs" / "security" / "threat-model.md").read_text("utf-8")


def test_the_page_has_every_attack() -> None:
    here = Path(__file__).parent
    sources = "".join(one.read_text() for one in here.glob("test_*.py"))
    tests = re.findall(r"^async def (test_\w+)", sources, re.MULTILINE)
    assert sorted(re.findall(r"`(test_\w+)` \|$", _ATTACKS, re.MULTILINE)) == sorted(tests)


def test_each_claim_names_tests_that_exist_and_attackers_of_the_threat_model() -> None:
    claims = re.findall(r"^\| (.+) \| ([\d, ]+) \| (.+) \|$", _CLAIMS, re.MULTILINE)
    listed = _THREAT_MODEL.partition("\n## Attackers\n")[2].partition("\n## ")[0]
    attackers = set(re.findall(r"^(\d)\. ", listed, re.MULTILINE))

    assert len(claims) >= 43
    assert {number for _, by, _ in claims for number in by.split(", ")} == attackers
    for claim, _, tests in claims:
        named = [re.fullmatch(r"`(tests/[\w/]+\.py)::(test_\w+)`", one) for one in tests.split(", ")]
        assert all(named), claim
        for one in named:
            assert one
            source = (ROOT / one[1]).read_text("utf-8")
            assert re.search(rf"^(?:async )?def {one[2]}\(", source, re.MULTILINE), one[0]


def test_the_tests_that_the_page_of_attacks_names_elsewhere_exist() -> None:
    named = re.findall(r"`(tests/\w+/\w+\.py)::(test_\w+)`", _ATTACKS)

    assert named
    for file, test in named:
        assert re.search(rf"^(?:async )?def {test}\(", (ROOT / file).read_text("utf-8"), re.MULTILINE), (file, test)
