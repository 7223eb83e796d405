"""The pages about policy run: their Python, their TOML, and the codes that they explain."""

from __future__ import annotations

import re
import tomllib

from tests.shared import ROOT
from truename.policy import read_policy
from truename.policy.policy import NAMES_NOTHING, UNGUARDED

PAGE = "".join((ROOT / "docs" / "gateway" / name).read_text("utf-8") for name in ("policy.md", "policy-in-python.md"))


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}[^\n]*\n(.*?)```", PAGE, re.DOTALL)


def test_the_page_s_example_runs() -> None:
    (example,) = blocks("python")
    exec(compile(example, "docs/gateway/policy-in-python.md", "exec"), {})


def test_the_page_s_rules_are_read() -> None:
    policies = [read_policy(tomllib.loads(rules)["policy"]) for rules in blocks("toml")]

    outcomes = [[rule.outcome for rule in policy.rules] for policy in policies]
    assert outcomes == [["deny", "ask"], ["allow"], ["ask"], ["deny"]]


def test_the_page_explains_each_code() -> None:
    for rule in (NAMES_NOTHING, UNGUARDED):
        assert f"**{rule.code} {rule.name}**" in PAGE
