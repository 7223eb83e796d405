"""Check a client's tools: lost or clashing names, long lists, tool names in its files that match nothing."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.catalog import estimated_tokens
from truename.clients.doctor.file_findings import dotted, location_of
from truename.clients.doctor.rules import BY_LOSS, RULES
from truename.clients.kept_names import matches, respell
from truename.conventions import Finding, Location
from truename.dialects.transformation import compile_transformation
from truename.errors import excerpt
from truename.identity import fold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from truename.clients import FoundFile, KeptName
    from truename.clients.doctor.cases import ClientCase, ExaminedServer, ServerLists
    from truename.clients.prediction import Key, ToolFate
    from truename.conventions import Rule
    from truename.conventions.findings import Confidence

__all__ = ["BUDGET", "check_kept_names", "check_limits", "check_lists", "check_tools"]

_MOST: Final = 4
_WORST_FIRST: Final = {loss: number for number, loss in enumerate(BY_LOSS)}
_FAILS: Final = {
    "request": ("makes every request of {client} fail", "make every request of {client} fail"),
    "server": ("makes the whole server fail in {client}", "make the whole server fail in {client}"),
    "tool": ("is refused by {client}", "are refused by {client}"),
}
_CHANGES: Final = {"cut": "name_cut", "respelled": "name_respelled"}
_CHANGED: Final = {"cut": "is too long for {client}, which shows", "respelled": "is shown by {client} as"}


def check_tools(case: ClientCase) -> Iterator[Finding]:
    """Yield findings about how the client treats the names of its tools."""
    prediction = case.direct
    alone, clashing = _parted(case)
    yield from _ignored(case)
    for (rule, server, why), fates in _grouped(case, alone).items():
        yield _found(case, rule, server, [fate.tool for fate in fates], _FACTS[rule.name](case, fates, why))
    for text, fates in clashing.items():
        yield _clash(case, text, fates)
    changes: defaultdict[tuple[str, str], list[ToolFate]] = defaultdict(list)
    told = {key for text in clashing for key in prediction.groups[text]}
    for fate in prediction.changed:
        # The tool that is kept of a clash is reported with the clash.
        if fate.key in told:
            continue
        changes[fate.change, fate.server].append(fate)
    for (change, server), fates in changes.items():
        first, more = fates[0], len(fates) - 1
        others = f"; {_tools(more)} more {'is' if more == 1 else 'are'} too" if more else ""
        how = _CHANGED[change].format(client=case.called)
        fact = f"{_named([first])} {how} {excerpt(first.shown or '')}{others}."
        yield _found(case, RULES[_CHANGES[change]], server, [fate.tool for fate in fates], fact)


def confidence(case: ClientCase) -> Confidence:
    """Return "run" if the client was run, "read" if its code or documentation was read."""
    return "run" if case.dialect.confidence == "run" else "read"


def listed(names: Sequence[str], most: int = _MOST) -> str:
    """Return names in quotes, the first few of many.

    >>> listed(["a", "b"]), listed(["a", "b", "c", "d", "e", "f"])
    ("'a' and 'b'", "'a', 'b', 'c', 'd' and 2 more")
    """
    shown = [excerpt(name, 64) for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most:,} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _parted(case: ClientCase) -> tuple[list[ToolFate], dict[str, list[ToolFate]]]:
    """Split the lost tools into those lost by their own names, and those that share a name with others."""
    names = {key: text for text, keys in case.direct.groups.items() for key in keys}
    alone: list[ToolFate] = []
    clashing: defaultdict[str, list[ToolFate]] = defaultdict(list)
    for fate in case.direct.lost:
        if fate.key in names and fate.loss != "falls":
            clashing[names[fate.key]].append(fate)
        elif fate.loss != "falls" and not _ignores(case, fate.server):
            alone.append(fate)
    return alone, clashing


def _ignored(case: ClientCase) -> Iterator[Finding]:
    """Yield findings about servers that the client never connects to; those in files are reported with the file."""
    for server in () if case.files else case.lists.servers:
        if _ignores(case, server.key):
            number = _tools(len(server.definitions or ()))
            fact = f"{case.called} never connects to a server called {excerpt(server.key, 64)}; {number} are lost."
            finding = _found(case, RULES["server_ignored"], server.key, server.definitions or (), fact)
            yield replace(finding, remedy="Use letters, digits, _ and - in the key.")


def _ignores(case: ClientCase, server: str) -> bool:
    return compile_transformation(case.dialect.mangling).ignores(server)


def _grouped(case: ClientCase, fates: Iterable[ToolFate]) -> dict[tuple[Rule, str, str], list[ToolFate]]:
    """Group tools by rule, server and cause: why a tool is left out (a code), or that it is listed twice."""
    twice = {(server.key, name) for server in case.lists.servers for name in server.repeated}
    groups: defaultdict[tuple[Rule, str, str], list[ToolFate]] = defaultdict(list)
    for fate in fates:
        reasons = case.dialect.check(fate.tool, fate.server) if fate.loss == "dropped" else ()
        why = reasons[0].code if reasons else ""
        if fate.loss == "refused" and fate.key in twice:
            why = " listed twice,"
        groups[BY_LOSS[fate.loss, fate.scope], fate.server, why].append(fate)
    return groups


def _fails(case: ClientCase, fates: Sequence[ToolFate], why: str) -> str:
    first = fates[0]
    what = _FAILS[first.scope][len(fates) > 1].format(client=case.called)
    fallen = [fate for fate in case.direct.lost if fate.loss == "falls"]
    if first.scope != "request":
        fallen = [fate for fate in fallen if fate.server == first.server]
    along = f", and {_tools(len(fallen))} with it" if fallen else ""
    return f"{_named(fates)}{why and ','}{why} {what}{_reason(case, first) if not why else ''}{along}."


def _reason(case: ClientCase, fate: ToolFate) -> str:
    reasons = case.dialect.check(fate.tool, fate.server)
    if reasons:
        return f" ({reasons[0].text})"
    equal = [key for key in case.lists.alike.get(fold(fate.tool), ()) if key != fate.key]
    return f" (it counts as the same as {_sources(equal[:1])})" if equal else ""


def _dropped(case: ClientCase, fates: Sequence[ToolFate], _why: str) -> str:
    return f"{_named(fates)} {_is(fates)} left out by {case.called}{_reason(case, fates[0])}."


def _unanswered(case: ClientCase, fates: Sequence[ToolFate], _why: str) -> str:
    return f"{_named(fates)} {_is(fates)} shown by {case.called}, but a call runs nothing."


_FACTS: Final[Mapping[str, Callable[[ClientCase, Sequence[ToolFate], str], str]]] = {
    "request_fails": _fails,
    "server_fails": _fails,
    "tool_refused": _fails,
    "tool_dropped": _dropped,
    "wrong_tool": _unanswered,
    # A name that clashes only with duplicates of itself, where it is unknown which one is kept.
    "clash_of_unknown_end": _dropped,
    "tools_merged": _dropped,
}


def _clash(case: ClientCase, text: str, fates: Sequence[ToolFate]) -> Finding:
    worst = min(fates, key=lambda fate: _WORST_FIRST[fate.loss, fate.scope])
    keys = case.direct.groups[text]
    servers = dict.fromkeys(server for server, _ in keys)
    server = next(iter(servers)) if len(servers) == 1 else ""
    rule = BY_LOSS[worst.loss, worst.scope]
    tools = list(dict.fromkeys(tool for _, tool in keys))
    # Of several servers, the location is the first one's.
    at = _place(case, keys[0][0])
    become = "is one name" if tools == [text] else f"become {excerpt(text)}"
    fact = f"{_sources(keys)} {become} in {case.called}{_end(case, worst)}."
    return replace(_found(case, rule, server, tools, fact), location=at)


def _sources(keys: Sequence[Key]) -> str:
    servers = list(dict.fromkeys(server for server, _ in keys))
    tools = list(dict.fromkeys(tool for _, tool in keys))
    if len(tools) == 1 and len(servers) > 1:
        return f"{excerpt(tools[0], 64)} of {listed(servers)}"
    if len(servers) == 1:
        return f"{listed(tools)} of {excerpt(servers[0], 64)}"
    return listed([f"{server}: {tool}" for server, tool in keys])


def _end(case: ClientCase, worst: ToolFate) -> str:
    if worst.loss == "refused":
        return f", and the whole {worst.scope} fails"
    if worst.loss == "unknown":
        race = "race" in (case.dialect.mangling.equal, case.dialect.mangling.across)
        return "; which of them a call runs " + ("depends on which server is ready first" if race else "is unknown")
    if worst.reaches is None:
        return ", and a call runs nothing"
    server, tool = worst.reaches
    runs = f"{excerpt(tool, 64)} of {excerpt(server, 64)}" if server != worst.server else excerpt(tool, 64)
    return f", and every call runs {runs}"


def _named(fates: Sequence[ToolFate]) -> str:
    return f"{listed([fate.tool for fate in fates])} of {excerpt(fates[0].server, 64)}"


def _is(fates: Sequence[ToolFate]) -> str:
    return "is" if len(fates) == 1 else "are"


def _tools(number: int) -> str:
    return f"{number:,} tool{'' if number == 1 else 's'}"


def _found(case: ClientCase, rule: Rule, server: str, tools: Iterable[str], fact: str) -> Finding:
    keeps = f"{case.remedy} gives each tool a name that it keeps."
    return Finding(
        rule=rule,
        fact=fact,
        remedy=keeps if case.remedy else "`truename serve` gives each tool a name that every client keeps.",
        location=_place(case, server),
        client=case.name,
        confidence=confidence(case),
        server=server,
        tools=tuple(tools),
    )


def _place(case: ClientCase, server: str) -> Location | None:
    return case.lists.places.get(server)


# Vendors advise tool search from 10,000 tokens of definitions or some thirty tools on.
BUDGET: Final = 10_000
_SEARCHED: Final = "list fewer tools, or let the client search them"


def check_lists(lists: ServerLists) -> Iterator[Finding]:
    """Yield findings about the lists of tools that do not depend on the client."""
    for server in lists.servers:
        yield from _about(server)
    behind_gateway = {server.key for server in lists.servers if server.shown is not None}
    for name, tools in lists.catalog.conflicts().items():
        servers = list(dict.fromkeys(tool.origin.server for tool in tools))
        if behind_gateway.issuperset(servers):
            continue
        spelled = tuple(dict.fromkeys(tool.origin.name for tool in tools))
        yield Finding(
            rule=RULES["shared_name"],
            fact=f"{len(servers):,} servers have {excerpt(name, 64)}: {listed(servers)}.",
            remedy="`truename names` shows unique names for them.",
            location=lists.places.get(servers[0]),
            tools=spelled,
        )
    yield from _about_weight(lists)


def check_limits(case: ClientCase) -> Iterator[Finding]:
    """Yield a finding if there are more tools than the client or provider accepts."""
    most, there = case.dialect.max_tools, case.lists.tools
    if most is not None and there > most:
        yield Finding(
            rule=RULES["too_many_tools"],
            fact=f"{case.called} accepts {most:,} tools, and there are {there:,}.",
            remedy="Disable servers that it does not need.",
            client=case.name,
            confidence=confidence(case),
        )


def _about(server: ExaminedServer) -> Iterator[Finding]:
    for name in server.repeated:
        yield Finding(
            rule=RULES["tool_listed_twice"],
            fact=f"{excerpt(server.key, 64)} lists {excerpt(name, 64)} twice.",
            remedy="Report it to the server's author; `truename serve` lists the tool once.",
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
            remedy="Report it to the server's author; Truename leaves such tools out.",
            location=server.location,
            server=server.key,
        )


def _about_weight(lists: ServerLists) -> Iterator[Finding]:
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
        remedy=f"The model reads them at each turn, and {BUDGET:,} is a sensible limit: {_SEARCHED}.",
    )


# Keys of servers that are in no file: connectors of an account, servers of plugins.
_FROM_ELSEWHERE: Final = re.compile(r"claude[._]ai[ _]|plugin[_:]")
_WILD: Final = re.compile(r"[*?\[]")
# Less similar names are often related tools (delete_issue, create_issue), for which a suggestion would do harm.
_ALIKE: Final = 0.85
_EFFECTS: Final = {
    "allow": "allows",
    "deny": "denies",
    "ask": "asks about",
    "only": "offers",
    "without": "leaves out",
    "hook": "watches",
}


class _KeptName(NamedTuple):
    """A tool name and the file in which it was found."""

    found: FoundFile
    name: KeptName


def check_kept_names(case: ClientCase) -> Iterator[Finding]:
    """Yield findings about tool names in the client's files that match no tool, or several of which only one is run."""
    # Every server in the client's files; None for those that were not asked.
    servers: dict[str, ExaminedServer | None] = {one.server.key: None for found in case.files for one in found.servers}
    servers |= {server.key: server for server in case.lists.servers if server.definitions is not None}
    strangers: defaultdict[tuple[str, str], list[_KeptName]] = defaultdict(list)
    for kept in _of(case.files):
        mine = [key for key in servers if matches(kept.name, key, None)]
        if not mine:
            if not _FROM_ELSEWHERE.match(kept.name.server or ""):
                strangers[str(kept.name.path), kept.name.server or ""].append(kept)
        elif kept.name.tool is not None:
            yield from _about_one(case, kept, {key: servers[key] for key in mine})
    for (_, server), several in strangers.items():
        yield _stranger(case, server, several, servers)


