"""Settings that name tools which there are not: told, for a rule with a slip in it holds nothing."""

from __future__ import annotations

from typing import Any

import pytest

from truename import Catalog, Ledger
from truename.config import Settings
from truename.config.unmatched import idle
from truename.policy import CallRule, Policy
from truename.policy.presentation import Presentation
from truename.policy.profiles import Profile, Profiles

TOOLS = Catalog.from_mcp({"git": ["push", "pull"], "docs": ["search"]})


def ruled(*tools: str, but: tuple[str, ...] = ()) -> Settings:
    return Settings(policy=Policy(rules=[CallRule(name="careful", outcome="deny", tools=tools, but=but)]))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (Settings(), ()),
        (ruled("*", "*/*", "*/drop*", "git/*", "git/delete_*", "g*t/none", "GIT/push", "git@1/push@1"), ()),
        (ruled("gti/push", "git/psuh", "gti/*", "git@2/push"), ("gti/push", "git/psuh", "gti/*", "git@2/push")),
        (ruled("git/*", but=("git/pul",)), ("git/pul",)),
    ],
)
def test_a_rule_is_idle_where_it_names_what_there_is_not_and_not_where_it_describes_what_may_come(
    settings: Settings, told: tuple[str, ...]
) -> None:
    assert idle(settings, TOOLS) == tuple(f"rule 'careful': '{glob}'" for glob in told)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"profiles": Profiles({"ops": Profile(tools=("gti/*",), everyone=True)})}, "profile 'ops': 'gti/*'"),
        ({"profiles": Profiles({"ops": Profile(servers=("x",), excluded=("a/b",))})}, "profile 'ops': 'a/b'"),
        ({"metadata": {"docs/saerch": {"app": "docs"}}}, "[metadata] 'docs/saerch'"),
        ({"pinned": ("docs/find",)}, "pinned: 'docs/find'"),
        ({"tools": Presentation({"docs/f*": {"title": "Find"}})}, "[tools] 'docs/f*'"),
    ],
)
def test_every_place_that_names_tools_is_looked_at(more: dict[str, Any], told: str) -> None:
    assert idle(Settings(**more), TOOLS) == (told,)


def test_where_servers_are_missing_nothing_is_told() -> None:
    assert idle(Settings(tools=Presentation().partly(), pinned=("docs/find",)), TOOLS) == ()


def test_a_rule_about_a_tool_s_former_id_is_about_that_tool() -> None:
    ledger = Ledger.memory()
    ledger.redirect("code/push", "git@1/push@1")
    assert idle(ruled("code/push"), TOOLS, ledger) == ()
    assert idle(ruled("code/push"), TOOLS) == ("rule 'careful': 'code/push'",)
