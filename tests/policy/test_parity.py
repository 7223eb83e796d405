"""Parity: a policy and the tools that there are have to be the same, or the build fails."""

from __future__ import annotations

import pytest

from tests.policy.calls import tool
from truename import Catalog
from truename.conventions import Severity
from truename.policy import CallRule, Policy, parity, table_parity
from truename.policy.policy import NAMES_NOTHING, UNGUARDED

FLEET = Catalog.from_mcp(
    {
        "fs": [
            tool("list", readOnlyHint=True),
            tool("write"),
            tool("delete", destructiveHint=True),
            tool("sweep", readOnlyHint=True, destructiveHint=True),
        ],
        "net": [tool("dns_flush", readOnlyHint=False), tool("ping", readOnlyHint=True)],
    }
)
MUTATING = ("fs/write", "fs/delete", "fs/sweep", "net/dns_flush")


def found(*globs: str, but: tuple[str, ...] = ()) -> list[tuple[str, tuple[str, ...]]]:
    rules = [CallRule(name="gate", outcome="ask", tools=globs, but=but)]
    return [(finding.rule.name, finding.tools) for finding in parity(Policy(rules=rules), FLEET)]


def test_a_policy_that_names_every_mutating_tool_and_no_other_has_no_finding() -> None:
    assert found(*MUTATING) == []
    assert found("fs/*", "net/dns_*") == []
    assert table_parity(MUTATING, FLEET) == ()


@pytest.mark.parametrize("missing", MUTATING)
def test_every_mutating_tool_that_is_in_no_rule_is_found(missing: str) -> None:
    others = [glob for glob in MUTATING if glob != missing]

    assert found(*others) == [("mutating_tool_unguarded", (missing.partition("/")[2],))]
    assert [finding.rule for finding in table_parity(others, FLEET)] == [UNGUARDED]


@pytest.mark.parametrize("glob", ["fs.list/x", "fs/lst", "powershell/*", "fs@2/list", "fs/list@2"])
def test_a_name_that_no_catalogue_has_is_found(glob: str) -> None:
    assert found(*MUTATING, glob) == [("policy_names_nothing", ())]
    assert found(*MUTATING, but=(glob,)) == [("policy_names_nothing", ())]


def test_the_old_dotted_names_of_a_table_are_found_and_what_they_guarded() -> None:
    findings = table_parity(
        ["fs.write", "fs.delete", "fs/sweep", "net/dns_flush"], FLEET, name="The dispatcher's table"
    )

    assert [finding.rule for finding in findings] == [NAMES_NOTHING, NAMES_NOTHING, UNGUARDED, UNGUARDED]
    assert str(findings[0]) == (
        "The dispatcher's table names 'fs.write', and no catalogue has such a tool. Write its present id, or remove it."
    )
    assert str(findings[2]) == (
        "fs@1/write@1 may change something, and no rule names it. "
        "Name it in a rule (allow, ask or deny), or mark it with readOnlyHint: true."
    )
    assert {finding.rule.severity for finding in findings} == {Severity.ERROR}


def test_a_rule_about_everything_is_no_decision_about_anything() -> None:
    assert len(found("*")) == len(MUTATING)
    assert len(found("*", "net/dns_flush")) == len(MUTATING)
    assert len(table_parity(["*"], FLEET)) == len(MUTATING)
    assert len(parity(Policy(default="deny"), FLEET)) == len(MUTATING)


@pytest.mark.parametrize("glob", ["*/*", "*@*/*", "**/*@*", "?*/*"])
def test_a_glob_that_fits_whatever_there_is_is_one_about_everything(glob: str) -> None:
    assert len(found(glob)) == len(table_parity([glob], FLEET)) == len(MUTATING)


@pytest.mark.parametrize("order", [1, -1])
def test_a_tool_that_only_reads_in_one_catalogue_is_found_in_the_other(order: int) -> None:
    catalogs = [Catalog.from_mcp({"fs": [tool("write", readOnlyHint=only)]}) for only in (True, False)][::order]

    assert [finding.rule.code for finding in parity(Policy(), *catalogs)] == ["TN102"]
    assert [finding.rule.code for finding in table_parity([], *catalogs, *catalogs)] == ["TN102"]


def test_a_tool_that_a_rule_makes_an_exception_of_is_in_none() -> None:
    assert found("fs/*", "net/*", but=("fs/delete",)) == [("mutating_tool_unguarded", ("delete",))]


def test_several_catalogues_are_one() -> None:
    policy = Policy(rules=[CallRule(name="gate", outcome="ask", tools=("a/x", "b/y"))])

    assert parity(policy, Catalog.of("a/x"), Catalog.of("b/y", "a/x")) == ()
    assert [finding.fact for finding in parity(policy)] == [
        "Rule 'gate' names 'a/x', and no catalogue has such a tool.",
        "Rule 'gate' names 'b/y', and no catalogue has such a tool.",
    ]
