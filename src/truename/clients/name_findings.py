"""Compare the names in clients' files with the tools that exist: missing tools, old names, idle globs.

Only a name that certainly speaks of a tool is judged: one in a client's list, one with a known server in front as the
client writes it, and an old name that leads to a tool. Prose is never guessed.
"""

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
from truename.conventions import Finding, Location
from truename.conventions.file_rules import FILE_RULES
from truename.errors import UnknownDialect, excerpt
from truename.identity import fold
from truename.migration import FileRewrite
from truename.migration.rewrite import TextEdit
from truename.naming.suggest import NameSuggester

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from truename.clients.existing_tools import ExistingTools, ShownTools
    from truename.clients.kept_names import KeptSpelling
    from truename.clients.named_files import NamedFile, ProjectServers
    from truename.clients.table import ConfigFile

__all__ = ["JudgedFile", "judge_files"]

_IN_TEXT: Final = "mcp__server__tool"
_MARK: Final = "mcp__"
_CLAUDE: Final = "claude-code"
_WILD: Final = re.compile(r"[*?]")
# A word of prose; the lookbehind keeps paths, addresses and words with a name inside whole.
_TOKEN: Final = re.compile(r"(?<![A-Za-z0-9_./@:-])[A-Za-z0-9_][A-Za-z0-9_./:-]*")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")
# Behind a name, these say that the text is a pattern or the beginning of a name.
_OPEN: Final = ("*", "?", "<", "{", "[", "$", "...", "\u2026")
_PLACEHOLDERS: Final = frozenset({"tool", "tool_name", "toolname", "name", "x", "xxx", "y", "yyy"})
# Finding the nearest names is slow, and nobody reads more suggestions.
_MOST_ASKED: Final = 50
# Globs that begin with a wildcard are compared with every tool.
_MOST_COMPARED: Final = 5_000_000
# Computing a place in a document reads the whole of it.
_MOST_PLACED: Final = 500
_LONGEST: Final = 200


@dataclass(frozen=True, kw_only=True)
class JudgedFile:
    """The findings of one file, how many names were checked, and the certain corrections.

    ``edits`` are the places at which the present name may take the place of an old one.
    """

    file: NamedFile
    findings: tuple[Finding, ...] = ()
    names: int = 0
    edits: tuple[TextEdit, ...] = ()

    def corrected(self, places: Collection[tuple[int, int]]) -> FileRewrite | None:
        """Return the change that corrects the names at these lines and columns; None if there are none."""
        text, pieces, end = self.file.text, list[str](), 0
        wanted = tuple(one for one in self.edits if (one.line, one.column) in places)
        for one in wanted:
            pieces += text[end : one.start], one.new
            end = one.start + len(one.old)
        if not wanted:
            return None
        path, bom = self.file.path, self.file.bom
        before, after = f"{bom}{text}", f"{bom}{''.join(pieces)}{text[end:]}"
        return FileRewrite(path=path, before=before.encode(), after=after.encode(), target=path, edits=wanted)


class _Verdict(NamedTuple):
    """What a name is: ``fine``, or one of the rules' names, with the fact, the remedy and the present text."""

    rule: str
    fact: str = ""
    remedy: str = ""
    new: str = ""
    server: str = ""


_FINE: Final = _Verdict("fine")
_NOT_JUDGED: Final = _Verdict("")
_NOT_CHECKED: Final = ("", "unknown_server")
# If rows of several clients read one file, the mildest verdict counts.
_MILDEST: Final = ("fine", "", "unknown_server", "former_name", "idle_glob", "missing_tool")


class _Reading(NamedTuple):
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

    def readings(self, text: str) -> Iterator[_Reading]:
        """Yield the readings of a text, that with the longest key first."""
        if self._after and not text.endswith(self._after):
            return
        end = len(text) - len(self._after)
        for length in self._lengths:
            if length < end:
                for key in self._starts.get(text[:length], ()):
                    yield _Reading(key, text[:length], text[length:end])


