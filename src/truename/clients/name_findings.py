"""Compare the names in clients' files with the tools that exist: missing tools, old names, idle globs.

Only a name that certainly speaks of a tool is judged: one in a client's list, one with a known server in front as the
client writes it, and an old name that leads to a tool. Prose is never guessed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.clients.kept_names import KeptName
from truename.clients.name_verdicts import (
    FINE,
    IN_TEXT,
    LONGEST,
    MARK,
    NOT_JUDGED,
    ClientNames,
    JudgingBudget,
    NameReading,
    NameVerdict,
    mildness,
)
from truename.conventions import Finding, Location
from truename.conventions.file_rules import FILE_RULES
from truename.errors import excerpt
from truename.migration import FileRewrite
from truename.migration.rewrite import TextEdit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from truename.clients.existing_tools import ExistingTools
    from truename.clients.named_files import NamedFile, ProjectServers
    from truename.clients.table import ConfigFile

__all__ = ["JudgedFile", "judge_files"]

# A word of prose; the lookbehind keeps paths, addresses and words with a name inside whole.
_TOKEN: Final = re.compile(r"(?<![A-Za-z0-9_./@:-])[A-Za-z0-9_][A-Za-z0-9_./:-]*")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")
# Behind a name, these say that the text is a pattern or the beginning of a name.
_OPEN: Final = ("*", "?", "<", "{", "[", "$", "...", "\u2026")
_FURTHER: Final = 3
_PLACEHOLDERS: Final = frozenset({"tool", "tool_name", "toolname", "name", "x", "xxx", "y", "yyy"})
# Computing a place in a document reads the whole of it.
_MOST_PLACED: Final = 500
# A value is at most this far behind its key.
_BETWEEN: Final = 80
_NOT_CHECKED: Final = ("", "unchecked_name")


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


def judge_files(files: Iterable[NamedFile], known: ExistingTools, servers: ProjectServers) -> Iterator[JudgedFile]:
    """Judge the names in all files, in the order of each text."""
    budget = JudgingBudget()
    clients: dict[object, ClientNames] = {}

    def client(row: ConfigFile | None, root: Path) -> ClientNames:
        name = "" if row is None else row.client
        entries = servers.of(name, root)
        # Most projects below a directory have its servers and no others: these are the same objects.
        key = (name, *((server, id(entry)) for server, entry in entries.items()))
        if key not in clients:
            clients[key] = ClientNames(row, entries, known, budget)
        return clients[key]

    for one in files:
        yield _JudgedNames(one, {row: client(row, one.root) for row in one.rows or (None,)}).judged()


class _Judged(NamedTuple):
    start: int
    line: int
    column: int
    key: str
    text: str
    verdict: NameVerdict


class _JudgedNames:
    """Judges the names of one file."""

    def __init__(self, file: NamedFile, clients: Mapping[ConfigFile | None, ClientNames]) -> None:
        self._file, self._clients = file, clients
        self._lines = [0, *(found.end() for found in re.finditer("\n", file.text))]
        self._placed = 0

    def judged(self) -> JudgedFile:
        listed = list(self._listed())
        taken = {one.start for one in listed}
        everything = listed
        if self._file.has_prose:
            everything = [*listed, *self._in_prose(taken)]
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
            if one.verdict.rule != "unchecked_name":
                yield one
            elif one.verdict.server not in seen:
                seen.add(one.verdict.server)
                yield one

    def _listed(self) -> Iterator[_Judged]:
        groups: dict[tuple[object, str], list[tuple[KeptName, NameVerdict]]] = {}
        for row, kept in self._file.kept:
            verdict = self._clients[row].judge(kept)
            groups.setdefault((kept.where, kept.text), []).append((kept, verdict))
        for several in groups.values():
            kept, verdict = min(several, key=lambda one: mildness(one[1]))
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
        key = ".".join(str(step) for step in kept.where)[:LONGEST]
        self._placed += 1
        if self._placed > _MOST_PLACED:
            return -1, 0, 0, key
        line, column = document.position(kept.where)
        start = self._lines[line - 1] + column - 1
        whole, last = kept.within or kept.text, kept.where[-1]
        # The place of a member is that of its key; its value is behind it.
        behind = len(last) if isinstance(last, str) and not kept.is_key else 0
        at = self._file.text.find(whole, start + behind, start + behind + len(whole) + _BETWEEN)
        if at < 0:
            return -1, line, column, key
        at += _start_of(kept.text, whole)
        return (at, *self._position(at), key)

    def _position(self, start: int) -> tuple[int, int]:
        line = bisect_right(self._lines, start)
        return line, start - self._lines[line - 1] + 1

    def _in_prose(self, taken: Collection[int]) -> Iterator[_Judged]:
        text = self._file.text
        for found in _TOKEN.finditer(text):
            token = found[0].rstrip("./:-")
            if found.start() in taken or ("_" not in token and "." not in token):
                continue
            end = found.start() + len(token)
            verdict = self._of_token(token, text[end : end + _FURTHER])
            if verdict.rule:
                yield _Judged(found.start(), *self._position(found.start()), "", token, verdict)

    def _of_token(self, token: str, after: str) -> NameVerdict:
        verdicts = [self._of_word(one, token, after) for one in self._clients.values()]
        return min(verdicts, key=mildness)

    def _of_word(self, client: ClientNames, token: str, after: str) -> NameVerdict:
        if token in client.former_texts:
            new = client.former_texts[token]
            remedy = f"Write {excerpt(new, LONGEST)}." if new else "Remove it, or write the name of an existing tool."
            return NameVerdict("former_name", f"{excerpt(token, LONGEST)} is an old name of a tool.", remedy, new)
        if after.startswith(_OPEN) or not _PLAIN.fullmatch(token):
            return NOT_JUDGED
        if not token.startswith(MARK):
            return self._of_wire(client, token) if token.startswith(client.wire_starts) else NOT_JUDGED
        if not any(True for _ in client.starts(IN_TEXT).readings(token)):
            return NOT_JUDGED
        verdict = client.judge(_kept(token, IN_TEXT, self._file.path))
        is_doubtful = verdict.rule == "missing_tool" and _is_placeholder(token)
        return NOT_JUDGED if is_doubtful or verdict.rule == "unchecked_name" else verdict

    def _of_wire(self, client: ClientNames, token: str) -> NameVerdict:
        """Judge a name of the gateway alone, without the client's prefix."""
        several = [one for one in client.servers.values() if one.shown is not None]
        if any(token in one.forms or one.is_held(token) for one in several) or _is_placeholder(token):
            return FINE
        fact = f"{excerpt(token, LONGEST)} names no tool: the gateway shows none of this name."
        for one in several:
            if any(name.startswith(client.wire_starts) for name in one.forms):
                kept = _kept(token, "tool", self._file.path)
                verdict = client.missing(kept, one, NameReading(one.key, "", token))
                return verdict._replace(fact=fact)
        return NOT_JUDGED

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


def _start_of(alternative: str, whole: str) -> int:
    """Return where an alternative of a pattern begins: ``a|ab`` has a shorter one that others may contain."""
    before = whole.split("|")
    return sum(len(one) + 1 for one in before[: before.index(alternative)]) if alternative in before else 0


def _is_placeholder(token: str) -> bool:
    return token.rpartition("__")[2].casefold() in _PLACEHOLDERS


def _kept(text: str, spelling: str, path: Path) -> KeptName:
    return KeptName(text=text, spelling=spelling, path=path, where=(), server=None, tool=text, effect="text")
