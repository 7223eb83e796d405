"""Judge one text as a client sees it: whether it is a tool's name, an old one, or none."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from truename import dialects
from truename.clients.kept_names import SPELLINGS, KeptName, sanitized_forms, to_glob
from truename.clients.machine import like
from truename.config.entries import is_gateway
from truename.errors import UnknownDialect, excerpt
from truename.identity import fold
from truename.naming.suggest import NameSuggester

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from truename.clients.existing_tools import ExistingTools, ReachedTools
    from truename.clients.kept_names import KeptSpelling
    from truename.clients.table import ConfigFile
    from truename.config import ServerConfig

__all__ = ["FINE", "IN_TEXT", "LONGEST", "MARK", "NOT_JUDGED", "ClientNames", "JudgingBudget", "NameVerdict"]

IN_TEXT: Final = "mcp__server__tool"
MARK: Final = "mcp__"
LONGEST: Final = 200
_CLAUDE: Final = "claude-code"
_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_-]")
_WILD: Final = re.compile(r"[*?]")
# Finding the nearest names is slow, and nobody reads more suggestions.
_MOST_ASKED: Final = 50
# Globs that begin with a wildcard are compared with every tool.
_MOST_COMPARED: Final = 5_000_000
_REMOVE: Final = "Remove it, or write the name of an existing tool."


class NameVerdict(NamedTuple):
    """What a name is: ``fine``, or one of the rules' names, with the fact, the remedy and the present text."""

    rule: str
    fact: str = ""
    remedy: str = ""
    new: str = ""
    server: str = ""


FINE: Final = NameVerdict("fine")
NOT_JUDGED: Final = NameVerdict("")
# If rows of several clients read one file, the mildest verdict counts.
_MILDEST: Final = ("fine", "", "unchecked_name", "former_name", "idle_glob", "missing_tool")


def mildness(verdict: NameVerdict) -> tuple[int, bool]:
    """Return a key that sorts the mildest verdict first; of equal ones, that with a proposal."""
    return _MILDEST.index(verdict.rule), not verdict.new


class NameReading(NamedTuple):
    """One way to read a text: the key of a server, the text before the tool, and the tool."""

    key: str
    before: str
    tool: str


class _Starts:
    """An index of the beginnings of names by server, for one spelling; all servers that fit are found."""

    def __init__(self, spelling: KeptSpelling, keys: Iterable[str]) -> None:
        before, _, self._after = spelling.tool.partition("{tool}")
        self.wholes: set[str] = set()
        self._starts: dict[str, list[str]] = {}
        for key in keys:
            for written in sanitized_forms(key):
                self.wholes.update(
                    to_glob(template.format(server=written), regular=spelling.pattern) or ""
                    for template in spelling.whole
                )
                if before:
                    self._starts.setdefault(before.format(server=written), []).append(key)
        self._lengths = sorted({len(start) for start in self._starts}, reverse=True)

    def readings(self, text: str) -> Iterator[NameReading]:
        """Yield the readings of a text, that with the longest key first."""
        if self._after and not text.endswith(self._after):
            return
        end = len(text) - len(self._after)
        for length in self._lengths:
            if length < end:
                for key in self._starts.get(text[:length], ()):
                    yield NameReading(key, text[:length], text[length:end])


@dataclass(frozen=True)
class ClientServerTools:
    """The tools behind one key of a client; ``shown`` is None if they are not known.

    ``reached`` has, if the client sees this server through the gateway only, its own names with the texts to write.
    """

    key: str
    shown: ReachedTools | None
    reached: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def names(self) -> Mapping[str, tuple[str, str]]:
        """The names, each with its server and its own name; none if they are not known."""
        return {} if self.shown is None else self.shown.names

    @cached_property
    def forms(self) -> Mapping[str, str]:
        """Every way in which clients write the names, with the name."""
        found = {form: name for name in self.names for form in reversed(sanitized_forms(name))}
        return found | {name: name for name in self.names}

    @cached_property
    def folds(self) -> Mapping[str, str]:
        return {fold(name): name for name in self.forms.values()}

    @cached_property
    def former(self) -> Mapping[str, str]:
        former = {} if self.shown is None else self.shown.former
        return {form: new for old, new in former.items() for form in sanitized_forms(old)}

    @cached_property
    def ordered(self) -> Sequence[str]:
        return sorted(self.forms)

    @cached_property
    def suggester(self) -> NameSuggester:
        return NameSuggester(sorted(set(self.forms.values())))

    def is_held(self, tool: str) -> bool:
        return self.shown is not None and self.shown.is_held(tool)


