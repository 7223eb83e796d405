"""Findings about the lists themselves: how many tools, how heavy, what is twice or nameless, which names are shared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from truename.catalog import estimated_tokens
from truename.conventions import Finding
from truename.doctor.rules import RULES
from truename.doctor.tools import confidence, listed
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.doctor.case import Case, Lists, Server

__all__ = ["BUDGET", "about_limits", "about_lists"]

# Vendors advise tool search from 10,000 tokens of definitions or some thirty tools on.
BUDGET: Final = 10_000
_SEARCHED: Final = "list fewer tools, or let the client search them"


def about_lists(lists: Lists) -> Iterator[Finding]:
    """Tell what is wrong with the lists, whatever the client."""
    for server in lists.servers:
        yield from _about(server)
    for name, tools in lists.catalog.conflicts().items():
        servers = list(dict.fromkeys(tool.origin.server for tool in tools))
        spelled = tuple(dict.fromkeys(tool.origin.name for tool in tools))
        yield Finding(
            rule=RULES["shared_name"],
            fact=f"{len(servers):,} servers have {excerpt(name, 64)}: {listed(servers)}.",
            remedy="`truename names` shows the names that tell them apart.",
            location=lists.places.get(servers[0]),
            tools=spelled,
        )
    yield from _about_weight(lists)


def about_limits(case: Case) -> Iterator[Finding]:
    """Tell whether there are more tools than the client or provider takes."""
    most, there = case.dialect.max_tools, case.lists.tools
    if most is not None and there > most:
        yield Finding(
            rule=RULES["too_many_tools"],
            fact=f"{case.called} takes {most:,} tools, and there are {there:,}.",
            remedy="Disable servers that it does not need.",
            client=case.name,
            confidence=confidence(case),
        )


def _about(server: Server) -> Iterator[Finding]:
    for name in server.repeated:
        yield Finding(
            rule=RULES["tool_listed_twice"],
            fact=f"{excerpt(server.key, 64)} lists {excerpt(name, 64)} twice.",
            remedy="Behind `truename serve` it is there once; tell the server's author.",
            location=server.location,
            server=server.key,
            tools=(name,),
        )
    if server.unusable:
        number = len(server.unusable)
        has = "has" if number == 1 else "have"
        yield Finding(
            rule=RULES["unusable_name"],
            fact=f"{number:,} of the tools of {excerpt(server.key, 64)} {has} no usable name.",
            remedy="Tell the server's author; Truename leaves such tools out.",
            location=server.location,
            server=server.key,
        )


def _about_weight(lists: Lists) -> Iterator[Finding]:
    weights = {server.key: estimated_tokens((server.definitions or {}).values()) for server in lists.servers}
    total = sum(weights.values())
    if total <= BUDGET:
        return
    heaviest = max(weights, key=weights.__getitem__)
    tools = f"{lists.tools:,} tools are" if lists.tools > 1 else "one tool are"
    most = f"; {excerpt(heaviest, 64)} alone has {weights[heaviest]:,}" if len(weights) > 1 else ""
    yield Finding(
        rule=RULES["heavy_definitions"],
        fact=f"The definitions of {tools} about {total:,} tokens a request{most}.",
        remedy=f"To be read at each turn, {BUDGET:,} is much: {_SEARCHED}.",
    )
