"""The page of the attacks names each test, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from tests.shared import ROOT


def test_the_page_has_every_attack() -> None:
    here = Path(__file__).parent
    sources = "".join(one.read_text() for one in here.glob("test_*.py"))
    tests = re.findall(r"^async def (test_\w+)", sources, re.MULTILINE)
    page = (ROOT / "docs" / "security.md").read_text("utf-8")
    assert sorted(re.findall(r"`(test_\w+)` \|$", page, re.MULTILINE)) == sorted(tests)


def test_what_the_page_says_of_tests_elsewhere_is_there() -> None:
    page = (ROOT / "docs" / "security.md").read_text("utf-8")
    named = re.findall(r"`(tests/\w+/\w+\.py)::(test_\w+)`", page)

    assert named
    for file, test in named:
        assert re.search(rf"^(?:async )?def {test}\(", (ROOT / file).read_text("utf-8"), re.MULTILINE), (file, test)
