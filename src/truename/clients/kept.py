"""Tool names that clients keep in their files: in allow lists, approvals, hooks, policies and agents.

A rename breaks every one of them silently, and so does a gateway, which changes the server's part of all that have one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from truename.clients.globs import like
from truename.clients.spelling import SPELLINGS, Spelling, variants

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["KeptName", "glob_of", "matches", "respelled"]

_NOT_SIMPLE: Final = re.compile(r"[\\()\[\]{}+?^$|]")
_WILD: Final = re.compile(r"[*?]")


@dataclass(frozen=True, kw_only=True)
class KeptName:
    """A name in a client's file. Without a ``tool`` it means the whole ``server``; either may hold globs.

    ``where`` leads to the text: to a value, or to a key if ``is_key``. ``within`` is the whole text where the name is
    only a piece of it, as in a hook's ``mcp__a__x|mcp__b__y``. ``server`` is the server's key where it is known, and
    None where a name can't be taken apart (opencode's ``a_b_c``).
    ``effect`` is allow, deny or ask (a permission), only or without (what is offered), hook, alias or setting.
    ``opaque``: a regular expression that is not understood here; what it matches can't be said, so it has neither.
    """

    text: str
    spelling: str
    path: Path
    where: tuple[str | int, ...]
    server: str | None
    tool: str | None
    effect: str
    is_key: bool = False
    within: str = ""
    opaque: bool = False
    template: str = field(default="", repr=False)
    suffix: str = field(default="", repr=False)


def matches(kept: KeptName, server: str, tool: str | None, shown: str | None = None) -> bool:
    """Tell whether a kept name means this tool, or with None: may mean anything of this server.

    ``shown`` is the tool as its client shows it, if that is known. What is opaque may mean anything of any server, but
    no certain tool.

    >>> from pathlib import Path
    >>> kept = KeptName(text="mcp__a__get_*", spelling="mcp__server__tool", path=Path(), where=(), server="a",
    ...                 tool="get_*", effect="allow")
    >>> matches(kept, "a", "get_it"), matches(kept, "a", "set_it"), matches(kept, "a", None)
    (True, False, True)
    """
    spelling = SPELLINGS[kept.spelling]
    pattern = glob_of(kept.text.removesuffix(kept.suffix), regular=spelling.pattern)
    if kept.opaque or pattern is None:
        return tool is None
    if spelling.is_bare:
        return _means_bare(kept, pattern, server, tool)
    if pattern in _wholes(spelling, server) or (shown is not None and like(shown, pattern)):
        return True
    if tool is None or not spelling.tool:
        return _may_mean(kept, pattern, server, spelling)
    return any(like(form, pattern) for form in _forms(spelling, server, tool))


def respelled(kept: KeptName, server: str, tool: str | None) -> str:
    """Return the text that means the same for another server, and for another tool if one is given.

    A whole server stays a whole server, and a glob that takes the new name in stays as it is.

    >>> from pathlib import Path
    >>> kept = KeptName(text="@git/*", spelling="@server/tool", path=Path(), where=(), server="git", tool=None,
    ...                 effect="allow", template="@{server}/*")
    >>> respelled(kept, "tn", None), respelled(kept, "tn", "status")
    ('@tn/*', '@tn/status')
    """
    if kept.opaque or (server == kept.server and tool == kept.tool):
        return kept.text
    spelling = SPELLINGS[kept.spelling]
    if kept.server is None and tool is None and not spelling.is_bare:
        return kept.text
    template = kept.template or (spelling.tool if tool or kept.tool else spelling.whole[0])
    if kept.tool is None and tool is not None:
        template = ("^" if template.startswith("^") else "") + spelling.tool if spelling.tool else template
    return template.format(server=_owner(kept, server, spelling), tool=_tool(kept, tool, spelling)) + kept.suffix


def glob_of(text: str, *, regular: bool) -> str | None:
    """Return a kept text as a glob; None for a regular expression that is more than one.

    >>> glob_of("^mcp__a__.*", regular=True), glob_of("mcp__(a|b)__.*", regular=True)
    ('mcp__a__*', None)
    """
    if not regular:
        return text
    simple = text.removeprefix("^").removesuffix("$").replace(".+", ".*").replace(".*", "*")
    return None if _NOT_SIMPLE.search(simple) else simple.replace(".", "?")


def _means_bare(kept: KeptName, pattern: str, server: str, tool: str | None) -> bool:
    owned = kept.server is None or _covers(kept.server, server, regular=False)
    return owned and (tool is None or any(like(one, pattern) for one in variants(tool)))


def _may_mean(kept: KeptName, pattern: str, server: str, spelling: Spelling) -> bool:
    if kept.server is not None:
        return _covers(kept.server, server, regular=spelling.pattern)
    # It could not be taken apart: it begins as a name of this server does, or is a glob that allows it.
    start = spelling.tool.partition("{tool}")[0]
    starts = [start.format(server=owner) for owner in variants(server)]
    literal = _WILD.split(pattern)[0]
    return any(literal.startswith(one) or (literal != pattern and one.startswith(literal)) for one in starts)


def _forms(spelling: Spelling, server: str, tool: str) -> Iterator[str]:
    return (spelling.tool.format(server=owner, tool=one) for owner in variants(server) for one in variants(tool))


def _wholes(spelling: Spelling, server: str) -> set[str]:
    texts = (template.format(server=owner) for template in spelling.whole for owner in variants(server))
    return {glob for text in texts if (glob := glob_of(text, regular=spelling.pattern)) is not None}


def _owner(kept: KeptName, server: str, spelling: Spelling) -> str:
    # A piece that covers every server goes on covering them.
    known = kept.server or ""
    return known if _WILD.search(known) and _covers(known, server, regular=spelling.pattern) else server


def _tool(kept: KeptName, tool: str | None, spelling: Spelling) -> str | None:
    if tool is None or kept.tool is None or not _WILD.search(kept.tool):
        return kept.tool if tool is None else tool
    glob = glob_of(kept.tool, regular=spelling.pattern)
    return kept.tool if glob is not None and like(tool, glob) else tool


def _covers(kept: str, server: str, *, regular: bool) -> bool:
    if kept in variants(server):
        return True
    pattern = glob_of(kept, regular=regular) if _WILD.search(kept) else None
    return pattern is not None and any(like(one, pattern) for one in variants(server))