@dataclass(frozen=True)
class _Server:
    """The tools behind one key of a client; ``shown`` is None if they are not known.

    ``reached`` has, if the client sees this server through the gateway only, its own names with the texts to write.
    """

    key: str
    shown: ShownTools | None
    reached: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @cached_property
    def forms(self) -> Mapping[str, str]:
        """Every way in which clients write the names, with the name."""
        names = () if self.shown is None else self.shown.names
        found = {form: name for name in names for form in reversed(sanitized_forms(name))}
        return found | {name: name for name in names}

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
        return NameSuggester(self.ordered)

    def is_held(self, tool: str) -> bool:
        return self.shown is not None and self.shown.is_held(tool)


class _Budget:
    """What one run may spend on suggestions and on comparisons of globs."""

    def __init__(self) -> None:
        self._asked = 0
        self._compared = 0

    def nearest(self, server: _Server, tool: str) -> str:
        self._asked += 1
        near = server.suggester.nearest(tool, 1) if self._asked <= _MOST_ASKED else ()
        return near[0] if near else ""

    def matches(self, server: _Server, glob: str) -> bool | None:
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


class _ClientNames:
    """The names that one client sees in one project."""

    def __init__(
        self, row: ConfigFile | None, root: Path, known: ExistingTools, servers: ProjectServers, budget: _Budget
    ) -> None:
        client, self.dialect = (row.client, row.dialect) if row is not None else ("", _CLAUDE)
        self._known, self._budget = known, budget
        self.servers: dict[str, _Server] = {}
        self._starts: dict[str, _Starts] = {}
        reached: dict[str, dict[str, tuple[str, str]]] = {}
        entries = servers.of(client, root)
        for key, entry in entries.items():
            if is_gateway(entry):
                shown = known.behind(entry, self.dialect)
                self.servers[key] = _Server(key, shown)
                for wire, (server, own) in ({} if shown is None else shown.names).items():
                    reached.setdefault(server, {})[own] = (key, wire)
            else:
                self.servers[key] = _Server(key, known.at(key))
        for key in known.listed:
            if key not in self.servers:
                self.servers[key] = _Server(key, known.at(key), reached.get(key, {}))
        self._unkeyed = {form for name in known.unkeyed for form in sanitized_forms(name)}

    def starts(self, spelling: str) -> _Starts:
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
            if not server.reached and server.shown is not None:
                found.update(
                    text for one in rules for name in server.shown.names if (text := one.shown(server.key, name))
                )
        return frozenset(found)

    @cached_property
    def former_texts(self) -> Mapping[str, str]:
        """The texts that only an old name has, with the present text: with the server, as clients write them."""
        found: dict[str, str] = {}
        for server in self.servers.values():
            for old, new in ({} if server.shown is None else server.shown.former).items():
                if any(
                    old.startswith((f"{form}__", f"{form}_", f"{form}."))
                    for key in self._known.listed
                    for form in sanitized_forms(key)
                ):
                    found[old] = new
        existing = {name for server in self.servers.values() for name in server.forms}
        return {old: new for old, new in found.items() if old not in existing}

    @cached_property
    def wire_starts(self) -> tuple[str, ...]:
        """The beginnings of names that only the gateway gives: ``git__`` if it shows ``git__log``."""
        found: dict[str, None] = {}
        for server in self.servers.values():
            for wire, (key, _) in ({} if server.shown is None else server.shown.names).items():
                start = f"{sanitized_forms(key)[-1]}__"
                if wire.startswith(start):
                    found[start] = None
        return tuple(found)

    def judge(self, kept: KeptName) -> _Verdict:
        """Judge a name in a list of this client, or one with its server in a text."""
        spelling = SPELLINGS[kept.spelling]
        glob = to_glob(kept.text.removesuffix(kept.suffix), regular=spelling.pattern)
        if kept.opaque or glob is None or not spelling.tool:
            return _NOT_JUDGED
        if spelling.is_without_server:
            if kept.server is None or kept.tool is None or kept.server not in self.servers:
                # It may be the client's own tool, or any server's.
                return _NOT_JUDGED
            readings = [_Reading(kept.server, "", glob)]
        else:
            starts = self.starts(kept.spelling)
            if glob in starts.wholes:
                return _FINE
            readings = list(starts.readings(glob))
        if not readings:
            return self._of_unknown(kept, spelling)
        verdicts = [self._of(kept, one) for one in readings]
        return min(verdicts, key=lambda one: _MILDEST.index(one.rule))

    def _of_unknown(self, kept: KeptName, spelling: KeptSpelling) -> _Verdict:
        is_marked = spelling.tool[:3].lower() == "mcp"
        if not is_marked or kept.server is None or _WILD.search(kept.server):
            return _NOT_JUDGED
        if kept.tool is None or kept.tool in self._unkeyed:
            return _NOT_JUDGED
        return self._unchecked(kept, kept.server)

    def _unchecked(self, kept: KeptName, server: str) -> _Verdict:
        fact = f"{excerpt(kept.text, _LONGEST)} was not checked: no tool of the server {excerpt(server)} is known."
        return _Verdict("unknown_server", fact, "Name a source that has its tools: --beside FILE.", "", server)

    def _of(self, kept: KeptName, reading: _Reading) -> _Verdict:
        server = self.servers[reading.key]
        tool, text = reading.tool, kept.text.removesuffix(kept.suffix)
        if server.shown is None:
            if tool in self._unkeyed:
                return _FINE
            return self._unchecked(kept, server.key)
        if _WILD.search(tool):
            return self._of_glob(kept, server, tool)
        if server.reached:
            return self._of_reached(kept, server, reading)
        if tool in server.former:
            return self._of_former(kept, server, reading)
        if tool in server.forms or text in self._shown or server.is_held(tool):
            return _FINE
        if (name := server.folds.get(fold(tool))) is not None:
            new = self._text(kept, reading, name)
            fact = f"{excerpt(kept.text, _LONGEST)} is not spelled as the tool {excerpt(name)} of {excerpt(server.key)} is."
            return _Verdict("former_name", fact, f"Write {excerpt(new, _LONGEST)}.", new, server.key)
        return self.missing(kept, server, reading)

    def _of_glob(self, kept: KeptName, server: _Server, glob: str) -> _Verdict:
        if self._budget.matches(server, glob) is not False:
            return _FINE
        fact = f"{excerpt(kept.text, _LONGEST)} matches no tool of the server {excerpt(server.key)}."
        return _Verdict("idle_glob", fact, "Correct or remove it.", "", server.key)

    def _of_reached(self, kept: KeptName, server: _Server, reading: _Reading) -> _Verdict:
        """Judge a server's own name where the client sees the server through the gateway."""
        own = server.forms.get(reading.tool) or server.forms.get(server.former.get(reading.tool, ""))
        if own is None:
            return self.missing(kept, server, reading)
        if own not in server.reached:
            return _FINE
        key, wire = server.reached[own]
        spelling = SPELLINGS[kept.spelling]
        new = spelling.tool.format(server=key, tool=wire) + kept.suffix
        fact = f"{excerpt(kept.text, _LONGEST)} is the server's own name, which this client does not see behind the gateway."
        return _Verdict("former_name", fact, f"Write {excerpt(new, _LONGEST)}.", new, server.key)

    def _of_former(self, kept: KeptName, server: _Server, reading: _Reading) -> _Verdict:
        new = server.former[reading.tool]
        if not new:
            fact = f"{excerpt(kept.text, _LONGEST)} is a retired name: no tool has it any more."
            return _Verdict("former_name", fact, "Remove it, or write the name of an existing tool.", "", server.key)
        text = self._text(kept, reading, new)
        fact = f"{excerpt(kept.text, _LONGEST)} is an old name: the tool was renamed {excerpt(new)}."
        return _Verdict("former_name", fact, f"Write {excerpt(text, _LONGEST)}.", text, server.key)

    def missing(self, kept: KeptName, server: _Server, reading: _Reading) -> _Verdict:
        """Return the verdict on a name that no tool has, with the nearest name."""
        near = self._budget.nearest(server, reading.tool)
        fact = f"{excerpt(kept.text, _LONGEST)} names no tool: the server {excerpt(server.key)} has none called {excerpt(reading.tool)}."
        if not near:
            return _Verdict("missing_tool", fact, "Remove it, or write the name of an existing tool.", "", server.key)
        text = self._text(kept, reading, server.forms[near])
        if server.reached and (found := server.reached.get(server.forms[near])):
            text = SPELLINGS[kept.spelling].tool.format(server=found[0], tool=found[1]) + kept.suffix
        return _Verdict("missing_tool", fact, f"Did you mean {excerpt(text, _LONGEST)}?", text, server.key)

    def _text(self, kept: KeptName, reading: _Reading, name: str) -> str:
        """Return the text for another tool of the same server, as this client writes it."""
        written = kept.text.removesuffix(kept.suffix)
        end = (
            written[written.index(reading.before) + len(reading.before) + len(reading.tool) :] if reading.before else ""
        )
        if SPELLINGS[kept.spelling].name.startswith(_MARK):
            name = sanitized_forms(name)[min(1, len(sanitized_forms(name)) - 1)]
        return f"{reading.before}{name}{end}{kept.suffix}"


