"""Findings about what a client makes of tool names, from one prediction: one for each cause, not for each tool."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from truename.conventions import Finding
from truename.dialects.mangling import machine
from truename.doctor.rules import BY_LOSS, RULES
from truename.errors import excerpt
from truename.identity import fold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from truename.conventions import Location, Rule
    from truename.conventions.findings import Confidence
    from truename.doctor.case import Case
    from truename.doctor.prediction import Fate, Key

__all__ = ["about_tools", "confidence", "listed"]

_MOST: Final = 4
_WORST_FIRST: Final = {loss: number for number, loss in enumerate(BY_LOSS)}
_FAILS: Final = {
    "request": ("makes every request of {client} fail", "make every request of {client} fail"),
    "server": ("makes the whole server fail in {client}", "make the whole server fail in {client}"),
    "tool": ("is refused by {client}", "are refused by {client}"),
}
_CHANGES: Final = {"cut": "name_cut", "respelled": "name_respelled"}
_CHANGED: Final = {"cut": "is too long for {client}, which shows", "respelled": "is shown by {client} as"}


def about_tools(case: Case) -> Iterator[Finding]:
    """Tell everything that this client does to the tools of the case, as far as the lists are known."""
    prediction = case.bare
    alone, clashing = _parted(case)
    yield from _ignored(case)
    for (rule, server, why), fates in _grouped(case, alone).items():
        yield _found(case, rule, server, [fate.tool for fate in fates], _FACTS[rule.name](case, fates, why))
    for text, fates in clashing.items():
        yield _clash(case, text, fates)
    changes: defaultdict[tuple[str, str], list[Fate]] = defaultdict(list)
    told = {key for text in clashing for key in prediction.groups[text]}
    for fate in prediction.changed:
        # The one that is kept of several is told with them.
        if fate.key in told:
            continue
        changes[fate.change, fate.server].append(fate)
    for (change, server), fates in changes.items():
        fact = _spelled(case, change, fates)
        yield _found(case, RULES[_CHANGES[change]], server, [fate.tool for fate in fates], fact)


def confidence(case: Case) -> Confidence:
    """Return whether the client was run, or its code or documents read."""
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


def _parted(case: Case) -> tuple[list[Fate], dict[str, list[Fate]]]:
    """Part the lost tools: those lost by their own names, and those that became one name with others."""
    names = {key: text for text, keys in case.bare.groups.items() for key in keys}
    alone: list[Fate] = []
    clashing: defaultdict[str, list[Fate]] = defaultdict(list)
    for fate in case.bare.lost:
        if fate.key in names and fate.loss != "falls":
            clashing[names[fate.key]].append(fate)
        elif fate.loss != "falls" and not _ignores(case, fate.server):
            alone.append(fate)
    return alone, clashing


def _ignored(case: Case) -> Iterator[Finding]:
    """Tell of servers that are never connected; what is in a file is told with the file."""
    for server in () if case.files else case.lists.servers:
        if _ignores(case, server.key):
            number = _tools(len(server.definitions or ()))
            fact = (
                f"{case.called} never connects a server with the key {excerpt(server.key, 64)}, so {number} are lost."
            )
            finding = _found(case, RULES["server_ignored"], server.key, server.definitions or (), fact)
            yield replace(finding, remedy="Use letters, digits, _ and - in the key.")


def _ignores(case: Case, server: str) -> bool:
    return machine(case.dialect.mangling).ignores(server)


def _grouped(case: Case, fates: Iterable[Fate]) -> dict[tuple[Rule, str, str], list[Fate]]:
    """Group tools by what is wrong with them, where, and why in a few words."""
    twice = {(server.key, name) for server in case.lists.servers for name in server.repeated}
    groups: defaultdict[tuple[Rule, str, str], list[Fate]] = defaultdict(list)
    for fate in fates:
        why = " listed twice," if fate.loss == "refused" and fate.key in twice else _cause(case, fate)
        groups[BY_LOSS[fate.loss, fate.scope], fate.server, why].append(fate)
    return groups


def _cause(case: Case, fate: Fate) -> str:
    """Return the kind of reason for which a tool is left out: tools of one kind are told together."""
    reasons = case.dialect.check(fate.tool, fate.server) if fate.loss == "dropped" else ()
    return reasons[0].code if reasons else ""


def _fails(case: Case, fates: Sequence[Fate], why: str) -> str:
    what = _FAILS[fates[0].scope][len(fates) > 1].format(client=case.called)
    fallen = [fate for fate in case.bare.lost if fate.loss == "falls" and _falls_with(fate, fates[0])]
    along = f", and {_tools(len(fallen))} with it" if fallen else ""
    return f"{_named(fates)}{why and ','}{why} {what}{_reason(case, fates[0]) if not why else ''}{along}."


def _reason(case: Case, fate: Fate) -> str:
    reasons = case.dialect.check(fate.tool, fate.server)
    if reasons:
        return f" ({reasons[0].text})"
    equal = [key for key in case.lists.alike.get(fold(fate.tool), ()) if key != fate.key]
    return f" (it counts as the same as {_sources(equal[:1])})" if equal else ""


def _falls_with(fate: Fate, cause: Fate) -> bool:
    return cause.scope == "request" or fate.server == cause.server


def _dropped(case: Case, fates: Sequence[Fate], _why: str) -> str:
    return f"{_named(fates)} {_is(fates)} left out by {case.called}{_reason(case, fates[0])}."


def _unanswered(case: Case, fates: Sequence[Fate], _why: str) -> str:
    return f"{_named(fates)} {_is(fates)} shown by {case.called}, but a call runs nothing."


_FACTS: Final[Mapping[str, Callable[[Case, Sequence[Fate], str], str]]] = {
    "request_fails": _fails,
    "server_fails": _fails,
    "tool_refused": _fails,
    "tool_dropped": _dropped,
    "wrong_tool": _unanswered,
    # A name that clashes only with copies of itself, where it is not known which copy is kept.
    "clash_of_unknown_end": _dropped,
    "tools_merged": _dropped,
}


def _clash(case: Case, text: str, fates: Sequence[Fate]) -> Finding:
    worst = min(fates, key=lambda fate: _WORST_FIRST[fate.loss, fate.scope])
    keys = case.bare.groups[text]
    servers = dict.fromkeys(server for server, _ in keys)
    server = next(iter(servers)) if len(servers) == 1 else ""
    rule = BY_LOSS[worst.loss, worst.scope]
    tools = list(dict.fromkeys(tool for _, tool in keys))
    # Of several servers the place is that of the first: there the way out begins.
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


def _end(case: Case, worst: Fate) -> str:
    if worst.loss == "refused":
        return f", and the whole {worst.scope} fails"
    if worst.loss == "unknown":
        race = "race" in (case.dialect.mangling.equal, case.dialect.mangling.across)
        return "; which of them a call runs " + ("depends on which server is ready first" if race else "is not known")
    if worst.reaches is None:
        return ", and a call runs nothing"
    server, tool = worst.reaches
    runs = f"{excerpt(tool, 64)} of {excerpt(server, 64)}" if server != worst.server else excerpt(tool, 64)
    return f", and every call runs {runs}"


def _spelled(case: Case, change: str, fates: Sequence[Fate]) -> str:
    first, more = fates[0], len(fates) - 1
    others = f"; {_tools(more)} more {'is' if more == 1 else 'are'} too" if more else ""
    how = _CHANGED[change].format(client=case.called)
    return f"{_named([first])} {how} {excerpt(first.shown or '')}{others}."


def _named(fates: Sequence[Fate]) -> str:
    return f"{listed([fate.tool for fate in fates])} of {excerpt(fates[0].server, 64)}"


def _is(fates: Sequence[Fate]) -> str:
    return "is" if len(fates) == 1 else "are"


def _tools(number: int) -> str:
    return f"{number:,} tool{'' if number == 1 else 's'}"


def _found(case: Case, rule: Rule, server: str, tools: Iterable[str], fact: str) -> Finding:
    return Finding(
        rule=rule,
        fact=fact,
        remedy=_remedy(case),
        location=_place(case, server),
        client=case.name,
        confidence=confidence(case),
        server=server,
        tools=tuple(tools),
    )


def _place(case: Case, server: str) -> Location | None:
    return case.lists.places.get(server)


def _remedy(case: Case) -> str:
    if case.remedy:
        return f"{case.remedy} gives each tool a name that it keeps."
    return "`truename serve` gives each tool a name that every client keeps."
