"""Screening: what the linter's rules about texts and look-alikes say of tools that were not seen before."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from truename.policy import Convention, Declaration, lint
from truename.policy.rules import CHECKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from truename.catalog import Tool
    from truename.identity import ToolId
    from truename.policy import Finding

__all__ = ["SCREENED", "screened"]

SCREENED: Final = frozenset(
    {
        *("TN150", "TN151", "TN152", "TN153"),
        *("TN160", "TN161", "TN162"),
        *("TN170", "TN171", "TN172"),
    }
)
"""The rules that admission asks: characters, look-alikes, orders in texts. Names' style is a team's own matter."""

_ALONE: Final = Convention(
    severities={check.rule.code: None for check in CHECKS.values() if check.rule.code not in SCREENED}
)


def screened(new: Sequence[Tool], trusted: Iterable[Tool]) -> Mapping[ToolId, Sequence[Finding]]:
    """Return what is found about new tools beside those that are trusted, by id.

    Nothing is found about the trusted ones: who was there first is not the one who imitates.
    """
    ids = {(tool.origin.server_id, tool.origin.name): tool.id for tool in new}
    # Of the present list of a tool that changed only the new definition counts.
    peers = [_declared(tool) for tool in trusted if (tool.origin.server_id, tool.origin.name) not in ids]
    found: defaultdict[ToolId, list[Finding]] = defaultdict(list)
    for finding in lint([_declared(tool) for tool in new], _ALONE, peers).findings:
        id = ids.get((finding.server, finding.tools[0])) if finding.tools else None
        if id is not None:
            found[id].append(finding)
    return found


def _declared(tool: Tool) -> Declaration:
    return Declaration(name=tool.origin.name, server=tool.origin.server_id, definition=tool.definition)