def judge_files(files: Iterable[NamedFile], known: ExistingTools, servers: ProjectServers) -> Iterator[JudgedFile]:
    """Judge the names in all files, in the order of each text."""
    budget = _Budget()
    clients: dict[tuple[str, Path], _ClientNames] = {}

    def client(row: ConfigFile | None, root: Path) -> _ClientNames:
        key = ("" if row is None else row.client, root)
        if key not in clients:
            clients[key] = _ClientNames(row, root, known, servers, budget)
        return clients[key]

    for one in files:
        yield _JudgedNames(one, {row: client(row, one.root) for row in one.rows or (None,)}).judged()


class _Judged(NamedTuple):
    start: int
    line: int
    column: int
    key: str
    text: str
    verdict: _Verdict


class _JudgedNames:
    """Judges the names of one file."""

    def __init__(self, file: NamedFile, clients: Mapping[ConfigFile | None, _ClientNames]) -> None:
        self._file, self._clients = file, clients
        self._lines = [0, *(found.end() for found in re.finditer("\n", file.text))]
        self._placed = 0

    def judged(self) -> JudgedFile:
        listed = list(self._listed())
        taken = {one.start for one in listed}
        everything = listed
        if self._file.has_prose:
            everything = [*listed, *(one for one in self._in_prose() if one.start not in taken)]
        found = [one for one in everything if one.verdict.rule in FILE_RULES]
        found.sort(key=lambda one: (one.line, one.column))
        return JudgedFile(
            file=self._file,
            findings=tuple(self._finding(one) for one in self._once(found)),
            names=sum(one.verdict.rule not in _NOT_CHECKED for one in everything),
            edits=tuple(self._edits(found)),
        )

    def _once(self, found: Iterable[_Judged]) -> Iterator[_Judged]:
        """Yield the findings, but of each unknown server only the first."""
        seen: set[str] = set()
        for one in found:
            if one.verdict.rule != "unknown_server":
                yield one
            elif one.verdict.server not in seen:
                seen.add(one.verdict.server)
                yield one

    def _listed(self) -> Iterator[_Judged]:
        groups: dict[tuple[object, str], list[tuple[KeptName, _Verdict]]] = {}
        for row, kept in self._file.kept:
            verdict = self._clients[row].judge(kept)
            groups.setdefault((kept.where, kept.text), []).append((kept, verdict))
        for several in groups.values():
            kept, verdict = min(several, key=lambda one: _MILDEST.index(one[1].rule))
            if verdict.rule in FILE_RULES:
                start, line, column, key = self._place(kept)
                yield _Judged(start, line, column, key, kept.text, verdict)
            else:
                yield _Judged(self._offset(kept), 0, 0, "", kept.text, verdict)

    def _offset(self, kept: KeptName) -> int:
        places = self._file.places
        return -1 if places is None else places.get(kept.where, -1)

    def _place(self, kept: KeptName) -> tuple[int, int, int, str]:
        """Return offset, line, column and key of a name in a list; the offset is -1 if it is not certain."""
        document = self._file.document
        if document is None:
            start = self._offset(kept)
            return (start, *self._position(start), "") if start >= 0 else (-1, 0, 0, "")
        key = ".".join(str(step) for step in kept.where)[:_LONGEST]
        self._placed += 1
        if self._placed > _MOST_PLACED:
            return -1, 0, 0, key
        line, column = document.position(kept.where)
        start = self._lines[line - 1] + column - 1
        whole = kept.within or kept.text
        quoted = self._file.text[start : start + len(whole) + 1]
        if whole not in quoted:
            return -1, line, column, key
        at = start + quoted.index(whole) + whole.index(kept.text)
        return (at, *self._position(at), key)

    def _position(self, start: int) -> tuple[int, int]:
        line = bisect_right(self._lines, start)
        return line, start - self._lines[line - 1] + 1

    def _in_prose(self) -> Iterator[_Judged]:
        text = self._file.text
        for found in _TOKEN.finditer(text):
            token = found[0].rstrip("./:-")
            if "_" not in token and "." not in token:
                continue
            verdict = self._of_token(token, text[found.start() + len(token) :][:3] if "__" in token else "")
            if verdict.rule:
                yield _Judged(found.start(), *self._position(found.start()), "", token, verdict)

    def _of_token(self, token: str, after: str) -> _Verdict:
        verdicts = [self._of_word(one, token, after) for one in self._clients.values()]
        return min(verdicts, key=lambda one: _MILDEST.index(one.rule))

    def _of_word(self, client: _ClientNames, token: str, after: str) -> _Verdict:
        if token in client.former_texts:
            new = client.former_texts[token]
            fact = f"{excerpt(token, _LONGEST)} is an old name of a tool."
            remedy = f"Write {excerpt(new, _LONGEST)}." if new else "Remove it, or write the name of an existing tool."
            return _Verdict("former_name", fact, remedy, new)
        if after.startswith(_OPEN) or not _PLAIN.fullmatch(token):
            return _NOT_JUDGED
        if token.startswith(_MARK):
            kept = _kept(token, _IN_TEXT, self._file.path)
            if not any(True for _ in client.starts(_IN_TEXT).readings(token)):
                return _NOT_JUDGED
        elif "__" in token and token.startswith(client.wire_starts):
            return self._of_wire(client, token)
        else:
            return _NOT_JUDGED
        verdict = client.judge(kept)
        if verdict.rule == "unknown_server" or (verdict.rule == "missing_tool" and _is_placeholder(token)):
            return _NOT_JUDGED
        return verdict

    def _of_wire(self, client: _ClientNames, token: str) -> _Verdict:
        """Judge a name of the gateway alone, without the client's prefix."""
        several = [one for one in client.servers.values() if one.shown is not None]
        if any(token in one.forms or one.is_held(token) for one in several) or _is_placeholder(token):
            return _FINE
        fact = f"{excerpt(token, _LONGEST)} names no tool: the gateway shows none of this name."
        for one in several:
            if any(name.startswith(client.wire_starts) for name in one.forms):
                kept = _kept(token, "tool", self._file.path)
                verdict = client.missing(kept, one, _Reading(one.key, "", token))
                return verdict._replace(fact=fact)
        return _NOT_JUDGED

    def _finding(self, one: _Judged) -> Finding:
        verdict = one.verdict
        return Finding(
            rule=FILE_RULES[verdict.rule],
            fact=verdict.fact,
            remedy=verdict.remedy,
            location=Location(file=str(self._file.path), line=one.line, column=one.column, key=one.key),
            server=verdict.server,
            tools=(one.text,),
            suggested=verdict.new,
        )

    def _edits(self, found: Iterable[_Judged]) -> Iterator[TextEdit]:
        """Yield the corrections of old names, where the file has exactly the name at its place."""
        end = 0
        for one in sorted(found, key=lambda one: one.start):
            new = one.verdict.new
            is_certain = one.verdict.rule == "former_name" and new and one.start >= end
            if (
                is_certain
                and self._file.text.startswith(one.text, one.start)
                and _is_plain(one.text)
                and _is_plain(new)
            ):
                end = one.start + len(one.text)
                yield TextEdit(line=one.line, column=one.column, start=one.start, old=one.text, new=new)


# Texts that need no quotes or escapes in JSON, TOML or YAML.
_UNQUOTED: Final = re.compile(r"[A-Za-z0-9_@(][A-Za-z0-9_./:@()*-]*")


def _is_plain(text: str) -> bool:
    return _UNQUOTED.fullmatch(text) is not None


def _is_placeholder(token: str) -> bool:
    return token.rpartition("__")[2].casefold() in _PLACEHOLDERS


def _kept(text: str, spelling: str, path: Path) -> KeptName:
    return KeptName(text=text, spelling=spelling, path=path, where=(), server=None, tool=text, effect="text")