def _of(files: Iterable[FoundFile]) -> Iterator[_KeptName]:
    seen: set[tuple[object, ...]] = set()
    for found in files:
        for name in found.kept:
            # A file of two scopes is returned twice.
            mark = (name.path, name.where, name.text)
            if mark not in seen:
                seen.add(mark)
                yield _KeptName(found, name)


def _about_one(case: ClientCase, kept: _KeptName, mine: Mapping[str, ExaminedServer | None]) -> Iterator[Finding]:
    asked = {key: server for key, server in mine.items() if server is not None}
    if len(asked) < len(mine):
        return
    fates = case.direct.by_key
    meant = [
        (key, tool)
        for key, server in asked.items()
        for tool in server.definitions or ()
        if matches(kept.name, key, tool, fates[key, tool].shown)
    ]
    if not meant:
        yield _unmatched(case, kept, asked)
    elif len(meant) > 1 and not _WILD.search(kept.name.text):
        together = [keys for keys in case.direct.groups.values() if set(meant) <= set(keys)]
        reached = fates[meant[0]].reaches
        if together and reached is not None:
            tools = [tool for _, tool in meant]
            fact = f"{excerpt(kept.name.text)} matches {listed(tools)}, and {case.called} runs {excerpt(reached[1])}."
            remedy = f"{case.remedy} gives each tool a unique name, and updates the list."
            yield _finding(case, kept, RULES["kept_name_elsewhere"], fact, remedy)


