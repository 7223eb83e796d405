"""How clients show a name: ``mcp__kenny__fs_list`` stands in permissions, allow lists and prompts.

The spellings come from the dialects, name by name; none is ever taken apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from truename import dialects
from truename.identity import fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["spellings"]


def spellings(renames: Mapping[str, str], servers: Iterable[str]) -> dict[str, str]:
    """Return what clients show for the old names of these servers, and what they will show for the new ones.

    A spelling that two names share, that is itself a name of the plan, or that has nothing of the server in it, is
    left out: what it means is not certain.

    >>> spellings({"fs_ls": "fs_list"}, ["kenny"])["mcp__kenny__fs_ls"]
    'mcp__kenny__fs_list'
    """
    found: dict[str, set[str]] = {}
    for old, new in _shown(renames, tuple(servers)):
        found.setdefault(old, set()).add(new)
    own = {*renames, *renames.values()}
    return {
        old: new
        for old, options in found.items()
        if len(options) == 1 and old not in own and (new := next(iter(options))) != old
    }


def _shown(renames: Mapping[str, str], servers: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for dialect in dialects.table():
        for server in servers:
            for old, new in renames.items():
                before, after = dialect.shown(server, old), dialect.shown(server, new)
                if before is not None and after is not None and fold(before) != fold(old):
                    yield before, after
