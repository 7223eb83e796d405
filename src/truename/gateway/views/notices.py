"""What is told of a catalogue: tools that were left out or listed twice, and names that several servers have."""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import TYPE_CHECKING

from truename.errors import excerpt

if TYPE_CHECKING:
    from truename.catalog import Catalog, Notice
    from truename.gateway.news import News

__all__ = ["report"]


def report(notices: tuple[Notice, ...], catalog: Catalog, news: News) -> None:
    """Tell what was noticed when a catalogue was made, one line for each server and cause."""
    by_cause: defaultdict[tuple[str, str], list[Notice]] = defaultdict(list)
    for notice in notices:
        by_cause[notice.server, notice.code].append(notice)
    for cause, found in by_cause.items():
        names = frozenset(notice.name for notice in found)
        news.tell(("notice", cause), _summary(found), about=(len(found), names))
    for name, tools in catalog.conflicts().items():
        servers = " and ".join(excerpt(tool.origin.server) for tool in tools)
        text = f"the tool name {excerpt(name)} is used by {servers}"
        news.tell(("conflict", name), text, level=logging.INFO)


def _summary(found: list[Notice]) -> str:
    first = found[0]
    if len(found) == 1:
        return first.text
    what = "are listed twice" if first.code == "duplicate" else "are left out"
    return f"{len(found):,} tools of {excerpt(first.server)} {what}; the first: {first.text}"
