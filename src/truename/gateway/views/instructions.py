"""Instructions: what the servers of a view say of their use, each under its key, in the configuration's order.

They are texts for a model, like descriptions: tools are mentioned by the names that the client knows. They depend on
the view and its context alone, never on the connection.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from truename.gateway.upstream_errors import printable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from truename.catalog import Tool
    from truename.config import Settings
    from truename.gateway.views.view import View

__all__ = ["instructions"]

_LONGEST_KEY: Final = 100
# A heading of a server's own stays below ours: none can begin another server's instructions.
_HEADING: Final = re.compile(r"^([ \t]*)(?=#)", re.MULTILINE)
_BREAKS: Final = re.compile(r"\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_CUT: Final = " [...]"


def instructions(servers: Collection[str], said: Mapping[str, str], shown: View, settings: Settings) -> str:
    """Return what a client of this view is told, as far as the settings' limits allow; nothing if there is nothing.

    ``servers`` are the keys of those that there are for it, ``said`` is what may be shown of what each says. One
    server's own path has that server's text alone. A server of whose tools a client may see none says nothing.
    """
    only = shown.spec.only
    if only is not None:
        alone = [only] if only in servers else []
        return "\n".join(text for _, text in _said(alone, said, shown, settings))[: settings.max_instructions]
    left, sections = settings.max_instructions, list[str]()
    for key, text in _said(servers, said, shown, settings):
        section = f"## {printable(key, _LONGEST_KEY)}\n\n" + _HEADING.sub(r"\1##", text)
        if len(section) > left:
            break
        sections.append(section)
        left -= len(section) + 2
    return "\n\n".join(sections)


def _said(
    servers: Collection[str], said: Mapping[str, str], shown: View, settings: Settings
) -> Iterator[tuple[str, str]]:
    most, seen = settings.server_instructions, {tool.origin.server for tool in _tools(shown)}
    having = {tool.origin.server for tool in shown.table.catalog.values()}
    for key in servers:
        all_of_it = said.get(key, "")
        # Twice the room: names that are shown may be shorter.
        text = _BREAKS.sub("\n", all_of_it[: 2 * most]).strip() if most else ""
        if text and (key in seen or key not in having):
            read = shown.texts.plain(key, text)
            is_whole = len(read) <= most and len(all_of_it) <= 2 * most
            yield key, read if is_whole else f"{read[: max(0, most - len(_CUT))]}{_CUT}"[:most]


def _tools(shown: View) -> Iterator[Tool]:
    catalog = shown.table.catalog
    return (catalog[id] for id, _ in shown.described if id in catalog)