class JudgingBudget:
    """What one run may spend on suggestions and on comparisons of globs."""

    def __init__(self) -> None:
        self._asked = 0
        self._compared = 0

    def nearest(self, server: ClientServerTools, tool: str) -> str:
        """Return the tool with the nearest name; "" if there is none, or too many were asked for."""
        self._asked += 1
        near = server.suggester.nearest(tool, 1) if self._asked <= _MOST_ASKED else ()
        return near[0] if near else ""

    def matches(self, server: ClientServerTools, glob: str) -> bool | None:
        """Return whether a glob matches a tool; None if the run has compared too much."""
        start = _WILD.split(glob, maxsplit=1)[0]
        first = bisect_left(server.ordered, start)
        last = bisect_right(server.ordered, start + "\U0010ffff")
        if glob == f"{start}*":
            return first < last
        for form in server.ordered[first:last]:
            self._compared += 1
            if self._compared > _MOST_COMPARED:
                return None
            if like(form, glob):
                return True
        return False


class ClientNames:
    """The names that one client sees in projects with these entries of servers."""

    def __init__(
        self, row: ConfigFile | None, entries: Mapping[str, ServerConfig], known: ExistingTools, budget: JudgingBudget
    ) -> None:
        self.dialect = _CLAUDE if row is None else row.dialect
        self._known, self._budget = known, budget
        self.servers: dict[str, ClientServerTools] = {}
        self._starts: dict[str, _Starts] = {}
        reached: dict[str, dict[str, tuple[str, str]]] = {}
        for key, entry in entries.items():
            if is_gateway(entry):
                behind = self.servers[key] = ClientServerTools(key, known.behind(entry, self.dialect))
                for wire, (server, own) in behind.names.items():
                    reached.setdefault(server, {})[own] = (key, wire)
            else:
                self.servers[key] = ClientServerTools(key, known.at(key))
        for key in known.listed:
            if key not in self.servers:
                self.servers[key] = ClientServerTools(key, known.at(key), reached.get(key, {}))
        self._unkeyed = {form for name in known.unkeyed for form in sanitized_forms(name)}

    def starts(self, spelling: str) -> _Starts:
        """Return the index of the beginnings of names in one spelling."""
        if spelling not in self._starts:
            self._starts[spelling] = _Starts(SPELLINGS[spelling], self.servers)
        return self._starts[spelling]

    @cached_property
    def _shown(self) -> frozenset[str]:
        """The texts of all tools as the client shows them, where it cuts or changes long names."""
        found: set[str] = set()
        try:
            rules = dialects.versions(self.dialect)
        except UnknownDialect:
            return frozenset()
        for server in self.servers.values():
            names = () if server.reached else server.names
            found.update(text for one in rules for name in names if (text := one.shown(server.key, name)))
        return frozenset(found)

    @cached_property
    def former_texts(self) -> Mapping[str, str]:
        """The texts that only an old name has, with the present text: with the server, as clients write them."""
        found: dict[str, str] = {}
        forms = (form for key in self._known.listed for form in sanitized_forms(key))
        starts = tuple(form + mark for form in forms for mark in ("__", "_", "."))
        for server in self.servers.values():
            former = {} if server.shown is None else server.shown.former
            found |= {old: new for old, new in former.items() if old.startswith(starts)}
        existing = {name for server in self.servers.values() for name in server.forms}
        return {old: new for old, new in found.items() if old not in existing}

    @cached_property
    def wire_starts(self) -> tuple[str, ...]:
        """The beginnings of names that only the gateway gives: ``mcp_git__`` if it shows ``mcp_git__log``."""
        found: dict[str, None] = {}
        for server in self.servers.values():
            for wire, (_, own) in server.names.items():
                for form in sanitized_forms(own):
                    start = wire.removesuffix(form)
                    if start.endswith("__") and start != wire:
                        found[start] = None
        return tuple(found)

    def judge(self, kept: KeptName) -> NameVerdict:
        """Judge a name in a list of this client, or one with its server in a text."""
        spelling = SPELLINGS[kept.spelling]
        glob = to_glob(kept.text.removesuffix(kept.suffix), regular=spelling.pattern)
        if kept.opaque or glob is None or not spelling.tool:
            return NOT_JUDGED
        if spelling.is_without_server:
            # Without its server, it may be the client's own tool, or any server's.
            is_owned = kept.server in self.servers and kept.tool is not None
            return self._of(kept, NameReading(kept.server or "", "", glob)) if is_owned else NOT_JUDGED
        starts = self.starts(kept.spelling)
        if glob in starts.wholes:
            return FINE
        verdicts = [self._of(kept, one) for one in starts.readings(glob)] or [self._of_unknown(kept, spelling)]
        return min(verdicts, key=mildness)

    def _of_unknown(self, kept: KeptName, spelling: KeptSpelling) -> NameVerdict:
        is_marked = spelling.tool[:3].lower() == "mcp"
        if not is_marked or kept.server is None or kept.tool is None or _WILD.search(kept.server):
            return NOT_JUDGED
        return NOT_JUDGED if kept.tool in self._unkeyed else _unchecked(kept, kept.server)

    def _of(self, kept: KeptName, reading: NameReading) -> NameVerdict:
        server, tool = self.servers[reading.key], reading.tool
        if server.shown is None:
            return FINE if tool in self._unkeyed else _unchecked(kept, server.key)
        if _WILD.search(tool):
            return self._of_glob(kept, server, tool)
        judge = self._of_reached if server.reached else self._of_seen
        return judge(kept, server, reading)

    def _of_seen(self, kept: KeptName, server: ClientServerTools, reading: NameReading) -> NameVerdict:
        """Judge a name of a server that the client reaches itself, or of the gateway."""
        tool, proposed = reading.tool, {} if server.shown is None else server.shown.proposed
        if tool in server.former:
            return _of_former(kept, server, reading)
        if (new := proposed.get(server.forms.get(tool, ""))) is not None:
            fact = f"{_quoted(kept.text)} is probably an old name: its server has {excerpt(new)} in its place."
            return NameVerdict("former_name", fact, "Decide on it: `truename renames list`.", "", server.key)
        if tool in server.forms or kept.text.removesuffix(kept.suffix) in self._shown or server.is_held(tool):
            return FINE
        return self._misspelled(kept, server, reading) or self.missing(kept, server, reading)

    def _misspelled(self, kept: KeptName, server: ClientServerTools, reading: NameReading) -> NameVerdict | None:
        name = server.folds.get(fold(reading.tool))
        if name is None and server.shown is not None:
            name = server.shown.meaning(reading.tool)
        if not name:
            return None
        fact = f"{_quoted(kept.text)} is not spelled as the tool {excerpt(name)} of {excerpt(server.key)} is."
        return _old(fact, _respelled(kept, reading, name), server)

    def _of_glob(self, kept: KeptName, server: ClientServerTools, glob: str) -> NameVerdict:
        is_match = self._budget.matches(server, glob)
        if is_match is None:
            fact = f"{_quoted(kept.text)} was not checked: there are too many globs that begin with a wildcard."
            return NameVerdict("unchecked_name", fact, "Write the names instead.", "", server.key)
        if is_match:
            return FINE
        fact = f"{_quoted(kept.text)} matches no tool of the server {excerpt(server.key)}."
        return NameVerdict("idle_glob", fact, "Correct or remove it.", "", server.key)

    def _of_reached(self, kept: KeptName, server: ClientServerTools, reading: NameReading) -> NameVerdict:
        """Judge a server's own name where the client sees the server through the gateway."""
        tool = server.former.get(reading.tool, reading.tool)
        own = server.forms.get(tool) or server.folds.get(fold(tool))
        if own is None:
            return self.missing(kept, server, reading)
        if own not in server.reached:
            return FINE
        fact = f"{_quoted(kept.text)} is the server's own name, which this client does not see behind the gateway."
        return _old(fact, _behind(kept, server, own), server)

    def missing(self, kept: KeptName, server: ClientServerTools, reading: NameReading) -> NameVerdict:
        """Return the verdict on a name that no tool has, with the nearest name."""
        fact = f"{_quoted(kept.text)} names no tool: the server {excerpt(server.key)} has no {excerpt(reading.tool)}."
        near = self._budget.nearest(server, reading.tool)
        if not near:
            return NameVerdict("missing_tool", fact, _REMOVE, "", server.key)
        text = _behind(kept, server, near) if near in server.reached else _respelled(kept, reading, near)
        return NameVerdict("missing_tool", fact, f"Did you mean {_quoted(text)}?", text, server.key)


