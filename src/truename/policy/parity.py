"""Parity: what a policy names and what there is have to be the same tools, or the build fails.

A table that names a tool under its old name protects nothing (seed 002: the gates of mutating tools), and a tool that
changes things and is in no table is run as if it were harmless.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from truename.catalog import unfolded
from truename.policy.call import annotations_of
from truename.policy.finding import Finding, Rule, Severity
from truename.policy.globs import fits_all, fits_id
from truename.policy.terms import hint

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from truename.catalog import Catalog, Tool, Unfolded
    from truename.identity import ToolId
    from truename.policy.call_rules import CallRule
    from truename.policy.policy import Policy

__all__ = ["NAMES_NOTHING", "UNGUARDED", "parity", "table_parity"]

NAMES_NOTHING: Final = Rule(
    code="TN101",
    name="policy_names_nothing",
    severity=Severity.ERROR,
    what="A policy names a tool that no catalogue has.",
    why="It was renamed or removed, and whatever has its place now is not covered by the rule.",
)
UNGUARDED: Final = Rule(
    code="TN102",
    name="mutating_tool_unguarded",
    severity=Severity.ERROR,
    what="A tool that does not say it only reads is in no rule.",
    why="Nobody decided whether it may change things without somebody being asked.",
)


def parity(policy: Policy, *catalogs: Catalog) -> tuple[Finding, ...]:
    """Return what is wrong between a policy and the tools that there are; nothing if the build may go on.

    A glob counts as a name: one that fits no tool of any catalogue is a finding. A tool needs no rule only if it says
    ``readOnlyHint: true`` and not ``destructiveHint: true``; a rule that names all tools (``*``, or no tools) is no
    decision about any of them, and neither is the default.

    >>> from truename import Catalog
    >>> from truename.policy import CallRule, Policy
    >>> rules = [CallRule(name="gate", outcome="ask", tools=("fs.list/x", "fs/write"))]
    >>> [finding.rule.code for finding in parity(Policy(rules=rules), Catalog.of("fs/write", "fs/delete"))]
    ['TN101', 'TN102']
    """
    tools = _tools(catalogs)
    rules = tuple(policy.rules)
    named = [
        _names_nothing(glob, f"Rule {rule.name!r}")
        for rule in rules
        for glob in (*rule.tools, *rule.but)
        if not fits_all(glob) and not any(fits_id(glob, id) for tool in tools for id in _ids(tool, rule))
    ]
    return (*named, *_unguarded(tool for tool in tools if not _is_named(tool, rules)))


def table_parity(table: Iterable[str], *catalogs: Catalog, name: str = "The table") -> tuple[Finding, ...]:
    """Return what is wrong between a plain table of tools, as ids or globs on them, and the tools that there are.

    For tables outside of a `Policy`: a hook's allow list, a dispatcher's table of mutating tools (seed 002).
    """
    tools, globs = _tools(catalogs), tuple(glob for glob in table if not fits_all(glob))
    named = [_names_nothing(glob, name) for glob in globs if not any(fits_id(glob, tool.id) for tool in tools)]
    return (*named, *_unguarded(tool for tool in tools if not any(fits_id(glob, tool.id) for glob in globs)))


def is_mutating(tool: Tool) -> bool:
    """Tell whether a tool may change something: it does not say that it only reads, or says that it destroys."""
    annotations = annotations_of(tool)
    return not hint("readOnlyHint", annotations) or hint("destructiveHint", annotations)


def _tools(catalogs: Sequence[Catalog]) -> list[Tool]:
    return [tool for catalog in catalogs for tool in catalog.values()]


def _ids(tool: Tool, rule: CallRule) -> tuple[ToolId | Unfolded, ...]:
    return (tool.id,) if rule.outcome == "allow" else (tool.id, *unfolded(tool.id, tool.origin))


def _is_named(tool: Tool, rules: Iterable[CallRule]) -> bool:
    return any(not any(map(fits_all, rule.tools)) and rule.names(tool.id) for rule in rules)


def _names_nothing(glob: str, where: str) -> Finding:
    return Finding(
        rule=NAMES_NOTHING,
        fact=f"{where} names {glob!r}, and no catalogue has such a tool.",
        remedy="Write its present id, or take it out.",
    )


def _unguarded(unnamed: Iterable[Tool]) -> Iterable[Finding]:
    # A tool that two catalogues have is found if one of them says that it changes things, and once.
    for tool in {tool.id: tool for tool in unnamed if is_mutating(tool)}.values():
        yield Finding(
            rule=UNGUARDED,
            fact=f"{tool.id} may change something, and no rule names it.",
            remedy="Name it in a rule (allow, ask or deny), or have it say readOnlyHint: true.",
            server=tool.origin.server,
            tools=(tool.origin.name,),
        )