def _unmatched(case: ClientCase, kept: _KeptName, asked: Mapping[str, ExaminedServer]) -> Finding:
    owners = {name: key for key, server in asked.items() for name in server.definitions or ()}
    near = difflib.get_close_matches(kept.name.tool or "", owners, 1, _ALIKE)
    meant = respell(kept.name, kept.name.server or owners[near[0]], near[0]) if near else ""
    remedy = f"Did you mean {excerpt(meant)}?" if near else "Remove it, or correct it."
    doing = _EFFECTS.get(kept.name.effect, "means")
    fact = f"{excerpt(kept.name.text)} {doing} no tool: {listed(list(asked))} has no tool of that name."
    return _finding(case, kept, RULES["kept_name_unmatched"], fact, remedy)


def _stranger(case: ClientCase, server: str, several: list[_KeptName], known: Iterable[str]) -> Finding:
    names = listed([one.name.text for one in several], 2)
    whose = f"the server {excerpt(server, 64)}, which" if server else "a server that"
    verb = "means" if len(several) == 1 else "mean"
    fact = f"{names} {verb} {whose} no file of {case.called} configures."
    near = difflib.get_close_matches(server, known, 1, _ALIKE)
    if near:
        # Probably misspelt: the server that it should allow or deny exists.
        remedy = f"Did you mean the server {excerpt(near[0], 64)}?"
        return _finding(case, several[0], RULES["kept_name_unmatched"], fact, remedy)
    return _finding(case, several[0], RULES["kept_name_of_no_server"], fact, "Remove what is no longer used.")


def _finding(case: ClientCase, kept: _KeptName, rule: Rule, *texts: str) -> Finding:
    fact, remedy = texts
    name = kept.name
    here = (
        location_of(kept.found, name.where)
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
