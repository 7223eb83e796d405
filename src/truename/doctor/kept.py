"""Findings about the tool names that a client keeps: permissions, blocks and hooks that match nothing, or another tool.

What can't be known is not held against a file: names of a server that was not asked, and of servers that a client has
from elsewhere (an account's connectors, plugins).
"""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.clients.kept import matches, respelled
from truename.conventions import Finding, Location
from truename.doctor.files import dotted, place
from truename.doctor.rules import RULES
from truename.doctor.tools import confidence, listed
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from truename.clients import Found, KeptName
    from truename.conventions import Rule
    from truename.doctor.case import Case, Server

__all__ = ["about_kept"]

# Keys of servers that stand in no file: connectors of an account, servers that plugins bring.
_FROM_ELSEWHERE: Final = re.compile(r"claude[._]ai[ _]|plugin[_:]")
_WILD: Final = re.compile(r"[*?\[]")
# Below this, two names are words of one family (delete_issue, create_issue), and a guess would do harm.
_ALIKE: Final = 0.85
_EFFECTS: Final = {
    "allow": "allows",
    "deny": "denies",
    "ask": "asks about",
    "only": "offers",
    "without": "leaves out",
    "hook": "watches",
}


class _Kept(NamedTuple):
    """A kept name and the file in which it was found."""

    found: Found
    name: KeptName


def about_kept(case: Case) -> Iterator[Finding]:
    """Tell of kept names that match none of the client's tools, or stand for several of which one is run."""
    servers = _servers(case)
    strangers: defaultdict[tuple[str, str], list[_Kept]] = defaultdict(list)
    for kept in _of(case.files):
        mine = [key for key in servers if matches(kept.name, key, None)]
        if not mine:
            if not _FROM_ELSEWHERE.match(kept.name.server or ""):
                strangers[str(kept.name.path), kept.name.server or ""].append(kept)
        elif kept.name.tool is not None:
            yield from _about_one(case, kept, {key: servers[key] for key in mine})
    for (_, server), several in strangers.items():
        yield _stranger(case, server, several, servers)


def _of(files: Iterable[Found]) -> Iterator[_Kept]:
    seen: set[tuple[object, ...]] = set()
    for found in files:
        for name in found.kept:
            # A file that is of two scopes is found twice.
            mark = (name.path, name.where, name.text)
            if mark not in seen:
                seen.add(mark)
                yield _Kept(found, name)


def _servers(case: Case) -> Mapping[str, Server | None]:
    """Return every server that the client's files configure, switched off or of another project too (then None)."""
    known: dict[str, Server | None] = {one.server.key: None for found in case.files for one in found.servers}
    known.update({server.key: server for server in case.lists.servers if server.definitions is not None})
    return known


def _about_one(case: Case, kept: _Kept, mine: Mapping[str, Server | None]) -> Iterator[Finding]:
    asked = {key: server for key, server in mine.items() if server is not None}
    if len(asked) < len(mine):
        return
    fates = case.bare.by_key
    meant = [
        (key, tool)
        for key, server in asked.items()
        for tool in server.definitions or ()
        if matches(kept.name, key, tool, fates[key, tool].shown)
    ]
    if not meant:
        yield _unmatched(case, kept, asked)
    elif len(meant) > 1 and not _WILD.search(kept.name.text):
        together = [keys for keys in case.bare.groups.values() if set(meant) <= set(keys)]
        reached = fates[meant[0]].reaches
        if together and reached is not None:
            tools = [tool for _, tool in meant]
            fact = (
                f"{excerpt(kept.name.text)} stands for {listed(tools)}, and {case.called} runs {excerpt(reached[1])}."
            )
            yield _finding(case, kept, RULES["kept_name_elsewhere"], fact, _connect(case))


def _unmatched(case: Case, kept: _Kept, asked: Mapping[str, Server]) -> Finding:
    owners = {name: key for key, server in asked.items() for name in server.definitions or ()}
    near = difflib.get_close_matches(kept.name.tool or "", owners, 1, _ALIKE)
    meant = respelled(kept.name, kept.name.server or owners[near[0]], near[0]) if near else ""
    remedy = f"Did you mean {excerpt(meant)}?" if near else "Remove it, or correct it."
    doing = _EFFECTS.get(kept.name.effect, "means")
    fact = f"{excerpt(kept.name.text)} {doing} no tool: {listed(list(asked))} has none of that name."
    return _finding(case, kept, RULES["kept_name_unmatched"], fact, remedy)


def _stranger(case: Case, server: str, several: list[_Kept], known: Iterable[str]) -> Finding:
    names = listed([one.name.text for one in several], 2)
    whose = f"the server {excerpt(server, 64)}, which" if server else "a server that"
    verb = "means" if len(several) == 1 else "mean"
    fact = f"{names} {verb} {whose} no file of {case.called} configures."
    near = difflib.get_close_matches(server, known, 1, _ALIKE)
    if near:
        # A slip of the pen: what it should deny or allow is there.
        remedy = f"Did you mean the server {excerpt(near[0], 64)}?"
        return _finding(case, several[0], RULES["kept_name_unmatched"], fact, remedy)
    return _finding(case, several[0], RULES["kept_name_of_no_server"], fact, "Remove what is no longer used.")


def _connect(case: Case) -> str:
    return f"{case.remedy} gives each tool a name of its own, and carries the list over."


def _finding(case: Case, kept: _Kept, rule: Rule, *said: str) -> Finding:
    fact, remedy = said
    name = kept.name
    here = (
        place(kept.found, name.where)
        if name.path == kept.found.path
        else Location(file=str(name.path), key=dotted(name.where))
    )
    return Finding(
        rule=rule,
        fact=fact,
        remedy=remedy,
        location=here,
        client=case.name,
        confidence=confidence(case),
        server=name.server or "",
        tools=(name.tool,) if name.tool else (),
    )
