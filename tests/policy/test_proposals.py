"""Proposals are one-to-one: whoever follows all of them makes no two tools one."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.conventions import Convention, Declaration, lint
from truename.identity import fold

CONVENTIONS = [
    Convention(),
    Convention.of("provider-safe"),
    Convention.of("trailblaze", apps=["app"]),
    Convention.of("canonical"),
    Convention.of("mcp", clients=["openai", "anthropic"]),
]
# Few letters, every separator, digits that versions are made of.
NAMES = st.text("aAbB_-.:/ v2", max_size=7)


def proposed(tools: list[Declaration], convention: Convention) -> dict[str, str]:
    return {one.tools[0]: one.suggested for one in lint(tools, convention).findings if one.suggested}


@pytest.mark.parametrize(
    "names",
    [["get-leads", "get.leads"], ["Get_Leads", "get_leads"], ["get leads", "getLeads"], ["get-leads", "get-leads"]],
)
def test_a_name_that_two_tools_would_get_is_proposed_to_neither(names: list[str]) -> None:
    tools = [Declaration(name=name) for name in names]

    assert proposed(tools, Convention.of("provider-safe")) == {}
    assert proposed(tools[:1], Convention.of("provider-safe")) == {names[0]: "get_leads"}


def test_the_finding_says_who_has_the_name_or_would_get_it() -> None:
    convention = Convention.of("provider-safe")
    clashing = lint([Declaration(name="get-leads"), Declaration(name="get.leads")], convention).findings
    (one, _) = (one for one in clashing if one.rule.name == "separator")
    taken = lint([Declaration(name="getLeads")], convention, [Declaration(name="get_leads")]).findings

    assert (
        one.remedy
        == "'get_leads' would be correct, but 'get.leads' would get the same name: choose names that differ in a word."
    )
    assert [one.remedy.split(", ")[1].split(":")[0] for one in taken if one.rule.name == "casing"] == [
        "but 'get_leads' already exists"
    ]


def test_servers_may_have_one_name_each_unless_it_is_to_be_unique_everywhere() -> None:
    tools = [Declaration(name=name, server=name) for name in ("InputText", "Input.Text")]
    snake = Convention.of("provider-safe")

    assert proposed(tools, snake) == {"InputText": "input_text", "Input.Text": "input_text"}
    assert proposed(tools, Convention.of("provider-safe", unique="everywhere")) == {}


@given(
    st.lists(st.tuples(NAMES, st.sampled_from(["", "s", "t"])), max_size=8),
    st.lists(st.tuples(NAMES, st.sampled_from(["", "s", "t"])), max_size=3),
    st.sampled_from(CONVENTIONS),
)
def test_no_two_tools_that_follow_their_proposals_have_one_name(
    named: list[tuple[str, str]], beside: list[tuple[str, str]], convention: Convention
) -> None:
    tools = [Declaration(name=name, server=server) for name, server in named]
    peers = [Declaration(name=name, server=server) for name, server in beside]
    everywhere = convention.unique == "everywhere"
    scopes: defaultdict[str, list[str]] = defaultdict(list)
    for one in (*tools, *peers):
        scopes["" if everywhere else one.server].append(one.name)
    for finding in lint(tools, convention, peers).findings:
        scope = list(scopes["" if everywhere else finding.server])
        if finding.suggested:
            # Every tool but this one keeps its name, and every other one that has a proposal follows it.
            scope.remove(finding.tools[0])
            assert fold(finding.suggested) not in map(fold, scope)
    targets: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for finding in lint(tools, convention, peers).findings:
        if finding.suggested:
            scope_key = "" if everywhere else finding.server
            targets[scope_key, fold(finding.suggested)].add(finding.tools[0])
    assert all(len(names) == 1 for names in targets.values())
