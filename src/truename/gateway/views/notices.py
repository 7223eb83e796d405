"""What is told of a catalogue: tools that were left out or listed twice, and names that several servers have."""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from truename.config.unmatched import idle
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.catalog import AdmissionNotice, Catalog, Tool
    from truename.config import Settings
    from truename.gateway.rate_limited_log import RateLimitedLog
    from truename.gateway.upstream.known import KnownServer
    from truename.ledger import Ledger

__all__ = ["idle_in", "report"]

_MOST_SAID: Final = 5


def report(
    notices: tuple[AdmissionNotice, ...],
    conflicts: Mapping[str, tuple[Tool, ...]],
    news: RateLimitedLog,
    unmet: tuple[str, ...] = (),
) -> None:
    """Tell what was noticed when a catalogue was made, one line for each server and cause.

    ``conflicts`` are the names that several servers have. ``unmet`` are the places of settings that are about no tool.
    """
    by_cause: defaultdict[tuple[str, str], list[AdmissionNotice]] = defaultdict(list)
    for notice in notices:
        by_cause[notice.server, notice.code].append(notice)
    for cause, found in by_cause.items():
        names = frozenset(notice.name for notice in found)
        news.tell(("notice", cause), _summary(found), about=(len(found), names))
    for name, tools in conflicts.items():
        servers = " and ".join(excerpt(tool.origin.server) for tool in tools)
        text = f"the tool name {excerpt(name)} is used by {servers}"
        news.tell(("conflict", name), text, level=logging.INFO)
    if unmet:
        more = f" and {len(unmet) - _MOST_SAID:,} more" if len(unmet) > _MOST_SAID else ""
        shown = ", ".join(unmet[:_MOST_SAID]) + more
        news.tell("idle", f"the settings name tools that no server has: {shown}", about=unmet)


def idle_in(
    settings: Settings, catalog: Catalog, pool: Mapping[str, KnownServer], ledger: Ledger | None
) -> tuple[str, ...]:
    """Return where settings are about no tool at all, as soon as every server has listed its tools."""
    if any(upstream.tools is None for upstream in pool.values()):
        return ()
    declared = ((key, upstream.config.identity.versions) for key, upstream in pool.items())
    versions = (
        f"[servers.{key}.versions] {excerpt(name)}"
        for key, names in declared
        if names
        for name in names.keys() - {tool.origin.name for tool in catalog.of_server(key)}
    )
    return (*versions, *idle(settings, catalog, ledger))


def _summary(found: list[AdmissionNotice]) -> str:
    first = found[0]
    if len(found) == 1:
        return first.text
    what = "are listed twice" if first.code == "duplicate" else "are omitted"
    return f"{len(found):,} tools of {excerpt(first.server)} {what}; the first: {first.text}"