def _of_former(kept: KeptName, server: ClientServerTools, reading: NameReading) -> NameVerdict:
    new = server.former[reading.tool]
    if not new:
        return _old(f"{_quoted(kept.text)} is a retired name: no tool has it any more.", "", server)
    fact = f"{_quoted(kept.text)} is an old name: the tool was renamed {excerpt(new)}."
    return _old(fact, _respelled(kept, reading, new), server)


def _old(fact: str, new: str, server: ClientServerTools) -> NameVerdict:
    return NameVerdict("former_name", fact, f"Write {_quoted(new)}." if new else _REMOVE, new, server.key)


def _unchecked(kept: KeptName, server: str) -> NameVerdict:
    fact = f"{_quoted(kept.text)} was not checked: no tool of the server {excerpt(server)} is known."
    return NameVerdict("unchecked_name", fact, "Name a source that has its tools: --beside FILE.", "", server)


def _quoted(text: str) -> str:
    return excerpt(text, LONGEST)


def _behind(kept: KeptName, server: ClientServerTools, own: str) -> str:
    """Return the text for a tool as the client sees it behind the gateway."""
    key, wire = server.reached[own]
    return SPELLINGS[kept.spelling].tool.format(server=key, tool=wire) + kept.suffix


def _respelled(kept: KeptName, reading: NameReading, name: str) -> str:
    """Return the text for another tool of the same server, as this client writes it."""
    written = kept.text.removesuffix(kept.suffix)
    lead, _, rest = written.partition(reading.before) if reading.before else ("", "", written)
    if kept.spelling.startswith(MARK):
        name = _ILLEGAL.sub("_", name)
    return f"{lead}{reading.before}{name}{rest[len(reading.tool) :]}{kept.suffix}"
